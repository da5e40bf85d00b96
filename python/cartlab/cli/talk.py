"""What goes where: results on stdout, everything else on stderr; with --json stdout holds one object alone.

Progress appears only for work of over two seconds. On a terminal with rich installed it is one line that
changes; elsewhere it is plain lines, at most one every ten seconds, so that logs stay readable.
"""

from __future__ import annotations

import _thread
import json
import shutil
import sys
import time
from types import TracebackType
from typing import Any

from cartlab.cli.streams import on_terminal, put, settle
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
        self._told = False
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
        put(self.own(line), sys.stderr if self.as_json or self.document else sys.stdout)

    def warn(self, line: str) -> None:
        """One line on stderr, whatever the format."""
        self._clear()
        put(self.own(line), sys.stderr)

    def progress(self, line: str) -> None:
        """What is being done now; shown once the command has taken over two seconds."""
        import threading

        with self._lock:
            self._pending = line
            now = time.monotonic()
            due = self._began + QUIET_SECONDS
            if not on_terminal(sys.stderr):
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
        if on_terminal(sys.stderr):
            if self._live is None:
                self._live = _live_line()
            self._live.update(line)
        else:
            self._last_plain = time.monotonic()
            put(f"... {line}", sys.stderr)

    def finish(self, outcome: Outcome) -> None:
        """Print the answer: the object, or the text and the five closing lines. A second call prints nothing
        (a server's answer comes before its end).
        """
        self._clear()
        if self._told:
            return
        self._told = True
        if self.as_json:
            put(self.own(json.dumps(outcome.to_json(), ensure_ascii=False, allow_nan=False)), sys.stdout)
            return
        for line in outcome.text:
            put(self.own(line), sys.stdout, flush=False)
        closing = sys.stderr if self.document else sys.stdout
        for line in outcome.report.lines():
            put(self.own(line), closing, flush=False)
        settle()

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
        # A line that wraps could not be written over.
        width = shutil.get_terminal_size().columns
        sys.stderr.write("\r\x1b[K" + line[: max(1, width - 1)])
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
