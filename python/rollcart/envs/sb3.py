"""Stable-Baselines3's `VecEnv` over native lanes.

    from stable_baselines3 import PPO
    from rollcart.envs.sb3 import NesVecEnv

    PPO("CnnPolicy", NesVecEnv(num_envs=16)).learn(1_000_000)

Lanes stack frames themselves (`frame_stack`, 4 by default; the attribute of that name and
`metadata["frame_stack"]` tell): for `VecFrameStack` make them with `frame_stack=1`. Episodes' returns and
lengths are counted natively, so that `rollout/ep_rew_mean` is logged without `VecMonitor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollcart.envs._sb3_lanes import Lane, Sb3Lanes
from rollcart.games import BUNDLED
from rollcart.vector_env import NesVectorEnv

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        f"rollcart.envs.sb3 needs Stable-Baselines3 and torch, and importing them failed ({error}): "
        "pip install 'rollcart[sb3]'"
    ) from error

__all__ = ["Lane", "NesVecEnv"]


class NesVecEnv(Sb3Lanes, VecEnv):  # type: ignore[misc]
    """Native lanes as a Stable-Baselines3 `VecEnv`.

    env: a `NesVectorEnv` of any autoreset mode, or the name of a game; num_envs and options are those of
    `NesVectorEnv` then. Observations are owned by the caller (unless copy=False), infos are new dicts.
    """

    def __init__(
        self, env: NesVectorEnv | str | Sequence[str] = BUNDLED, num_envs: int = 8, **options: Any
    ) -> None:
        Sb3Lanes.__init__(self, env, num_envs, **options)
        VecEnv.__init__(self, self.num_envs, self.observation_space, self.action_space)
        self.metadata["frame_stack"] = self.frame_stack
