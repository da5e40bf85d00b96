"""Stable-retro 1.0.1 as a vector environment, tuned as an expert would: the baseline of benchmark_sps.py.

Its core allows one emulator a process. So lanes live in worker processes, one emulator each, and a worker
with several lanes swaps their save states (a copy of 13 KB). Actions, observations, rewards, flags and infos
lie in shared memory; a step costs one semaphore each way and no pickling. The frame skip runs in the worker,
the picture is fetched and scaled once a step, masked rows are never converted, OpenCV uses one thread a
worker. `fastest()` measures the arrangements and keeps the best. Needs the extra `peers`; rollcart does not.

Reset, skip, reward and time limit follow the same rules as `rollcart.NesVectorEnv` in its NextStep mode: a
finished lane ignores its next action, loads its state, runs one frame and its no-op frames.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

START_TIMEOUT_S = 120.0
STEP_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Workload:
    """What every lane does; states go round robin over the lanes, no-op frames and seeds are per lane."""

    data_dir: str  # the folder that holds GAME/, in Stable Retro's layout
    game: str
    states: tuple[str, ...]
    actions: tuple[
        tuple[str, ...], ...
    ] = ()  # button names of each action; empty: Stable Retro's Discrete(36)
    lanes: int = 16
    frame_skip: int = 4
    stack: int = 4
    size: int = 84
    masked_rows: int = 32
    max_episode_steps: int = 0  # 0: no limit
    noop_max: int = 30
    seed: int = 0

    def noops(self, lane: int, episode: int) -> int:
        """No-op frames before an episode, the same for every arrangement of the workers."""
        if not self.noop_max:
            return 0
        return int(np.random.default_rng((self.seed, lane, episode)).integers(0, self.noop_max + 1))


@dataclass(frozen=True)
class Arrangement:
    workers: int
    pinned: bool

    def __str__(self) -> str:
        return f"{self.workers} processes{', one a CPU' if self.pinned else ''}"


def usable_cpus() -> list[int]:
    return (
        sorted(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else list(range(os.cpu_count() or 1))
    )


class Shared:
    """The batch's arrays over one block of shared memory."""

    def __init__(self, raw: Any, work: Workload, infos: int) -> None:
        n, at = work.lanes, 0
        for name, dtype, shape in (
            ("infos", np.int64, (n, infos)),
            ("actions", np.int32, (n,)),
            ("rewards", np.float32, (n,)),
            ("terminated", np.bool_, (n,)),
            ("truncated", np.bool_, (n,)),
            ("obs", np.uint8, (n, work.stack, work.size, work.size)),
        ):
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            setattr(self, name, np.frombuffer(raw, dtype, int(np.prod(shape)), at).reshape(shape))
            at += -(-size // 8) * 8

    infos: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    obs: np.ndarray

    @staticmethod
    def size(work: Workload, infos: int) -> int:
        n = work.lanes
        return n * (8 * infos + work.stack * work.size**2 + 16) + 64


class Emulator:
    """One worker's emulator and the lanes that take turns on it."""

    def __init__(self, work: Workload, lanes: list[int], shared: Shared) -> None:
        import cv2
        import stable_retro as retro

        cv2.setNumThreads(1)
        self.cv2, self.work, self.lanes, self.shared = cv2, work, lanes, shared
        source = retro.data.Integrations.CUSTOM_ONLY
        source.add_custom_path(work.data_dir)
        self.env = retro.RetroEnv(
            work.game,
            state=work.states[0] if work.states else retro.State.NONE,
            inttype=source,
            use_restricted_actions=retro.Actions.DISCRETE,
            render_mode="rgb_array",
        )
        self.em = self.env.em
        self.buttons = [
            np.array([name in names for name in self.env.buttons], np.uint8) for names in work.actions
        ] or [self.env.action_to_array(a)[0] for a in range(int(self.env.action_space.n))]
        self.idle = np.zeros(len(self.env.buttons), np.uint8)
        self.grey = np.zeros((224, 240), np.uint8)
        self.starts = {}
        for lane in lanes:
            state = work.states[lane % len(work.states)] if work.states else None
            if state:
                self.env.load_state(state, source)
            self.starts[lane] = self.env.initial_state or self.em.get_state()
        # Each lane keeps its own reading of RAM: rewards are differences to that lane's last frame.
        self.data = {}
        for lane in lanes:
            data = self.env.data if len(lanes) == 1 else retro.data.GameData(work.game, inttype=source)
            self.em.configure_data(data)
            self.data[lane] = data
        self.saved = dict(self.starts)
        self.episode = dict.fromkeys(lanes, -1)
        self.steps = dict.fromkeys(lanes, 0)
        self.pending = dict.fromkeys(lanes, True)

    def run(self) -> None:
        """One step of every lane of this worker."""
        for lane in self.lanes:
            if self.pending[lane]:
                self.begin(lane)
            else:
                self.step(lane)

    def begin(self, lane: int) -> None:
        out, em, data = self.shared, self.em, self.data[lane]
        self.episode[lane] += 1
        em.set_state(self.starts[lane])
        em.set_button_mask(self.idle, 0)
        em.step()
        for _ in range(self.work.noops(lane, self.episode[lane])):
            em.step()
        data.reset()
        data.update_ram()
        self.steps[lane], self.pending[lane] = 0, False
        out.rewards[lane], out.terminated[lane], out.truncated[lane] = 0.0, False, False
        self.picture(out.obs[lane, -1])
        out.obs[lane, :-1] = out.obs[lane, -1]
        self.finish(lane)

    def step(self, lane: int) -> None:
        out, em, data = self.shared, self.em, self.data[lane]
        if len(self.lanes) > 1:
            em.set_state(self.saved[lane])
        em.set_button_mask(self.buttons[out.actions[lane]], 0)
        reward, done = 0.0, False
        for _ in range(self.work.frame_skip):
            em.step()
            data.update_ram()
            reward += data.current_reward()
            if data.is_done():
                done = True
                break
        self.steps[lane] += 1
        late = 0 < self.work.max_episode_steps <= self.steps[lane]
        out.rewards[lane], out.terminated[lane], out.truncated[lane] = reward, done, late and not done
        self.pending[lane] = done or late
        stack = out.obs[lane]
        stack[:-1] = stack[1:]
        self.picture(stack[-1])
        self.finish(lane)

    def picture(self, into: np.ndarray) -> None:
        top = self.work.masked_rows
        self.cv2.cvtColor(self.em.get_screen()[top:], self.cv2.COLOR_RGB2GRAY, dst=self.grey[top:])
        size = (self.work.size, self.work.size)
        self.cv2.resize(self.grey, size, dst=into, interpolation=self.cv2.INTER_AREA)

    def finish(self, lane: int) -> None:
        values = list(self.data[lane].lookup_all().values())
        self.shared.infos[lane, : len(values)] = values
        if len(self.lanes) > 1:
            self.saved[lane] = self.em.get_state()


def _worker(
    work: Workload, lanes: list[int], cpu: int | None, raw: Any, infos: int, go: Any, done: Any, end: Any
) -> None:
    if cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})
    emulator = Emulator(work, lanes, Shared(raw, work, infos))
    while True:
        done.release()
        go.acquire()
        if end.value:
            return
        emulator.run()


