"""What a true effect would take on a machine whose noise is known: each tier played many times over.

The noise is that of measured blocks: their deviations from their own centre, drawn with replacement and with
either sign, so that it is symmetric as the bounds suppose. Neighbouring blocks are taken as independent. What
comes out is a forecast; nothing is decided by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cartlab.model import POLICY, TIERS, Policy
from cartlab.simulate.machines import Floats
from cartlab.simulate.runs import accept_twin, confirmed, reached, screened_once
from cartlab.stats import smallest_shown

TRIALS = 200
SEED = 1


class Foresight(NamedTuple):
    """One tier at one true effect.

    passes: the share of runs that end well (promoted, any keep, confirmed). blocks: new blocks of the middle
    run. proven: blocks until the lower bound of the middle run has passed the guard, None where it does not
    within the budget. smallest: the smallest true ratio whose lower bound passes what the tier asks within
    its budget, None where none does or, for screen, no bound is asked.
    """

    tier: str
    budget: int
    effect: float
    passes: float
    blocks: float
    proven: float | None
    smallest: float | None


def foresee(
    effect: float,
    residuals: Sequence[float],
    *,
    floor: float = 1.0,
    target: float = 1.10,
    earlier: Sequence[float] = (),
    policy: Policy = POLICY,
) -> list[Foresight]:
    """Every tier at this true ratio. residuals: deviations of measured blocks from their centre, at least
    one. floor: 1 + the relink floor. target: of the confirm run. earlier: log ratios that the pair has
    already; a screen and a confirm run start afresh.
    """
    raised = policy._replace(guard=max(policy.guard, floor), margin=max(policy.margin, floor))
    sizes = TIERS["accept"]
    bar = 1.0 + 0.7 * (target - 1.0)
    screen, confirm = TIERS["screen"].blocks, TIERS["confirm"].blocks
    y = draw(effect, residuals, max(sizes.full_blocks, screen, confirm))

    def accept(name: str, budget: int) -> Foresight:
        before = np.tile(np.asarray(earlier, dtype=np.float64), (y.shape[0], 1))
        seen = np.hstack([before, y[:, :budget]])
        ends = accept_twin(seen, raised, budget, len(earlier))
        return Foresight(
            name,
            budget,
            effect,
            sum(end.status.startswith("keep") for end in ends) / len(ends),
            float(np.median([end.blocks for end in ends])),
            _proven(seen, raised, len(earlier)),
            smallest_shown(budget, residuals, raised.guard, policy.alpha, raised),
        )

    promoted = screened_once(y[:, :screen], policy)[:, 0]
    complete = confirmed(y[:, :confirm], target, policy=policy)
    return [
        Foresight("screen", screen, effect, float(promoted.mean()), screen, None, None),
        accept("accept", sizes.blocks),
        accept("accept --full", sizes.full_blocks),
        Foresight(
            "round confirm",
            confirm,
            effect,
            float(complete.mean()),
            confirm,
            None,
            smallest_shown(confirm, residuals, bar, policy.alpha, policy),
        ),
    ]


def draw(effect: float, residuals: Sequence[float], blocks: int) -> Floats:
    """Log ratios (TRIALS, blocks) of a pair of this true ratio; the same arguments give the same ones."""
    rng = np.random.default_rng(SEED)
    noise = rng.choice(np.asarray(residuals, dtype=np.float64), (TRIALS, blocks))
    return np.asarray(math.log(effect) + noise * rng.choice([-1.0, 1.0], noise.shape))


def _proven(seen: Floats, policy: Policy, earlier: int) -> float | None:
    """New blocks until the guard is passed, in the middle run."""
    passed = reached(seen, policy.guard, policy=policy)
    took = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1 - earlier, math.inf)
    middle = float(np.median(took))
    return max(0.0, middle) if math.isfinite(middle) else None
