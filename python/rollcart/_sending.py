"""Send and receive for `NesVectorEnv`: its calls that do not wait, in EnvPool's style.

How lanes travel is `_traffic`'s business; here are Gymnasium's forms for those that come back.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from rollcart import _traffic as ways
from rollcart import spaces
from rollcart._buffers import Observations
from rollcart._native import Batch


class SendReceive(VectorEnv[Any, Any, Any]):
    """The part of `NesVectorEnv` that plays some lanes while the caller thinks about others."""

    _batch: Batch | None
    _traffic: ways.Traffic | None = None
    _batch_size: int
    _buffers: Observations
    _action_shape: tuple[int, ...]
    _seeded: NDArray[np.bool_]
    # What the lanes that were received last are, and which may not be sent.
    _received: NDArray[Any]
    _refused: NDArray[np.bool_]

    def async_reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """Begins episodes as `reset` does, without waiting for them: `recv` gives their observations."""
        traffic = self._ways()
        if not traffic.idle() and (options or {}).get("state") is not None:
            raise AlreadyPendingCallError(
                'options["state"]: lanes are on their way; recv() all of them before states are chosen',
                "recv",
            )
        mask, seeds, starts, anew = self._beginning(seed, options)
        lanes = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        begin = ways.Begin(seeds, starts, anew)
        if traffic.idle():
            # Nothing can go wrong now, and once lanes are on their way new states could not be named. Where
            # some are already, no state was chosen, and recv() says which lanes may be sent.
            self._begun(mask, starts)
        traffic.send(lanes, begin)

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Plays one action in each of the lanes `env_id`, without waiting for them.

        actions: as for `step`, one for each entry of env_id. env_id: lanes that were received and not sent
        since; by default those that the last `recv` gave.
        """
        traffic = self._ways()
        lanes = ways.lanes_of(self._received if env_id is None else env_id, self.num_envs)
        shape = (len(lanes), *self._action_shape[1:])
        numbers = spaces.numbers(actions, self.single_action_space, shape).reshape(len(lanes), -1)
        spaces.check_range(numbers, self.single_action_space, lanes)
        for refused, why in (
            (~self._seeded, "were never reset"),
            (self._refused, "have ended their episodes"),
        ):
            if refused[lanes].any():
                raise ResetNeeded(f"send: lanes {lanes[refused[lanes]].tolist()} {why}; use async_reset()")
        traffic.send(lanes, numbers)

    def recv(self) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Waits for the next `batch_size` lanes, in the order in which they were sent.

        Gives what `step` gives, one row for each of these lanes; infos["env_id"] (int64) tells which they
        are. After async_reset() rewards are 0 and flags False.
        """
        got = self._ways().receive()
        self._received = lanes = np.array([lane for lane, _ in got])
        parts = list(ways.runs(got))
        told = [(self._with_starts(dict(played.infos)), rows) for played, rows in parts]
        final = [(self._final(p.endings) if p.endings else {}, rows) for p, rows in parts]
        reward, terminated, truncated = (
            np.concatenate([getattr(played, name)[rows] for played, rows in parts])
            for name in ("reward", "terminated", "truncated")
        )
        infos = {key: np.concatenate([own[key][rows] for own, rows in told]) for key in told[0][0]}
        infos |= ways.finals(final)
        infos["env_id"], infos["_env_id"] = lanes.astype(np.int64), np.ones(len(lanes), np.bool_)
        if self.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
            self._refused[lanes] = terminated | truncated
        image, ram = (None if a is None else a[lanes] for a in self._sent_into)
        return self._observation(image, ram), reward, terminated, truncated, infos

    def _ways(self) -> ways.Traffic:
        if self._traffic is None:
            batch = self._open()
            self._sent_into = self._buffers.new()
            width = int(np.prod(self._action_shape[1:]))
            play = ways.Stepping(batch, *self._sent_into, width)
            self._traffic = ways.Traffic(self.num_envs, self._batch_size, play)
            # The thread must end with the environment, and before the interpreter does.
            weakref.finalize(self, self._traffic.close)
        elif self._batch is None:
            self._open()
        return self._traffic

    # What NesVectorEnv has.
    if TYPE_CHECKING:

        def _open(self) -> Batch: ...
        def _beginning(
            self, seed: Any, options: dict[str, Any] | None
        ) -> tuple[Any, list[int | None], list[int], bool]: ...
        def _begun(self, mask: Any, starts: list[int]) -> None: ...
        def _with_starts(self, infos: dict[str, Any], mask: Any = None) -> dict[str, Any]: ...
        def _final(self, endings: Any) -> dict[str, Any]: ...
        def _observation(self, image: Any, ram: Any) -> Any: ...
