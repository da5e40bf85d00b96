"""Slots of compute: how many experiments run at once, and that no two of them ever share one.

A slot is a number that a run finds as AR_SLOT, and the device that stands for it where devices were named.
The kernel holds each slot's lock, so two campaigns of one root share none either, and a dead process frees
its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from cartlab.errors import NotLegalNow

WAIT_S = 600.0
_POLL_S = 0.2


def environment(slot: int, devices: Sequence[str]) -> dict[str, str]:
    """What a run learns of its slot."""
    extra = {"AR_SLOT": str(slot)}
    if devices:
        extra["CUDA_VISIBLE_DEVICES"] = devices[slot]
    return extra


@contextlib.contextmanager
def taken(root: Path, wanted: int, most: int, wait_s: float = WAIT_S) -> Iterator[list[int]]:
    """Hold up to `wanted` free slots of 0 .. most-1, at least one; NotLegalNow where none gets free in
    time.
    """
    folder = root / "tmp" / "slots"
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_s
    held: dict[int, int] = {}
    try:
        while not held:
            for slot in range(most):
                if len(held) < wanted and (fd := _lock(folder / f"{slot}.lock")) is not None:
                    held[slot] = fd
            if not held and time.monotonic() >= deadline:
                raise NotLegalNow(
                    f"expected a free slot of {most}; other campaigns held all of them for {wait_s:g} s",
                    "wait for them, or allow more with --slots",
                )
            if not held:
                time.sleep(_POLL_S)
        yield sorted(held)
    finally:
        for fd in held.values():
            os.close(fd)


def _lock(path: Path) -> int | None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd
