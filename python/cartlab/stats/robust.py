"""Location and scale that a burst or a heavy tail cannot move far.

Hodges and Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963): the median
of all pairwise means. The block value is SPECS.md section 4's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def median(values: Sequence[float]) -> float:
    """The median; of an even number of values the mean of the middle two. ValueError when empty."""
    if not len(values):
        raise ValueError("median of no values")
    return float(np.median(np.asarray(values, dtype=np.float64)))


def block_value(base_ns: Sequence[int], cand_ns: Sequence[int]) -> float:
    """y of a block: the median over slices of ln(t_base / t_candidate).

    Both lists hold nanoseconds > 0 and are of the same length; slice i of one side ran next to slice i of
    the other.
    """
    if len(base_ns) != len(cand_ns) or not base_ns:
        raise ValueError(f"expected as many slices on both sides, found {len(base_ns)} and {len(cand_ns)}")
    if min(base_ns) <= 0 or min(cand_ns) <= 0:
        raise ValueError("expected slice times above 0 ns")
    return median([math.log(b) - math.log(c) for b, c in zip(base_ns, cand_ns, strict=True)])


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of (v_i + v_j) / 2 over all i <= j, in the values' own unit (log ratios for blocks)."""
    v = np.asarray(values, dtype=np.float64)
    if not v.size:
        raise ValueError("Hodges-Lehmann estimate of no values")
    i, j = np.triu_indices(v.size)
    return float(np.median((v[i] + v[j]) / 2.0))


def robust_sd(values: Sequence[float]) -> float:
    """1.4826 times the median absolute deviation from the median: the sd, if the noise is normal."""
    v = np.asarray(values, dtype=np.float64)
    if not v.size:
        raise ValueError("scale of no values")
    return float(1.4826 * np.median(np.abs(v - np.median(v))))
