"""How often the rules err, on machines that we make up: the error table, and the runs behind it.

Contract: the targets in SPECS.md section 5. Everything is drawn from a seed and given back; nothing
is printed, read or timed. A simulated run goes through stats.evidence_path and decide, block by block, as a
real one does. `accept_twin` is the same rule over all trials at once; the tests hold it against the real
one.

A block's noise lives in the frame of the two roles (spawn order, padding, slice orientation), and the
recorded coin says which build plays which: y = ln ratio + sign(coin) * (role 1's advantage). So drift,
bursts and tails cannot favour a build.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cartlab import legacy
from cartlab.decide import decide
from cartlab.model import POLICY, TIERS, Block, Policy, Validity
from cartlab.stats import evidence_path, hodges_lehmann, wealth_paths

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


class Outcome(NamedTuple):
    """How one run ended: its status, after how many blocks, and the estimate then."""

    status: str
    blocks: int
    estimate: float


def accept_run(blocks: Sequence[Block], tier: str = "accept", policy: Policy = POLICY) -> Outcome:
    """One acceptance run with a peek at every block, by the rules of the command line."""
    budget = TIERS[tier].blocks
    validity = Validity(checks="passed")
    for found in evidence_path(blocks[:budget], policy=policy):
        verdict = decide(tier, found, validity, found.used + found.dropped >= budget, policy)
        if verdict.final:
            return Outcome(verdict.status, found.used, found.hl or 1.0)
    raise ValueError(f"expected {budget} blocks, found {len(blocks)}")


def _reached(y: Floats, r0: float, mirrored: bool = False, policy: Policy = POLICY) -> npt.NDArray[np.bool_]:
    """Has a bound passed r0 by each block (trials, blocks)."""
    log_wealth = wealth_paths(y, r0, mirrored, policy)
    out = np.maximum.accumulate(log_wealth, axis=1) >= math.log(1.0 / policy.alpha)
    out[:, : policy.min_blocks - 1] = False
    return np.asarray(out, dtype=np.bool_)


def accept_twin(y: Floats, policy: Policy = POLICY) -> list[Outcome]:
    """accept_run of every row of y at once, floor 1: only the four grid points that can matter are
    followed.
    """
    keep = _reached(y, policy.margin, policy=policy)
    small = _reached(y, policy.guard, policy=policy)
    # A bound below a threshold is at most the grid value before it.
    below_margin = _reached(y, round(policy.margin - 0.001, 3), True, policy)
    below_guard = _reached(y, round(policy.guard - 0.001, 3), True, policy)
    ends = keep | (small & below_margin) | below_guard
    out = []
    for row in range(y.shape[0]):
        at = int(np.argmax(ends[row])) if ends[row].any() else y.shape[1] - 1
        last = at == y.shape[1] - 1
        if keep[row, at]:
            status = "keep"
        elif small[row, at] and (below_margin[row, at] or last):
            status = "keep_small_gain"
        elif below_guard[row, at] or (last and below_margin[row, at]):
            status = "discard"
        else:
            status = "inconclusive"
        out.append(Outcome(status, at + 1, math.exp(hodges_lehmann(list(y[row, : at + 1])))))
    return out


def confirmed(
    y: Floats, target: float, strict: bool = False, policy: Policy = POLICY
) -> npt.NDArray[np.bool_]:
    """Does the confirm run on each row reach the target with its estimate and with its lower bound what the
    round asks.
    """
    bar = target if strict else 1.0 + 0.7 * (target - 1.0)
    estimate = np.array([hodges_lehmann(list(row)) for row in y])
    return np.asarray((estimate >= math.log(target)) & _reached(y, bar, policy=policy)[:, -1])


def legacy_ratios(noise: Noise, ratio: float, trials: int, pairs: int, rng: np.random.Generator) -> Floats:
    """Pair ratios (trials, pairs) as the predecessor saw them: one process a half, orders alternating, no
    coin.
    """
    quiet = noise._replace(position=0.0, slice_sd=0.0, slices=1)
    y, coin = block_values(quiet, 1.0, trials, pairs, rng)
    role = y * np.where(coin == 1, 1.0, -1.0)
    order = np.where(np.arange(pairs) % 2 == 0, 1.0, -1.0) * math.log1p(noise.position)
    return np.asarray(ratio * np.exp(role + order))


def _legacy_interval(values: Sequence[float]) -> tuple[float, float]:
    """What the bootstrap of a median of 3 or 7 converges to, without resampling: order statistics."""
    ordered = sorted(values)
    return (ordered[0], ordered[-1]) if len(ordered) <= 5 else (ordered[1], ordered[-2])


def legacy_kept(noise: Noise, ratio: float, trials: int, seed: int, tier: str = "accept") -> float:
    """The share of such candidates that the predecessor's accept (3 pairs) or accept-stack (up to 7) kept."""
    rng = np.random.default_rng([seed, round(ratio * 1000), round(noise.sd * 1e6), 7])
    checkpoints = legacy.TIERS[tier].checkpoints
    ratios = legacy_ratios(noise, ratio, trials, checkpoints[-1], rng)
    kept = 0
    for row in ratios:
        for n in checkpoints:
            at = legacy.look(row[:n].tolist(), checkpoints, True, _legacy_interval(row[:n].tolist()))
            if at.stops:
                kept += legacy.status_of(tier, at, load_fine=True).startswith("keep")
                break
    return kept / trials


