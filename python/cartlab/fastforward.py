"""Fast-forward of the checked-out branch: the one place of cartlab that writes to a repository.

Everything that could go wrong is looked at before, while nothing has changed. The move itself is two git
calls, `read-tree -m -u` (index and work tree, both or neither where git refuses) and `update-ref` with the
old value (so that a branch that moved meanwhile is left alone); where the second is refused the first is
taken back. Both run in one child with a session of its own, which a killed controller leaves to finish.
The branch, its reflog and HEAD's, the index and the files that differ are all that changes: no remote, no
other branch, no ORIG_HEAD.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cartlab.errors import BadInput, NotLegalNow
from cartlab.model import Ref
from cartlab.sources import git
from cartlab.sources.export import Entry, listing
from cartlab.words import counted

# What git leaves in its folder while one of these is half done.
HALF_DONE = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "git bisect",
}

MOVE = """
call() { git -C "$repo" -c core.fsmonitor=false -c gc.auto=0 "$@"; }
repo=$1 old=$2 new=$3 branch=$4
call read-tree -m -u "$old" "$new" || exit 3
call update-ref -m "cartlab publish: fast-forward" "refs/heads/$branch" "$new" "$old" && exit 0
call read-tree -m -u "$new" "$old"
exit 4
"""


def checked_branch(repo: Path) -> str:
    """The branch that would move; NotLegalNow where there is none, or another git command is half done."""
    name = git.branch(repo)
    if name is None:
        raise NotLegalNow(
            "publish moves the current branch; HEAD is detached", "check a branch out: `git switch BRANCH`"
        )
    for mark, what in HALF_DONE.items():
        if Path(git.line(repo, "rev-parse", "--path-format=absolute", "--git-path", mark)).exists():
            raise NotLegalNow(
                f"a {what} is half done in this repository", f"finish or abort the {what} first"
            )
    return name


def require_clean(repo: Path, cut_short: bool = False) -> None:
    """NotLegalNow where the work tree has changes. cut_short: an earlier publish from here did not end."""
    changed = git.dirty(repo)
    if not changed:
        return
    names = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
    hint = "commit them, put them away (`git stash -u`), or ignore them"
    if cut_short:
        hint = (
            "git was killed in the middle of an earlier publish, which began with a clean tree: unless you "
            "edited since, `git reset --hard HEAD` brings it back"
        )
    raise NotLegalNow(
        f"publish needs a clean work tree; {counted(len(changed), 'path')} changed: {names}",
        hint,
    )


def require_room(repo: Path, old: Ref, new: Ref) -> None:
    """NotLegalNow where a file of the new tree would replace one that git does not keep (an ignored one)."""
    before, after = listing(repo, old.tree), listing(repo, new.tree)
    for name in sorted(after.keys() - before.keys()):
        stranger = _in_the_way(repo, name, before)
        if stranger is not None:
            raise NotLegalNow(
                f"{new.name} has the file {name}, where {stranger} lies and is not committed",
                "move it away; publish replaces no file that git cannot bring back",
            )


def _in_the_way(repo: Path, name: str, before: Mapping[str, Entry]) -> str | None:
    for part in (Path(name), *Path(name).parents[:-1]):
        spot, tracked = repo / part, part.as_posix() in before
        if spot.is_symlink() or spot.is_file():
            if not tracked:
                return part.as_posix()
        elif spot.is_dir() and part.as_posix() == name:
            for below in sorted(spot.rglob("*")):
                inside = below.relative_to(repo).as_posix()
                if (below.is_symlink() or not below.is_dir()) and inside not in before:
                    return inside
    return None


def forward(repo: Path, branch: str, old: Ref, new: Ref) -> None:
    """Move `branch`, which is checked out at `old`, to its descendant `new`, with index and work tree.

    BadInput with git's words where git refuses; then nothing has changed.
    """
    with tempfile.TemporaryFile() as said:
        # A file, not a pipe: a child that outlives us must be able to go on writing.
        child = subprocess.Popen(
            ["/bin/sh", "-c", MOVE, "publish", str(repo), old.commit, new.commit, branch],
            env=git.environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        code = child.wait()
        said.seek(0)
        words = os.fsdecode(said.read()).strip().splitlines()
    if code != 0:
        raise BadInput(
            f"git must be able to move {branch} to {new.commit[:12]}; "
            f"it said: {words[0] if words else 'nothing'}",
            "nothing was changed; see to what git says and run the same command again",
        )
