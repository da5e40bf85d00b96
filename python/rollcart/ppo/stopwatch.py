"""Where the time of a loop goes: laps without a gap between them, so that they sum to its wall time."""

from __future__ import annotations

import time
from collections.abc import Callable


class Stopwatch:
    """Each `lap(name)` gives the time since the lap before to `name`. Times in nanoseconds."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self.spent: dict[str, int] = {}
        self._last = clock()

    def start(self) -> None:
        """Begins anew: what was before counts for nothing."""
        self.spent.clear()
        self._last = self._clock()

    def skip(self) -> None:
        """What was since the last lap belongs to none."""
        self._last = self._clock()

    def lap(self, name: str) -> int:
        """Ends a lap; its nanoseconds."""
        now = self._clock()
        passed = now - self._last
        self._last = now
        self.spent[name] = self.spent.get(name, 0) + passed
        return passed