class Rates(NamedTuple):
    """What happened to candidates of one true ratio on one machine, as shares of the trials."""

    machine: str
    ratio: float
    trials: int
    kept: float
    discarded: float
    inconclusive: float
    completed: float
    median_blocks: float
    legacy_kept: float | None = None  # the predecessor's accept on the same machine


def rates(
    noise: Noise, ratio: float, trials: int, seed: int, target: float = 1.10, policy: Policy = POLICY
) -> Rates:
    """Accept and, where the estimate reaches the target, confirm `trials` candidates of this true ratio."""
    rng = np.random.default_rng([seed, round(ratio * 1000), round(noise.sd * 1e6)])
    y, _ = block_values(noise, ratio, trials, TIERS["accept"].blocks, rng)
    ends = accept_twin(y, policy)
    kept = np.array([end.status.startswith("keep") for end in ends])
    candidates = np.array([k and end.estimate >= target for k, end in zip(kept, ends, strict=True)])
    completed = 0
    if candidates.any():
        again, _ = block_values(noise, ratio, int(candidates.sum()), TIERS["confirm"].blocks, rng)
        completed = int(confirmed(again, target, policy=policy).sum())
    statuses = [end.status for end in ends]
    return Rates(
        noise.name,
        ratio,
        trials,
        float(kept.mean()),
        statuses.count("discard") / trials,
        statuses.count("inconclusive") / trials,
        completed / trials,
        float(np.median([end.blocks for end in ends])),
    )


TABLE_RATIOS = (1.0, 1.01, 1.02, 1.03, 1.05, 1.07, 1.10, 1.12, 0.97)


def error_table(
    trials: int = 2000,
    seed: int = 1,
    ratios: Sequence[float] = TABLE_RATIOS,
    machines: Sequence[Noise] = MACHINES,
    progress: Callable[[str], None] = lambda line: None,
) -> list[Rates]:
    """The rates of every machine and ratio; `progress` hears each row as it is ready."""
    out = []
    for noise in machines:
        for ratio in ratios:
            out.append(
                rates(noise, ratio, trials, seed)._replace(
                    legacy_kept=legacy_kept(noise, ratio, trials, seed)
                )
            )
            progress(next(lines_of(out[-1:], heading=False)))
    return out


HEADING = (
    "machine",
    "true ratio",
    "kept",
    "discarded",
    "inconclusive",
    "round complete",
    "median blocks",
    "legacy kept",
)


def lines_of(table: Sequence[Rates], heading: bool = True) -> Iterator[str]:
    """The table as text, a line at a time."""
    form = "{:<12} {:>10} {:>8} {:>10} {:>13} {:>15} {:>14} {:>12}"
    if heading:
        yield form.format(*HEADING)
    for row in table:
        yield form.format(
            row.machine,
            f"{row.ratio:.2f}",
            f"{row.kept:.1%}",
            f"{row.discarded:.1%}",
            f"{row.inconclusive:.1%}",
            f"{row.completed:.1%}",
            f"{row.median_blocks:.0f}",
            "" if row.legacy_kept is None else f"{row.legacy_kept:.1%}",
        )
