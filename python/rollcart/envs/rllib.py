"""RLlib's environment creator: native lanes where RLlib asks for many, one console where it asks for one.

    from ray.rllib.algorithms.ppo import PPOConfig
    from rollcart.envs import rllib

    config = (
        PPOConfig()
        .environment(rllib.register(), env_config={"max_episode_steps": 1000})
        .env_runners(num_envs_per_env_runner=16, gym_env_vectorize_mode="vector_entry_point")
    )

`env_config` holds the options of `NesVectorEnv`. What RLlib's encoders expect is the default here: channels
last, and observations as float32 from 0 to 1 (they fail on bytes; `"scale": False` keeps these, for models of
your own). The autoreset mode is NextStep, which its runners assume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rollcart.env import NesEnv
from rollcart.errors import ConfigError
from rollcart.vector_env import NesVectorEnv

NAME = "rollcart"


class ScaledLanes(gymnasium.vector.VectorObservationWrapper):
    """Lanes whose observations are float32 from 0 to 1."""

    def __init__(self, env: NesVectorEnv) -> None:
        super().__init__(env)
        self.single_observation_space = _scaled_space(env.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def observations(self, observations: Any) -> Any:
        """The observations of all lanes, scaled."""
        return _scaled(observations)


class ScaledConsole(gymnasium.ObservationWrapper[Any, Any, Any]):
    """One console whose observations are float32 from 0 to 1."""

    def __init__(self, env: NesEnv) -> None:
        super().__init__(env)
        self.observation_space = _scaled_space(env.observation_space)

    def observation(self, observation: Any) -> Any:
        """The observation, scaled."""
        return _scaled(observation)


def creator(config: Mapping[str, Any]) -> gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv:
    """Lanes if config has `num_envs`, which RLlib adds in the mode "vector_entry_point"; else one `NesEnv`.

    The other entries are options of `NesVectorEnv`, `layout` being "hwc" by default, and `scale` (True).
    """
    options = {"layout": "hwc", **config}
    many, scale = options.pop("num_envs", None), options.pop("scale", True)
    if options.get("autoreset_mode", "NextStep") != "NextStep":
        raise ConfigError(
            f'autoreset_mode: expected "NextStep", which RLlib assumes, found {options["autoreset_mode"]!r}'
        )
    if many is None:
        console = NesEnv(**options)
        return ScaledConsole(console) if scale else console
    lanes = NesVectorEnv(num_envs=int(many), **options)
    return ScaledLanes(lanes) if scale else lanes


def register(name: str = NAME) -> str:
    """Tells Ray of the creator under this name, for `config.environment(name)`; gives the name."""
    try:
        from ray.tune.registry import register_env
    except ImportError as error:
        raise ImportError(
            f"rollcart.envs.rllib needs Ray's RLlib, and importing it failed ({error}): "
            "pip install 'rollcart[ray]'"
        ) from error
    register_env(name, creator)
    return name


def _scaled(obs: Any) -> Any:
    if isinstance(obs, dict):
        return {key: _scaled(value) for key, value in obs.items()}
    scaled: NDArray[np.float32] = np.multiply(obs, np.float32(1 / 255), dtype=np.float32)
    return scaled


def _scaled_space(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _scaled_space(part) for key, part in space.items()})
    return spaces.Box(0.0, 1.0, space.shape, np.float32)
