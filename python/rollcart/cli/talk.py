"""What a command says: text on stdout, or with --json one object there and the rest on stderr."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

# Seconds between two lines of progress: on a terminal, where they overwrite each other, and in a log.
_ON_TERMINAL, _IN_LOG = 0.2, 5.0


class Talk:
    """Says things to people, or keeps stdout for the JSON object."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._last = time.monotonic()
        self._pending = False

    def say(self, text: str = "") -> None:
        """A line of the answer; not said with --json, whose object holds the same."""
        self._end_progress()
        if not self.as_json:
            print(text, flush=True)

    def note(self, text: str) -> None:
        """A line beside the answer, such as a warning, on stderr."""
        self._end_progress()
        print(text, file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """How far the work is. Call it as often as you like: it prints now and then, on stderr."""
        terminal = sys.stderr.isatty()
        now = time.monotonic()
        if now - self._last < (_ON_TERMINAL if terminal else _IN_LOG):
            return
        self._last = now
        if terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._pending = True
        else:
            print(text, file=sys.stderr, flush=True)

    def finish(self, document: dict[str, Any]) -> None:
        """Ends the command; with --json prints its object."""
        self._end_progress()
        if self.as_json:
            print(json.dumps(document), flush=True)

    def _end_progress(self) -> None:
        if self._pending:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._pending = False
