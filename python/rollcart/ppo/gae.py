"""Generalised advantage estimation over a rollout with Gymnasium's NextStep autoreset.

In that mode the step after an episode's end resets the lane: its action is ignored, its reward is 0, and the
observation before it is the ended episode's last one. So the row of a reset is no transition and is masked
out, and the value of a truncated episode's last observation is already in the rollout: it is the next row's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Advantages(NamedTuple):
    """Each float32[steps, lanes]: advantages and returns (0 in masked rows), and the mask as 1 and 0."""

    advantages: Floats
    returns: Floats
    mask: Floats


def estimate(
    rewards: Floats,
    values: Floats,
    terminated: Flags,
    truncated: Flags,
    is_reset: Flags,
    gamma: float,
    gae_lambda: float,
) -> Advantages:
    """Advantages of a rollout of T steps and N lanes.

    rewards, terminated, truncated, is_reset: [T, N], the flags as the step of that row returned them, and
    is_reset where the row's step reset the lane. values: [T + 1, N], of each row's observation before its
    step, and of the observation after the last one.
    """
    steps = len(rewards)
    advantages = np.zeros_like(rewards)
    mask = (~is_reset).astype(np.float32)
    lives_on = (~terminated).astype(np.float32)
    goes_on = (~(terminated | truncated)).astype(np.float32)
    ahead = np.zeros_like(rewards[0])
    for t in range(steps - 1, -1, -1):
        error = rewards[t] + gamma * values[t + 1] * lives_on[t] - values[t]
        ahead = (error + gamma * gae_lambda * goes_on[t] * ahead) * mask[t]
        advantages[t] = ahead
    return Advantages(advantages, (advantages + values[:-1]) * mask, mask)
