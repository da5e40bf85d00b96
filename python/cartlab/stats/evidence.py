"""From block records to an Evidence: which blocks count, the estimate, the bounds, what is still needed.

Contract: SPECS.md section 5. The blocks are those of one pair in ledger order: earlier attempts
first, then this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cartlab.model import BUSY, POLICY, Block, Evidence, Policy
from cartlab.stats.betting import Bets
from cartlab.stats.groupseq import group_bounds
from cartlab.stats.planner import blocks_to_show, residuals_of, smallest_shown
from cartlab.stats.robust import hodges_lehmann


def counts(block: Block, forced: bool = False) -> bool:
    """Is the block a sample. A forced run also takes blocks that the contention rule dropped."""
    return block.dropped is None or (forced and block.dropped.startswith(BUSY))


def used_values(blocks: Iterable[Block], forced: bool = False) -> list[float]:
    """y of the blocks that count, in order."""
    return [block.y for block in blocks if counts(block, forced)]


def evidence_path(
    blocks: Sequence[Block],
    floor: float = 1.0,
    alpha: float = POLICY.alpha,
    pooled: int = 0,
    thresholds: Iterable[float] = (),
    forced: bool = False,
    policy: Policy = POLICY,
) -> Iterator[Evidence]:
    """The evidence after each of this attempt's blocks, without the forecasts. Arguments as for
    evidence().
    """
    guard = max(policy.guard, floor)
    bets = Bets(alpha, (guard, policy.margin, max(policy.margin, floor), *thresholds), policy)
    values: list[float] = []
    earlier = dropped = 0
    for at, block in enumerate(blocks):
        if counts(block, forced):
            values.append(block.y)
            bets.add(block.y)
            earlier += at < pooled
        else:
            dropped += at >= pooled
        if at >= pooled:
            yield _of(bets, values, dropped, earlier, guard, floor, alpha)


def _of(
    bets: Bets, values: Sequence[float], dropped: int, earlier: int, guard: float, floor: float, alpha: float
) -> Evidence:
    return Evidence(
        used=len(values),
        dropped=dropped,
        pooled=earlier,
        hl=math.exp(hodges_lehmann(values)) if values else None,
        lcb=bets.lcb,
        ucb=bets.ucb,
        e_value=bets.e_value(guard) if values else None,
        guard=guard,
        floor=floor,
        alpha=alpha,
        faster=sum(v > 0.0 for v in values),
    )


def evidence(
    blocks: Sequence[Block],
    floor: float = 1.0,
    alpha: float = POLICY.alpha,
    pooled: int = 0,
    thresholds: Iterable[float] = (),
    forced: bool = False,
    policy: Policy = POLICY,
    design: str = "betting",
) -> Evidence:
    """What the whole sequence says.

    blocks: valid and dropped ones, in ledger order; the first `pooled` of them are earlier attempts'.
    floor: 1 + the relink floor, it may only raise the guard. thresholds: further ratios that a bound will
    be compared with (a round's target). forced: the contention rule is waived for this run.
    """
    guard = max(policy.guard, floor)
    bets = Bets(alpha, (guard, policy.margin, max(policy.margin, floor), *thresholds), policy)
    values = used_values(blocks, forced)
    for y in values:
        bets.add(y)
    earlier = len(used_values(blocks[:pooled], forced))
    dropped = sum(not counts(block, forced) for block in blocks[pooled:])
    found = _of(bets, values, dropped, earlier, guard, floor, alpha)
    if design == "groupseq":
        lcb, ucb = group_bounds(values, alpha)
        found = replace(found, lcb=lcb, ucb=ucb)
    return forecast(found, values, policy)


def forecast(found: Evidence, values: Sequence[float], policy: Policy = POLICY) -> Evidence:
    """The same evidence with `resolvable` and `blocks_needed`, both forecasts from the noise of these
    values.
    """
    if found.hl is None or len(values) < 2:
        return found
    noise = residuals_of(values)
    distance = abs(math.log(found.hl) - math.log(found.guard))
    total = blocks_to_show(distance, noise, found.alpha, policy)
    return replace(
        found,
        resolvable=smallest_shown(found.used, noise, found.guard, found.alpha, policy),
        blocks_needed=None if total is None else max(1, total - found.used),
    )
