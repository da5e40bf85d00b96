"""stdout and stderr as a command may find them: read by nobody any more, closed, full, or of an old encoding.

What a command does matters more than who listens: `accept A B | head -1` measures to its end, and its exit
code is the verdict's. A reader that went away is no fault; a full disk behind `>` is one, and is told.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import sys
from typing import TextIO

# A log or a note may hold what a terminal obeys: it is shown, not done.
_SHOWN = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}

_ESCAPES = "cartlab-escapes"

# What could not be written, and why; empty in all but a broken run.
lost: list[str] = []


def prepare() -> None:
    """Let no character end a command: what the terminal's encoding lacks is written as an escape (in
    JSON the same text).
    """
    lost.clear()
    codecs.register_error(_ESCAPES, _escaped)
    for stream in (sys.stdout, sys.stderr):
        change = getattr(stream, "reconfigure", None)
        if change is not None:
            change(errors=_ESCAPES)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """The letters as JSON writes them, so that an object stays one."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def put(line: str, stream: TextIO | None, flush: bool = True) -> None:
    """Write one line. A stream that cannot take it is given up; the caller goes on."""
    if stream is None:  # closed by the caller: `>&-`
        return
    try:
        stream.write(line.translate(_SHOWN) + "\n")
        if flush:
            stream.flush()
    except OSError as error:
        _give_up(stream, error)


def settle() -> None:
    """Write what is buffered, so that nothing is left to fail at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            _give_up(stream, error)


def ended(code: int) -> int:
    """The exit code of a command that is through: an answer that could not be written is no success."""
    settle()
    for what in lost:
        put(f"error: the answer could not be written to {what}", sys.stderr)
    return code or int(bool(lost))


def on_terminal(stream: TextIO | None) -> bool:
    """May lines be written over: a terminal that knows control sequences."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _give_up(stream: TextIO, error: OSError) -> None:
    """All else for this stream goes nowhere, also what its buffer still holds."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)
    if error.errno != errno.EPIPE:
        lost.append(f"{getattr(stream, 'name', 'output')}: {error.strerror or error}")
