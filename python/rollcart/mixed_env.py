"""Lanes with different ROMs as one `NesVectorEnv`: `NesVectorEnv(game=[...])` gives one of these.

For each ROM one environment holds its lanes; here their rows are put together in the lanes' order. The games
take turns, each with all threads: side by side they would have to share these, and Ctrl-C reaches the main
thread alone. All of them need equal spaces. Infos are the union of the games' keys: where a game does not
have a key, the lane's mask is False.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rollcart import _arguments, spaces
from rollcart._buffers import Observations
from rollcart.errors import ConfigError, StateError
from rollcart.games import BUNDLED
from rollcart.vector_env import NesVectorEnv

# Arguments that may have one entry a lane.
_BY_LANE = ("state", "max_episode_steps")


@dataclass(frozen=True)
class Part:
    """The environment of one ROM, and which lanes of the whole are its."""

    env: NesVectorEnv
    lanes: NDArray[np.intp]


class MixedNesVectorEnv(NesVectorEnv):
    """`NesVectorEnv` whose `game` or `rom_path` has one entry a lane; everything else means the same."""

    def __init__(
        self,
        game: str | Sequence[str] = BUNDLED,
        num_envs: int | None = None,
        *,
        rom_path: Any = None,
        copy: bool = True,
        state_catalog: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> None:
        self._parts: list[Part] = []
        lists = [value for value in (game, rom_path) if isinstance(value, (list, tuple))]
        if not all(lists):
            raise ConfigError("game, rom_path: expected an entry for each lane, found an empty list")
        count = len(lists[0]) if num_envs in (None, 1) else int(num_envs or 0)
        by_lane = [(key, options.get(key)) for key in _BY_LANE]
        for what, value in (("game", game), ("rom_path", rom_path), *by_lane):
            if isinstance(value, (list, tuple, np.ndarray)) and len(value) != count:
                raise ConfigError(f"{what}: expected {count} entries, one a lane, found {len(value)}")
        if state_catalog is not None or batch_size is not None:
            raise ConfigError(
                "several games: state_catalog and batch_size are for one game; give state=[...], one a lane"
            )
        for one, rom, lanes in _kinds(game, rom_path, count):
            of_part: dict[str, Any] = {
                key: [value[lane] for lane in lanes]
                if key in _BY_LANE and isinstance(value, (list, tuple, np.ndarray))
                else value
                for key, value in options.items()
            }
            self._parts.append(Part(NesVectorEnv(one, len(lanes), rom_path=rom, **of_part), lanes))
        first = self._parts[0].env
        for part in self._parts[1:]:
            _same_spaces(first, part.env)
        self.num_envs = count
        self.num_threads = max(part.env.num_threads for part in self._parts)
        self.game = ", ".join(dict.fromkeys(part.env.game for part in self._parts))
        self.metadata, self.render_mode = first.metadata, first.render_mode
        self.single_observation_space = first.single_observation_space
        self.single_action_space = first.single_action_space
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._action_shape = self.action_space.shape or ()
        self._dict = first._dict
        image, ram = first._lane_shapes()
        self.copy, self.frame_stack = _arguments.flag("copy", copy), first.frame_stack
        self._buffers = Observations(count, image, ram, copy=self.copy)
        self._seeded = np.zeros(count, np.bool_)
        # The infos of a game in which no lane was reset: its keys, all of them masked.
        self._nothing: dict[int, dict[str, Any]] = {}

    # ------------------------------------------------------------------------------------ Gymnasium

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        """As `NesVectorEnv.reset`; a state's name is looked for in each lane's own game."""
        given = _arguments.reset_options(options)
        masked = "reset_mask" in given
        mask = self._mask(given["reset_mask"], "reset_mask") if masked else np.ones(self.num_envs, np.bool_)
        seeds = self._seeds(seed)
        unready = np.flatnonzero(~mask & ~self._seeded)
        if len(unready):
            raise ResetNeeded(f"lane {unready[0]} was never reset; call reset() before this")
        states = self._states(given.get("state"))
        work = []
        for part in self._parts:
            own: dict[str, Any] = {"reset_mask": mask[part.lanes]}
            if states is not None:
                own["state"] = [states[lane] for lane in part.lanes]
                with self._of(part):
                    part.env._check_states(own["state"])
            work.append((part, own))
        results = []
        for part, own in work:
            if own["reset_mask"].any():
                results.append(part.env.reset(seed=[seeds[lane] for lane in part.lanes], options=own))
            else:
                results.append((part.env.restore([None] * len(part.lanes)), self._nothing[id(part)]))
        for (part, _), (_, infos) in zip(work, results, strict=True):
            self._nothing[id(part)] = {key: np.zeros_like(value) for key, value in infos.items()}
        self._seeded |= mask
        return self._rows([obs for obs, _ in results], out), self._merge([infos for _, infos in results])

    def step(
        self, actions: Any, *, out: Any = None
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """As `NesVectorEnv.step`."""
        numbers = spaces.numbers(actions, self.single_action_space, self._action_shape)
        numbers = numbers.reshape(self.num_envs, -1)
        spaces.check_range(numbers, self.single_action_space, range(self.num_envs))
        self._check_steppable()
        shaped = numbers.reshape(self._action_shape)
        results = [part.env.step(shaped[part.lanes]) for part in self._parts]
        reward, terminated, truncated = (self._column([result[at] for result in results]) for at in (1, 2, 3))
        observation = self._rows([result[0] for result in results], out)
        return observation, reward, terminated, truncated, self._merge([result[4] for result in results])

    def close_extras(self, **_kwargs: Any) -> None:
        """Closes the environments of all ROMs."""
        for part in self._parts:
            part.env.close()

    # ------------------------------------------------------------------------------------ more than Gymnasium

    @property
    def start_states(self) -> tuple[str, ...]:
        """The name of the state in which each lane's episodes begin."""
        return tuple(self._spread([part.env.start_states for part in self._parts]))

    @property
    def games(self) -> tuple[str, ...]:
        """Each lane's game."""
        return tuple(self._spread([[part.env.game] * len(part.lanes) for part in self._parts]))

    @property
    def action_buttons(self) -> list[tuple[int, int]] | None:
        """For actions of one number: what each presses on both pads, as masks."""
        return self._parts[0].env.action_buttons

    def ram(self) -> NDArray[np.uint8]:
        """Every console's RAM, uint8[num_envs, 2048], a copy."""
        memory: NDArray[np.uint8] = self._column([part.env.ram() for part in self._parts])
        return memory

    def snapshot(self, mask: NDArray[np.bool_] | None = None, **kind: Any) -> Any:
        """As `NesVectorEnv.snapshot`."""
        chosen = np.array(self._all_or(mask))
        return self._spread(
            [
                part.env.snapshot(chosen[part.lanes], **kind)
                if chosen[part.lanes].any()
                else [None] * len(part.lanes)
                for part in self._parts
            ]
        )

    def restore(self, snapshots: Sequence[Any], mask: NDArray[np.bool_] | None = None) -> Any:
        """As `NesVectorEnv.restore`: a snapshot fits lanes of its own ROM."""
        chosen = self._all_or(mask)
        if len(snapshots) != self.num_envs:
            raise ValueError(f"snapshots: expected {self.num_envs}, one a lane, found {len(snapshots)}")
        taken = [state if keep else None for state, keep in zip(snapshots, chosen, strict=True)]
        done: list[tuple[Part, list[Any] | None]] = []
        observations = []
        try:
            for part in self._parts:
                before = part.env.snapshot() if self._seeded[part.lanes].all() else None
                with self._of(part):
                    observations.append(part.env.restore([taken[lane] for lane in part.lanes]))
                done.append((part, before))
        except Exception:
            for part, before in done:
                if before is not None:
                    part.env.restore(before)
            raise
        restored = np.array([state is not None for state in taken])
        self._seeded |= restored
        return self._rows(observations, None)

    def fork(self, src_lane: int, mask: NDArray[np.bool_]) -> Any:
        """As `NesVectorEnv.fork`, into lanes of the same ROM."""
        source, chosen = self._lane(src_lane, "src_lane"), np.array(self._all_or(mask))
        home = next(part for part in self._parts if source in part.lanes)
        strangers = np.setdiff1d(np.flatnonzero(chosen), home.lanes)
        if len(strangers):
            raise StateError(
                f"fork: lane {source} plays {home.env.game}; lanes {strangers.tolist()} play other games"
            )
        home.env.fork(int(np.flatnonzero(home.lanes == source)[0]), chosen[home.lanes])
        self._seeded |= chosen
        return self._rows([part.env.restore([None] * len(part.lanes)) for part in self._parts], None)

    def render_lane(self, lane: int) -> NDArray[np.uint8]:
        """One lane's last picture, uint8[224, 240, 3]."""
        part, at = self._home(lane)
        return part.env.render_lane(at)

    def profile(self, lane_clocks: bool | None = None) -> dict[str, float]:
        """As `NesVectorEnv.profile`, summed over the games, but for the largest `memory_per_lane`."""
        profiles = [part.env.profile(lane_clocks) for part in self._parts]
        whole = {key: sum(profile.get(key, 0) for profile in profiles) for key in profiles[0]}
        return {**whole, "memory_per_lane": max(profile["memory_per_lane"] for profile in profiles)}

    # ------------------------------------------------------------------------------------ inside

    def _ways(self) -> NoReturn:
        self._open()

    def _open(self) -> NoReturn:
        raise ConfigError("this is not there for several games; make a NesVectorEnv of one game for it")

    def _check_steppable(self) -> None:
        """Raises ResetNeeded before any game's lanes move, whatever call left a lane as it is."""
        refused = self._column([np.array(part.env._open().refused) for part in self._parts])
        if refused.any():
            why = "it was never reset (or a call was broken off), or its episode has ended"
            raise ResetNeeded(f"lane {np.flatnonzero(refused)[0]} cannot be stepped: {why}; reset it")

    def _home(self, lane: int) -> tuple[Part, int]:
        number = self._lane(lane, "lane")
        part = next(part for part in self._parts if number in part.lanes)
        return part, int(np.flatnonzero(part.lanes == number)[0])

    def _states(self, state: Any) -> list[Any] | None:
        if state is None:
            return None
        if not isinstance(state, (list, tuple, np.ndarray)):
            return [state] * self.num_envs
        if len(state) != self.num_envs:
            raise ConfigError(
                f'options["state"]: expected one state, or {self.num_envs} of them, one a lane; '
                f"found {len(state)}"
            )
        return list(state)

    @contextmanager
    def _of(self, part: Part) -> Iterator[None]:
        """Says which lanes an error's numbers are counted among."""
        try:
            yield
        except StateError as error:
            raise StateError(f"{part.env.game} (lanes {part.lanes.tolist()}): {error}") from None

    def _rows(self, observations: list[Any], out: Any) -> Any:
        image, ram = self._buffers.take(out)
        for part, observation in zip(self._parts, observations, strict=True):
            for key, array in (("image", image), ("ram", ram)):
                if array is not None:
                    array[part.lanes] = observation[key] if self._dict else observation
        return self._observation(image, ram)

    def _column(self, values: list[Any]) -> Any:
        column = np.empty((self.num_envs, *values[0].shape[1:]), np.result_type(*values))
        for part, value in zip(self._parts, values, strict=True):
            column[part.lanes] = value
        return column

    def _spread(self, values: list[Sequence[Any]]) -> list[Any]:
        spread: list[Any] = [None] * self.num_envs
        for part, value in zip(self._parts, values, strict=True):
            for lane, one in zip(part.lanes, value, strict=True):
                spread[lane] = one
        return spread

    def _merge(self, infos: list[dict[str, Any]]) -> dict[str, Any]:
        return merged(infos, [part.lanes for part in self._parts], self.num_envs)


