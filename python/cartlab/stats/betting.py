"""The betting e-process and the bounds that come from inverting it.

Sources: J. Ville, "Etude critique de la notion de collectif" (1939), for P(sup wealth >= 1/alpha) <= alpha;
I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024),
for bounds by inversion. The bets are SPECS.md section 5's.

H0: ratio <= r0. A block pays x = y - ln r0. Each bettor multiplies its wealth by 1 + h(x) with h odd,
increasing, |h| < 1 and scaled by past blocks only. If y is symmetric around the true log ratio (under A/A
the recorded coin makes it so; for r0 != 1 this is an assumption about the noise), no bettor gains on
average under H0, nor does their mean. So rejecting r0 once the mean wealth has reached 1/alpha errs at most
alpha of the time, over any number of looks.

The wealth is followed on one fixed grid of r0. A lower bound is the highest grid value up to which all are
rejected; the upper bound mirrors the bets. Both only ever tighten.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cartlab.model import POLICY, Policy

Floats = npt.NDArray[np.float64]
# Distances in units of the scale beyond which nothing changes any more.
FAR = 1e100


def grid_of(thresholds: Iterable[float] = (), policy: Policy = POLICY) -> Floats:
    """The grid of r0: steps of 0.001 plus every threshold that a decision compares a bound with,
    ascending.
    """
    low, high = policy.grid
    steps = np.arange(low, high + 1, dtype=np.float64) / 1000.0
    extra = np.asarray([t for t in thresholds if math.isfinite(t) and t > 0.0], dtype=np.float64)
    return np.unique(np.concatenate([steps, extra]))


def stakes(x: Floats, scale: Floats | None, policy: Policy) -> list[Floats]:
    """h(x) of each bettor: the sign bets, then the tanh bets. scale: median |x| of the past, None for the
    first blocks.
    """
    sign = np.sign(x)
    bets = [stake * sign for stake in policy.sign_bets]
    if scale is None:
        return bets + [stake * sign for stake in policy.first_stakes]
    # A scale of zero (all past blocks exactly on r0) leaves the sign at full stake; x = 0 pays nothing.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(x == 0.0, 0.0, x / scale)
    # Far out tanh is 1 whatever the slope; a z near the largest double, or none at all, would overflow there.
    z = np.clip(z, -FAR, FAR)
    return bets + [policy.tanh_cap * np.tanh(slope * z) for slope in policy.tanh_bets]


def _mean_wealth_log(logs: Floats) -> Any:
    """ln of the mean over bettors (axis 0) of exp(logs)."""
    top = logs.max(axis=0)
    return top + np.log(np.exp(logs - top).mean(axis=0))


def _median_distance(ordered: Sequence[float], centres: Floats) -> Floats:
    """Median of |v - c| over the ascending `ordered`, for each c.

    The k-th smallest distance is the least radius that covers k neighbours, and the best window of k
    neighbours is next to the point where its two ends are equally far: one binary search a centre instead
    of a sort.
    """
    v = np.asarray(ordered, dtype=np.float64)
    n = v.size

    def kth(k: int) -> Floats:
        low, high = v[: n - k + 1], v[k - 1 :]
        right = np.searchsorted(low / 2.0 + high / 2.0, centres)  # halves first: a sum could overflow
        at = np.minimum(right, n - k)
        before = np.maximum(right - 1, 0)
        return np.minimum(
            np.maximum(centres - low[at], high[at] - centres),
            np.maximum(centres - low[before], high[before] - centres),
        )

    if n % 2:
        return kth((n + 1) // 2)
    return kth(n // 2) / 2.0 + kth(n // 2 + 1) / 2.0


class Bets:
    """The wealth of one block sequence on a whole grid of r0, block by block.

    add() takes the next block's y; lcb, ucb and e_value() answer at any time. Feeding the same values in
    the same order gives the same numbers, however many runs they came from.
    """

    def __init__(
        self, alpha: float = POLICY.alpha, thresholds: Iterable[float] = (), policy: Policy = POLICY
    ) -> None:
        self._policy = policy
        self._log_bar = math.log(1.0 / alpha)
        self._grid = grid_of(thresholds, policy)
        self._centres = np.log(self._grid)
        bettors = len(policy.sign_bets) + len(policy.tanh_bets)
        self._up = np.zeros((bettors, self._grid.size))
        self._down = np.zeros((bettors, self._grid.size))
        # Highest log wealth so far; an empty product is 1.
        self._up_best = np.zeros(self._grid.size)
        self._down_best = np.zeros(self._grid.size)
        self._ordered: list[float] = []

    @property
    def blocks(self) -> int:
        """How many values were added."""
        return len(self._ordered)

    def add(self, y: float) -> None:
        """Take the next block's log ratio. ValueError unless it is finite."""
        if not math.isfinite(y):
            raise ValueError(f"expected a finite block value, found {y}")
        x = y - self._centres
        seen = len(self._ordered)
        scale = None if seen < self._policy.first_blocks else _median_distance(self._ordered, self._centres)
        h = np.stack(stakes(x, scale, self._policy))
        self._up += np.log1p(h)
        self._down += np.log1p(-h)
        np.maximum(self._up_best, _mean_wealth_log(self._up), out=self._up_best)
        np.maximum(self._down_best, _mean_wealth_log(self._down), out=self._down_best)
        insort(self._ordered, y)

    @property
    def lcb(self) -> float | None:
        """Lower bound of the ratio: every grid value up to it is rejected. None where there is no bound
        yet.
        """
        rejected = self._up_best >= self._log_bar
        if self.blocks < self._policy.min_blocks or not rejected[0]:
            return None
        run = self._grid.size if rejected.all() else int(np.argmin(rejected))
        return float(self._grid[run - 1])

    @property
    def ucb(self) -> float | None:
        """Upper bound of the ratio: every grid value from it on is rejected by the mirrored bets. None
        where there is none.
        """
        rejected = self._down_best >= self._log_bar
        if self.blocks < self._policy.min_blocks or not rejected[-1]:
            return None
        run = self._grid.size if rejected.all() else int(np.argmin(rejected[::-1]))
        return float(self._grid[self._grid.size - run])

    def e_value(self, r0: float) -> float:
        """The wealth now against ratio <= r0: an e-value at any stopping time (its highest so far is none).

        r0 must be on the grid (a threshold or a multiple of 0.001), else ValueError.
        """
        at = int(np.searchsorted(self._grid, r0))
        if at >= self._grid.size or self._grid[at] != r0:
            raise ValueError(f"{r0} is not on the grid; name it as a threshold")
        return float(np.exp(min(_mean_wealth_log(self._up[:, at]), 700.0)))


def wealth_paths(values: npt.ArrayLike, r0: float, mirrored: bool = False, policy: Policy = POLICY) -> Any:
    """ln wealth after each block for many sequences at once, written as plainly as the definition.

    values: (trials, blocks) log ratios. Returns (trials, blocks), not the running maximum. The simulations
    use it, and the tests hold Bets against it.
    """
    x = np.asarray(values, dtype=np.float64) - math.log(r0)
    if mirrored:
        x = -x
    logs = np.zeros((len(policy.sign_bets) + len(policy.tanh_bets), x.shape[0]))
    out = np.empty_like(x)
    for b in range(x.shape[1]):
        scale = None if b < policy.first_blocks else np.median(np.abs(x[:, :b]), axis=1)
        logs += np.log1p(np.stack(stakes(x[:, b], scale, policy)))
        out[:, b] = _mean_wealth_log(logs)
    return out
