"""When a measured attempt is kept: four policies, pure over values.

`greedy`: strictly better than the best so far, as the documents have it; under noise it keeps luck.
`repeat-k`: the median of k runs has to be strictly better.
`verified`: a first win counts only if a second run, with another seed, is better than the best as well.
`paired`: candidate and baseline run in turn on the same seeds, and the betting e-process decides; looks are
free and a no-op is kept at most `alpha` of the time, however often it is handed in.
The policy's name and inputs are recorded with each decision. None of them reads a clock or a file.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cartlab.stats.betting import Bets

POLICIES = ("greedy", "repeat-k", "verified", "paired")
ALPHA = 0.01
PAIRS = 48


@dataclass(frozen=True)
class Decided:
    """status: keep, discard, unverified or inconclusive; None: measure on. reason: one line."""

    status: str | None
    reason: str
    inputs: dict[str, Any]


def better(value: float, best: float, direction: str) -> bool:
    """Is `value` strictly better; a tie is not."""
    return value > best if direction == "higher" else value < best


def gains(value: float, best: float, direction: str, floor: float = 0.0) -> bool:
    """Is `value` better by more than `floor` (in the metric's unit); with 0 any gain counts, no tie."""
    return (value - best if direction == "higher" else best - value) > floor


def reaches(value: float, target: float, direction: str) -> bool:
    """Is the target reached; the target itself counts."""
    return value >= target if direction == "higher" else value <= target


def effect(candidate: float, baseline: float, direction: str, floor: float = 0.0) -> float:
    """One pair's effect, > 0 where the candidate is better by more than `floor`, which is taken off its value
    first: the log ratio, or the difference where a value is not positive.
    """
    candidate += -floor if direction == "higher" else floor
    positive = candidate > 0 and baseline > 0
    raw = math.log(candidate / baseline) if positive else candidate - baseline
    return raw if direction == "higher" else -raw


def greedy(best: float, value: float, direction: str, floor: float = 0.0) -> Decided:
    """One run against the best so far."""
    won = gains(value, best, direction, floor)
    word = "better than" if won else "not better than"
    below = f" by more than the floor of {floor:g}" if floor and better(value, best, direction) else ""
    return Decided("keep" if won else "discard", f"{value:.9g} is {word} {best:.9g}{below}", {"best": best})


def repeat_k(best: float, values: Sequence[float], k: int, direction: str, floor: float = 0.0) -> Decided:
    """The median of k runs against the best so far."""
    inputs = {"best": best, "k": k, "values": list(values)}
    if len(values) < k:
        return Decided(None, f"{len(values)} of {k} runs", inputs)
    found = greedy(best, statistics.median(values[:k]), direction, floor)
    return Decided(found.status, f"median of {k}: {found.reason}", inputs)


def verified(best: float, values: Sequence[float], direction: str, floor: float = 0.0) -> Decided:
    """A win has to be repeated by a second run."""
    inputs = {"best": best, "values": list(values)}
    first = greedy(best, values[0], direction, floor)
    if first.status != "keep":
        return Decided("discard", first.reason, inputs)
    if len(values) < 2:
        return Decided(None, f"{first.reason}; to be repeated with another seed", inputs)
    second = greedy(best, values[1], direction, floor)
    status = "keep" if second.status == "keep" else "unverified"
    return Decided(status, f"{first.reason}; repeated: {second.reason}", inputs)


def judged(
    policy: str, best: float, values: Sequence[float], k: int, direction: str, floor: float = 0.0
) -> Decided:
    """What a policy without pairs says of the runs so far."""
    if policy == "greedy":
        return greedy(best, values[0], direction, floor)
    if policy == "repeat-k":
        return repeat_k(best, values, k, direction, floor)
    return verified(best, values, direction, floor)


def shown(policy: str, values: Sequence[float]) -> float:
    """The value that stands for an attempt: the middle run under repeat-k, else the first."""
    return sorted(values)[(len(values) - 1) // 2] if policy == "repeat-k" else values[0]


def paired(effects: Sequence[float], *, alpha: float = ALPHA, limit: int = PAIRS) -> Decided:
    """The e-process over pairs against "not better", and its mirror against "not worse"."""
    bets = Bets(alpha, (1.0,))
    for value in effects:
        bets.add(value)
    lower, upper = bets.lcb, bets.ucb
    inputs = {"effects": list(effects), "alpha": alpha, "limit": limit, "e_value": bets.e_value(1.0)}
    if lower is not None and lower >= 1.0:
        return Decided("keep", f"better, by {len(effects)} pairs at alpha {alpha:g}", inputs)
    if upper is not None and upper <= 1.0:
        return Decided("discard", f"not better, by {len(effects)} pairs at alpha {alpha:g}", inputs)
    if len(effects) < limit:
        return Decided(None, f"{len(effects)} of at most {limit} pairs", inputs)
    return Decided("inconclusive", f"{limit} pairs decide nothing at alpha {alpha:g}", inputs)


def sentinel(effects: Sequence[float], *, alpha: float = ALPHA) -> str | None:
    """Why pairs of one tree with itself say that the machine decides, or None: two e-processes, alpha / 2
    each, so that an honest machine is suspected at most alpha of the time.
    """
    bets = Bets(alpha / 2, (1.0,))
    for value in effects:
        bets.add(value)
    lower, upper = bets.lcb, bets.ucb
    if (lower is not None and lower > 1.0) or (upper is not None and upper < 1.0):
        return (
            f"{len(effects)} pairs of the accepted tree with itself differ: the machine decides, not the code"
        )
    return None
