"""How many blocks an effect takes, and the smallest effect that so many blocks show.

Mean-field: with residuals e of past blocks (made symmetric), a bettor's log wealth grows by mean ln(1 + h(d
+ e)) a block at distance d from the guard, and the mean over bettors has reached 1/alpha about when the
best bettor alone has reached bettors/alpha. It is a forecast of the middle run, not a bound; nothing is
decided by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cartlab.model import POLICY, Policy
from cartlab.stats.betting import stakes
from cartlab.stats.robust import hodges_lehmann

FOREVER = 100_000
"""More blocks than anybody will measure: answered as None."""


def _growth(distance: float, residuals: Sequence[float], policy: Policy) -> float:
    """Log wealth per block of the best bettor at this log distance from r0."""
    e = np.asarray(residuals, dtype=np.float64)
    x = distance + np.concatenate([e, -e])
    scale = np.full_like(x, np.median(np.abs(x)))
    return max(float(np.log1p(h).mean()) for h in stakes(x, scale, policy))


def residuals_of(values: Sequence[float]) -> list[float]:
    """The values less their Hodges-Lehmann estimate."""
    centre = hodges_lehmann(values)
    return [v - centre for v in values]


def blocks_to_show(
    distance: float, residuals: Sequence[float], alpha: float = POLICY.alpha, policy: Policy = POLICY
) -> int | None:
    """Blocks until a bound passes a threshold that lies `distance` (a log ratio > 0) away; None =
    practically never.

    residuals: noise of blocks around their centre, at least one value.
    """
    if distance <= 0.0 or not len(residuals):
        return None
    growth = _growth(distance, residuals, policy)
    bettors = len(policy.sign_bets) + len(policy.tanh_bets)
    if growth <= math.log(bettors / alpha) / FOREVER:
        return None
    return max(policy.min_blocks, math.ceil(math.log(bettors / alpha) / growth))


def smallest_shown(
    blocks: int,
    residuals: Sequence[float],
    guard: float,
    alpha: float = POLICY.alpha,
    policy: Policy = POLICY,
) -> float | None:
    """The smallest true ratio whose lower bound passes `guard` within so many blocks of this noise; None if
    none does.
    """
    if blocks < policy.min_blocks or not len(residuals):
        return None

    def shown(distance: float) -> bool:
        needed = blocks_to_show(distance, residuals, alpha, policy)
        return needed is not None and needed <= blocks

    low, high = 0.0, 2.0
    if not shown(high):
        return None
    while high - low > 1e-5:
        middle = (low + high) / 2.0
        low, high = (low, middle) if shown(middle) else (middle, high)
    return guard * math.exp(high)
