"""Two classical looks at a block sequence, for people only: a BCa interval and a test for drift.

Sources: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987), and C. Spearman's rank correlation
(1904), both as scipy.stats has them; scipy is imported when they are asked for. Neither decides anything: a
BCa interval holds for one look at a sample whose size was fixed beforehand, and a drift is no fault of a
block design, only a reason to look at the machine.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

RESAMPLES = 2_000
SEED = 20_250
AT_LEAST = 4
# Resamples that are worked on at once: bounds the memory of long sequences.
_BATCH = 100


class Drift(NamedTuple):
    """Rank correlation of the values with their order (-1 to 1), and how often chance alone gives as much."""

    rho: float
    p: float


def bca_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """(low, high) around the Hodges-Lehmann estimate, in the values' own unit (log ratios for blocks).

    The same values always give the same interval. None without scipy, of fewer than four values, and where
    the resamples do not scatter.
    """
    stats = _scipy_stats()
    v = np.asarray(values, dtype=np.float64)
    if stats is None or v.size < AT_LEAST or np.ptp(v) == 0.0:
        return None
    # scipy 1.15 renamed the argument; older ones know the other name alone.
    seed = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"
    # Resamples that do not scatter are answered with None; scipy's warnings would only repeat that.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (v,),
            _estimates,
            vectorized=True,
            n_resamples=RESAMPLES,
            batch=_BATCH,
            confidence_level=level,
            method="BCa",
            **{seed: np.random.default_rng(SEED)},
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return None if math.isnan(low) or math.isnan(high) else (low, high)


def drift(values: Sequence[float]) -> Drift | None:
    """Do later blocks give other values than earlier ones. None without scipy, of fewer than four values, and
    where all values are equal.
    """
    stats = _scipy_stats()
    v = np.asarray(values, dtype=np.float64)
    if stats is None or v.size < AT_LEAST or np.ptp(v) == 0.0:
        return None
    rho, p = stats.spearmanr(np.arange(v.size), v)
    return Drift(float(rho), float(p))


def _estimates(samples: Any, axis: int) -> Any:
    """Hodges-Lehmann of many samples at once, along one axis."""
    rows = np.moveaxis(samples, axis, -1)
    i, j = np.triu_indices(rows.shape[-1])
    return np.median((rows[..., i] + rows[..., j]) / 2.0, axis=-1)


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        return None
    return stats
