"""A tree of the repository as files, exactly its blobs, without touching the repository.

`git archive` gives the files; attributes in the tree (export-ignore, export-subst, eol, filters) alter what
it gives, so every file is compared with its blob and written again from the blob where it differs. Files
get the time of their extraction: an archive carries the commit's time, and a build tool that goes by time
would reuse the other side's objects. A symbolic link out of the tree would let a build read this machine's
work tree, so it is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cartlab.errors import BadInput, ComplianceFailed
from cartlab.model import Ref
from cartlab.sources import git

_LINK = "120000"
_SUBMODULE = "160000"
_EXECUTABLE = "100755"


@dataclass(frozen=True)
class Entry:
    """One row of `git ls-tree -r`."""

    mode: str
    object_id: str


@dataclass(frozen=True)
class Exported:
    """path: the folder; files: how many; rewritten: files that the archive had altered; submodules: not
    exported.
    """

    path: Path
    files: int
    rewritten: tuple[str, ...]
    submodules: tuple[str, ...]


def listing(repo: Path, tree: str) -> dict[str, Entry]:
    """Path -> entry for every file of a tree."""
    out = git.tell(repo, "ls-tree", "-r", "-z", "--full-tree", tree)
    found = {}
    for row in out.split(b"\0"):
        if row:
            meta, _, name = row.partition(b"\t")
            mode, _kind, object_id = meta.decode().split()
            found[os.fsdecode(name)] = Entry(mode, object_id)
    return found


def export(repo: Path, ref: Ref, folder: Path) -> Exported:
    """Write the tree of `ref` into `folder` (made anew). ComplianceFailed for a link out of the tree."""
    entries = listing(repo, ref.tree)
    check_links(repo, entries)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    _extract(repo, ref.tree, entries, folder)
    wrong = [name for name in entries if not _same(folder / name, entries[name])]
    for name in wrong:
        _write(folder / name, git.tell(repo, "cat-file", "blob", entries[name].object_id), entries[name])
    # All of them: where names fall together, putting one right spoils the other.
    still = [name for name in entries if not _same(folder / name, entries[name])]
    if still:
        raise BadInput(
            f"every exported file must equal its blob; {still[0]} does not",
            "names that differ only in case need a file system that keeps them apart",
        )
    _check_real_links(folder, list(entries))
    return Exported(
        path=folder,
        files=len(entries),
        rewritten=tuple(wrong),
        submodules=tuple(name for name, entry in entries.items() if entry.mode == _SUBMODULE),
    )


def check_links(repo: Path, entries: dict[str, Entry]) -> None:
    """ComplianceFailed where a symbolic link leads out of the tree (or through a file of it to the
    outside).
    """
    for name, entry in entries.items():
        if entry.mode != _LINK:
            continue
        target = os.fsdecode(git.tell(repo, "cat-file", "blob", entry.object_id))
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if inside.split("/")[0] in ("", ".."):
            raise _leads_out(name, target)


def _check_real_links(folder: Path, names: list[str]) -> None:
    """The same on disk, where a link may lead through another link."""
    home = Path(os.path.realpath(folder))
    for name in names:
        target = os.path.realpath(folder / name)
        if not Path(target).is_relative_to(home):
            shutil.rmtree(folder)
            raise _leads_out(name, target)


def _leads_out(name: str, target: str) -> ComplianceFailed:
    return ComplianceFailed(
        f"symbolic links must stay inside the tree; {name} leads to {target}",
        "replace the link by the file itself",
        details={"link": name},
    )


@contextlib.contextmanager
def _archive(repo: Path, tree: str) -> Iterator[IO[bytes]]:
    with subprocess.Popen(
        git.command(repo, ["archive", "--format=tar", tree]),
        env=git.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        yield process.stdout


def _extract(repo: Path, tree: str, entries: dict[str, Entry], folder: Path) -> None:
    """Write what the archive holds of the listed files; anything missing or altered is put right by the
    caller.
    """
    # Read late: it brings three compressors with it, and only a build unpacks anything.
    import tarfile

    with _archive(repo, tree) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.issym():
                _write(folder / member.name, os.fsencode(member.linkname), entries[member.name])
            elif content := archive.extractfile(member):  # a folder has none
                _write(folder / member.name, content.read(), entries[member.name])


def _write(path: Path, content: bytes, entry: Entry) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # What is there may be a link: nothing is written through it.
    path.unlink(missing_ok=True)
    if entry.mode == _LINK:
        path.symlink_to(os.fsdecode(content))
        return
    path.write_bytes(content)
    path.chmod(0o755 if entry.mode == _EXECUTABLE else 0o644)


def _same(path: Path, entry: Entry) -> bool:
    """Is the file on disk the blob, byte for byte? A submodule is an empty folder."""
    if entry.mode == _SUBMODULE:
        path.mkdir(parents=True, exist_ok=True)
        return True
    try:
        content = os.fsencode(path.readlink()) if entry.mode == _LINK else path.read_bytes()
    except OSError:
        return False
    algorithm = "sha1" if len(entry.object_id) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content).hexdigest() == entry.object_id
