"""Lanes that step while the caller thinks: EnvPool's send and receive over one batch.

A thread of its own takes the lanes that were sent, in that order, and steps up to `batch_size` of them in one
native call; the caller receives them in the same order. So which lanes a batch holds depends on the order of
sending alone, never on which lane was quicker, and a whole run replays.

A lane is with the caller (received, or never sent) or on its way. Only lanes of the first kind may be sent,
only those of the second are received.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from numpy.typing import NDArray

from rollcart.errors import ConfigError

Lanes = NDArray[np.intp]


@dataclass(frozen=True)
class Begin:
    """Episodes to begin: each lane's seed and start, those of lanes that are not meant included."""

    seeds: Sequence[int | None]
    starts: list[int]
    # At their starts, also where the last episode ended with a life alone.
    anew: bool


@dataclass(frozen=True)
class Played:
    """What a native call told of all lanes; of those that it did not move, what was."""

    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    infos: dict[str, Any]
    # What Batch.endings() gave; None where no episode ended and was reset in the call.
    endings: Any = None


class Stepping:
    """Plays some lanes of a native batch, into arrays of all lanes."""

    def __init__(
        self, batch: Any, image: NDArray[np.uint8] | None, ram: NDArray[np.uint8] | None, width: int
    ) -> None:
        self.batch, self.image, self.ram = batch, image, ram
        self._actions = np.zeros((batch.num_envs, width), np.int64)

    def __call__(self, lanes: Lanes, work: NDArray[np.int64] | Begin) -> Played:
        mask = np.zeros(self.batch.num_envs, np.bool_)
        mask[lanes] = True
        if isinstance(work, Begin):
            infos = self.batch.reset(
                None if mask.all() else mask, work.seeds, work.starts, work.anew, self.image, self.ram
            )
            nothing = np.zeros(len(mask), np.bool_)
            return Played(np.zeros(len(mask)), nothing, nothing, infos)
        self._actions[lanes] = work
        reward, terminated, truncated, infos, ended = self.batch.step(
            self._actions.reshape(-1), self.image, self.ram, mask
        )
        return Played(reward, terminated, truncated, infos, self.batch.endings() if ended else None)


class Traffic:
    """The lanes' ways between the caller and the thread that plays them."""

    def __init__(self, lanes: int, batch_size: int, play: Callable[[Lanes, Any], Played]) -> None:
        self.batch_size = batch_size
        self._play = play
        self._with_caller = np.ones(lanes, np.bool_)
        self._sent: deque[tuple[Lanes, Any]] = deque()
        self._back: deque[tuple[int, Played]] = deque()
        self._fault: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def idle(self) -> bool:
        """Whether every lane is with the caller."""
        return bool(self._with_caller.all())

    def send(self, lanes: Lanes, work: NDArray[np.int64] | Begin) -> None:
        """Puts lanes on their way: with actions (len(lanes), numbers of one), or to begin episodes."""
        self._check_process()
        if len(np.unique(lanes)) != len(lanes):
            raise ValueError(f"env_id: expected each lane once, found {lanes.tolist()}")
        away = lanes[~self._with_caller[lanes]].tolist()
        if away:
            raise AlreadyPendingCallError(
                f"send: lanes {away} are on their way already; recv() them before they are sent again", "send"
            )
        with self._changed:
            self._with_caller[lanes] = False
            if isinstance(work, Begin):
                self._sent.append((lanes, work))
            else:
                for first in range(0, len(lanes), self.batch_size):
                    part = slice(first, first + self.batch_size)
                    self._sent.append((lanes[part], work[part]))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rollcart-lanes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def receive(self) -> list[tuple[int, Played]]:
        """Waits for the next `batch_size` lanes, in the order in which they were sent."""
        self._check_process()
        away = int(np.count_nonzero(~self._with_caller))
        if away < self.batch_size:
            raise NoAsyncCallError(
                f"recv: a batch is {self.batch_size} lanes, but {away} are on their way; begin with "
                "async_reset(), and send() more",
                "recv",
            )
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._back) >= self.batch_size or self._fault is not None or self._closed
            )
            if self._fault is not None:
                fault, self._fault = self._fault, None
                self._back.clear()
                self._sent.clear()
                self._with_caller[:] = True
                raise fault
            if self._closed:
                raise ClosedEnvironmentError("this environment was closed while lanes were on their way")
            got = [self._back.popleft() for _ in range(self.batch_size)]
            self._with_caller[[lane for lane, _ in got]] = True
            return got

    def close(self) -> None:
        """Ends the thread, after the call that it is in."""
        if self._process != os.getpid():
            # A forked child has this object, but not the thread, which may have held the lock for ever.
            return
        with self._changed:
            self._closed = True
            self._sent.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError("this environment was made in another process; make one in this process")

    def _run(self) -> None:
        while True:
            with self._changed:
                # After a fault nothing is played until it is told: what was sent meanwhile goes with it.
                self._changed.wait_for(lambda: (bool(self._sent) and self._fault is None) or self._closed)
                if self._closed:
                    return
                lanes, work = self._sent.popleft()
            try:
                played = self._play(lanes, work)
            except BaseException as fault:  # recv() raises it
                with self._changed:
                    self._fault = fault
                    self._changed.notify_all()
                continue
            with self._changed:
                self._back.extend((int(lane), played) for lane in lanes)
                self._changed.notify_all()


def runs(got: list[tuple[int, Played]]) -> Iterator[tuple[Played, list[int]]]:
    """Received lanes, grouped by the call that played them."""
    for _, same in groupby(got, key=lambda one: id(one[1])):
        lanes = list(same)
        yield lanes[0][1], [lane for lane, _ in lanes]


def finals(parts: list[tuple[dict[str, Any], list[int]]]) -> dict[str, Any]:
    """Gymnasium's final_* entries of these lanes, out of those of all lanes (or of none: {})."""
    example = next(
        (told["final_info"] for told, lanes in parts if told and told["_final_obs"][lanes].any()), None
    )
    if example is None:
        return {}
    count = sum(len(lanes) for _, lanes in parts)
    ended = np.zeros(count, np.bool_)
    observations = np.full(count, None, dtype=object)
    last = {key: np.zeros(count, value.dtype) for key, value in example.items()}
    first = 0
    for told, lanes in parts:
        if told:
            rows = slice(first, first + len(lanes))
            ended[rows], observations[rows] = told["_final_obs"][lanes], told["final_obs"][lanes]
            for key, values in told["final_info"].items():
                last[key][rows] = values[lanes]
        first += len(lanes)
    return {
        "final_obs": observations,
        "_final_obs": ended,
        "final_info": last,
        "_final_info": ended.copy(),
    }


def lanes_of(env_id: Any, count: int) -> Lanes:
    """Lane numbers of an env_id argument; ValueError for anything else."""
    lanes = np.asarray(env_id)
    if lanes.ndim != 1 or not len(lanes) or lanes.dtype.kind not in "iu":
        raise ValueError(f"env_id: expected a row of lane numbers, found {env_id!r}")
    if lanes.min() < 0 or lanes.max() >= count:
        raise ValueError(f"env_id: expected lanes from 0 to {count - 1}, found {lanes.tolist()}")
    return lanes.astype(np.intp)


def batch_size_of(size: Any, lanes: int) -> int:
    """A batch's size as asked for, all lanes by default."""
    if size is None:
        return lanes
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= lanes:
        raise ConfigError(f"batch_size: expected an integer from 1 to num_envs ({lanes}), found {size!r}")
    return int(size)
