"""The canonical workload: rollcart's vector environment under a frozen stochastic policy, for cartlab's
slice server.

Contract: SPECS.md section 4 and the adapter's recipe in cartlab/slice_server.py. It imports the
standard library, numpy and the rollcart of the build under test, and belongs to the controller: a candidate
is driven by the controller's copy. Sizes, game and options are the workload's params in autoresearch.toml;
the policy is the table in nes_batch_policy.json beside this file: the next action of a lane depends on its
action now and on a number that is drawn for this lane and step alone.

A held-out draw (params["held_out"], SPECS.md section 6) gives other start states, each a random way into a
public one under the policy, and other random numbers for the actions.

Before the first slice all lanes play until they differ and at least one episode has ended, so that work
which is shared between equal lanes gains nothing.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

POLICY = Path(__file__).with_name("nes_batch_policy.json")
PREROLL_STEPS = 64
# What the engine tells of its own time, in words.
ENGINE_PARTS = {
    "CPU emulation": "lane_seconds_cpu",
    "PPU bookkeeping": "lane_seconds_ppu",
    "drawing": "lane_seconds_drawing",
    "observation": "lane_seconds_observing",
    "looking at clocks": "lane_seconds_looking",
}
OUTCOME = ("observation", "rewards", "terminations", "truncations", "infos")
# A held-out start state lies this many steps into a public one, and this far before the end of its episode.
ROLL_IN_STEPS = (16, 256)
BEFORE_END_STEPS = 24
# Params that NesVectorEnv takes as they are.
OPTIONS = (
    "num_envs", "engine", "frame_skip", "frame_stack", "maxpool", "obs", "grayscale", "crop", "crop_mode",
    "resize", "resize_algorithm", "layout", "players", "max_episode_steps", "autoreset_mode",
    "noop_reset_max", "sticky_action_prob", "reward_clip", "info_keys", "copy",
)  # fmt: skip


class BadWorkload(Exception):
    """Params that no build can run."""


def use_controllers_game(params: dict[str, Any]) -> None:
    """Make rollcart find the game's files where the controller found the ROM, not in the build under test."""
    rom = params.get("rom_path")
    if rom and (Path(rom).parent / "data.json").is_file():
        os.environ["RETRO_DATA_PATH"] = str(Path(rom).parent.parent)
    if rom and params.get("rom_sha256") not in (None, hashlib.sha256(Path(rom).read_bytes()).hexdigest()):
        raise BadWorkload(f"the ROM must have sha256 {params['rom_sha256']}; {rom} is another file now")


def states_of(params: dict[str, Any]) -> list[str] | None:
    """The states in which lanes begin: those of `state_dir`, else the named ones, else the game's default."""
    if params.get("state_dir"):
        found = sorted(str(path) for path in Path(params["state_dir"]).glob("*.state"))
        return found or None
    return list(params.get("states", ())) or None


def drawn_number(draw: str, purpose: str, below: int = 2**31) -> int:
    """A number in [0, below) that belongs to this purpose of a held-out draw."""
    return int.from_bytes(hashlib.sha256(f"{draw}/{purpose}".encode()).digest()[:8], "big") % below


def state_files(params: dict[str, Any]) -> list[Path]:
    """The files of the public start states; all of the game's where none is named."""
    folder = Path(params["rom_path"]).parent
    named = states_of(params)
    if named:
        found = [Path(name) if name.endswith(".state") else folder / f"{name}.state" for name in named]
    else:
        found = sorted(path for path in folder.glob("*.state") if not path.name.startswith("_"))
    missing = [path.name for path in found if not path.is_file()]
    if missing or not found:
        raise BadWorkload(f"a held-out draw starts from state files; missing: {', '.join(missing) or 'all'}")
    return found


