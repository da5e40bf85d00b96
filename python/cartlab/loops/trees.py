"""Trees between git and folders, byte for byte: no index, no filters, no hooks, no attributes.

What we add to a repository is objects and refs below refs/ar. Files are hashed and written by us, because
git's own way can be bent by a candidate (attributes, skip-worktree, ignore rules, hooks).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cartlab.errors import BadInput
from cartlab.loops import manifest
from cartlab.loops.manifest import EXECUTABLE, LINK, OTHER, Change, Manifest
from cartlab.sources import git
from cartlab.sources.export import listing

SUBMODULE = "160000"
REFS = "refs/ar/"
# Settings of every call that writes: no hook runs and nothing asks for a key.
_PLAIN = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
    "GIT_CONFIG_KEY_1": "commit.gpgSign",
    "GIT_CONFIG_VALUE_1": "false",
}
_NOBODY = {"NAME": "cartlab", "EMAIL": "cartlab@localhost"}


def tell(repo: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> bytes:
    """A git call that may write objects, our refs or our worktree."""
    return git.tell(repo, *arguments, extra={**_PLAIN, **(extra or {})})


def commit_of(repo: Path, name: str) -> str:
    """The full id of the commit that a name means; BadInput where it means none."""
    return _named(repo, name, "commit")


def tree_of(repo: Path, commit: str) -> str:
    """The tree id of a commit."""
    return _named(repo, commit, "tree")


def _named(repo: Path, name: str, kind: str) -> str:
    asked = ("--verify", "--end-of-options", f"{name}^{{{kind}}}")
    done = git.ask(repo, "rev-parse", "--quiet", *asked)
    if done.returncode == 0:
        return done.stdout.decode().strip()
    if done.stderr.strip():
        return git.line(repo, "rev-parse", *asked)  # whose error is in git's own words
    raise BadInput(
        f"{repo} must have a commit {name}, and has none",
        "a loop starts from what is committed: git add, then git commit",
    )


def manifest_of(repo: Path, commit: str) -> Manifest:
    """What a commit's or a tree's files are; submodules are entries without files and are left out."""
    rows = listing(repo, tree_of(repo, commit))
    return {
        path: manifest.Entry(row.mode, row.object_id) for path, row in rows.items() if row.mode != SUBMODULE
    }


def lay(repo: Path, commit: str, folder: Path, keep: Iterable[str] = ()) -> None:
    """Make `folder` hold exactly the commit's files: what differs is written again, all else is removed,
    ignored files as well. keep: paths that are left as they are, and `.git` at the top.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted, kept = manifest_of(repo, commit), set(keep)
    wrong = [c for c in manifest.changes(wanted, manifest.scan(folder)) if c.path not in kept]
    for change in wrong:
        _remove(folder / change.path)
    missing = [change.path for change in wrong if change.path in wanted]
    for path, data in zip(missing, _blobs(repo, [wanted[path].digest for path in missing]), strict=True):
        _put(folder, path, data, wanted[path].mode)
    _drop_empty_folders(folder)


def take(changes: Iterable[Change], source: Path, folder: Path) -> None:
    """Copy the changed paths of one folder into another, or remove them where they are gone."""
    for change in changes:
        _remove(folder / change.path)
        if change.what == "removed":
            continue
        entry = manifest.read(source / change.path)
        _put(folder, change.path, _content(source / change.path, entry.mode), entry.mode)


def write(repo: Path, folder: Path, found: Manifest, like: str) -> str:
    """Store the files of `folder` that `found` names and return the id of their tree.

    like: a commit whose submodules the tree has too. BadInput for what no tree can hold, or where a file
    changed since it was read.
    """
    rows = [
        f"{row.mode} {row.object_id}\t".encode() + os.fsencode(path) + b"\0"
        for path, row in listing(repo, tree_of(repo, like)).items()
        if row.mode == SUBMODULE
    ]
    for path, entry in found.items():
        if entry.mode == OTHER:
            raise BadInput(
                f"expected files, folders and links in the tree, found {path!r}, which is none of them",
                "remove the device, socket or pipe",
            )
        rows.append(f"{entry.mode} {entry.digest}\t".encode() + os.fsencode(path) + b"\0")
    _store(repo, folder, found)
    with tempfile.TemporaryDirectory(prefix="cartlab-") as place:
        extra = {**_PLAIN, "GIT_INDEX_FILE": str(Path(place) / "index")}
        git.feed(repo, b"".join(rows), "update-index", "-z", "--index-info", extra=extra)
        return git.tell(repo, "write-tree", extra=extra).decode().strip()


