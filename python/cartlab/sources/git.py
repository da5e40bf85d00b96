"""Questions to git, asked so that asking changes nothing.

No optional locks (so `status` does not rewrite the index), no replaced objects, no hooks' or callers' GIT_*
variables, no prompts. Nothing in this package runs a git command that writes to the repository.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cartlab.errors import BadInput

_SET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without GIT_* but for the fixed ones above and `extra`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, **_SET, **(extra or {})}


def command(repo: Path, arguments: Sequence[str]) -> list[str]:
    """The argument vector of one git call on `repo`."""
    return ["git", "-C", str(repo), "-c", "core.fsmonitor=false", "-c", "gc.auto=0", *arguments]


def ask(
    repo: Path, *arguments: str, extra: Mapping[str, str] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run git and return what it said, whatever its exit code. given: what it reads from its input."""
    try:
        return subprocess.run(
            command(repo, arguments), env=environment(extra), input=given, capture_output=True
        )
    except FileNotFoundError:
        raise BadInput("git must be installed; found no `git` on PATH", "install git") from None


def tell(repo: Path, *arguments: str, extra: Mapping[str, str] | None = None, given: bytes = b"") -> bytes:
    """The same, where failing is our mistake or a broken repository: BadInput with git's own words."""
    done = ask(repo, *arguments, extra=extra, given=given)
    if done.returncode != 0:
        raise _refused(f"git {arguments[0]}", done.stderr)
    return done.stdout


def _refused(what: str, said: bytes) -> BadInput:
    """In git's own words: the line that names the fault, and the command that it proposes, if it does."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    fault = next((line for line in lines if line.startswith(("fatal:", "error:"))), None)
    told = fault or (lines[-1] if lines else "nothing")
    proposed = next((line for line in lines if line.startswith("git ")), "")
    return BadInput(f"{what} must work in this repository; it said: {told}", proposed)


def feed(
    repo: Path,
    data: bytes,
    *arguments: str,
    extra: Mapping[str, str] | None = None,
    codes: tuple[int, ...] = (0,),
) -> bytes:
    """Run git with `data` as its input; BadInput where it ends with another code than these."""
    done = subprocess.run(command(repo, arguments), env=environment(extra), input=data, capture_output=True)
    if done.returncode not in codes:
        raise _refused("git", done.stderr)
    return done.stdout


def line(repo: Path, *arguments: str) -> str:
    """One line of output as text."""
    return tell(repo, *arguments).decode(errors="surrogateescape").strip()


def top(folder: Path) -> Path:
    """The top of the work tree that `folder` lies in."""
    done = ask(folder, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise BadInput(
            "cartlab must run inside a git repository's work tree; this folder is in none",
            "change into the repository",
        )
    return Path(os.fsdecode(done.stdout.rstrip(b"\n")))


def dirty(repo: Path) -> list[str]:
    """Paths with uncommitted changes, untracked ones too, as `git status` names them."""
    out = tell(repo, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames")
    return [shown(entry[3:]) for entry in out.split(b"\0") if entry]


def shown(name: bytes) -> str:
    """A path as text that can be printed and recorded: what is no UTF-8 is escaped."""
    return name.decode("utf-8", "backslashreplace")


def branch(repo: Path) -> str | None:
    """The current branch, or None on a detached HEAD."""
    done = ask(repo, "symbolic-ref", "--quiet", "--short", "HEAD")
    return os.fsdecode(done.stdout).strip() or None
