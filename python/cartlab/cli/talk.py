"""What goes where: results on stdout, everything else on stderr; with --json stdout holds one object alone.

Progress appears only for work of over two seconds. On a terminal with rich installed it is one line that
changes; elsewhere it is plain lines, at most one every ten seconds, so that logs stay readable.
"""

from __future__ import annotations

import _thread
import json
import sys
import time
from types import TracebackType
from typing import Any

from cartlab.outcome import Outcome

SCRIPT = "scripts/autoresearch.py"
INSTALLED = "cartlab"
QUIET_SECONDS = 2.0
PLAIN_INTERVAL = 10.0


class Talk:
    """The command's voice: `say` for people, `progress` for long work, `finish` for the answer.

    document: the answer's text is one for a program or a browser, so that all else goes to stderr.
    """

    def __init__(self, as_json: bool, program: str = SCRIPT) -> None:
        self.as_json = as_json
        self.document = False
        self._program = program
        self._began = time.monotonic()
        self._last_plain = float("-inf")
        self._live: Any = None
        self._pending: str | None = None
        self._timer: Any = None
        self._lock = _thread.RLock()

    def say(self, line: str) -> None:
        """One line for people, at once."""
        self._clear()
        print(self.own(line), file=sys.stderr if self.as_json or self.document else sys.stdout, flush=True)

    def warn(self, line: str) -> None:
        """One line on stderr, whatever the format."""
        self._clear()
        print(self.own(line), file=sys.stderr, flush=True)

    def progress(self, line: str) -> None:
        """What is being done now; shown once the command has taken over two seconds."""
        import threading

        with self._lock:
            self._pending = line
            now = time.monotonic()
            due = self._began + QUIET_SECONDS
            if not sys.stderr.isatty():
                due = max(due, self._last_plain + PLAIN_INTERVAL)
            if now >= due:
                self._show()
            elif self._timer is None:
                # One long call (a build) says what it does once: its line comes when its time is due.
                self._timer = threading.Timer(due - now, self._late)
                self._timer.daemon = True
                self._timer.start()

    def _late(self) -> None:
        with self._lock:
            self._timer = None
            if self._pending is not None:
                self._show()

    def _show(self) -> None:
        line, self._pending = self._pending, None
        if line is None:
            return
        if sys.stderr.isatty():
            if self._live is None:
                self._live = _live_line()
            self._live.update(line)
        else:
            self._last_plain = time.monotonic()
            print(f"... {line}", file=sys.stderr, flush=True)

    def finish(self, outcome: Outcome) -> None:
        """Print the answer: the object, or the text and the five closing lines."""
        self._clear()
        if self.as_json:
            print(self.own(json.dumps(outcome.to_json(), ensure_ascii=False, allow_nan=False)), flush=True)
            return
        for line in outcome.text:
            print(self.own(line))
        closing = sys.stderr if self.document else sys.stdout
        for line in outcome.report.lines():
            print(self.own(line), file=closing)
        sys.stdout.flush()

    def own(self, text: str) -> str:
        """Command lines as this user types them: everything below writes the script of this repository, which
        another one that uses the installed `cartlab` does not have.
        """
        return text.replace(SCRIPT, self._program) if self._program == INSTALLED else text

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def _clear(self) -> None:
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        self._pending = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.stop()
            self._live = None


class _PlainLine:
    """A line of the terminal that is written over; used where rich is not installed."""

    def update(self, line: str) -> None:
        sys.stderr.write("\r\x1b[K" + line[:110])
        sys.stderr.flush()

    def stop(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _live_line() -> Any:
    try:
        from rich.console import Console
        from rich.status import Status
    except ImportError:
        return _PlainLine()
    status = Status("", console=Console(stderr=True))
    status.start()
    return status
