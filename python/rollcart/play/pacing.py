"""Frames at the console's rate, whatever a frame costs."""

from __future__ import annotations

import time
from collections.abc import Callable

# Further behind than this, the lost time is forgotten: a burst of frames would be worse.
_FORGIVEN = 0.1  # seconds


class Pacer:
    """`wait` returns when the next frame is due. `now` and `sleep` are the clock's; tests have their own."""

    def __init__(
        self,
        rate: float,
        now: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._period = 1.0 / rate
        self._now, self._sleep = now, sleep
        self._due = now()

    def wait(self) -> None:
        self._due += self._period
        left = self._due - self._now()
        if left > 0:
            self._sleep(left)
        elif left < -_FORGIVEN:
            self._due = self._now()
