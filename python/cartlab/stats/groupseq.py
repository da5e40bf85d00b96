"""`--design groupseq`: a few looks with an exact Wilcoxon signed-rank test each; easier to explain than
betting.

F. Wilcoxon, Biometrics Bulletin 1 (1945). Look k is after 12 * 2^(k-1) blocks and spends alpha / (k (k +
1)), which sums to alpha over all looks there will ever be (Bonferroni), so a rerun only comes to the next
look. The bounds are the test's inversion: order statistics of the pairwise means (Walsh averages), tightest
over the looks so far. Between looks nothing changes. The assumption is the same as for betting: block noise
symmetric around the true log ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cartlab.model import POLICY

FIRST_LOOK = 12


class Look(NamedTuple):
    """One look: after how many blocks, and the alpha it spends on each side."""

    blocks: int
    alpha: float


def looks(blocks: int, alpha: float = POLICY.alpha) -> list[Look]:
    """The looks that a sequence of this length has had."""
    out = []
    k, at = 1, FIRST_LOOK
    while at <= blocks:
        out.append(Look(at, alpha / (k * (k + 1))))
        k, at = k + 1, at * 2
    return out


@lru_cache(maxsize=32)
def _cumulative(n: int) -> tuple[float, ...]:
    """P(W <= w) for w = 0 .. n(n+1)/2, W the sum of the positive ranks under symmetry, no ties."""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1.0
    for rank in range(1, n + 1):
        # Each rank is positive or not with probability 1/2; halving as we go keeps the numbers small.
        counts[rank:] = (counts[rank:] + counts[:-rank]) / 2.0
        counts[:rank] /= 2.0
    return tuple(np.cumsum(counts).tolist())


def signed_rank_p(values: Sequence[float], centre: float) -> float:
    """One-sided p of "the centre is not above this": P(W >= observed). Zeros and ties count half, which is
    conservative.
    """
    x = np.asarray(values, dtype=np.float64) - centre
    n = x.size
    i, j = np.triu_indices(n)
    # W is the number of positive Walsh averages; those at zero are not evidence for the alternative.
    walsh = (x[i] + x[j]) / 2.0
    w = int((walsh > 0.0).sum())
    return 1.0 if w == 0 else 1.0 - _cumulative(n)[w - 1]


def bounds_at(values: Sequence[float], alpha: float) -> tuple[float | None, float | None]:
    """Lower and upper bound of the centre, each wrong with probability at most alpha; None where n allows
    none.
    """
    v = np.asarray(values, dtype=np.float64)
    table = _cumulative(v.size)
    # The largest c with P(W <= c) <= alpha: then the (c+1)-th smallest Walsh average is a lower bound.
    c = int(np.searchsorted(np.asarray(table), alpha, side="right")) - 1
    if c < 0:
        return None, None
    i, j = np.triu_indices(v.size)
    walsh = np.sort((v[i] + v[j]) / 2.0)
    return float(walsh[c]), float(walsh[-1 - c])


def group_bounds(values: Sequence[float], alpha: float = POLICY.alpha) -> tuple[float | None, float | None]:
    """LCB and UCB of the ratio after these block values: the tightest over all looks so far; None before
    the first.
    """
    lower: float | None = None
    upper: float | None = None
    for look in looks(len(values), alpha):
        low, high = bounds_at(values[: look.blocks], look.alpha)
        if low is not None and high is not None:
            lower = low if lower is None else max(lower, low)
            upper = high if upper is None else min(upper, high)
    return (
        None if lower is None else math.exp(lower),
        None if upper is None else math.exp(upper),
    )
