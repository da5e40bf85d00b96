"""From the blocks of one sequence to what can be seen in them: wealth, sides of the coin, drift, interval.

The numbers are cartlab.stats'; here they are put together for a reader. The BCa interval holds for a number
of blocks that was fixed beforehand, a verdict's bounds at any time: the former is narrower and decides
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cartlab.model import Block
from cartlab.report.facts import Diagnostics, Point
from cartlab.stats import bca_interval, drift, hodges_lehmann, robust_sd, wealth_paths
from cartlab.stats.evidence import counts
from cartlab.stats.second_opinion import AT_LEAST

LEVEL = 0.95


def diagnose(
    earlier: Sequence[Block], own: Sequence[Block], guard: float, forced: bool = False
) -> Diagnostics:
    """What the sequence shows. earlier: blocks of attempts before; own: this attempt's; dropped ones too.
    guard: the ratio that the bets were against. forced: blocks dropped as busy count all the same.
    """
    points = tuple(
        Point(block.y, block.coin, counts(block, forced), at < len(earlier), block.dropped)
        for at, block in enumerate([*earlier, *own])
    )
    values = [point.y for point in points if point.counts]
    sides = [[p.y for p in points if p.counts and p.coin == coin] for coin in (0, 1)]
    first, second = [hodges_lehmann(side) if side else None for side in sides]
    trend, interval = drift(values), bca_interval(values, LEVEL)
    return Diagnostics(
        points=points,
        wealth_for=_wealth(values, guard, False),
        wealth_against=_wealth(values, guard, True),
        sd=robust_sd(values) if len(values) > 1 else None,
        by_coin=((len(sides[0]), _ratio(first)), (len(sides[1]), _ratio(second))),
        role_effect=None if first is None or second is None else math.exp((second - first) / 2.0) - 1.0,
        drift_rho=None if trend is None else trend.rho,
        drift_p=None if trend is None else trend.p,
        bca=None if interval is None else (math.exp(interval[0]), math.exp(interval[1])),
        bca_level=LEVEL,
        missing=_missing(values, trend is None or interval is None),
    )


def _ratio(log: float | None) -> float | None:
    return None if log is None else math.exp(log)


def _wealth(values: Sequence[float], guard: float, mirrored: bool) -> tuple[float, ...]:
    if not values:
        return ()
    return tuple(float(v) / math.log(10.0) for v in wealth_paths([values], guard, mirrored)[0])


def _missing(values: Sequence[float], lacks: bool) -> tuple[str, ...]:
    """Why there is no interval or no drift test, one line."""
    if not lacks:
        return ()
    why = (
        f"fewer than {AT_LEAST} blocks count"
        if len(values) < AT_LEAST
        else "the blocks are too alike"
        if max(values) - min(values) < 1e-12
        else "scipy is not installed, or the blocks are too alike"
    )
    return (f"no BCa interval or no drift test: {why}",)
