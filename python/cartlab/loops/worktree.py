"""The harness's linked worktree: where a loop's accepted state can be seen, on a detached HEAD or, for a
journal, on a session branch of ours.

No candidate's code ever runs in it: attempts are measured in copies without `.git`, and the worktree moves
only when one is accepted or taken back. The user's checkout, index, HEAD and branches are never written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cartlab.errors import BadInput
from cartlab.loops import manifest, trees
from cartlab.sources import git


@dataclass(frozen=True)
class Worktree:
    """repo: the user's checkout; path: ours, beside it or in the root; branch: one of ours that it is on,
    None for a detached HEAD.
    """

    repo: Path
    path: Path
    branch: str | None = None

    def exists(self) -> bool:
        """Does git list it. BadInput where something else stands there."""
        listed = git.tell(self.repo, "worktree", "list", "--porcelain", "-z").split(b"\0")
        ours = os.fsencode(self.path.resolve())
        known = b"worktree " + ours in listed
        if not known and self.path.exists():
            raise BadInput(
                f"expected a worktree of this repository at {self.path}; git does not list that folder",
                "move that folder away; nothing in it was touched",
            )
        return known and self.path.exists()

    def create(self, commit: str) -> None:
        """Add it at `commit`, with exactly that commit's bytes; its branch is made where it is missing."""
        # A folder that was deleted by hand leaves an entry that stands in the way.
        trees.tell(self.repo, "worktree", "prune")
        if self.branch is None:
            trees.tell(self.repo, "worktree", "add", "--detach", "--no-checkout", str(self.path), commit)
        else:
            trees.tell(self.repo, "update-ref", f"refs/heads/{self.branch}", commit)
            trees.tell(self.repo, "worktree", "add", "--no-checkout", str(self.path), self.branch)
        self.move_to(commit)

    def move_to(self, commit: str, keep: tuple[str, ...] = ()) -> None:
        """Put it on a commit: files, HEAD or branch, and index. keep: paths that stay as they are (the
        views).
        """
        trees.lay(self.repo, commit, self.path, keep)
        if self.branch is None:
            trees.tell(self.path, "update-ref", "--no-deref", "HEAD", commit)
        else:
            trees.tell(self.path, "update-ref", f"refs/heads/{self.branch}", commit)
        trees.tell(self.path, "read-tree", "--reset", commit)

    def remove(self) -> None:
        """Take it away, files and entry. The refs below refs/ar stay."""
        trees.tell(self.repo, "worktree", "remove", "--force", "--force", str(self.path))

    def head(self) -> str:
        """The commit it stands on."""
        return trees.commit_of(self.path, "HEAD")


def repository_state(repo: Path) -> Mapping[str, str]:
    """What no researcher may change in the repository, name by name: refs (ours as well), HEAD, index,
    configuration, excludes, hooks.
    """
    folder = Path(git.line(repo, "rev-parse", "--path-format=absolute", "--git-dir"))
    shared = Path(git.line(repo, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    refs = git.tell(repo, "for-each-ref", "--format=%(objectname) %(refname)").decode()
    out = {"refs": refs}
    for name, path in (
        ("index", folder / "index"),
        ("HEAD", folder / "HEAD"),
        ("config", shared / "config"),
        ("exclude", shared / "info" / "exclude"),
        ("attributes", shared / "info" / "attributes"),
    ):
        out[name] = manifest.read(path).digest if path.exists() else ""
    hooks = shared / "hooks"
    out["hooks"] = manifest.digest(manifest.scan(hooks)) if hooks.is_dir() else ""
    return out
