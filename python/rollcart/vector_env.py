"""`NesVectorEnv`: many NES consoles as one `gymnasium.vector.VectorEnv`.

The lanes are native (`rollcart._native.Batch`); here are Gymnasium's forms: spaces, seeds, options, infos,
and whose memory an observation is. Where a game's files are is `games`' business, the meaning of options the
native module's.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, overload

import numpy as np
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rollcart import _arguments, _setup, buttons, spaces
from rollcart import _traffic as ways
from rollcart._buffers import Observations
from rollcart._native import Batch, KeptLane
from rollcart._sending import SendReceive
from rollcart.errors import ConfigError
from rollcart.games import BUNDLED

if TYPE_CHECKING:
    from rollcart.movie import Movie

NTSC_FRAMES_PER_SECOND = 60.0988


class NesVectorEnv(SendReceive):
    """Plays `num_envs` NES consoles with the same cartridge, each a lane with its own episodes.

    A step holds a lane's buttons for `frame_skip` frames and sums their rewards; the frame that ends the
    episode ends the step. Reward, end and infos come from the game's Stable Retro files. A lane depends on
    its seed, its start state and its actions alone. Without `noop_reset_max` and `sticky_action_prob` nothing
    is random: lanes that begin at the same state and take the same actions are equal, whatever their seeds.

    Args:
        game: Name of a game: a folder with Stable Retro's files, under RETRO_DATA_PATH or bundled. A list has
            each lane's own: several ROMs in one batch, which need equal spaces.
        num_envs: Lanes.
        rom_path: The ROM (path or bytes), where it is not in the game's folder; a list has each lane's.
        state: Where episodes begin: the name of one of the game's states, a path, bytes, or "NONE"
            (power-on); or a list of them, one a lane. By default what metadata.json says.
        state_catalog: States (a list, or a dict of names and states); lane i begins at number i modulo their
            count.
        integrations: Where Stable Retro's files are looked for: None (everywhere), "stable", "contrib",
            "experimental", "custom", "all", several joined by |, or the number (see `rollcart.discovery`).
        scenario: Another scenario than scenario.json: a name in the game's folders, or a path.
        info: Other variables than data.json's, likewise.
        signals: Tell in the infos what the game's signals.json derives from memory (docs/stable-retro.md).
        engine: "fast".
        engine_options: A dict: `ram_fill` (0xFF), and switches (True): `idle_skip`, `poll_skip`, `line_log`,
            `kept_deadlines`, `beam_jumps`, `direct_bins`, `tile_sums`, `joined_sums`, `simd`, `state_copies`,
            `jit` and its passes `jit_links`, `jit_dead_flags`, `jit_polls`, `jit_registers`, `jit_returns`;
            `layout_seed` (0). docs/engine.md says what each does.
        frame_skip: Frames a step.
        frame_stack: Observations in an image, newest last; an episode's first observation fills all (but
            see stack_start).
        maxpool: Observe the pixelwise maximum of the last two frames.
        obs: "image", "ram" (uint8[2048], [10240] with work RAM) or "dict" (keys image and ram).
        grayscale: Grey values instead of red, green and blue.
        crop: Pixels (top, right, bottom, left) of the 224 x 240 picture that are hidden; "scenario" for all
            that the game's scenario does not show.
        crop_mode: "mask" blackens them, "cut" removes them.
        resize: (height, width) of the image; None leaves the picture's.
        resize_algorithm: "area", "nearest" or "bilinear".
        layout: "chw": (channels, height, width), or "hwc".
        actions: "discrete", "all", "filtered", "multi_discrete" (Stable Retro's, with its numbers),
            "right_only", "simple", "complex", or a table: each entry a mask (A=1 B=2 SELECT=4 START=8 UP=16
            DOWN=32 LEFT=64 RIGHT=128) or a list of button names.
        players: 1 or 2 pads.
        max_episode_steps: Truncates an episode after so many steps (not frames); a list has each lane's, None
            for no limit.
        autoreset_mode: A `gymnasium.vector.AutoresetMode` or its value: "NextStep", "SameStep", "Disabled".
        noop_reset_max: An episode begins with a random number of frames without buttons, from 0 to this.
        sticky_action_prob: Chance, in each frame, that the buttons of the frame before are held once more.
        reward_clip: Rewards become -1, 0 or 1; the info `raw_reward` has the sum before.
        episodic_life: A lost life ends the episode, too; the next one goes on in the same game. True watches
            the game's variable `lives`, a text the one of that name.
        stack_start: What stands in a stack before an episode's first observation: that observation ("repeat")
            or black ("zero").
        info_keys: The infos to give; None for all, "numbers" for all but text (which Gymnasium's NumpyToTorch
            cannot take).
        batch_size: Lanes that `recv` gives at once, all by default.
        copy: Observations belong to the caller. False hands out two sets of arrays in turn: an observation is
            overwritten by the second call after the one that gave it.
        num_threads: Threads, the caller's included. By default RAYON_NUM_THREADS or OMP_NUM_THREADS, else the
            processors that this process may use.
        render_mode: None or "rgb_array".
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's name; instances have their own
        "render_modes": ["rgb_array"],
        "render_fps": NTSC_FRAMES_PER_SECOND,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    # Closing works on what could not be made, too.
    _batch: Batch | None = None
    _lanes: _setup.Lanes | None = None
    # In a call that lets other threads run.
    _playing = False

    def __new__(cls, game: Any = BUNDLED, *_args: Any, rom_path: Any = None, **_options: Any) -> NesVectorEnv:
        if unknown := _options.keys() - _known_options():
            raise TypeError(_arguments.no_option(cls.__name__, min(unknown), _known_options() - {"self"}))
        if isinstance(game, (list, tuple)) or isinstance(rom_path, (list, tuple)):
            from rollcart.mixed_env import MixedNesVectorEnv

            return super().__new__(MixedNesVectorEnv)
        return super().__new__(cls)

    def __init__(
        self,
        game: str | Sequence[str] = BUNDLED,
        num_envs: int = 1,
        *,
        rom_path: Any = None,
        state: Any = None,
        state_catalog: Any = None,
        integrations: Any = None,
        scenario: str | os.PathLike[str] | None = None,
        info: str | os.PathLike[str] | None = None,
        signals: bool = False,
        engine: str = "fast",
        engine_options: dict[str, Any] | None = None,
        frame_skip: int = 4,
        frame_stack: int = 4,
        maxpool: bool = False,
        obs: str = "image",
        grayscale: bool = True,
        crop: Sequence[int] | str = (32, 0, 0, 0),
        crop_mode: str = "mask",
        resize: Sequence[int] | None = (84, 84),
        resize_algorithm: str = "area",
        layout: str = "chw",
        actions: Any = "discrete",
        players: int = 1,
        max_episode_steps: int | Sequence[int | None] | None = None,
        autoreset_mode: AutoresetMode | str = "NextStep",
        noop_reset_max: int = 0,
        sticky_action_prob: float = 0.0,
        reward_clip: bool = False,
        episodic_life: bool | str = False,
        stack_start: str = "repeat",
        info_keys: Sequence[str] | Literal["numbers"] | None = None,
        batch_size: int | None = None,
        copy: bool = True,
        num_threads: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = _arguments.render_mode(render_mode)
        mode = _arguments.autoreset_mode(autoreset_mode)
        keys, tells_state = _arguments.info_keys(info_keys)
        self.copy = _arguments.flag("copy", copy)
        self.metadata = {**deepcopy(type(self).metadata), "autoreset_mode": mode}
        options = {
            "num_envs": num_envs,
            "engine": engine,
            "engine_options": engine_options,
            "frame_skip": frame_skip,
            "frame_stack": frame_stack,
            "maxpool": maxpool,
            "obs": obs,
            "grayscale": grayscale,
            "crop": crop,
            "crop_mode": crop_mode,
            "resize": False if resize is None else resize,
            "resize_algorithm": resize_algorithm,
            "layout": layout,
            "actions": actions,
            "players": players,
            "max_episode_steps": max_episode_steps,
            "autoreset_mode": mode.value,
            "noop_reset_max": noop_reset_max,
            "sticky_action_prob": sticky_action_prob,
            "reward_clip": reward_clip,
            "episodic_life": episodic_life,
            "stack_start": stack_start,
            "info_keys": keys,
            "num_threads": num_threads,
        }
        files = {"integrations": integrations, "scenario": scenario, "info": info}
        name = cast(str, game)  # lists went to MixedNesVectorEnv
        lanes, self._starts = _setup.make(name, rom_path, state, state_catalog, options, files, signals)
        batch = lanes.batch
        self._lanes = lanes
        self._batch = batch
        self.game = lanes.game.name
        self.num_envs = batch.num_envs
        self.num_threads = batch.num_threads
        self.single_observation_space = spaces.observation_space(batch)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.single_action_space = spaces.action_space(batch)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._action_shape = self.action_space.shape or ()
        self.frame_stack = int(frame_stack)
        self._buffers = Observations(self.num_envs, batch.image_shape, batch.ram_bytes, copy=self.copy)
        self._dict = obs == "dict"
        self._batch_size = ways.batch_size_of(batch_size, self.num_envs)
        self._received = np.arange(self.num_envs)
        # Lanes that may not be sent: in the Disabled mode, those that have ended.
        self._refused = np.zeros(self.num_envs, np.bool_)
        self._seeded = np.zeros(self.num_envs, np.bool_)
        self._all_lanes = np.ones(self.num_envs, np.bool_)
        # A game's variable of that name would come first.
        self._tells_state = tells_state and "state" not in batch.integer_keys
        self._name_starts()

    # ------------------------------------------------------------------------------------ Gymnasium

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every lane, or in those of `options["reset_mask"]` (bool[num_envs]).

        seed: s gives lane i the seed s + i; a list gives each lane its own, of which None goes on with the
        lane's random numbers, as no seed does. options["state"]: where the lanes begin, now and after later
        autoresets: a state or a list of them, one a lane, of which None leaves the lane's. out: as in `step`.
        With `episodic_life` a lane whose episode ended with a life goes on in its game, unless it gets a seed
        or states are chosen.
        """
        batch = self._open()
        mask, seeds, starts, anew = self._beginning(seed, options)
        image, ram = self._buffers.take(out)
        self._playing = True
        try:
            infos = batch.reset(mask, seeds, starts, anew, image, ram)
        finally:
            self._playing = False
        self._begun(mask, starts)
        return self._observation(image, ram), self._with_starts(infos, mask)

    def _beginning(
        self, seed: Any, options: dict[str, Any] | None
    ) -> tuple[Any, list[int | None], list[int], bool]:
        """Mask (or None), seeds and starts of a reset, all checked, and whether a start was chosen."""
        given = _arguments.reset_options(options)
        mask = self._mask(given["reset_mask"], "reset_mask") if "reset_mask" in given else None
        seeds = self._seeds(seed)
        starts, chosen = self._starts, given.get("state") is not None
        if chosen:
            assert self._lanes is not None
            wanted = _setup.chosen(self._lanes, 'options["state"]', given["state"], starts)
            starts = wanted if mask is None else np.where(mask, wanted, starts).tolist()
        return mask, seeds, starts, chosen

    def _begun(self, mask: Any, starts: list[int]) -> None:
        if starts is not self._starts:
            self._starts = starts
            self._name_starts()
        self._seeded |= True if mask is None else mask
        self._refused &= False if mask is None else ~mask

    def step(
        self, actions: Any, *, out: Any = None
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Plays one action a lane. One that is no action raises ValueError before any lane moves.

        out: the caller's own array for the observations (for obs="dict" a dict of them), of the observation
        space's shape and dtype, contiguous (a row of a rollout's buffer, say): it is written and given back.
        """
        batch = self._open()
        numbers = spaces.numbers(actions, self.single_action_space, self._action_shape)
        image, ram = self._buffers.take(out)
        self._playing = True
        try:
            reward, terminated, truncated, infos, ended = batch.step(numbers, image, ram)
        finally:
            self._playing = False
        self._with_starts(infos)
        if ended:
            infos |= self._final(batch.endings())
        return self._observation(image, ram), reward, terminated, truncated, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Every lane's picture, uint8[224, 240, 3]; None without a render mode. Nothing advances."""
        if self.render_mode is None:
            return None
        return tuple(self.render_lane(lane) for lane in range(self.num_envs))

    def close_extras(self, **_kwargs: Any) -> None:
        """Lets lanes and threads go; close() calls it once."""
        if self._traffic is not None:
            self._traffic.close()
        self._batch = self._lanes = None

    def __enter__(self) -> NesVectorEnv:
        """Of `with`, which closes the environment at its end."""
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a NesVectorEnv cannot be pickled or deep-copied: make one with the same arguments and hand its "
            "state over with snapshot() and restore()"
        )

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__reduce__()

    # ------------------------------------------------------------------------------------ more than Gymnasium

    @property
    def start_states(self) -> tuple[str, ...]:
        """The name of the state in which each lane's episodes begin."""
        return tuple(self._start_names.tolist())

    @property
    def action_buttons(self) -> list[tuple[int, int]] | None:
        """For actions of one number: what each presses on both pads, as masks."""
        return self._open().action_buttons

    def get_action_meanings(self) -> list[str]:
        """For actions of one number: the buttons that each presses, as `RIGHT+A`; NOOP for none."""
        if (pressed := self.action_buttons) is None:
            raise ConfigError(
                f"actions: expected one number each, found {self.single_action_space}; a table of actions or "
                '"discrete" has meanings'
            )
        return buttons.meanings(pressed)

    def ram(self) -> NDArray[np.uint8]:
        """Every console's RAM, uint8[num_envs, 2048], a copy."""
        return self._open().ram()

    @overload
    def snapshot(self, mask: NDArray[np.bool_] | None = None) -> list[bytes | None]: ...
    @overload
    def snapshot(
        self, mask: NDArray[np.bool_] | None = None, *, portable: Literal[False]
    ) -> list[KeptLane | None]: ...
    def snapshot(self, mask: NDArray[np.bool_] | None = None, *, portable: bool = True) -> Any:
        """The whole state of each lane of `mask` (default all) as bytes, None for the others.

        `portable=False` gives objects in place of bytes, some ten times as fast: restore() takes them in
        every environment of this process; bytes(one) is its snapshot for other ones.
        """
        kept = self._open().keep(self._all_or(mask))
        return [None if lane is None else bytes(lane) for lane in kept] if portable else kept

    def restore(
        self, snapshots: Sequence[bytes | KeptLane | None], mask: NDArray[np.bool_] | None = None
    ) -> Any:
        """Takes over snapshots, and gives the observations of all lanes.

        A lane goes on exactly as the one that gave its snapshot, in this or another environment or process of
        the same ROM and image options. None, and lanes outside `mask`, stay. Raises StateError, and changes
        nothing then.
        """
        batch = self._open()
        lanes = self._all_or(mask)
        _arguments.check_snapshots(snapshots, self.num_envs)
        taken: list[KeptLane | None] = [None] * self.num_envs
        for at, (state, chosen) in enumerate(zip(snapshots, lanes, strict=True)):
            if state is not None and chosen:
                taken[at] = state if isinstance(state, KeptLane) else batch.read(at, bytes(memoryview(state)))
        assert self._lanes is not None
        for name in {state.start for state in taken if state is not None}:
            self._lanes.starts.learn(name)
        batch.recall(taken)
        self._seeded |= [state is not None for state in taken]
        return self._present(batch)

    def fork(self, src_lane: int, mask: NDArray[np.bool_]) -> Any:
        """Copies lane `src_lane`, with its random numbers, into those of `mask`; gives all observations."""
        batch = self._open()
        lanes = self._all_or(mask)
        batch.fork(self._lane(src_lane, "src_lane"), lanes)
        self._seeded |= lanes
        return self._present(batch)

    def render_lane(self, lane: int) -> NDArray[np.uint8]:
        """One lane's last picture, uint8[224, 240, 3], as Stable Retro shows it."""
        return self._open().render(self._lane(lane, "lane"))

    def log_inputs(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Writes down, from now on, what is pressed in the lanes of `mask` (default all): for `movie`."""
        self._open().log_inputs(self._all_or(mask))

    def movie(self, lane: int, *, last_episode: bool = False) -> Movie:
        """What was pressed in a lane since its episode began, as a movie that replays outside the batch.

        It begins at the lane's last reset, restore, fork or `log_inputs`, whichever came last, and holds
        every frame, those of no-ops and sticky actions too. last_episode: the one that a reset ended.
        Raises ConfigError where nothing was written down, or scripts of the scenario wrote into memory.
        """
        from rollcart import movie

        inputs = self._open().inputs(self._lane(lane, "lane"), last_episode)
        if inputs is None:
            reason = (
                "no episode of it has ended since log_inputs()" if last_episode else "call log_inputs() first"
            )
            raise ConfigError(f"movie: nothing was written down for lane {lane}; {reason}")
        start, pads, poked = inputs
        if poked:
            raise ConfigError(
                f"movie: the scenario's scripts wrote into the memory of lane {lane}, and a movie has "
                "buttons alone, so it would not replay; take a scenario= without such scripts"
            )
        assert self._lanes is not None
        return movie.of_log(self._lanes.game, f"lane {lane}", start, pads)

    def profile(self, lane_clocks: bool | None = None) -> dict[str, float]:
        """What was done since the environment was made, and how long it took.

        `memory_per_lane` is in bytes, of the lane that has the most: all that it has to itself but its
        observations.

        `lane_clocks` True or False starts or stops the clocks inside lanes, whose times are sums over
        threads. Keys that begin with `jit_` tell of the translator (all 0 without it): generations made, 6502
        instructions, bytes and seconds of the newest, and instructions that lanes interpreted.
        """
        batch = self._open()
        if lane_clocks is not None:
            batch.time_lanes(lane_clocks)
        return batch.profile()

    # ------------------------------------------------------------------------------------ inside

    def _settle(self) -> None:
        """Translate what was reached so far, now, so that no later step does: for those who measure."""
        self._open().settle()

    def _open(self) -> Batch:
        if self._batch is None:
            raise ClosedEnvironmentError("this environment was closed; make a new one")
        if self._playing:
            raise RuntimeError(
                "another call of this environment is running, in another thread or under a signal handler; "
                "an environment is for one call at a time"
            )
        if self._traffic is not None and not self._traffic.idle():
            raise AlreadyPendingCallError(
                "lanes are on their way: recv() all of them before other calls", "recv"
            )
        return self._batch

    def _lane_shapes(self) -> tuple[tuple[int, ...] | None, int]:
        batch = self._open()
        return batch.image_shape, batch.ram_bytes

    def _check_states(self, states: list[Any]) -> None:
        """Reads start states, so that none of them can fail later."""
        self._open()
        assert self._lanes is not None
        _setup.chosen(self._lanes, 'options["state"]', states, self._starts)

    def _observation(self, image: Any, ram: Any) -> Any:
        if self._dict:
            return {"image": image, "ram": ram}
        return ram if image is None else image

    def _present(self, batch: Batch) -> Any:
        self._starts = list(batch.starts)
        self._name_starts()
        # What was taken over may go on where the lane could not, or the other way round.
        self._refused = np.array(batch.refused) & self._seeded
        image, ram = self._buffers.take()
        batch.observe(image, ram)
        return self._observation(image, ram)

    def _name_starts(self) -> None:
        names = self._open().start_names
        self._start_names = np.array([names[start] for start in self._starts])

    def _with_starts(self, infos: dict[str, Any], mask: Any = None) -> dict[str, Any]:
        if self._tells_state:
            infos["state"] = self._start_names.copy()
            infos["_state"] = (self._all_lanes if mask is None else mask).copy()
        return infos

    def _final(self, endings: Any) -> dict[str, Any]:
        """The last observations and infos of episodes that a step ended and reset."""
        last, infos = endings
        ended = np.zeros(self.num_envs, np.bool_)
        observations = np.full(self.num_envs, None, dtype=object)
        for lane, image, ram in last:
            ended[lane] = True
            shaped = image.reshape(self._buffers.image) if self._buffers.image else None
            observations[lane] = self._observation(shaped, ram)
        return {
            "final_obs": observations,
            "_final_obs": ended,
            "final_info": self._with_starts(infos, ended),
            "_final_info": ended.copy(),
        }

    def _mask(self, mask: Any, what: str) -> NDArray[np.bool_]:
        if not isinstance(mask, np.ndarray):
            raise TypeError(f"{what}: expected a numpy array of bool, found {type(mask).__name__}")
        if mask.dtype != np.bool_:
            raise TypeError(f"{what}: expected dtype bool, found {mask.dtype}")
        if mask.shape != (self.num_envs,):
            shape = (self.num_envs,)
            raise ValueError(f"{what}: expected shape {shape}, one entry a lane, found {mask.shape}")
        if not mask.any():
            raise ValueError(f"{what}: expected at least one True, found none")
        return np.ascontiguousarray(mask)

    def _lane(self, lane: Any, what: str) -> int:
        number = _arguments.lane_number(what, lane)
        if not 0 <= number < self.num_envs:
            raise ValueError(f"{what}: there is no lane {number}, expected 0 to {self.num_envs - 1}")
        return number

    def _all_or(self, mask: Any) -> list[bool]:
        return [True] * self.num_envs if mask is None else self._mask(mask, "mask").tolist()

    def _seeds(self, seed: Any) -> list[int | None]:
        whole, seeds = _arguments.seeds(seed, self.num_envs)
        if whole is not None:
            super().reset(seed=whole)
        return _arguments.native_seeds(seeds, self._seeded, self)


@cache
def _known_options() -> frozenset[str]:
    return frozenset(inspect.signature(NesVectorEnv.__init__).parameters)
