"""Builds, cached by everything that goes into them, made at one fixed place under the root.

    ROOT/tmp/build/{src,out,target,lock}     where every build happens: a path that leaks into a binary is
    the same for
                                             both sides
    ROOT/builds/KEY/{out/, build.log, stamp.json}    a finished build; the stamp is written last and lists
    every file

Key: tree, toolchain, build flags, Python, lock files, and whether the target folder was fresh. `screen` may
share a cargo target folder between refs (a fresh build serves it as well); the accept tiers never do. The
stamp's digests are compared again whenever a build is used, so a build that another one changed on disk is
made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from cartlab.errors import BadInput, BuildFailed, Tampered
from cartlab.model import Build, Ref, digest_of
from cartlab.processes import run_shell
from cartlab.sources.export import Entry, export, listing

STAMP = "stamp.json"
_TAIL = 3000
_TOOLS = (("rustc", "-vV"), ("cargo", "-V"), ("cc", "--version"), ("ld", "--version"))
_LOCKS = ("Cargo.lock", "*.lock", "requirements*.txt", "rust-toolchain*")
# Variables of the caller that change what a compiler makes: part of the key, handed to the build.
_FLAGS = (
    "RUSTFLAGS",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "CC",
    "CXX",
    "AR",
    "RUSTUP_TOOLCHAIN",
    "MACOSX_DEPLOYMENT_TARGET",
)
_FLAG_PREFIXES = ("CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_ENCODED_", "CARGO_TARGET_", "CFLAGS_")
_NOT_FLAGS = ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_JOBS")
# Handed on because a build needs them to run at all.
_PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "CARGO_BUILD_JOBS",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY", "SYSTEMROOT",
)  # fmt: skip
_PASSED_PREFIXES = ("CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_")

Progress = Callable[[str], None]


class Recipe(Protocol):
    """What a build needs of config.BuildSpec."""

    @property
    def command(self) -> str: ...
    @property
    def artifact(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def timeout_s(self) -> float: ...


class Project(Protocol):
    """What a build needs of config.Config: where the file was read from, and its [build]."""

    @property
    def path(self) -> Path | None: ...
    @property
    def build(self) -> Recipe: ...


@functools.lru_cache(maxsize=4)
def toolchain(folder: Path) -> Mapping[str, str]:
    """First lines of what the compilers of `folder` say about themselves, and this Python; absent ones are
    left out.
    """
    found = {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    for name, flag in _TOOLS:
        try:
            done = subprocess.run(
                [name, flag], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            text = done.stdout.decode(errors="replace").strip()
            found[name] = text if name == "rustc" else text.partition("\n")[0]
    return found


def toolchain_id(folder: Path) -> str:
    """Digest of `toolchain`: calibrations and builds of another compiler do not count."""
    return digest_of(dict(toolchain(folder)))


def _flags() -> dict[str, str]:
    return {
        key: value
        for key, value in os.environ.items()
        if (key in _FLAGS or key.startswith(_FLAG_PREFIXES)) and key not in _NOT_FLAGS
    }


def key_of(config: Project, ref: Ref, *, fresh: bool, entries: Mapping[str, Entry], folder: Path) -> str:
    """The cache key: 32 hex digits over everything that goes into a build."""
    spec = config.build
    locks = {
        name: entry.object_id
        for name, entry in entries.items()
        if "/" not in name and any(fnmatch.fnmatch(name, pattern) for pattern in _LOCKS)
    }
    parts = {
        "tree": ref.tree,
        "toolchain": dict(toolchain(folder)),
        "flags": {
            "command": spec.command,
            "artifact": spec.artifact,
            "env": dict(spec.env),
            "caller": _flags(),
        },
        "python": [sys.implementation.cache_tag, platform.python_version(), platform.machine()],
        "locks": locks,
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
    entries = listing(repo, ref.tree)
    keys = [
        key_of(config, ref, fresh=kind, entries=entries, folder=repo)
        for kind in ((True,) if fresh else (False, True))
    ]
    for key in keys:
        found = load(ref, root, key)
        if found:
            return found
    say = progress or (lambda _line: None)
    with _place(root, say) as place:
        found = load(ref, root, keys[0])
        if found:
            return found
        say(f"building {ref.name} ({ref.commit[:12]})")
        return _make(config, ref, root, place, keys[0], fresh=fresh, keep_sources=keep_sources)


def load(ref: Ref, root: Path, key: str) -> Build | None:
    """The cached build `key`, or None where there is none or a file of it is not what the stamp says."""
    folder = root / "builds" / key
    try:
        stamp = json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(stamp, dict) or stamp.get("files") != manifest(folder / "out"):
        return None
    return Build(
        ref=ref,
        build_id=key,
        path=str(folder / "out"),
        artifact=stamp["artifact"],
        artifact_sha256=stamp["files"][stamp["artifact"]],
        seconds=stamp["seconds"],
        cached=True,
    )


def check(build: Build) -> None:
    """Tampered where the build on disk is no longer the one that was stamped; called before each block."""
    folder = Path(build.path)
    try:
        stamped = json.loads((folder.parent / STAMP).read_text())["files"]
    except (OSError, ValueError, KeyError):
        stamped = None
    if stamped != manifest(folder):
        raise Tampered(
            f"the build of {build.ref.name} must be as it was made; files of it changed on disk",
            "look for a build script or a worker that writes outside its folder",
            details={"build_id": build.build_id},
        )


def log_of(build: Build) -> Path:
    """Where the log of a build is kept."""
    return Path(build.path).parent / "build.log"


def manifest(folder: Path) -> dict[str, str]:
    """Relative path -> sha256 of every file (a link by its target), sorted."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link:{path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


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
            for name in ("src", "out", "fresh-target"):
                shutil.rmtree(place / name, ignore_errors=True)