def merged(infos: list[dict[str, Any]], lanes: list[NDArray[np.intp]], count: int) -> dict[str, Any]:
    """Infos of several environments as those of one: the union of their keys, with masks."""
    whole: dict[str, Any] = {}
    for key in dict.fromkeys(key for own in infos for key in own if not key.startswith("_")):
        having = [(own, where) for own, where in zip(infos, lanes, strict=True) if key in own]
        mask = np.zeros(count, np.bool_)
        for own, where in having:
            mask[where] = own[f"_{key}"]
        if isinstance(having[0][0][key], dict):
            whole[key] = merged([own.get(key, {}) for own in infos], lanes, count)
        else:
            values = [own[key] for own, _ in having]
            objects = values[0].dtype == object
            column = np.full(count, None, object) if objects else np.zeros(count, np.result_type(*values))
            for value, (_, where) in zip(values, having, strict=True):
                column[where] = value
            whole[key] = column
        whole[f"_{key}"] = mask
    return whole


def _kinds(game: Any, rom_path: Any, count: int) -> Iterator[tuple[str, Any, NDArray[np.intp]]]:
    """Every distinct pair of game and ROM, with its lanes, in the order of their first lanes."""

    def each(value: Any) -> list[Any]:
        return list(value) if isinstance(value, (list, tuple)) else [value] * count

    def name(rom: Any) -> Any:
        return os.fspath(rom) if isinstance(rom, os.PathLike) else rom

    pairs: dict[tuple[Any, Any], list[int]] = {}
    for lane, pair in enumerate(zip(each(game), map(name, each(rom_path)), strict=True)):
        pairs.setdefault(pair, []).append(lane)
    for (one, rom), lanes in pairs.items():
        yield one, rom, np.array(lanes, np.intp)


def _same_spaces(first: NesVectorEnv, other: NesVectorEnv) -> None:
    reads: list[tuple[str, Callable[[NesVectorEnv], Any]]] = [
        ("observations", lambda env: env.single_observation_space),
        ("actions", lambda env: env.single_action_space),
    ]
    for what, of in reads:
        if of(first) != of(other):
            raise ConfigError(
                f"several games need equal spaces: {what} of {first.game} are {of(first)}, those of "
                f"{other.game} {of(other)}; choose options that make them equal: resize, a table of actions"
            )
