"""Every byte and folder of a state root's records goes through this class, so that a test can stop the world
at each point.

The order of calls is the crash contract: an event is one write and one fsync; a view or an artefact is
written beside its place, fsynced, renamed over it, and the folder fsynced. The ledger, the run folders and
the root itself write in no other way; builds, which can be made again, have their own stamp.
"""

from __future__ import annotations

import os
from pathlib import Path


class Disk:
    """The real disk. Tests subclass it and die, or fail, before or after any of these calls."""

    def write(self, fd: int, data: bytes) -> int:
        """One write call; returns the bytes taken."""
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """Wait until the file's bytes are stored."""
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file to this size."""
        os.ftruncate(fd, size)

    def replace(self, source: Path, target: Path) -> None:
        """Rename over the target, atomically."""
        source.replace(target)

    def make_folder(self, folder: Path) -> None:
        """Make the folder and those above it where they are missing."""
        folder.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Remove the file if it is there."""
        path.unlink(missing_ok=True)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the folder's entries are stored."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


_in_use = Disk()


def current() -> Disk:
    """The disk that is written to where none is handed in."""
    return _in_use


def use(disk: Disk) -> None:
    """Write to another one from now on: for tests that die or fail at a chosen call."""
    global _in_use
    _in_use = disk


def append_bytes(disk: Disk, path: Path, data: bytes) -> None:
    """Append with one O_APPEND write and an fsync; all of it, or the file is cut back and the error raised.

    The caller holds the lock that keeps other writers away.
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        before = os.fstat(fd).st_size
        try:
            taken = disk.write(fd, data)
            if taken != len(data):
                raise OSError(f"only {taken} of {len(data)} bytes were written")
            disk.fsync(fd)
        except OSError:
            disk.truncate(fd, before)
            raise
    finally:
        os.close(fd)


def replace_bytes(disk: Disk, path: Path, data: bytes) -> None:
    """Give the file this content atomically: a reader sees the old or the new one, also after a crash."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            taken = 0
            while taken < len(data):
                taken += disk.write(fd, data[taken:])
            disk.fsync(fd)
        finally:
            os.close(fd)
        disk.replace(beside, path)
    except OSError:
        disk.remove(beside)
        raise
    disk.sync_folder(path.parent)
