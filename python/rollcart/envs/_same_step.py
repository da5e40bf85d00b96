"""Steps in which a finished lane begins its next episode at once, whatever autoreset mode the lanes have.

Stable-Baselines3 and PufferLib both think in such steps. Lanes in SameStep mode make them natively; in the
other modes the finished lanes are reset by mask within the same call, with equal results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from rollcart.errors import ConfigError
from rollcart.vector_env import NesVectorEnv

Columns = dict[str, Any]


@dataclass
class Step:
    """One step of all lanes.

    obs: what each lane's next action is chosen on. reward float64[lanes], terminated and truncated
    bool[lanes]. infos: for each key an array [lanes] that tells of the step, of the old episode where one
    ended. last: a finished lane's true last observation. begun: the infos of the new episodes, of which only
    finished lanes' entries count.
    """

    obs: Any
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    infos: Columns
    last: dict[int, Any] = field(default_factory=dict)
    begun: Columns = field(default_factory=dict)


class SameStep:
    """A `NesVectorEnv` whose finished lanes begin anew in the step that ended them."""

    def __init__(self, env: NesVectorEnv) -> None:
        self.env = env
        self._native = AutoresetMode(env.metadata["autoreset_mode"]) is AutoresetMode.SAME_STEP
        if not self._native and not env.copy:
            raise ConfigError(
                'copy=False: expected lanes made with autoreset_mode="SameStep", found '
                f"{env.metadata['autoreset_mode'].value!r}, where a reset takes a second set of arrays"
            )

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None, out: Any = None
    ) -> tuple[Any, Columns]:
        """Begins an episode in every lane; observations, and for each key an array of infos."""
        obs, infos = self.env.reset(seed=seed, options=options, out=out)
        return obs, columns(infos)

    def step(self, actions: Any, *, out: Any = None) -> Step:
        """Plays one action a lane. out: the caller's array for the observations of lanes in SameStep mode."""
        obs, reward, terminated, truncated, infos = self.env.step(actions, out=out)
        done = terminated | truncated
        if not done.any():
            return Step(obs, reward, terminated, truncated, columns(infos))
        lanes = np.flatnonzero(done).tolist()
        if self._native:
            begun, ended = columns(infos), infos["final_info"]
            told = {key: np.where(done, ended[key], begun[key]) for key in begun}
            last = {lane: infos["final_obs"][lane] for lane in lanes}
        else:
            told = columns(infos)
            last = {lane: row(obs, lane) for lane in lanes}
            obs, infos = self.env.reset(options={"reset_mask": done})
            begun = columns(infos)
        return Step(obs, reward, terminated, truncated, told, last, begun)


def columns(infos: dict[str, Any]) -> Columns:
    """Gymnasium's infos without masks and without what tells of an episode's end."""
    return {key: value for key, value in infos.items() if not key.startswith(("_", "final_"))}


def row(obs: Any, lane: int) -> Any:
    """One lane's observation out of all lanes': an array, or a dict of them."""
    return {key: value[lane] for key, value in obs.items()} if isinstance(obs, dict) else obs[lane]


def rows(infos: Columns, lanes: Sequence[int]) -> list[dict[str, Any]]:
    """The infos of these lanes, each a new dict of Python values."""
    made: list[dict[str, Any]] = [{} for _ in lanes]
    for key, column in infos.items():
        for info, value in zip(made, column[lanes].tolist(), strict=True):
            info[key] = value
    return made