class RetroVec:
    """All lanes; `step(actions)` returns when every lane has stepped. The first step is the reset."""

    def __init__(self, work: Workload, arrangement: Arrangement, infos: int = 32) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["stable_retro", "cv2", "rollcart.bench.retro_peer"])
        raw = context.RawArray("B", Shared.size(work, infos))
        self.work, self.shared = work, Shared(raw, work, infos)
        self._done, self._end = context.Semaphore(0), context.RawValue("B", 0)
        self._go = [context.Semaphore(0) for _ in range(arrangement.workers)]
        cpus = usable_cpus()
        self._processes = []
        for i, go in enumerate(self._go):
            lanes = list(range(i, work.lanes, arrangement.workers))
            cpu = cpus[i % len(cpus)] if arrangement.pinned else None
            args = (work, lanes, cpu, raw, infos, go, self._done, self._end)
            process = context.Process(target=_worker, args=args, daemon=True)
            process.start()
            self._processes.append(process)
        self._wait(START_TIMEOUT_S)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for _ in self._go:
            while not self._done.acquire(timeout=1.0):
                if time.monotonic() > deadline or any(not p.is_alive() for p in self._processes):
                    raise RuntimeError("a stable-retro worker died or hung; its message is above")

    def step(self, actions: np.ndarray) -> Shared:
        """One step; `actions`: int (lanes,), numbers of `Workload.actions`."""
        self.shared.actions[:] = actions
        for go in self._go:
            go.release()
        self._wait(STEP_TIMEOUT_S)
        return self.shared

    def close(self) -> None:
        self._end.value = 1
        for go in self._go:
            go.release()
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()


