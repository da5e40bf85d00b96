"""Is what compiles here still what it was? Answered from the compilers' files, without starting one.

A tool is known by where PATH finds it and by that file's device, inode, size and time; rustup's `rustc` and
`cargo` stand for others, so the files that choose among these count too. Only `next` believes this: it looks
often and decides nothing. What builds, calibrates or opens a round asks the compilers themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cartlab import disk
from cartlab.model import digest_of

# Variables that choose among installed toolchains.
_CHOOSING = ("PATH", "RUSTUP_TOOLCHAIN", "RUSTUP_HOME", "CARGO_HOME")
_RUST_FILES = ("rust-toolchain", "rust-toolchain.toml")


def fingerprint(folder: Path, tools: Sequence[str]) -> str:
    """Digest of the files that decide what `tools` are when they are called in `folder`."""
    files = [*_programs(folder, tools), *_chosen_in(folder), *_rustup()]
    known = [[str(path), *_identity(path)] for path in files]
    return digest_of([sys.version, [os.environ.get(name) for name in _CHOOSING], known])


def remembered(memory: Path, seen: str, ask: Callable[[], str]) -> str:
    """The answer that `memory` has for the fingerprint `seen`; else what `ask` says, written there where the
    folder takes it.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(memory.read_bytes())
        if known["files"] == seen:
            return str(known["toolchain"])
    found = ask()
    with contextlib.suppress(OSError):
        text = json.dumps({"files": seen, "toolchain": found})
        disk.replace_bytes(disk.Disk(), memory, text.encode())
    return found


def _identity(path: Path) -> list[int]:
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]


def _programs(folder: Path, tools: Sequence[str]) -> Iterator[Path]:
    for tool in tools:
        places = (folder / place / tool for place in os.get_exec_path())
        yield from (place for place in places if place.is_file() and os.access(place, os.X_OK))


def _chosen_in(folder: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        yield from (place / name for name in _RUST_FILES)


def _rustup() -> Iterator[Path]:
    home = Path(os.environ.get("RUSTUP_HOME") or Path(os.environ.get("HOME") or "/") / ".rustup")
    yield home / "settings.toml"
    for binaries in sorted((home / "toolchains").glob("*/bin")):
        yield from (binaries / "rustc", binaries / "cargo")
