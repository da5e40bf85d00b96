"""What a folder really holds, by reading it: kind, mode and content of every path.

git's index can be told to look away (skip-worktree, assume-unchanged, ignore rules, filters), so nothing here
asks git. The top's `.git` is the one thing left out; a nested one is content like any other.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cartlab import sources

FILE, EXECUTABLE, LINK, OTHER = "100644", "100755", "120000", "other"
_PIECE = 1 << 20


@dataclass(frozen=True)
class Entry:
    """One path. mode: git's word for it, "other" for a device, socket or pipe. digest: git's blob id of a
    file's bytes or of a link's target.
    """

    mode: str
    digest: str


Manifest = Mapping[str, Entry]


@dataclass(frozen=True)
class Change:
    """One path that differs. what: added | removed | changed | mode | retargeted."""

    path: str
    what: str


def scan(folder: Path) -> Manifest:
    """Every path below `folder`, links not followed. Names that are no UTF-8 are kept by surrogates."""
    found: dict[str, Entry] = {}
    _walk(folder, "", found)
    return found


def _walk(folder: Path, prefix: str, found: dict[str, Entry]) -> None:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if not prefix and entry.name == ".git":
                continue
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                _walk(folder / entry.name, path + "/", found)
            else:
                found[path] = read(Path(entry.path))


def read(path: Path) -> Entry:
    """One path's entry."""
    state = path.lstat()
    if stat.S_ISLNK(state.st_mode):
        return Entry(LINK, _blob(os.fsencode(path.readlink())))
    if not stat.S_ISREG(state.st_mode):
        return Entry(OTHER, "")
    mode = EXECUTABLE if state.st_mode & stat.S_IXUSR else FILE
    digest = hashlib.sha1(b"blob %d\0" % state.st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return Entry(mode, digest.hexdigest())


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def changes(before: Manifest, after: Manifest) -> list[Change]:
    """Where two manifests differ, sorted by path."""
    out = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if old is None:
            what = "added"
        elif new is None:
            what = "removed"
        elif LINK in (old.mode, new.mode):
            what = "retargeted"
        else:
            what = "mode" if old.digest == new.digest else "changed"
        out.append(Change(path, what))
    return out


def matching(found: Manifest, globs: Iterable[str]) -> Manifest:
    """The entries whose path one of the globs names; a plain folder's name means all below it."""
    globs = tuple(globs)
    return {path: entry for path, entry in found.items() if named(path, globs)}


def named(path: str, globs: Iterable[str]) -> bool:
    """Does one of the globs name this path, or a folder above it?"""
    globs = tuple(globs)
    parts = path.split("/")
    return any(sources.matches("/".join(parts[: n + 1]), globs) for n in range(len(parts)))


def digest(found: Manifest) -> str:
    """sha256 over all entries."""
    total = hashlib.sha256()
    for path in sorted(found):
        entry = found[path]
        total.update(f"{entry.mode} {entry.digest} ".encode() + os.fsencode(path) + b"\0")
    return total.hexdigest()


def escapes(folder: Path, path: str) -> bool:
    """Does the link at `path` lead out of `folder`?"""
    target = Path(os.path.normpath(Path(path).parent / (folder / path).readlink()))
    return target.is_absolute() or target.parts[0] == ".."
