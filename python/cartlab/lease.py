"""One measurement at a time on a machine: a lock in the system's temporary folder, not in the root.

Two controllers (two people, two agents, two roots) would measure each other. Each holds the lease while it
builds nothing and times something; others queue in the order in which the system wakes them, up to a wait
limit. The lock is the kernel's, so a controller that dies gives it up; the note in the file only says who
has it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cartlab.errors import LeaseTimeout

VARIABLE = "CARTLAB_LEASE_DIR"
NAME = "cartlab-measuring.lease"
DEFAULT_WAIT_S = 3600.0
_POLL_S = 0.2


def path() -> Path:
    """The lease's file: under CARTLAB_LEASE_DIR, else /tmp whatever TMPDIR says (all users must meet
    there).
    """
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / NAME
    shared = Path("/tmp")
    return (shared if shared.is_dir() else Path(tempfile.gettempdir())) / NAME


def holder(file: Path) -> str:
    """Who holds it, as its note says: "process N since TIME"."""
    try:
        note = json.loads(file.read_text())
        return f"process {int(note['pid'])} since {note['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another controller"


@contextlib.contextmanager
def hold(wait_s: float | None = None, progress: Callable[[str], None] | None = None) -> Iterator[float]:
    """Hold the machine's lease; yields the seconds waited. LeaseTimeout (exit code 24) after `wait_s`
    (None: an hour).

    progress is told once, when waiting begins.
    """
    limit = DEFAULT_WAIT_S if wait_s is None else wait_s
    file = path()
    start = time.monotonic()
    with _opened(file) as descriptor:
        told = False
        while not _try(descriptor):
            waited = time.monotonic() - start
            if waited >= limit:
                raise LeaseTimeout(
                    f"another controller measures ({holder(file)}); waited {waited:.0f} of {limit:.0f} s",
                    "wait for it, or give --lease-wait SECONDS",
                    details={"waited_s": round(waited, 1)},
                )
            if progress and not told:
                progress(f"waiting for the machine: {holder(file)} measures (at most {limit:.0f} s)")
                told = True
            time.sleep(min(_POLL_S, max(0.0, limit - waited)))
        try:
            _note(descriptor)
            yield time.monotonic() - start
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int]:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:
        # A sticky folder may refuse to open another user's file for creating; reading is enough to lock it.
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    else:
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _note(descriptor: int) -> None:
    since = time.strftime("%H:%M:%S", time.localtime())
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": since}).encode(), 0)