def fastest(work: Workload, seconds: float, actions: np.ndarray) -> tuple[Arrangement, dict[str, float]]:
    """The arrangement with the most steps/s, and what each reached. `actions`: int (steps, lanes).

    The arrangements take turns there and back again, so that a machine that slows down slows them all.
    """
    cpus = len(usable_cpus())
    arrangements = list(
        dict.fromkeys(
            [Arrangement(cpus, True), Arrangement(work.lanes, False), Arrangement(work.lanes, True)]
        )
    )
    sides: dict[Arrangement, RetroVec] = {}
    steps, spent = dict.fromkeys(arrangements, 0), dict.fromkeys(arrangements, 0.0)
    try:
        for arrangement in arrangements:
            sides[arrangement] = RetroVec(work, arrangement)
            sides[arrangement].step(actions[0])
        for arrangement in arrangements + arrangements[::-1]:
            start = time.perf_counter()
            while time.perf_counter() - start < seconds / 2:
                sides[arrangement].step(actions[steps[arrangement] % len(actions)])
                steps[arrangement] += 1
            spent[arrangement] += time.perf_counter() - start
    finally:
        for side in sides.values():
            side.close()
    rates = {a: work.lanes * steps[a] / spent[a] for a in arrangements}
    return max(rates, key=lambda a: rates[a]), {str(a): rate for a, rate in rates.items()}


def game_folder(rom: Path, into: Path) -> Path:
    """Wrap a bare ROM as a Stable Retro game without variables, so that the baseline can play it."""
    folder = into / rom.stem
    folder.mkdir(parents=True)
    (folder / "rom.nes").write_bytes(rom.read_bytes())
    (folder / "rom.sha").write_text(hashlib.sha1(rom.read_bytes()[16:]).hexdigest() + "\n")
    (folder / "data.json").write_text('{"info": {}}')
    (folder / "scenario.json").write_text("{}")
    (folder / "metadata.json").write_text("{}")
    return folder


# Where the core's row of nine buttons has those of our bits, from A up to RIGHT.
BUTTON_PLACES = (8, 0, 2, 3, 4, 5, 6, 7)


def played(rom: Path) -> tuple[Callable[[int], None], Callable[[], bytes]]:
    """A console of stable-retro's core just switched on: what runs a frame with buttons held, what saves."""
    from stable_retro._retro import RetroEmulator
    from stable_retro.data import GameData

    emulator, data = RetroEmulator(str(rom)), GameData()
    emulator.configure_data(data)
    emulator.step()

    def step(buttons: int) -> None:
        mask = np.zeros(9, np.uint8)
        mask[[place for bit, place in enumerate(BUTTON_PLACES) if buttons >> bit & 1]] = 1
        emulator.set_button_mask(mask, 0)
        emulator.step()

    return step, lambda: bytes(emulator.get_state())