def _store(repo: Path, folder: Path, found: Manifest) -> None:
    ids = sorted({entry.digest for entry in found.values()})
    asked = git.feed(
        repo, "\n".join(ids).encode() + b"\n", "cat-file", "--batch-check=%(objectname) %(objecttype)"
    )
    absent = {line.split()[0] for line in asked.decode().splitlines() if line.endswith(" missing")}
    for path, entry in found.items():
        if entry.digest not in absent:
            continue
        data = _content(folder / path, entry.mode)
        stored = git.feed(repo, data, "hash-object", "-w", "--stdin", extra=_PLAIN).decode().strip()
        if stored != entry.digest:
            raise BadInput(
                f"{path} changed while it was being recorded", "let nothing write to the working copy"
            )
        absent.discard(entry.digest)


def commit(repo: Path, tree: str, parents: Sequence[str], message: str) -> str:
    """A commit object; nothing points at it yet. Where git knows no author it is cartlab's."""
    extra: dict[str, str] = {}
    if not git.ask(repo, "config", "user.email").stdout.strip():
        extra = {
            f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in _NOBODY.items()
        }
    above = [word for parent in parents for word in ("-p", parent)]
    return tell(repo, "commit-tree", tree, *above, "-m", message, extra=extra).decode().strip()


def keep_ref(repo: Path, name: str, commit: str) -> None:
    """Point a ref below refs/ar at a commit, so that it is never collected."""
    if not name.startswith(REFS):
        raise ValueError(f"expected a ref below {REFS}, found {name}")
    tell(repo, "update-ref", name, commit)


def ignored(worktree: Path, paths: Sequence[str]) -> set[str]:
    """Those of `paths` that the ignore rules of a worktree name, whether they are tracked or not."""
    if not paths:
        return set()
    data = b"".join(os.fsencode(path) + b"\0" for path in paths)
    out = git.feed(worktree, data, "check-ignore", "-z", "--stdin", "--no-index", extra=_PLAIN, codes=(0, 1))
    return {os.fsdecode(name) for name in out.split(b"\0") if name}


def patch(repo: Path, base: str, cand: str) -> str:
    """The difference between two commits as text."""
    done = git.tell(repo, "diff-tree", "-p", "--no-color", "--no-ext-diff", "--no-textconv", base, cand)
    return done.decode("utf-8", "replace")


def texts(repo: Path, ids: Sequence[str]) -> list[str]:
    """The content of blobs as text."""
    return [data.decode("utf-8", "replace") for data in _blobs(repo, ids)]


def _blobs(repo: Path, ids: Sequence[str]) -> list[bytes]:
    if not ids:
        return []
    out = git.feed(repo, "\n".join(ids).encode() + b"\n", "cat-file", "--batch")
    found, at = [], 0
    for name in ids:
        end = out.index(b"\n", at)
        head = out[at:end].decode().split()
        if len(head) != 3 or head[1] != "blob":
            raise BadInput(f"the repository must have the object {name}; git said {out[at:end].decode()!r}")
        size = int(head[2])
        found.append(out[end + 1 : end + 1 + size])
        at = end + 1 + size + 1
    return found


def _content(path: Path, mode: str) -> bytes:
    return os.fsencode(path.readlink()) if mode == LINK else path.read_bytes()


def _put(top: Path, path: str, data: bytes, mode: str) -> None:
    place = top / path
    for above in reversed(place.relative_to(top).parents[:-1]):
        # A file or a link may stand where a folder is wanted, and must not lead the write elsewhere.
        if os.path.lexists(top / above) and ((top / above).is_symlink() or not (top / above).is_dir()):
            (top / above).unlink()
    place.parent.mkdir(parents=True, exist_ok=True)
    if mode == LINK:
        place.symlink_to(os.fsdecode(data))
        return
    place.write_bytes(data)
    place.chmod(0o755 if mode == EXECUTABLE else 0o644)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def _drop_empty_folders(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        place = Path(folder)
        if place != top and place.relative_to(top).parts[0] != ".git":
            with contextlib.suppress(OSError):
                place.rmdir()


def own_branch(repo: Path, name: str, commit: str) -> bool:
    """Put a branch below autoresearch/ on a commit: made where it is missing, moved only forward. False where
    it stands elsewhere, because somebody else moved it.
    """
    if not name.startswith("autoresearch/"):
        raise ValueError(f"expected a branch below autoresearch/, found {name}")
    ref = f"refs/heads/{name}"
    found = git.ask(repo, "rev-parse", "--verify", "--quiet", ref).stdout.decode().strip()
    if found == commit:
        return True
    if found and git.ask(repo, "merge-base", "--is-ancestor", found, commit).returncode != 0:
        return False
    if (
        f"branch {ref}"
        in git.tell(repo, "worktree", "list", "--porcelain").decode(errors="replace").splitlines()
    ):
        return False  # somebody works on it
    tell(repo, "update-ref", ref, commit, found or "0" * len(commit))
    return True
