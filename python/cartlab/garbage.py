"""What of a root can be made again, how large it is, when it was last used, and which of it should go.

Freed are builds (with their relinked variants and kept sources), compilers' target folders, logs of failed
builds and what killed runs left in tmp/. Never events, texts, tables, nor anything under benchmarks/: those
cannot be made again. `survey` reads the disk, `choose` is arithmetic, `set_aside` renames what was chosen
out of the way, which takes no time however large it is; deleting comes after, when no lock is held.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DAY_S = 86_400.0
TRASH = "trash-"
# Places where one process at a time builds or checks, under a lock of their own, and what is made new there
# each time; the compiler's `target` folder beside it is what the next one goes on with.
PLACES: Mapping[str, tuple[str, ...]] = {
    "build": ("src", "out", "link", "fresh-target"),
    "checks": ("src",),
}
# Parts of a build that go before it: the build works without them.
PARTS = {"src": "sources", "layouts": "layouts"}
RANK = ("leftover", "log", "sources", "layouts", "target", "build")


@dataclass(frozen=True)
class Item:
    """One thing that can be freed. name: below the root; bytes: on disk; used: seconds since the epoch;
    build: the build it belongs to; held: why it must stay now, or None.
    """

    name: str
    kind: str
    bytes: int
    used: float
    build: str | None = None
    held: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "bytes": self.bytes, "held": self.held}


@dataclass(frozen=True)
class Wish:
    """older_than: days without use; keep: so many builds stay, those used last; max_bytes: what may remain,
    the longest unused goes first. None asks for nothing.
    """

    older_than: float | None = None
    keep: int | None = None
    max_bytes: int | None = None


def survey(
    root: Path, used: Mapping[str, float], trees: Collection[str], busy: Collection[str]
) -> list[Item]:
    """Everything that can be freed, least recently used first.

    used: build id -> when a recorded run used it last. trees: of running attempts; their builds are held.
    busy: places whose lock another process has.
    """
    found = [*_builds(root, used, trees, busy), *_places(root, busy)]
    found += [_item(root, path, "leftover") for path in (root / "tmp").glob(f"{TRASH}*")]
    return sorted(found, key=lambda item: (item.used, RANK.index(item.kind), item.name))


def _builds(
    root: Path, used: Mapping[str, float], trees: Collection[str], busy: Collection[str]
) -> Iterator[Item]:
    for path in sorted((root / "builds").glob("*")):
        if path.is_file():
            yield _item(root, path, "log")
            continue
        try:
            tree = json.loads((path / "stamp.json").read_text()).get("tree")
        except (OSError, ValueError, AttributeError):
            # No stamp: a build that is being put here, or one whose maker was killed.
            item = _item(root, path, "leftover")
            yield replace(item, held="a build is running") if "build" in busy else item
            continue
        held = "a running attempt uses it" if tree in trees else None
        if "checks" in busy:
            held = "a check is running"
        parts = {name: path / name for name in PARTS if (path / name).exists()}
        whole = _item(root, path, "build", leave=set(parts))
        last = max(used.get(path.name, 0.0), whole.used)
        for name, part in parts.items():
            yield replace(_item(root, part, PARTS[name]), used=last, build=path.name, held=held)
        yield replace(whole, used=last, build=path.name, held=held)


def _places(root: Path, busy: Collection[str]) -> Iterator[Item]:
    for place, passing in PLACES.items():
        held = f"another process is at work in tmp/{place}" if place in busy else None
        for name in (*passing, "target"):
            path = root / "tmp" / place / name
            if path.exists():
                kind = "target" if name == "target" else "leftover"
                yield replace(_item(root, path, kind), held=held)


def _item(root: Path, path: Path, kind: str, leave: Collection[str] = ()) -> Item:
    size, newest = measure(path, leave)
    return Item(path.relative_to(root).as_posix(), kind, size, newest)


def measure(path: Path, leave: Collection[str] = ()) -> tuple[int, float]:
    """(bytes on disk, newest time of change) of a file or folder. Hard links count once, children named in
    `leave` and what vanishes meanwhile not at all.
    """
    seen: set[tuple[int, int]] = set()
    total, newest = 0, 0.0
    waiting = [path]
    while waiting:
        at = waiting.pop()
        with contextlib.suppress(FileNotFoundError):
            found = at.lstat()
            newest = max(newest, found.st_mtime)
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                total += found.st_blocks * 512
            if at.is_dir() and not at.is_symlink():
                waiting += [below for below in at.iterdir() if at != path or below.name not in leave]
    return total, newest


def choose(items: Sequence[Item], wish: Wish, now: float) -> list[Item]:
    """What goes, in the order of `items`. Leftovers always do; what is held never does."""
    order: list[str] = []
    for item in reversed(items):
        if item.kind == "build" and item.build is not None:
            order.append(item.build)
    kept = set(order[: wish.keep or 0])
    free = [item for item in items if item.held is None and item.build not in kept]
    gone = {item.name for item in free if item.kind == "leftover"}
    if wish.older_than is not None:
        limit = now - wish.older_than * DAY_S
        gone |= {item.name for item in free if item.used <= limit}
    if wish.max_bytes is not None:
        left = sum(item.bytes for item in items if item.name not in gone)
        for item in free:
            if left <= wish.max_bytes:
                break
            if item.name not in gone:
                gone.add(item.name)
                left -= item.bytes
    return [item for item in items if item.name in gone]


@contextlib.contextmanager
def places(root: Path) -> Iterator[set[str]]:
    """Hold the locks of the places that nobody works in; yields the names of the others."""
    busy: set[str] = set()
    with contextlib.ExitStack() as stack:
        for name in PLACES:
            path = root / "tmp" / name / "lock"
            if not path.exists():
                continue
            lock = stack.enter_context(path.open("r+"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                busy.add(name)
        yield busy


def set_aside(root: Path, items: Sequence[Item]) -> Path:
    """Rename the items into one folder under tmp/, parts before their builds. What a killed gc leaves there
    is the next one's leftover.
    """
    trash = root / "tmp" / f"{TRASH}{os.getpid()}"
    trash.mkdir(parents=True, exist_ok=True)
    for number, item in enumerate(sorted(items, key=lambda one: RANK.index(one.kind))):
        path = root / item.name
        if path != trash:
            with contextlib.suppress(FileNotFoundError):
                path.rename(trash / str(number))
    return trash


def delete(trash: Path) -> None:
    """Delete what was set aside, also below write-protected folders (a module cache's)."""
    try:
        shutil.rmtree(trash)
    except PermissionError:
        for folder, _, _ in os.walk(trash):
            Path(folder).chmod(0o700)
        shutil.rmtree(trash)
