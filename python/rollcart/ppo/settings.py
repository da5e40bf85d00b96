"""What a PPO run is: game, sizes and the algorithm's numbers, checked once.

Two runs with equal settings, versions and thread counts do the same work; a checkpoint holds its settings.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollcart.errors import ConfigError
from rollcart.games import BUNDLED

OBSERVATIONS = ("ram", "image")


@dataclass(frozen=True)
class Settings:
    """The defaults learn the bundled game's first level in minutes on two cores.

    Args:
        obs: "ram" (bits of the console's RAM, a small dense network) or "image" (four grey 84 x 84
            pictures, a convolutional network).
        ram_bytes: At most so many bytes of RAM are read ("ram"); see `features`.
        hidden: Units of each dense layer.
        steps: Environment steps of the whole run, over all lanes; the learning rate falls to 0 over them.
        horizon: Steps a lane plays between two updates.
        noop_reset_max: Random frames without buttons before an episode, so that no two begin alike.
        reward_scale: Rewards are multiplied by this before learning; reports have the game's own.
    """

    game: str = BUNDLED
    state: str | None = "Level1"
    obs: str = "ram"
    actions: str = "simple"
    lanes: int = 32
    threads: int | None = None
    frame_skip: int = 4
    max_episode_steps: int = 1000
    noop_reset_max: int = 30
    seed: int = 1
    steps: int = 1_000_000
    horizon: int = 64
    hidden: int = 64
    ram_bytes: int = 128
    gamma: float = 0.99
    gae_lambda: float = 0.95
    learning_rate: float = 5e-4
    clip: float = 0.2
    epochs: int = 4
    minibatches: int = 4
    entropy: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    reward_scale: float = 0.02

    def __post_init__(self) -> None:
        if self.obs not in OBSERVATIONS:
            raise ConfigError(f"obs: expected one of {', '.join(OBSERVATIONS)}, found {self.obs!r}")
        for name in (
            "lanes",
            "frame_skip",
            "max_episode_steps",
            "steps",
            "horizon",
            "hidden",
            "ram_bytes",
            "epochs",
            "minibatches",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected a number from 1 up, found {getattr(self, name)}")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: expected a number from 0 to 1, found {getattr(self, name)}")
        for name in ("learning_rate", "clip", "max_grad_norm", "reward_scale"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: expected a number above 0, found {getattr(self, name)}")
        if self.rollout_steps % self.minibatches:
            raise ConfigError(
                f"minibatches: expected a divisor of lanes x horizon = {self.rollout_steps}, "
                f"found {self.minibatches}"
            )

    @property
    def rollout_steps(self) -> int:
        """Steps of one rollout, over all lanes."""
        return self.lanes * self.horizon

    @property
    def iterations(self) -> int:
        """Rollouts of the whole run; the last one may pass `steps`."""
        return -(-self.steps // self.rollout_steps)

    def env_options(self) -> dict[str, Any]:
        """What NesVectorEnv takes."""
        return {
            "num_envs": self.lanes,
            "state": self.state,
            "obs": self.obs,
            "actions": self.actions,
            "frame_skip": self.frame_skip,
            "max_episode_steps": self.max_episode_steps,
            "noop_reset_max": self.noop_reset_max,
            "num_threads": self.threads,
        }

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def from_dict(values: Mapping[str, Any]) -> Settings:
    """Settings from names and values; ConfigError for a name that is none."""
    names = [field.name for field in dataclasses.fields(Settings)]
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"settings: there is no {name!r}{hint}")
    return Settings(**values)
