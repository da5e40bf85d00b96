"""Lanes that write into arrays of the caller's, in PufferLib's forms and without that library.

`Lanes` is what one of its environments does, `Batches` its vector: several batches of lanes, of which one
plays while the policy thinks about another.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rollcart import _arguments
from rollcart.envs._same_step import SameStep, Step, rows
from rollcart.errors import ConfigError
from rollcart.games import BUNDLED
from rollcart.vector_env import NesVectorEnv

Infos = list[dict[str, Any]]
Received = tuple[Any, Any, Any, Any, Infos, NDArray[np.int64], NDArray[np.bool_]]


class APIUsageError(RuntimeError):
    """A call in the wrong order."""


@dataclass
class Buffers:
    """Arrays with a first axis of lanes that steps are written into.

    observations uint8, rewards float32, terminals, truncations and masks bool, actions int32.
    """

    observations: NDArray[Any]
    rewards: NDArray[np.float32]
    terminals: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    masks: NDArray[np.bool_]
    actions: NDArray[np.int32]

    @classmethod
    def made(cls, lanes: int, observation: spaces.Space[Any], action: spaces.Space[Any]) -> Buffers:
        """New ones."""
        return cls(*(np.zeros(shape, dtype) for shape, dtype in _wanted(lanes, observation, action).values()))

    @classmethod
    def given(
        cls, buf: Any, lanes: int, observation: spaces.Space[Any], action: spaces.Space[Any]
    ) -> Buffers:
        """The caller's: a dict, or anything with these attributes."""
        arrays: dict[str, Any] = {}
        for name, (shape, dtype) in _wanted(lanes, observation, action).items():
            array: Any = buf.get(name) if isinstance(buf, Mapping) else getattr(buf, name, None)
            found = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else repr(array)
            fits = isinstance(array, np.ndarray) and array.shape == shape and array.flags.carray
            # What is only read may have any whole numbers: PufferLib's versions differ.
            if not fits or (array.dtype.kind not in "iu" if name == "actions" else array.dtype != dtype):
                expected = f"{np.dtype(dtype).name}{list(shape)}"
                raise ConfigError(
                    f"buf: expected {name} to be a writeable, contiguous {expected}, found {found}"
                )
            arrays[name] = array
        return cls(**arrays)

    def part(self, begin: int, end: int) -> Buffers:
        """The arrays of some lanes: views."""
        return Buffers(*(array[begin:end] for array in vars(self).values()))


def _wanted(lanes: int, observation: spaces.Space[Any], action: spaces.Space[Any]) -> dict[str, Any]:
    flags = ((lanes,), np.bool_)
    return {
        "observations": ((lanes, *(observation.shape or ())), observation.dtype),
        "rewards": ((lanes,), np.float32),
        "terminals": flags,
        "truncations": flags,
        "masks": flags,
        "actions": ((lanes, *(action.shape or ())), np.int32),
    }


class Lanes:
    """A `NesVectorEnv` whose steps go into buffers; a finished lane begins anew in the same step."""

    def __init__(self, buf: Any, game: str, num_envs: int, options: dict[str, Any]) -> None:
        for fixed in ("autoreset_mode", "copy"):
            if fixed in options:
                raise ConfigError(f"{fixed}: buffers of the caller's decide it; omit it")
        if options.get("obs") == "dict":
            raise ConfigError('obs: expected "image" or "ram", which fit one array, found \'dict\'')
        self.env = NesVectorEnv(game, num_envs, autoreset_mode="SameStep", **options)
        spaces_ = (self.env.single_observation_space, self.env.single_action_space)
        self.buffers = (
            Buffers.made(num_envs, *spaces_)
            if buf is None
            else buf
            if isinstance(buf, Buffers)
            else Buffers.given(buf, num_envs, *spaces_)
        )
        self._steps = SameStep(self.env)

    def reset(self, seed: int | None) -> None:
        """Begins an episode in every lane. Lanes' seeds come from the seed, and overlap with no other's."""
        seeds = None
        if seed is not None:
            seeds = np.random.SeedSequence(seed).generate_state(self.env.num_envs, np.uint64).tolist()
        buffers = self.buffers
        self._steps.reset(seed=seeds, out=buffers.observations)
        buffers.rewards[:], buffers.terminals[:], buffers.truncations[:] = 0, False, False
        buffers.masks[:] = True

    def step(self, actions: Any) -> Infos:
        """Plays one action a lane; gives a dict of numbers for each episode that ended, and no other."""
        buffers = self.buffers
        step = self._steps.step(actions, out=buffers.observations)
        buffers.rewards[:] = step.reward
        buffers.terminals[:] = step.terminated
        buffers.truncations[:] = step.truncated
        return _ended(step)


def _ended(step: Step) -> Infos:
    if not step.last:
        return []
    numbers = {
        "episode_length" if key == "elapsed_steps" else key: column
        for key, column in step.infos.items()
        if column.dtype.kind in "iufb"
    }
    return rows(numbers, list(step.last))