def held_out_states(rollcart: Any, params: dict[str, Any], draw: str) -> dict[str, bytes]:
    """Name -> state: from each public state a random number of steps on, under the policy.

    An environment of one lane says where the episode would end; the console plays the same up to a point
    before that and saves.
    """
    skip, out = int(params.get("frame_skip", 4)), {}
    rom, actions = params["rom_path"], json.loads(POLICY.read_text())["actions"]
    for path in state_files(params):
        state = path.read_bytes()
        moves = Policy(1, drawn_number(draw, f"moves {path.stem}")).draw(ROLL_IN_STEPS[1])
        lane = rollcart.NesVectorEnv(
            params["game"], 1, rom_path=rom, state_catalog=[state], actions=actions, frame_skip=skip
        )
        try:
            lane.reset(seed=0)
            most = len(moves)
            for step, row in enumerate(moves):
                _, _, terminated, truncated, _ = lane.step(row)
                if terminated[0] or truncated[0]:
                    most = step
                    break
            buttons = lane.action_buttons
        finally:
            lane.close()
        least = min(ROLL_IN_STEPS[0], most)
        latest = max(least, most - BEFORE_END_STEPS)
        steps = least + drawn_number(draw, f"steps {path.stem}", latest - least + 1)
        console = rollcart.Console(rom)
        console.load(state)
        console.step()  # an environment's first observation is one frame into its state
        for (action,) in moves[:steps]:
            console.step(*_pressed(buttons[action], skip))
        out[f"held-out {path.stem} +{steps}"] = console.save()
    return out


def _pressed(pads: tuple[int, int], frames: int) -> tuple[int, int, int]:
    return pads[0], frames, pads[1]


class Policy:
    """The frozen table and its random numbers: PCG64's raw output, the same on every numpy."""

    def __init__(self, lanes: int, seed: int) -> None:
        table = json.loads(POLICY.read_text())
        self.actions = table["actions"]
        self._first = np.cumsum(table["start"])[:-1]
        self._next = np.cumsum(table["next"], axis=1)[:, :-1]
        self._bits = np.random.PCG64(seed)
        self._lanes = lanes
        self._now = (self._first[None, :] < self._uniform(1)[0][:, None]).sum(axis=1)

    def _uniform(self, steps: int) -> np.ndarray:
        raw = self._bits.random_raw(steps * self._lanes) >> np.uint64(11)
        return (raw * 2.0**-53).reshape(steps, self._lanes)

    def draw(self, steps: int) -> np.ndarray:
        """int64[steps, lanes]: the actions of the next steps."""
        out = np.empty((steps, self._lanes), np.int64)
        for row, numbers in zip(out, self._uniform(steps), strict=True):
            self._now = (self._next[self._now] < numbers[:, None]).sum(axis=1)
            row[:] = self._now
        return out


