"""One controller works on a machine at a time: a lock in the system's temporary folder, not in the root.

Two controllers (two people, two agents, two roots) would measure each other, and a build or a test suite
beside a measurement disturbs it as much. So a controller holds the lease from its first build to its last
block; in between nobody comes. Others queue in the order in which they came, up to a wait limit. The locks
are the kernel's, so a controller that dies gives them up, its place in the queue too; the note in the file
only says who has it.
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
QUEUE = "cartlab-measuring.queue-"
DEFAULT_WAIT_S = 3600.0
TOLD_EVERY_S = 30.0
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

    progress is told when waiting begins and every half a minute of it.
    """
    limit = DEFAULT_WAIT_S if wait_s is None else wait_s
    file = path()
    start = time.monotonic()
    with _opened(file) as descriptor:
        with _queued(file) as place:
            told = -TOLD_EVERY_S
            while _others_before(place) or not _try(descriptor, fcntl.LOCK_EX):
                waited = time.monotonic() - start
                if waited >= limit:
                    raise LeaseTimeout(
                        f"another controller works ({holder(file)}); waited {waited:.0f} of {limit:.0f} s",
                        "wait for it, or give --lease-wait SECONDS",
                        details={"waited_s": round(waited, 1)},
                    )
                if progress and waited - told >= TOLD_EVERY_S:
                    progress(
                        f"waiting for the machine: {holder(file)} works "
                        f"(waited {waited:.0f} of at most {limit:.0f} s)"
                    )
                    told = waited
                time.sleep(min(_POLL_S, max(0.0, limit - waited)))
        try:
            _note(descriptor)
            yield time.monotonic() - start
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextlib.contextmanager
def _queued(file: Path) -> Iterator[Path]:
    """A place in the queue: a locked file beside the lease, named by the machine's monotonic clock."""
    place = file.with_name(f"{QUEUE}{time.monotonic_ns():020d}-{os.getpid()}")
    # Locked before it has its name: a queue file that nobody locks is one of the dead.
    draft = place.with_name(f".{place.name}")
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        draft.replace(place)
        yield place
    finally:
        for name in (draft, place):
            name.unlink(missing_ok=True)
        os.close(descriptor)


def _others_before(place: Path) -> bool:
    """Does somebody who came earlier still wait? Removes the places of the dead."""
    for other in sorted(place.parent.glob(f"{QUEUE}*")):
        if other >= place:
            break
        with contextlib.suppress(OSError):
            descriptor = os.open(other, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if not _try(descriptor, fcntl.LOCK_SH):
                    return True
                other.unlink()
            finally:
                os.close(descriptor)
    return False


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


def _try(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _note(descriptor: int) -> None:
    since = time.strftime("%H:%M:%S", time.localtime())
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "since": since}).encode(), 0)
