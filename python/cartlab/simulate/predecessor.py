"""The predecessor's runs on the same machines, for the columns beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cartlab import legacy
from cartlab.simulate.machines import Floats, Noise, block_values


def legacy_ratios(noise: Noise, ratio: float, trials: int, pairs: int, rng: np.random.Generator) -> Floats:
    """Pair ratios (trials, pairs) as the predecessor saw them: one process a half, orders alternating, no
    coin.
    """
    quiet = noise._replace(position=0.0, slice_sd=0.0, slices=1)
    y, coin = block_values(quiet, 1.0, trials, pairs, rng)
    role = y * np.where(coin == 1, 1.0, -1.0)
    order = np.where(np.arange(pairs) % 2 == 0, 1.0, -1.0) * math.log1p(noise.position)
    return np.asarray(ratio * np.exp(role + order))


def legacy_interval(values: Sequence[float]) -> tuple[float, float]:
    """What the bootstrap of a median of 3 or 7 converges to, without resampling: order statistics."""
    ordered = sorted(values)
    return (ordered[0], ordered[-1]) if len(ordered) <= 5 else (ordered[1], ordered[-2])


def legacy_status(row: Sequence[float], tier: str) -> str:
    """How the predecessor's tier ended on these pair ratios, the machine's load being fine."""
    checkpoints = legacy.TIERS[tier].checkpoints
    for n in checkpoints:
        seen = list(row[:n])
        at = legacy.look(seen, checkpoints, True, legacy_interval(seen))
        if at.stops:
            break
    return legacy.status_of(tier, at, load_fine=True)


def legacy_statuses(
    noise: Noise, ratio: float, trials: int, seed: int, tier: str, reruns: int = 1
) -> list[list[str]]:
    """Statuses of `trials` candidates of this true ratio, each run `reruns` times afresh."""
    rng = np.random.default_rng([seed, round(ratio * 1000), round(noise.sd * 1e6), 7])
    pairs = legacy.TIERS[tier].checkpoints[-1]
    rows = legacy_ratios(noise, ratio, trials * reruns, pairs, rng)
    found = [legacy_status(row.tolist(), tier) for row in rows]
    return [found[at : at + reruns] for at in range(0, len(found), reruns)]


def legacy_kept(noise: Noise, ratio: float, trials: int, seed: int, tier: str = "accept") -> float:
    """The share of such candidates that the predecessor's accept (3 pairs) or accept-stack (up to 7) kept."""
    found = legacy_statuses(noise, ratio, trials, seed, tier)
    return sum(run[0].startswith("keep") for run in found) / trials


def legacy_lottery(noise: Noise, trials: int, seed: int, tier: str, reruns: int = 10) -> float:
    """The share of no-op changes that at least one of so many runs of the tier promotes or keeps."""
    found = legacy_statuses(noise, 1.0, trials, seed, tier, reruns)
    lucky = ("triage_promote", "keep", "keep_small_gain", "keep_stack")
    return sum(any(status in lucky for status in runs) for runs in found) / trials


def legacy_interval_misses(noise: Noise, ratio: float, trials: int, seed: int, pairs: int = 3) -> float:
    """How often its "95 %" interval of so many pairs does not hold the true ratio."""
    rng = np.random.default_rng([seed, round(ratio * 1000), round(noise.sd * 1e6), pairs])
    rows = legacy_ratios(noise, ratio, trials, pairs, rng)
    bounds = [legacy_interval(row.tolist()) for row in rows]
    return sum(not low <= ratio <= high for low, high in bounds) / trials


def legacy_leak(noise: Noise, ratio: float, trials: int, seed: int, pairs: int = 3) -> float:
    """What a position effect leaves in its estimate, on average over the trials: |estimate / ratio - 1|."""
    rng = np.random.default_rng([seed, round(ratio * 1000), round(noise.sd * 1e6), pairs])
    rows = legacy_ratios(noise, ratio, trials, pairs, rng)
    return abs(float(np.median(rows, axis=1).mean()) / ratio - 1.0)