class Session:
    """One environment of the build under test."""

    def __init__(self, params: dict[str, Any], seed: int, layout_seed: int | None) -> None:
        import rollcart

        self.native = rollcart._native.__file__
        self._rollcart = rollcart
        self._params = params
        draw = params.get("held_out")
        self._seed = seed if draw is None else drawn_number(draw, f"seed {seed}")
        self._layout_seed = layout_seed
        self._states: Any = states_of(params) if draw is None else held_out_states(rollcart, params, draw)
        self.env = self._make(params["num_envs"], self._states)
        self.lanes = self.env.num_envs
        self._policy = Policy(self.lanes, self._seed)
        self._first = self.env.reset(seed=self._seed)
        self._actions = self._policy.draw(0)
        self._kept: list[Any] = []
        self._is_spread = False

    def _make(self, lanes: int, states: Any) -> Any:
        options = {key: self._params[key] for key in OPTIONS if key in self._params}
        options["num_envs"] = lanes
        options["num_threads"] = self._params.get("num_threads") or None
        options["rom_path"] = self._params.get("rom_path")
        options["state_catalog"] = states
        options["actions"] = json.loads(POLICY.read_text())["actions"]
        make = functools.partial(self._rollcart.NesVectorEnv, self._params["game"], **options)
        if self._layout_seed is not None:
            try:
                return make(engine_options={"layout_seed": self._layout_seed})
            except self._rollcart.errors.ConfigError:
                # An engine that generates no code, or one from before the option.
                self._layout_seed = None
        return make()

    def spread(self) -> None:
        """Once, before anything is timed: play until every lane is somewhere else and an episode has ended;
        resets are spread over the lanes.
        """
        if self._is_spread:
            return
        self._is_spread = True
        limit = PREROLL_STEPS + int(self._params.get("max_episode_steps") or 0) + 2
        ended = False
        for step, actions in enumerate(self._policy.draw(limit)):
            _, _, terminated, truncated, _ = self.env.step(actions)
            ended = ended or bool(np.any(terminated) or np.any(truncated))
            if step < PREROLL_STEPS and step % 4 == 3 and step // 4 < self.lanes:
                self.env.reset(options={"reset_mask": np.arange(self.lanes) == step // 4})
            if step >= PREROLL_STEPS and ended:
                break
        if len({row.tobytes() for row in self.env.ram()}) != self.lanes:
            raise BadWorkload(
                f"all {self.lanes} lanes must be in different states after warming up; some are equal"
            )

    # ------------------------------------------------------------------------------------ timed slices

    def prepare(self, steps: int) -> None:
        self.spread()
        # No translation to native code may run inside a slice. Builds from before it have no such call.
        getattr(self.env, "_settle", bool)()
        self._actions = self._policy.draw(steps)

    def forget(self) -> None:
        self._kept = []

    def run(self) -> None:
        step, keep = self.env.step, self._kept.append
        for actions in self._actions:
            keep(step(actions))

    def results(self) -> list[Any]:
        for outcome in self._kept:
            # What is made when somebody looks would be made outside the clock.
            if type(outcome) is not tuple or not all(type(part) is np.ndarray for part in outcome[:4]):
                kinds = [type(part).__name__ for part in outcome]
                raise TypeError(f"a step must return a tuple of plain arrays and infos; found {kinds}")
        return [outcome[1:] for outcome in self._kept]

    def observation(self, step: int) -> Any:
        return self._kept[step][0]

    def close(self) -> None:
        self.env.close()

    def profile(self, steps: int, engine: bool) -> dict[str, float]:
        """Where the time of `steps` steps goes, in seconds, on one thread; `engine`: the lanes' parts too.

        Clocks inside lanes slow the whole down by what looking at them takes; the parts are told without it.
        """
        self.close()
        self._params = {**self._params, "num_threads": 1}
        self.env = self._make(self.lanes, self._states)
        self.env.reset(seed=self._seed)
        self._is_spread = False
        self.prepare(steps)
        getattr(self.env, "_settle", lambda: None)()
        before = self.env.profile(lane_clocks=engine)
        began = time.perf_counter()
        for actions in self._actions:
            self.env.step(actions)
        whole = time.perf_counter() - began
        after = self.env.profile(lane_clocks=False)

        def spent(key: str) -> float:
            return after.get(key, 0.0) - before.get(key, 0.0)

        native = spent("seconds_in_step")
        if not engine:
            return {"native step": native, "Python": whole - native}
        parts = {name: spent(key) for name, key in ENGINE_PARTS.items()}
        return {**parts, "rules, dealing": native - sum(parts.values()), "Python": whole - native}

    # ------------------------------------------------------------------------------------ equal work

    def verify(self, steps: int) -> Iterator[tuple[str, Any]]:
        yield from self._surface()
        observation, infos = self._first
        yield "reset: observation", observation
        yield "reset: infos", infos
        early, late = steps // 4, steps // 2
        lanes = (0, self.lanes // 2 + 1) if self.lanes > 2 else (0,)
        yield from self._beside_lone_lanes(lanes, self._policy.draw(early))
        self.spread()
        actions = self._policy.draw(steps - early)
        yield from self._steps("step", self.env, actions[: late - early])
        yield from self._masked_reset()
        yield from self._saved_and_restored(actions[late - early : late - early + 20])
        yield from self._steps("later step", self.env, actions[late - early :])

    def _surface(self) -> Iterator[tuple[str, Any]]:
        """Names, signatures, spaces and dtypes that a user can see."""
        package, kind = self._rollcart, self._rollcart.NesVectorEnv
        yield "surface: names of rollcart", sorted(name for name in vars(package) if not name.startswith("_"))
        for name in sorted(name for name in dir(kind) if not name.startswith("_") or name == "__init__"):
            member = inspect.getattr_static(kind, name)
            text = str(inspect.signature(member)) if callable(member) else type(member).__name__
            yield f"surface: NesVectorEnv.{name}", text
        env = self.env
        for name in ("single_observation_space", "observation_space", "single_action_space", "action_space"):
            yield f"surface: {name}", repr(getattr(env, name))
        yield "surface: metadata", {key: str(value) for key, value in env.metadata.items()}
        yield "surface: start states", [str(name) for name in env.start_states]

    def _steps(self, label: str, env: Any, actions: np.ndarray) -> Iterator[tuple[str, Any]]:
        for number, row in enumerate(actions):
            for name, value in zip(OUTCOME, env.step(row), strict=True):
                yield f"{label} {number}: {name}", value
        yield f"{label}: RAM after {len(actions)}", env.ram()

    def _masked_reset(self) -> Iterator[tuple[str, Any]]:
        mask = np.arange(self.lanes) % 3 == 1 if self.lanes > 1 else np.ones(1, bool)
        seeds = [self._seed + 1000 + lane if lane % 2 else None for lane in range(self.lanes)]
        observation, infos = self.env.reset(seed=seeds, options={"reset_mask": mask})
        yield "masked reset: observation", observation
        yield "masked reset: infos", infos

    def _saved_and_restored(self, actions: np.ndarray) -> Iterator[tuple[str, Any]]:
        """A state saved in mid-episode, played on, restored, and played on again: the same both times."""
        saved = self.env.snapshot()
        first = list(self._steps("after saving", self.env, actions))
        yield from first
        yield "restored: observation", self.env.restore(saved)
        yield from self._steps("after restoring", self.env, actions)
        self.env.restore(saved)

    def _beside_lone_lanes(self, lanes: tuple[int, ...], actions: np.ndarray) -> Iterator[tuple[str, Any]]:
        """The batch from its reset on, beside batches of one lane: are those the same to the byte?"""
        alone = [self._make(1, self._state_of(lane)) for lane in lanes]
        try:
            many, _ = self.env.reset(seed=self._seed)
            yield "reset again: observation", many
            same = []
            for lane, env in zip(lanes, alone, strict=True):
                one, _ = env.reset(seed=self._seed + lane)
                yield f"lane {lane} alone: reset", one
                same.append(bool(np.array_equal(one[0], many[lane])))
            for number, row in enumerate(actions):
                batch = self.env.step(row)
                for name, value in zip(OUTCOME, batch, strict=True):
                    yield f"early step {number}: {name}", value
                for at, lane in enumerate(lanes):
                    one_step = alone[at].step(row[lane : lane + 1])
                    yield f"lane {lane} alone, step {number}", list(one_step)
                    pairs = zip(one_step[:4], batch[:4], strict=True)
                    same[at] &= all(np.array_equal(mine[0], whole[lane]) for mine, whole in pairs)
            for lane, equal in zip(lanes, same, strict=True):
                yield f"lane {lane} alone equals the same lane in the batch", equal
        finally:
            for env in alone:
                env.close()

    def _state_of(self, lane: int) -> Any:
        """The catalog that holds the lane's start state alone."""
        if isinstance(self._states, dict):
            name = list(self._states)[lane % len(self._states)]
            return {name: self._states[name]}
        return [self._states[lane % len(self._states)]] if self._states else None


def open(workload: dict[str, Any], seed: int, layout_seed: int | None) -> Session:
    """Make the environment and reset it; what the reset gave is kept for `verify`."""
    use_controllers_game(workload["params"])
    return Session(workload["params"], seed, layout_seed)


def bad_input() -> tuple[type[BaseException], ...]:
    """What says that nobody can run this workload."""
    from rollcart import errors

    return (BadWorkload, errors.RomError, errors.StateError)


BAD_INPUT = bad_input()
