"""The last frames, so that they can be taken back: a ring of compressed states that is bounded in bytes.

One entry a frame: the state before it and the buttons held in it. The frame before is shown by running it
again from its entry, so its picture needs no room. A state compresses to about 1 KB.
"""

from __future__ import annotations

import zlib
from collections import deque

from rollcart._native import Console
from rollcart.buttons import Pads
from rollcart.errors import ConfigError

DEFAULT_BYTES = 64 << 20
_FASTEST = 1


class Rewind:
    """Takes states in with `push`, and a console back with `back`. limit: bytes of compressed states."""

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        if limit < 0:
            raise ConfigError(f"rewind: expected a number of bytes, 0 for none, found {limit}")
        self._limit = limit
        self._entries: deque[tuple[bytes, Pads]] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, console: Console, pads: Pads) -> None:
        """Before a frame: the console as it is, and what will be held."""
        if not self._limit:
            return
        state = zlib.compress(console.save(), _FASTEST)
        self._entries.append((state, pads))
        self.bytes += len(state)
        while self.bytes > self._limit:
            self.bytes -= len(self._entries.popleft()[0])

    def back(self, console: Console) -> bool:
        """One frame back, with its picture; False, and nothing changes, where no older frame is left."""
        if len(self._entries) < 2:
            return False
        self.bytes -= len(self._entries.pop()[0])
        state, pads = self._entries[-1]
        console.load(zlib.decompress(state))
        console.step(pads[0], 1, pads[1])
        return True

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0
