"""Machines that we make up, and the blocks that they would give.

A block's noise lives in the frame of the two roles (spawn order, padding, slice orientation), and the
recorded coin says which build plays which: y = ln ratio + sign(coin) * (role 1's advantage). So drift,
bursts and tails cannot favour a build.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cartlab.model import Block

Floats = npt.NDArray[np.float64]


class Noise(NamedTuple):
    """One machine. sd: of a block's log ratio. The rest makes it unpleasant."""

    name: str
    sd: float
    tails: float = 3.0  # degrees of freedom of Student's t
    drift: float = 0.3  # AR(1) coefficient between neighbouring blocks
    burst_share: float = 0.02  # of the blocks ...
    burst_factor: float = 5.0  # ... have noise this many times as large
    position: float = 0.01  # the first slice of a pair is slower by this
    slice_sd: float = 2.0  # of one slice pair, in block sds
    slices: int = 50


MACHINES = (Noise("quiet", 0.003), Noise("workstation", 0.01), Noise("shared", 0.02))


def block_values(
    noise: Noise, ratio: float, trials: int, blocks: int, rng: np.random.Generator
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """y and coin of each block, both (trials, blocks): a block is the median over its slices' log ratios."""
    shape = (trials, blocks)
    innovations = rng.standard_t(noise.tails, shape) * (
        noise.sd / math.sqrt(noise.tails / (noise.tails - 2.0))
    )
    role = np.empty(shape)
    role[:, 0] = innovations[:, 0]
    for b in range(1, blocks):
        role[:, b] = noise.drift * role[:, b - 1] + math.sqrt(1.0 - noise.drift**2) * innovations[:, b]
    role *= np.where(rng.random(shape) < noise.burst_share, noise.burst_factor, 1.0)
    coin = rng.integers(0, 2, shape)
    sign = np.where(coin == 1, 1.0, -1.0)
    # ABBA: role 1 runs first in one pair of slices and second in the next.
    first = np.where(np.arange(noise.slices) % 2 == 0, -1.0, 1.0) * math.log1p(noise.position)
    y = np.empty(shape)
    for t in range(trials):
        pairs = rng.normal(0.0, noise.slice_sd * noise.sd, (blocks, noise.slices)) + first
        y[t] = math.log(ratio) + sign[t] * (role[t] + np.median(pairs, axis=1))
    return y, coin


def records(y: Sequence[float], coin: Sequence[int]) -> list[Block]:
    """Block records of these values, as the ledger would hold them (two equal slices a side)."""
    out = []
    for i, (value, side) in enumerate(zip(y, coin, strict=True)):
        base, cand = 20_000_000, round(20_000_000 * math.exp(-value))
        exact = math.log(base) - math.log(cand)
        order = "BCCB" if side == 0 else "CBBC"
        out.append(Block(i, int(side), order, (base, base), (cand, cand), 100, exact))
    return out
