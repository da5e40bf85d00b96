"""The work tree as a tree id, so that what was checked there is known by content.

git can only hash through an index and an object store; both are throw-away copies here, so the repository
keeps every byte it had.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from cartlab.sources import git


def tree_of_worktree(repo: Path) -> str:
    """The tree id that a commit of everything in the work tree (ignored files aside) would have."""
    with tempfile.TemporaryDirectory(prefix="cartlab-") as folder:
        index = Path(folder) / "index"
        own = Path(git.line(repo, "rev-parse", "--path-format=absolute", "--git-path", "index"))
        objects = git.line(repo, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        if own.exists():
            # With its time: git trusts an entry's recorded time only where the index is younger than the
            # file. A copy from now hides an edit of the same size in the clock tick of the last commit.
            shutil.copy2(own, index)
        store = Path(folder) / "objects"
        store.mkdir()
        extra = {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(store),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join([objects]),
        }
        git.tell(repo, "add", "-A", extra=extra)
        return git.tell(repo, "write-tree", extra=extra).decode().strip()
