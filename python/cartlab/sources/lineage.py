"""Where the commits of a candidate come from: which belong to no recorded candidate, and which are gone.

A candidate is the run of commits that ends in it: back along first parents to the candidate before it or to
the baseline. What a merge brought in along another parent is a candidate's only if it was recorded as one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from cartlab.sources import git
from cartlab.sources.paths import matches


def strangers(
    repo: Path, base: str, cand: str, inputs: Sequence[str], candidates: Collection[str]
) -> list[str]:
    """Full ids of the commits of base..cand that change what is built and lie in no candidate, oldest first.

    inputs: globs of the paths that a build depends on, none for all. candidates: full ids of recorded
    candidates, `cand` itself if it is one.
    """
    rows = git.line(
        repo, "rev-list", "--parents", "--topo-order", "--reverse", f"{base}..{cand}"
    ).splitlines()
    parents = {commit: rest for commit, *rest in (row.split() for row in rows)}
    covered: set[str] = set()
    for tip in candidates:
        while tip in parents and tip not in covered:
            covered.add(tip)
            tip = parents[tip][0] if parents[tip] else ""
    return [
        commit
        for commit in parents
        if commit not in covered and any(not inputs or matches(n, inputs) for n in own_changes(repo, commit))
    ]


def own_changes(repo: Path, commit: str) -> list[str]:
    """What a commit itself changed: all of a first commit; of a merge what differs from every parent."""
    out = git.tell(
        repo, "diff-tree", "-r", "-c", "-z", "--root", "--name-only", "--no-renames", "--no-commit-id", commit
    )
    return sorted(git.shown(name) for name in out.split(b"\0") if name)


def missing(repo: Path, commits: Sequence[str]) -> list[str]:
    """Those of these commits that the repository has no longer, with all that they need to be read."""
    if not commits:
        return []
    asked = "".join(f"{commit}^{{tree}}\n" for commit in commits).encode()
    told = git.tell(repo, "cat-file", "--batch-check", given=asked).splitlines()
    return [commit for commit, line in zip(commits, told, strict=True) if line.split()[1:2] != [b"tree"]]
