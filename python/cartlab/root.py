"""Where the controller keeps its state, and which repository it speaks about.

The order is fixed: the flag, then AUTORESEARCH_ROOT_PATH, then that key in `.env` at the repository's top,
then the platform's state folder. The root must lie outside the repository, so that no measurement, build or
record ever shows up as a change of the measured tree. Resolving creates nothing; a command that has something
to write calls make_folder.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cartlab import disk
from cartlab.errors import BadRoot, UsageError

VARIABLE = "AUTORESEARCH_ROOT_PATH"
CONFIG_NAME = "autoresearch.toml"


@dataclass(frozen=True)
class Root:
    """The state folder and how it was found; `source` is text for people."""

    path: Path
    source: str


def _nothing(top: Path) -> bool:
    return False


def find_repository(
    start: Path, fallback: Path | None = None, meant: Callable[[Path], bool] = _nothing
) -> Path:
    """The repository a command speaks about: the one around `start` if it has an autoresearch.toml or
    `meant` says so of its top, else `fallback`.

    A script that lies in a repository passes its own as the fallback. Raises UsageError when neither will
    do.
    """
    around = _top_of(start)
    if around is not None and ((around / CONFIG_NAME).is_file() or meant(around)):
        return around
    if fallback is not None and (top := _top_of(fallback)) is not None:
        return top
    if around is not None:
        return around
    raise UsageError(
        f"expected to be run inside a git repository, found none around {start}",
        hint="change into a clone; any will do for a research loop, everything else wants one with an "
        f"{CONFIG_NAME} at its top",
    )


def has_state(top: Path, environ: Mapping[str, str]) -> bool:
    """Was the repository worked on: its `.env` names a root, its default root has a ledger, or a loop left
    refs or a worktree in it.
    """
    if read_dotenv(top / ".env").get(VARIABLE, "").strip():
        return True
    if (default_folder(top, environ) / "events.jsonl").is_file():
        return True
    shared = git_folder(top)
    return (shared / "refs" / "ar").is_dir() or any((shared / "worktrees").glob("autoresearch-*"))


def _top_of(start: Path) -> Path | None:
    # A linked worktree has a `.git` file, a clone a `.git` folder; both mark the top. No process is
    # started, because `next` has to answer at once.
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return None


def resolve_root(repo: Path, flag: str | None, environ: Mapping[str, str]) -> Root:
    """The root for `repo`; raises BadRoot when the place cannot be one."""
    if flag is not None:
        found = Root(_expand(flag, Path.cwd(), environ), "--autoresearch-root")
    elif environ.get(VARIABLE, "").strip():
        found = Root(_expand(environ[VARIABLE].strip(), Path.cwd(), environ), VARIABLE)
    elif (value := read_dotenv(repo / ".env").get(VARIABLE, "").strip()) != "":
        found = Root(_expand(value, repo, environ), ".env")
    else:
        found = Root(default_folder(repo, environ), "default state folder")
    _check(found, repo)
    return found


def _expand(text: str, base: Path, environ: Mapping[str, str]) -> Path:
    if not text.strip():
        raise BadRoot(
            "expected a folder as the root, found an empty text", hint="give --autoresearch-root a path"
        )
    if text == "~" or text.startswith("~/"):
        text = environ.get("HOME", str(Path.home())) + text[1:]
    return Path(os.path.normpath(base / text))


def _check(root: Root, repo: Path) -> None:
    # Links are followed on both sides: a link that leads back into the repository is inside it.
    real, shared = root.path.resolve(), git_folder(repo)
    # From a linked worktree the clone that it belongs to is the repository as well.
    clone = [shared.parent] if shared.name == ".git" else []
    for inside in (repo.resolve(), shared, *clone):
        if real == inside or inside in real.parents:
            raise BadRoot(
                f"expected a root outside the repository, found {real} inside {inside} (from {root.source})",
                hint=f"set {VARIABLE} or --autoresearch-root to a folder elsewhere, such as ~/cartlab-state",
            )
    spot = real
    while not spot.exists() and spot.parent != spot:
        spot = spot.parent
    if not spot.is_dir():
        raise BadRoot(
            f"expected a folder as the root, found that {spot} is a file (from {root.source})",
            hint="name another folder, or move the file away",
        )
    if not os.access(spot, os.W_OK | os.X_OK):
        raise BadRoot(
            f"expected a root that can be written, found no permission in {spot} (from {root.source})",
            hint=f"set {VARIABLE} to a folder of yours",
        )


def make_folder(root: Path) -> None:
    """Make the state folder where it is missing; BadRoot where the system refuses."""
    try:
        disk.current().make_folder(root)
    except OSError as error:
        raise BadRoot(
            f"expected to make {root}, found: {error.strerror}", "make room, or name another folder"
        ) from None


def git_folder(repo: Path) -> Path:
    """The folder that holds the repository's objects (shared by all its worktrees)."""
    marker = repo / ".git"
    if marker.is_file():
        text = marker.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        marker = (repo / text).resolve()
        common = marker / "commondir"
        if common.is_file():
            marker = (marker / common.read_text(encoding="utf-8").strip()).resolve()
    return marker.resolve()


def default_folder(repo: Path, environ: Mapping[str, str]) -> Path:
    """The platform's state folder for this clone; two clones of one project never share it."""
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif os.name == "nt":
        base = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        base = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    top = repo.resolve()
    mark = hashlib.sha256(os.fsencode(top)).hexdigest()[:8]
    return base / "cartlab" / f"{top.name}-{mark}"


def read_dotenv(path: Path) -> dict[str, str]:
    """The KEY=VALUE lines of a `.env` file; `export`, quotes and comments are understood, nothing is
    substituted.
    """
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        line = line.strip()
        key, equals, value = line.removeprefix("export ").partition("=")
        if line.startswith("#") or not equals:
            continue
        value = value.strip()
        if value[:1] in ("'", '"'):
            value = value[1:].partition(value[0])[0]
        else:
            value = value.partition(" #")[0].strip()
        found[key.strip()] = value
    return found