def _make(
    config: Project, ref: Ref, root: Path, place: Path, key: str, *, fresh: bool, keep_sources: bool
) -> Build:
    source, out = place / "src", place / "out"
    for stale in (out, place / "fresh-target"):
        shutil.rmtree(stale, ignore_errors=True)
    exported = export(repo_of(config), ref, source)
    out.mkdir()
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
        env=_environment(config, out, target),
        timeout_s=config.build.timeout_s,
        log=log,
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
    _compile_python(out)
    folder = root / "builds" / key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    out.rename(folder / "out")
    log.replace(folder / "build.log")
    if keep_sources:
        source.rename(folder / "src")
    artifact = found[0].relative_to(out).as_posix()
    files = manifest(folder / "out")
    stamp = {
        "v": 1,
        "tree": ref.tree,
        "artifact": artifact,
        "seconds": round(seconds, 3),
        "fresh": fresh,
        "files": files,
    }
    _write_last(folder / STAMP, stamp)
    return Build(ref, key, str(folder / "out"), artifact, files[artifact], round(seconds, 3), False)


def _environment(config: Project, out: Path, target: Path) -> dict[str, str]:
    passed = {
        key: value
        for key, value in os.environ.items()
        if key in _PASSED_ON or key.startswith(_PASSED_PREFIXES)
    }
    own = {
        "CARTLAB_BUILD_DIR": str(out),
        "CARTLAB_PYTHON": sys.executable,
        "CARGO_TARGET_DIR": str(target),
        "PYO3_PYTHON": sys.executable,
        "SOURCE_DATE_EPOCH": "315532800",
        "GIT_CEILING_DIRECTORIES": str(out.parent.parent),
        "PYTHONNOUSERSITE": "1",
    }
    return {**passed, **_flags(), **own, **config.build.env}


def _compile_python(out: Path) -> None:
    """Byte code for the workers, which write none; checked by content, so that its time does not matter."""
    subprocess.run(
        [sys.executable, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(out)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )


def _failed(ref: Ref, root: Path, key: str, log: Path, what: str) -> BuildFailed:
    kept = root / "builds" / f"{key}.failed.log"
    kept.parent.mkdir(parents=True, exist_ok=True)
    log.replace(kept)
    tail = kept.read_bytes()[-_TAIL:].decode(errors="replace")
    return BuildFailed(
        f"{ref.name} ({ref.commit[:12]}) does not build: {what}",
        f"the log's tail follows; the whole is {kept.name} in the root's builds folder",
        details={"log_tail": tail, "log": f"builds/{kept.name}", "commit": ref.commit},
    )


def _write_last(path: Path, stamp: Mapping[str, Any]) -> None:
    """Atomically: a build without its stamp does not exist."""
    draft = path.with_suffix(".draft")
    with draft.open("w") as file:
        json.dump(stamp, file, sort_keys=True, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
