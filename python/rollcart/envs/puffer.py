"""PufferLib's forms: `Batches`, which needs no library, and `PufferEnv`, for `pufferlib.vector.make`.

    from rollcart.envs.puffer import Batches

    batches = Batches(num_envs=64, batch_size=32)
    batches.async_reset(seed=0)
    while training:
        obs, rewards, terminals, truncations, infos, env_ids, masks = batches.recv()
        batches.send(policy(obs))

`PufferEnv` is a class of pufferlib's own, made when it is first asked for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rollcart.envs._puffer_lanes import APIUsageError, Batches, Buffers, Lanes
from rollcart.games import BUNDLED

__all__ = ["APIUsageError", "Batches", "Buffers", "PufferEnv"]  # noqa: F822 - PufferEnv is made by __getattr__


@cache
def _puffer_env() -> type[Any]:
    try:
        import pufferlib
    except ImportError as error:
        raise ImportError(
            f"rollcart.envs.puffer.PufferEnv needs PufferLib, and importing it failed ({error}): pip install "
            "'rollcart[puffer]'. Batches of this module has the same calls without it"
        ) from error

    class PufferEnv(pufferlib.PufferEnv):  # type: ignore[misc]
        """Native lanes as one native environment of PufferLib, with an agent for each lane.

        num_envs: lanes. buf: the arrays that its vector hands in. seed: of the first reset without one.
        options: those of `NesVectorEnv`.
        """

        def __init__(
            self,
            game: str = BUNDLED,
            num_envs: int = 16,
            *,
            buf: Any = None,
            seed: int | None = 0,
            **options: Any,
        ) -> None:
            lanes = Lanes(None, game, num_envs, options)
            self.single_observation_space = lanes.env.single_observation_space
            self.single_action_space = lanes.env.single_action_space
            self.num_agents = num_envs
            super().__init__(buf)
            lanes.buffers = Buffers.given(
                self, num_envs, self.single_observation_space, self.single_action_space
            )
            self.lanes = lanes
            self._seed = seed

        def reset(self, seed: int | None = None) -> tuple[Any, list[dict[str, Any]]]:
            seed, self._seed = self._seed if seed is None else seed, None
            self.lanes.reset(seed)
            return self.observations, []

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
            self.actions[:] = actions
            infos = self.lanes.step(actions)
            return self.observations, self.rewards, self.terminals, self.truncations, infos

        def close(self) -> None:
            self.lanes.env.close()

    # By this name it is found when a process of pufferlib's unpickles it.
    PufferEnv.__qualname__ = "PufferEnv"
    return PufferEnv


def __getattr__(name: str) -> Any:
    if name == "PufferEnv":
        return _puffer_env()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
