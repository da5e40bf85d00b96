"""The processor's own count of a worker's instructions, by `perf` attached to it (perf-stat(1)).

perf starts with its counters off and is told over two pipes when to count, so that only the steps in between
are in the number; it counts all threads of the process, also those that begin later.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

EVENT = "instructions:u"
_LIMIT_S = 30.0


class Counter:
    """A running perf; `on` and `off` return once it has obeyed. total() is the sum of what it counted."""

    def __init__(self, pid: int, report: Path, event: str = EVENT) -> None:
        """pid: whose threads are counted. report: a new file for perf's answer. OSError where perf does not
        start.
        """
        self._report, self._event = report, event
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        command = ["perf", "stat", "-x,", "-D", "-1", "-e", event, "-p", str(pid), "-o", str(report)]
        try:
            self._process = subprocess.Popen(
                [*command, "--control", f"fd:{orders},{answers}"],
                pass_fds=(orders, answers),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            self._close()
            raise
        finally:
            os.close(orders)
            os.close(answers)

    def on(self) -> None:
        """Count from here ..."""
        self._tell(b"enable\n")

    def off(self) -> None:
        """... to here."""
        self._tell(b"disable\n")

    def total(self) -> float:
        """What was counted between on and off; ends perf. OSError where there is no count."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_LIMIT_S)
        for line in self._report.read_text(errors="replace").splitlines():
            value, *rest = line.split(",")
            if self._event in rest:
                with contextlib.suppress(ValueError):
                    return float(value)
                raise OSError(f"perf counts no {self._event} here: {value}")
        raise OSError("no count in perf's answer")

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        os.close(self._orders)
        os.close(self._answers)

    def _tell(self, order: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, order)
            if select.select([self._answers], [], [], _LIMIT_S)[0] and os.read(self._answers, 64):
                return
        raise OSError(f"perf did not obey {order.decode().strip()}")


@contextlib.contextmanager
def attached(pid: int, report: Path, event: str = EVENT) -> Iterator[Counter]:
    """A Counter that is ended with the block."""
    counter = Counter(pid, report, event)
    try:
        yield counter
    finally:
        counter.end()
