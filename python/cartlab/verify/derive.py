"""Block values, evidence and status from raw slices: a second writing of SPECS.md section 5.

Only the e-process (and for `--design groupseq` the Wilcoxon bounds) is shared with the code that decided.
The numbers of the policy stand here once more, on purpose: a changed threshold in the other place is a
finding.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from cartlab.stats.betting import Bets
from cartlab.stats.groupseq import group_bounds

FAILURES = {
    "behaviour_changed",
    "busy_invalid",
    "build_failed",
    "crashed",
    "timeout",
    "tampered",
    "checks_failed",
    "compliance_failed",
    "parity_violation",
    "metric_error",
    "no_change",
    "unverified",
    "interrupted",
}
KEEPS = ("keep", "keep_stack", "keep_small_gain")


class Derived(NamedTuple):
    """What the slices say."""

    used: int
    pooled: int
    dropped: int
    hl: float | None
    lcb: float | None
    ucb: float | None
    e_value: float | None
    faster: int


def value_of(block: Mapping[str, Any]) -> float:
    """y of a block body: median over slices of ln(t_base / t_candidate). ValueError where the slices allow
    none.
    """
    base, cand = block["base_ns"], block["cand_ns"]
    if len(base) != len(cand) or not base or min(*base, *cand) <= 0:
        raise ValueError("the slices of the two sides do not match")
    return statistics.median(math.log(b) - math.log(c) for b, c in zip(base, cand, strict=True))


def is_sample(block: Mapping[str, Any], forced: bool) -> bool:
    """A dropped block is a sample only in a forced run, and only where the contention rule dropped it."""
    reason = block["dropped"]
    return reason is None or (forced and str(reason).startswith("busy"))


def derive(
    earlier: Sequence[Mapping[str, Any]],
    own: Sequence[Mapping[str, Any]],
    floor: float,
    alpha: float,
    forced: bool,
    design: str,
) -> Derived:
    """The evidence of these block bodies."""
    first = [value_of(b) for b in earlier if is_sample(b, forced)]
    values = first + [value_of(b) for b in own if is_sample(b, forced)]
    guard = max(1.01, floor)
    bets = Bets(alpha, (guard, 1.03, max(1.03, floor)))
    for y in values:
        bets.add(y)
    lcb, ucb = (bets.lcb, bets.ucb) if design == "betting" else group_bounds(values, alpha)
    means = [(a + b) / 2 for a, b in combinations_with_replacement(values, 2)]
    return Derived(
        used=len(values),
        pooled=len(first),
        dropped=sum(not is_sample(b, forced) for b in own),
        hl=math.exp(statistics.median(means)) if means else None,
        lcb=lcb,
        ucb=ucb,
        e_value=bets.e_value(guard) if values else None,
        faster=sum(y > 0 for y in values),
    )


def halves_of(blocks: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, float | None]]:
    """Half of a confirm run -> (its valid blocks, their Hodges-Lehmann estimate)."""
    out: dict[str, tuple[int, float | None]] = {}
    for half in ("public", "held-out"):
        mine = [b for b in blocks if b["witness"].get("half") == half and is_sample(b, False)]
        means = [(a + b) / 2 for a, b in combinations_with_replacement([value_of(b) for b in mine], 2)]
        out[half] = (len(mine), math.exp(statistics.median(means)) if means else None)
    return out


def status_of(
    tier: str, found: Derived | None, validity: Mapping[str, Any], budget_ended: bool, floor: float
) -> str:
    """The status, sentence by sentence of the contract's table."""
    proves = tier in ("accept", "accept-stack", "confirm")
    if validity["problem"] is not None:
        return str(validity["problem"])
    if proves and validity["checks"] == "failed":
        return "checks_failed"
    if found is None or found.used + found.dropped == 0:
        return "inconclusive"
    new = found.used - found.pooled + found.dropped
    if new and found.dropped / new > 0.3:
        return "busy_invalid"
    if tier in ("calibrate", "single"):
        return "baseline"
    lower = -math.inf if found.lcb is None else found.lcb
    upper = math.inf if found.ucb is None else found.ucb
    if lower > upper:
        return "inconclusive"
    if tier == "screen":
        return _screened(found, upper)
    guard, margin = max(1.01, floor), max(1.03, floor)
    stack = "_stack" if tier == "accept-stack" else ""
    if lower >= margin:
        status = "keep" + stack
    elif lower >= guard and (upper < margin or budget_ended):
        status = "keep_small_gain"
    elif lower < guard and (upper < guard or (budget_ended and upper < 1.03)):
        status = "discard" + stack
    else:
        status = "inconclusive"
    if status in KEEPS and validity["checks"] != "passed":
        return "inconclusive"
    if status in KEEPS and validity["forced"]:
        return "keep_small_gain"
    return status


def _screened(found: Derived, upper: float) -> str:
    estimate = 1.0 if found.hl is None else found.hl
    if upper < 1.01:
        return "triage_discard"
    if found.used < 6:
        return "inconclusive"
    if estimate >= 1.01 and 6 * found.faster >= 5 * found.used:
        return "triage_promote"
    if estimate < 1.0 and 3 * found.faster <= found.used:
        return "triage_discard"
    return "inconclusive"
