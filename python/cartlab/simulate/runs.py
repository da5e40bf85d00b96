"""Runs on made-up blocks, ended by the rules of the command line.

`accept_run` goes through stats.evidence_path and decide, block by block, as a real run does; `accept_twin` is
the same rule over all trials at once, and the tests hold it against the real one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cartlab.decide import decide
from cartlab.model import POLICY, TIERS, Block, Policy, Validity
from cartlab.simulate.machines import Floats
from cartlab.stats import evidence_path, hodges_lehmann, wealth_paths


class Outcome(NamedTuple):
    """How one run ended: its status, after how many blocks, and the estimate then."""

    status: str
    blocks: int
    estimate: float


def accept_run(blocks: Sequence[Block], tier: str = "accept", policy: Policy = POLICY) -> Outcome:
    """One acceptance run with a peek at every block, by the rules of the command line; where it ends
    inconclusive and there are blocks for another, the rerun that continues it.
    """
    budget = TIERS[tier].blocks
    _whole_runs(len(blocks), budget)
    validity = Validity(checks="passed")
    for found in evidence_path(blocks, policy=policy):
        seen = found.used + found.dropped
        verdict = decide(tier, found, validity, seen % budget == 0, policy)
        if verdict.final and (verdict.status != "inconclusive" or seen == len(blocks)):
            break
    return Outcome(verdict.status, found.used, found.hl or 1.0)


def _whole_runs(blocks: int, budget: int) -> None:
    if blocks < budget or blocks % budget:
        raise ValueError(f"expected {budget} blocks a run, found {blocks} blocks")


def reached(y: Floats, r0: float, mirrored: bool = False, policy: Policy = POLICY) -> npt.NDArray[np.bool_]:
    """Has a bound passed r0 by each block (trials, blocks)."""
    log_wealth = wealth_paths(y, r0, mirrored, policy)
    out = np.maximum.accumulate(log_wealth, axis=1) >= math.log(1.0 / policy.alpha)
    out[:, : policy.min_blocks - 1] = False
    return np.asarray(out, dtype=np.bool_)


def accept_twin(
    y: Floats, policy: Policy = POLICY, budget: int = TIERS["accept"].blocks, earlier: int = 0
) -> list[Outcome]:
    """accept_run of every row of y at once, floor 1: only the four grid points that can matter are
    followed. y: (trials, blocks); the first `earlier` of them were there before the run, the others are a
    multiple of its budget. Outcome.blocks counts the new ones alone.
    """
    _whole_runs(y.shape[1] - earlier, budget)
    keep = reached(y, policy.margin, policy=policy)
    small = reached(y, policy.guard, policy=policy)
    # A bound below a threshold is at most the grid value before it.
    below_margin = reached(y, round(policy.margin - 0.001, 3), True, policy)
    below_guard = reached(y, round(policy.guard - 0.001, 3), True, policy)
    new = np.arange(y.shape[1]) + 1 - earlier
    last = (new > 0) & (new % budget == 0)
    small_gain = small & (below_margin | last)
    ends = keep | small_gain | below_guard | (last & below_margin)
    # What was decided by the earlier blocks ends the run before its first.
    ends[:, : max(0, earlier - 1)] = False
    out = []
    for row in range(y.shape[0]):
        at = int(np.argmax(ends[row])) if ends[row].any() else y.shape[1] - 1
        if not ends[row, at]:
            status = "inconclusive"
        elif keep[row, at]:
            status = "keep"
        else:
            status = "keep_small_gain" if small_gain[row, at] else "discard"
        out.append(Outcome(status, at + 1 - earlier, math.exp(hodges_lehmann(list(y[row, : at + 1])))))
    return out


def confirmed(
    y: Floats, target: float, strict: bool = False, policy: Policy = POLICY
) -> npt.NDArray[np.bool_]:
    """Does the confirm run on each row reach the target with its estimate and with its lower bound what the
    round asks.
    """
    bar = target if strict else 1.0 + 0.7 * (target - 1.0)
    estimate = np.array([hodges_lehmann(list(row)) for row in y])
    return np.asarray((estimate >= math.log(target)) & reached(y, bar, policy=policy)[:, -1])


def screened_once(y: Floats, policy: Policy = POLICY) -> npt.NDArray[np.bool_]:
    """Does `screen` promote (trials, screens): column k is what the k-th screen says, which continues the
    blocks of those before it. y: (trials, blocks), blocks a multiple of the budget of `screen`.
    """
    budget = TIERS["screen"].blocks
    _whole_runs(y.shape[1], budget)
    below = reached(y, round(policy.promote - 0.001, 3), True, policy)
    up, of_up = policy.promote_share
    out = np.empty((y.shape[0], y.shape[1] // budget), dtype=np.bool_)
    for k in range(out.shape[1]):
        seen = y[:, : (k + 1) * budget]
        estimate = np.array([hodges_lehmann(list(row)) for row in seen])
        steady = (seen > 0.0).sum(axis=1) * of_up >= up * seen.shape[1]
        out[:, k] = (estimate >= math.log(policy.promote)) & steady & ~below[:, seen.shape[1] - 1]
    return out


def ever_wrong(y: Floats, ratio: float, mirrored: bool = False, policy: Policy = POLICY) -> float:
    """The share of sequences whose lower (mirrored: upper) bound is on the wrong side of the true ratio after
    at least one of its blocks.
    """
    return float(reached(y, ratio, mirrored, policy)[:, -1].mean())
