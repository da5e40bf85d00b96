"""Carrying out a repository's checks: the surfaces of autoresearch.toml, on the work tree or on a clean
checkout.

A result is bound to the id of the tree it was made on, so a commit with the same tree inherits it. What a
failure means for a verdict, and whether the baseline fails the same check, is the caller's to find out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cartlab import lease, sources
from cartlab.config import Config, Surface
from cartlab.errors import BadInput, UsageError
from cartlab.model import Build, Ref
from cartlab.processes import run_shell
from cartlab.sources.export import export

AUTO = "auto"
_TAIL = 3000


@dataclass(frozen=True)
class Check:
    """One command. passed: ended with 0 within the limit; tail: the end of its output."""

    surface: str
    command: str
    passed: bool
    returncode: int | None
    seconds: float
    tail: str


@dataclass(frozen=True)
class CheckRun:
    """All commands of the chosen surfaces. tree: what was checked, None where it changed meanwhile; commit:
    None for the work tree.
    """

    tree: str | None
    commit: str | None
    quick: bool
    surfaces: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Did every command pass?"""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The commands that did not."""
        return tuple(check for check in self.checks if not check.passed)

    def to_json(self) -> dict[str, Any]:
        """As it is recorded."""
        return {**asdict(self), "passed": self.passed}


def choose(config: Config, name: str = AUTO, changed: Iterable[str] | None = None) -> tuple[Surface, ...]:
    """The surface called `name`; under "auto" those whose globs match a changed path, all where none does."""
    if not config.surfaces:
        raise BadInput("checks need at least one [surfaces.NAME] in autoresearch.toml; found none")
    if name != AUTO:
        if name not in config.surfaces:
            known = ", ".join((AUTO, *config.surfaces))
            raise UsageError(f"the surface must be one of {known}; found {name!r}")
        return (config.surfaces[name],)
    paths = list(changed or ())
    hit = [s for s in config.surfaces.values() if any(sources.matches(path, s.paths) for path in paths)]
    return tuple(hit or config.surfaces.values())


def run(
    config: Config,
    surfaces: Sequence[Surface],
    *,
    quick: bool,
    root: Path,
    ref: Ref | None = None,
    build: Build | None = None,
    progress: Callable[[str], None] | None = None,
) -> CheckRun:
    """Run the commands of `surfaces`, all of them even after a failure.

    Without `ref` they run in the work tree as it stands; with it in a clean checkout under the root, and
    `build` (the built package of that ref) is then first on PYTHONPATH and named by CARTLAB_BUILD_DIR. A
    command finds this Python as CARTLAB_PYTHON.
    """
    if config.path is None:
        raise BadInput(
            "checks need the repository that their configuration was read from; this one is text alone"
        )
    repo = config.path.parent
    say = progress or (lambda _line: None)
    with _place(root) as place:
        if ref is None:
            folder, tree = repo, sources.tree_of_worktree(repo)
        else:
            folder, tree = export(repo, ref, place / "src").path, ref.tree
        env = environment(None if ref is None else place / "target", build, place)
        done = []
        for surface in surfaces:
            for command in surface.quick if quick else surface.full:
                say(f"check {surface.name}: {command}")
                done.append(
                    _check(surface.name, command, folder, env, config.checks_timeout_s, place / "log")
                )
        unchanged = ref is not None or sources.tree_of_worktree(repo) == tree
    return CheckRun(
        tree=tree if unchanged else None,
        commit=ref.commit if ref else None,
        quick=quick,
        surfaces=tuple(surface.name for surface in surfaces),
        checks=tuple(done),
    )


def environment(target: Path | None, build: Build | None, place: Path) -> Mapping[str, str]:
    """The caller's environment without what belongs to git and to this Python, plus where things are."""
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("GIT_") and k not in ("PYTHONPATH", "PYTHONHOME")
    }
    env["CARTLAB_PYTHON"] = sys.executable
    # Whoever runs checks holds the machine's lease: a controller among the checks would wait for it for ever.
    env[lease.VARIABLE] = str(place)
    if target is not None:
        env["CARGO_TARGET_DIR"] = str(target)
    if build is not None:
        env["CARTLAB_BUILD_DIR"] = build.path
        env["PYTHONPATH"] = build.path
    return env


def _check(
    surface: str, command: str, folder: Path, env: Mapping[str, str], timeout_s: float, log: Path
) -> Check:
    log.write_bytes(b"")
    outcome = run_shell(command, cwd=folder, env=env, timeout_s=timeout_s, log=log)
    tail = log.read_bytes()[-_TAIL:].decode(errors="replace")
    if outcome.returncode is None:
        tail += f"\nkilled after {timeout_s:g} s"
    return Check(
        surface, command, outcome.returncode == 0, outcome.returncode, round(outcome.seconds, 3), tail
    )


@contextlib.contextmanager
def _place(root: Path) -> Iterator[Path]:
    """ROOT/tmp/checks, one check run at a time; the checkout is gone afterwards, the cargo target folder
    stays.
    """
    place = root / "tmp" / "checks"
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield place
        finally:
            shutil.rmtree(place / "src", ignore_errors=True)
