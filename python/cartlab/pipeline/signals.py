"""Ctrl-C and termination while something is written that must be whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def uninterrupted(again: bool = True) -> Iterator[None]:
    """Ctrl-C waits while a record is written: half a record would be a lie. `again`: it counts once that is
    done.

    Only the main thread is ever interrupted, so that another one needs nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    previous = {
        number: signal.signal(number, lambda found, _frame: pending.append(found))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if pending and again:
        raise KeyboardInterrupt
