"""Builds, cached by everything that goes into them, made at one fixed place under the root.

    ROOT/tmp/build/{src,out,link,target,lock}   where every build happens: a path that leaks into a binary is
                                                the same for both sides
    ROOT/builds/KEY/{out/, link/, build.log, stamp.json}    a finished build

Key: tree (lock files are part of it), toolchain, build flags, Python, and whether the target folder was
fresh. `screen` may share a cargo target folder between refs (a fresh build serves it as well); the accept
tiers never do. The stamp's digests are compared again whenever a build is used, so a build that another one
changed on disk is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from cartlab.errors import BadInput, BadRoot, BuildFailed
from cartlab.model import Build, Ref, digest_of
from cartlab.processes import run_shell, tail
from cartlab.sources.export import export
from cartlab.sources.stamps import finish, load
from cartlab.sources.tools import Recipe, environment, flags, toolchain

_TAIL = 3000
_ROOM = 4 << 20  # bytes
Progress = Callable[[str], None]


class Project(Protocol):
    """What a build needs of config.Config: where the file was read from, and its [build]."""

    @property
    def path(self) -> Path | None: ...
    @property
    def build(self) -> Recipe: ...


def key_of(config: Project, ref: Ref, *, fresh: bool, folder: Path) -> str:
    """The cache key: 32 hex digits over everything that goes into a build."""
    spec = config.build
    parts = {
        "tree": ref.tree,
        "toolchain": dict(toolchain(folder)),
        "flags": {
            "command": spec.command,
            "artifact": spec.artifact,
            "env": dict(spec.env),
            "caller": flags(),
        },
        "python": [sys.implementation.cache_tag, platform.python_version(), platform.machine()],
        "fresh": fresh,
    }
    return digest_of(parts)[:32]


def repo_of(config: Project) -> Path:
    """The checkout whose autoresearch.toml this is."""
    if config.path is None:
        raise BadInput(
            "a build needs the repository that its configuration was read from; this one is text alone"
        )
    return config.path.parent


def build(
    config: Project,
    ref: Ref,
    root: Path,
    *,
    fresh: bool = False,
    progress: Progress | None = None,
    keep_sources: bool = False,
) -> Build:
    """The built package of `ref`, from the cache where it is whole; BuildFailed carries the log's tail.

    fresh: build in an empty target folder (accept tiers). Never touches the repository; holds
    ROOT/tmp/build/lock.
    """
    repo = repo_of(config)
    keys = [key_of(config, ref, fresh=kind, folder=repo) for kind in ((True,) if fresh else (False, True))]
    for key in keys:
        found = load(ref, key, root / "builds" / key)
        if found:
            return found
    say = progress or (lambda _line: None)
    with _place(root, say) as place:
        found = load(ref, keys[0], root / "builds" / keys[0])
        if found:
            return found
        say(f"building {ref.name} ({ref.commit[:12]})")
        return _make(config, ref, root, place, keys[0], fresh=fresh, keep_sources=keep_sources)


@contextlib.contextmanager
def _place(root: Path, say: Progress) -> Iterator[Path]:
    """The build place, one build at a time; src and out are gone afterwards."""
    place = root / "tmp" / "build"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build under this root")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield place
        finally:
            for name in ("src", "out", "link", "fresh-target"):
                shutil.rmtree(place / name, ignore_errors=True)


def _make(
    config: Project, ref: Ref, root: Path, place: Path, key: str, *, fresh: bool, keep_sources: bool
) -> Build:
    source, out, link = place / "src", place / "out", place / "link"
    for stale in (out, link, place / "fresh-target"):
        shutil.rmtree(stale, ignore_errors=True)
    exported = export(repo_of(config), ref, source)
    out.mkdir()
    link.mkdir()
    target = place / ("fresh-target" if fresh else "target")
    target.mkdir(exist_ok=True)
    log = place / "build.log"
    log.write_text(
        "".join(f"exported from its blob, not as archived: {name}\n" for name in exported.rewritten)
    )
    start = time.monotonic()
    outcome = run_shell(
        config.build.command,
        cwd=source,
        env=environment(config.build, out, target, link),
        timeout_s=config.build.timeout_s,
        log=log,
        strays=True,
    )
    seconds = time.monotonic() - start
    if outcome.returncode is None:
        raise _failed(
            ref, root, key, log, f"its build must end within {config.build.timeout_s:g} s and was killed"
        )
    if outcome.returncode != 0:
        raise _failed(ref, root, key, log, f"its build command ended with exit code {outcome.returncode}")
    found = [
        path for path in sorted(out.glob(config.build.artifact)) if path.is_file() and not path.is_symlink()
    ]
    if len(found) != 1:
        raise _failed(
            ref,
            root,
            key,
            log,
            f"its build must leave one file {config.build.artifact}; it left {len(found)}",
        )
    folder = root / "builds" / key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    out.rename(folder / "out")
    link.rename(folder / "link")
    log.replace(folder / "build.log")
    if keep_sources:
        source.rename(folder / "src")
    return finish(ref, key, folder, found[0].relative_to(out).as_posix(), seconds, fresh)


def _failed(ref: Ref, root: Path, key: str, log: Path, what: str) -> BuildFailed:
    free = shutil.disk_usage(root).free
    if free < _ROOM:
        # A compiler that cannot write fails like one that cannot compile; the revision is not to blame.
        raise BadRoot(
            f"a build needs room, found {free >> 10} KiB free; {ref.name} is not judged by it",
            "make room, or name another root; everything recorded so far is safe",
        )
    kept = root / "builds" / f"{key}.failed.log"
    kept.parent.mkdir(parents=True, exist_ok=True)
    log.replace(kept)
    end = tail(kept, _TAIL)
    return BuildFailed(
        f"{ref.name} ({ref.commit[:12]}) does not build: {what}",
        f"the log's tail follows; the whole is {kept.name} in the root's builds folder",
        details={"log_tail": end, "log": f"builds/{kept.name}", "commit": ref.commit},
    )
