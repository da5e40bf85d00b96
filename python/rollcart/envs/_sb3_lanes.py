"""What Stable-Baselines3's `VecEnv` promises, over native lanes and without that library.

`rollcart.envs.sb3` puts the library's base class beside it. The contract is that of stable-baselines3 2.x,
common/vec_env/base_vec_env.py and dummy_vec_env.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollcart import _arguments
from rollcart._warnings import warn
from rollcart.envs._same_step import SameStep, Step, row, rows
from rollcart.errors import ConfigError
from rollcart.games import BUNDLED
from rollcart.vector_env import NesVectorEnv

Indices = int | Iterable[int] | None


class Lane:
    """One lane, as `get_attr`, `set_attr` and `env_method` see it.

    It has the lane's own methods, the public values of `NesVectorEnv`, and whatever `set_attr` adds to it.
    """

    _env: NesVectorEnv
    index: int

    def __init__(self, env: NesVectorEnv, index: int) -> None:
        self.__dict__.update(_env=env, index=index)

    @property
    def unwrapped(self) -> Lane:
        return self

    @property
    def observation_space(self) -> spaces.Space[Any]:
        return self._env.single_observation_space

    @property
    def action_space(self) -> spaces.Space[Any]:
        return self._env.single_action_space

    @property
    def game(self) -> str:
        """The lane's game."""
        games: tuple[str, ...] | None = getattr(self._env, "games", None)
        return self._env.game if games is None else games[self.index]

    @property
    def start_state(self) -> str:
        """The name of the state in which the lane's episodes begin."""
        return self._env.start_states[self.index]

    def ram(self) -> NDArray[np.uint8]:
        """The console's RAM, uint8[2048], a copy."""
        ram: NDArray[np.uint8] = self._env.ram()[self.index]
        return ram

    def render(self) -> NDArray[np.uint8]:
        """The lane's picture, uint8[224, 240, 3], whatever the render mode."""
        return self._env.render_lane(self.index)

    def snapshot(self) -> bytes:
        """The lane's whole state as bytes."""
        state = self._env.snapshot(self._mask())[self.index]
        assert state is not None
        return state

    def restore(self, snapshot: bytes) -> Any:
        """Goes on from a snapshot; gives the lane's observation."""
        states: list[bytes | None] = [None] * self._env.num_envs
        states[self.index] = snapshot
        return row(self._env.restore(states, self._mask()), self.index)

    def _mask(self) -> NDArray[np.bool_]:
        mask = np.zeros(self._env.num_envs, np.bool_)
        mask[self.index] = True
        return mask

    def __getattr__(self, name: str) -> Any:
        value = None if name.startswith("_") else getattr(self._env, name, None)
        if name.startswith("_") or callable(value) or not hasattr(self._env, name):
            raise AttributeError(f"a lane has no {name!r}; see rollcart.envs.sb3.Lane for what it has")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or hasattr(self._env, name):
            raise AttributeError(
                f"{name!r} belongs to all lanes and is fixed when they are made; pass it to NesVecEnv"
            )
        self.__dict__[name] = value


