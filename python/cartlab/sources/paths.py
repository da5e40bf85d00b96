"""Which paths two trees differ in, and which of those a candidate must not touch."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from cartlab.errors import ComplianceFailed
from cartlab.sources import git


@functools.lru_cache(maxsize=512)
def _pattern(glob: str) -> re.Pattern[str]:
    out, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif glob.startswith("**", at):
            out, at = out + ".*", at + 2
        elif glob[at] == "*":
            out, at = out + "[^/]*", at + 1
        elif glob[at] == "?":
            out, at = out + "[^/]", at + 1
        else:
            out, at = out + re.escape(glob[at]), at + 1
    return re.compile(out)


def matches(path: str, globs: Iterable[str]) -> bool:
    """Does one of the globs name this path? `*` stays in a folder, `**` crosses folders, "dir/" means all
    below.
    """
    return any(_pattern(glob + "**" if glob.endswith("/") else glob).fullmatch(path) for glob in globs)


def changed(repo: Path, base: str, cand: str) -> list[str]:
    """Paths that differ between two commits or trees, renames as both names, sorted."""
    out = git.tell(repo, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", base, cand)
    return sorted(git.shown(name) for name in out.split(b"\0") if name)


def protected_changes(
    paths: Iterable[str], protected: Sequence[str], may_touch: Sequence[str] = ()
) -> list[str]:
    """Those of `paths` that are protected and not waived by the round's `--may-touch` globs."""
    return [path for path in paths if matches(path, protected) and not matches(path, may_touch)]


def check_compliance(
    repo: Path, base: str, cand: str, protected: Sequence[str], may_touch: Sequence[str] = ()
) -> list[str]:
    """All changed paths; ComplianceFailed (exit code 18) where protected ones are among them."""
    paths = changed(repo, base, cand)
    touched = protected_changes(paths, protected, may_touch)
    if touched:
        more = f" and {len(touched) - 3} more" if len(touched) > 3 else ""
        raise ComplianceFailed(
            f"a candidate must not touch protected paths; this one changes {', '.join(touched[:3])}{more}",
            "commit those changes below the baseline, or open the round with --may-touch GLOB",
            details={"protected_paths": touched},
        )
    return paths
