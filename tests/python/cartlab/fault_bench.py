"""Disks that a test hands to the controller, and a place where command lines run on them.

    place = Place(tmp_path, repository)
    place.command(root, ["screen", "base", "better"], on=lambda: Dying(log, 12, "within"))

The commands are the real ones in a process of their own (they may die); the laboratory is fake_lab's.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fake_lab import instant_lab

from cartlab import disk
from cartlab.cli import main
from cartlab.disk import Disk
from cartlab.pipeline.lab import Lab

DIED = 9


class Watched(Disk):
    """Counts the calls of each write; a subclass says what happens at one. `log`: what was called, and up to
    which byte the events are stored, one JSON line a call, written past the disk.
    """

    def __init__(self, log: Path, chosen: int = -1, moment: str = "before") -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._calls = 0
        self._event = ""
        self._chosen, self._moment = chosen, moment

    def strike(self) -> None:
        """What happens at the chosen moment of the chosen call."""

    def _around(self, name: str, path: str, call: Callable[[], object]) -> object:
        # A file's number, process and attempt differ between runs: a kind is a name without them.
        kind = re.sub(r"[0-9a-f]{12}|\d+", "#", path)
        if path.endswith("events.jsonl"):
            kind += f" {self._event}"
        self._note({"call": name, "kind": kind})
        here = self._calls == self._chosen
        self._calls += 1
        if here and self._moment == "before":
            self.strike()
        done = call()
        if here and self._moment == "after":
            self.strike()
        return done

    def _note(self, what: dict[str, object]) -> None:
        os.write(self._log, json.dumps(what).encode() + b"\n")

    def write(self, fd: int, data: bytes) -> int:
        if _path(fd).endswith("events.jsonl") and data:
            self._event = str(json.loads(data)["type"])

        def call() -> int:
            if self._calls - 1 == self._chosen and self._moment == "within":
                super(Watched, self).write(fd, data[: len(data) // 2])
                self.strike()
            return super(Watched, self).write(fd, data)

        return int(str(self._around("write", _path(fd), call)))

    def fsync(self, fd: int) -> None:
        self._around("fsync", _path(fd), lambda: super(Watched, self).fsync(fd))
        if _path(fd).endswith("events.jsonl"):
            self._note({"stored": os.fstat(fd).st_size})

    def truncate(self, fd: int, size: int) -> None:
        self._around("truncate", _path(fd), lambda: super(Watched, self).truncate(fd, size))

    def replace(self, source: Path, target: Path) -> None:
        self._around("replace", str(target), lambda: super(Watched, self).replace(source, target))

    def make_folder(self, folder: Path) -> None:
        self._around("make_folder", str(folder), lambda: super(Watched, self).make_folder(folder))

    def remove(self, path: Path) -> None:
        self._around("remove", str(path), lambda: super(Watched, self).remove(path))

    def sync_folder(self, folder: Path) -> None:
        self._around("sync_folder", str(folder), lambda: super(Watched, self).sync_folder(folder))


class Dying(Watched):
    def strike(self) -> None:
        os._exit(DIED)


class Full(Watched):
    """From the chosen call on nothing more fits; what only takes away still works."""

    full = False

    def strike(self) -> None:
        self.full = True
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _around(self, name: str, path: str, call: Callable[[], object]) -> object:
        if self.full and name in ("write", "make_folder"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super()._around(name, path, call)


def _path(fd: int) -> str:
    return str(Path(f"/proc/self/fd/{fd}").readlink())


@dataclass
class Place:
    """A repository, and roots beside it in which one command line is run in a process of its own. lab: makes
    its laboratory; prepare: runs first in it.
    """

    folder: Path
    repo: Path
    lab: Callable[[Path], Lab] = instant_lab
    prepare: Callable[[], None] = field(default=lambda: None)
    started: int = 0

    def command(self, root: Path, words: Sequence[str], on: Callable[[], Disk] = Disk) -> tuple[int, str]:
        """(exit code, what it printed) of the command line."""
        return self.ended(*self.start(root, words, on))

    def start(self, root: Path, words: Sequence[str], on: Callable[[], Disk] = Disk) -> tuple[int, Path]:
        """A forked process that runs the command line: its id, and where it prints."""
        self.started += 1
        out = self.folder / f"out-{self.started}"
        child = os.fork()
        if child == 0:
            code = 99
            try:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
                os.dup2(1, 2)
                sys.stdout = sys.stderr = os.fdopen(1, "w", encoding="utf-8", closefd=False)
                os.environ["AUTORESEARCH_ROOT_PATH"] = str(root)
                disk.use(on())
                self.prepare()
                code = main(list(words), repository=self.repo, lab=self.lab(self.folder / "lab"))
                sys.stdout.flush()
            finally:
                os._exit(code)
        return child, out

    def ended(self, child: int, out: Path) -> tuple[int, str]:
        """Wait for a started process."""
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = out.read_text(encoding="utf-8")
        out.unlink()
        return code, text