class Sb3Lanes:
    """The methods of a `VecEnv` over a `NesVectorEnv`.

    env: lanes that exist already, of any autoreset mode, or the name of a game, or a list of them, one a
    lane; `options` are those of `NesVectorEnv` then. Infos are one dict of Python values a lane; an
    episode's last one has `terminal_observation`, and `episode` with its return `r` and length `l` (agent
    steps), counted natively.
    """

    def __init__(
        self, env: NesVectorEnv | str | Sequence[str] = BUNDLED, num_envs: int = 8, **options: Any
    ) -> None:
        if isinstance(env, (str, list, tuple)):
            lanes = num_envs if isinstance(env, str) else len(env)
            env = NesVectorEnv(env, lanes, **{"autoreset_mode": "SameStep", **options})
        elif not isinstance(env, NesVectorEnv):
            inner = getattr(env, "unwrapped", None)
            advice = (
                "wrap the NesVecEnv in Stable-Baselines3's own wrappers"
                if isinstance(inner, NesVectorEnv)
                else "Stable-Baselines3 makes its own vectors of single environments (make_vec_env)"
            )
            raise TypeError(
                f"expected a NesVectorEnv or the name of a game, found {type(env).__name__}; {advice}"
            )
        elif options:
            raise TypeError(f"lanes that exist take no options, found {', '.join(sorted(options))}")
        self.env = env
        self.num_envs = env.num_envs
        self.observation_space = env.single_observation_space
        self.action_space = env.single_action_space
        self.render_mode = env.render_mode
        self.frame_stack = env.frame_stack
        self.metadata = {"render_modes": ["rgb_array"], "frame_stack": self.frame_stack}
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._steps = SameStep(env)
        self._lanes = [Lane(env, lane) for lane in range(self.num_envs)]
        self._seeds: list[int | None] = [None] * self.num_envs
        self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._actions: Any = None

    # --------------------------------------------------------------------------------------- episodes

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Gives lane i the seed + i at the next reset, and returns these; resets nothing itself."""
        if seed is None:
            # From the global generator, so that stable_baselines3's set_random_seed decides it.
            seed = int(np.random.randint(0, np.iinfo(np.uint32).max, dtype=np.uint32))
        _, self._seeds = _arguments.seeds(seed, self.num_envs)
        return list(self._seeds)

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Options for the next reset: a dict for all lanes, or one a lane. There is one option, "state".

        A state chosen so holds for all later episodes too, those that begin by themselves included.
        """
        each = options if isinstance(options, list) else [options or {}] * self.num_envs
        if not all(isinstance(one, Mapping) for one in each):
            raise ConfigError(f"options: expected a dict, or a list of them, one a lane; found {options!r}")
        if len(each) != self.num_envs:
            raise ConfigError(f"options: expected a dict, or {self.num_envs}, one a lane; found {len(each)}")
        unknown = sorted({str(key) for one in each for key in one} - {"state"})
        if unknown:
            raise ConfigError(f'options: expected "state" alone, found {", ".join(unknown)}')
        self._options = deepcopy(each)

    def reset(self) -> Any:
        """Begins an episode in every lane; gives the observations. Infos are in `reset_infos`."""
        states = [one.get("state") for one in self._options]
        seeds = None if all(one is None for one in self._seeds) else self._seeds
        options = {"state": states} if any(one is not None for one in states) else None
        obs, infos = self._steps.reset(seed=seeds, options=options)
        self.reset_infos = rows(infos, range(self.num_envs))
        self._seeds = [None] * self.num_envs
        self._options = [{} for _ in range(self.num_envs)]
        self._actions = None
        return obs

    def step_async(self, actions: Any) -> None:
        """Says what to play; `step_wait` plays it."""
        self._actions = self._whole(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards float32[lanes], dones bool[lanes], and a new dict of infos a lane."""
        if self._actions is None:
            raise RuntimeError("step_wait: expected step_async before, found none since the last step")
        actions, self._actions = self._actions, None
        step = self._steps.step(actions)
        return (
            step.obs,
            step.reward.astype(np.float32),
            step.terminated | step.truncated,
            self._infos(step),
        )

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """step_async and step_wait."""
        self.step_async(actions)
        return self.step_wait()

    def close(self) -> None:
        """Lets lanes and threads go; may be called again."""
        self.env.close()

    def _infos(self, step: Step) -> list[dict[str, Any]]:
        infos = rows(step.infos, range(self.num_envs))
        for info in infos:
            info["TimeLimit.truncated"] = False
        if not step.last:
            return infos
        lanes = list(step.last)
        begun = rows(step.begun, lanes)
        for lane, first in zip(lanes, begun, strict=True):
            info = infos[lane]
            info["TimeLimit.truncated"] = bool(step.truncated[lane] and not step.terminated[lane])
            info["terminal_observation"] = step.last[lane]
            if "episode_return" in info and "elapsed_steps" in info:
                info["episode"] = {"r": info["episode_return"], "l": info["elapsed_steps"]}
            self.reset_infos[lane] = first
        return infos

    def _whole(self, actions: Any) -> Any:
        """A policy over MultiBinary samples 0.0 and 1.0; lanes take whole numbers alone."""
        array = np.asarray(actions)
        if isinstance(self.action_space, spaces.MultiBinary) and array.dtype.kind == "f":
            whole = array.astype(np.int8)
            return whole if np.array_equal(whole, array) else array
        return array

    # ------------------------------------------------------------------------------------------ lanes

    def has_attr(self, attr_name: str) -> bool:
        """Whether lanes have an attribute of that name."""
        return all(hasattr(lane, attr_name) for lane in self._lanes)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of each chosen lane (`Lane`)."""
        return [getattr(lane, attr_name) for lane in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Gives each chosen lane an attribute of the caller's own."""
        for lane in self._chosen(indices):
            setattr(lane, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """Calls a method of each chosen lane: ram, render, snapshot, restore."""
        return [getattr(lane, method_name)(*args, **kwargs) for lane in self._chosen(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """False for each chosen lane: nothing wraps a native lane."""
        return [False for _ in self._chosen(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Every lane's picture, uint8[224, 240, 3]; None, and a warning, without render_mode="rgb_array"."""
        if self.render_mode != "rgb_array":
            warn('there are no pictures: make the lanes with render_mode="rgb_array"')
            return [None] * self.num_envs
        return [lane.render() for lane in self._lanes]

    def _chosen(self, indices: Indices) -> list[Lane]:
        if indices is None:
            return self._lanes
        numbers = [indices] if isinstance(indices, (int, np.integer)) else list(indices)
        for number in numbers:
            if not -self.num_envs <= number < self.num_envs:
                raise IndexError(f"indices: there is no lane {number}, expected 0 to {self.num_envs - 1}")
        return [self._lanes[number] for number in numbers]