class Batches:
    """num_envs lanes in batches of batch_size, one of which plays while the caller has another.

    Batches come back in the order in which they were sent, so what happens does not depend on time. All
    arrays that `recv` gives are views of the buffers: they hold until the batch's next actions are sent.

    Args:
        game: Name of a game.
        num_envs: Lanes in all.
        batch_size: Lanes a call; num_envs must be a multiple. With two or three batches nobody waits.
        buf: The caller's arrays (`Buffers`), a dict or anything with these attributes; made here if None.
        options: Those of `NesVectorEnv`.
    """

    def __init__(
        self,
        game: str = BUNDLED,
        num_envs: int = 16,
        batch_size: int | None = None,
        *,
        buf: Any = None,
        **options: Any,
    ) -> None:
        batch_size = num_envs if batch_size is None else batch_size
        if batch_size < 1 or num_envs < 1 or num_envs % batch_size:
            raise ConfigError(
                f"batch_size: expected a divisor of num_envs ({num_envs}), found {batch_size}; 1 or more each"
            )
        first = Lanes(None, game, batch_size, options)
        self.num_envs, self.batch_size, self.num_batches = num_envs, batch_size, num_envs // batch_size
        self.single_observation_space = first.env.single_observation_space
        self.single_action_space = first.env.single_action_space
        self.observation_space = batch_space(self.single_observation_space, batch_size)
        self.action_space = batch_space(self.single_action_space, batch_size)
        spaces_ = (self.single_observation_space, self.single_action_space)
        self.buffers = (
            Buffers.made(num_envs, *spaces_) if buf is None else Buffers.given(buf, num_envs, *spaces_)
        )
        first.buffers = self.buffers.part(0, batch_size)
        self._batches = [first] + [
            Lanes(self.buffers.part(at, at + batch_size), game, batch_size, options)
            for at in range(batch_size, num_envs, batch_size)
        ]
        self._env_ids = np.arange(num_envs)
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "rollcart-batches")
        self._process = os.getpid()
        self._playing: deque[tuple[int, Future[Infos]]] = deque()
        self._received: int | None = None
        self._begun = False

    def async_reset(self, seed: int | None = None) -> None:
        """Begins an episode in every lane; `recv` gives the batches one by one."""
        thread = self._open()
        seeds: list[Any] = [None] * self.num_batches
        if seed is not None:
            whole, _ = _arguments.seeds(seed, 1)
            if whole is None:
                raise TypeError(f"seed: expected one integer, found {seed!r}")
            seeds = np.random.SeedSequence(whole).generate_state(self.num_batches, np.uint64).tolist()
        self._settle()
        self._begun, self._received = True, None
        for index, (batch, own) in enumerate(zip(self._batches, seeds, strict=True)):

            def begin(batch: Lanes = batch, own: int | None = own) -> Infos:
                batch.reset(own)
                return []

            self._playing.append((index, thread.submit(begin)))

    def recv(self) -> Received:
        """Waits for the next batch: observations, rewards, terminals, truncations, infos, env_ids, masks.

        infos: a dict of numbers for each episode that this step ended (episode_return, episode_length, the
        game's variables), and nothing for the others. env_ids int64[batch_size]: which lanes these are.
        """
        self._open()
        if not self._begun:
            raise APIUsageError("recv: expected async_reset first, found no episode begun")
        if self._received is not None:
            raise APIUsageError("recv: expected send first, for the batch that was received last")
        if not self._playing:
            raise APIUsageError(
                "recv: expected async_reset, since the last step failed; no batch is on its way"
            )
        index, result = self._playing.popleft()
        infos = result.result()
        self._received = index
        lanes = slice(index * self.batch_size, (index + 1) * self.batch_size)
        own = self._batches[index].buffers
        return (
            own.observations,
            own.rewards,
            own.terminals,
            own.truncations,
            infos,
            self._env_ids[lanes],
            own.masks,
        )

    def send(self, actions: Any) -> None:
        """Actions for the batch that was received last. A bad one raises before any lane moves."""
        thread = self._open()
        if self._received is None:
            raise APIUsageError("send: expected async_reset and recv first, found no batch received")
        batch = self._batches[self._received]
        actions = np.array(actions)
        if not _contains(self.action_space, actions):
            raise ValueError(f"actions: expected one of {self.action_space}, found {actions!r}")
        batch.buffers.actions[:] = actions
        self._playing.append((self._received, thread.submit(batch.step, actions)))
        self._received = None

    def reset(self, seed: int | None = None) -> tuple[Any, Infos]:
        """async_reset and recv, where there is one batch."""
        self._whole("reset")
        self.async_reset(seed)
        received = self.recv()
        return received[0], received[4]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Infos]:
        """send and recv, where there is one batch."""
        self._whole("step")
        self.send(actions)
        return self.recv()[:5]

    def close(self) -> None:
        """Waits for what plays, and lets lanes and threads go; may be called again."""
        if self._process != os.getpid():
            # A forked child has no thread that could play what is on its way.
            self._thread = None
        if self._thread is not None:
            while self._playing:
                # What failed is nobody's any more.
                self._playing.popleft()[1].exception()
            self._thread.shutdown()
            self._thread = None
            for batch in self._batches:
                batch.env.close()

    def _open(self) -> ThreadPoolExecutor:
        if self._thread is None:
            raise APIUsageError("these lanes were closed; make new ones")
        if self._process != os.getpid():
            raise APIUsageError("these lanes were made in another process; make some in this process")
        return self._thread

    def _settle(self) -> None:
        while self._playing:
            self._playing.popleft()[1].result()

    def _whole(self, call: str) -> None:
        if self.num_batches > 1:
            raise APIUsageError(
                f"{call}: expected batch_size == num_envs, found {self.num_batches} batches; "
                "use async_reset, recv and send"
            )


def _contains(space: spaces.Space[Any], actions: NDArray[Any]) -> bool:
    """Whether the batch has these actions, of whatever whole numbers."""
    if actions.dtype.kind not in "iu" or actions.shape != space.shape:
        return False
    if isinstance(space, spaces.MultiDiscrete):
        return bool(((actions >= 0) & (actions < space.nvec)).all())
    assert isinstance(space, spaces.Box)
    return bool(((actions >= space.low) & (actions <= space.high)).all())
