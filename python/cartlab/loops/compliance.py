"""Does a submission keep to its protocol: what it changed, held against what it may change.

Pure over manifests: the caller reads the folders and asks git which new paths are ignored. The deny-list is
Fixed and the protocol itself; existing files outside Fixed and Variable may not change either, new ones may,
unless the protocol is strict or their name would take over somebody else's (a module of Python's, a test
framework's hook, a `sitecustomize`).
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cartlab.loops import witness
from cartlab.loops.manifest import LINK, OTHER, Change, Manifest, changes, named

SIZE_CAP = 10 * 1024 * 1024
# What a whole submission may add where its protocol's `diff_cap` says nothing; source text never comes near.
DIFF_CAP = 16 * 1024 * 1024
# Files that change how somebody else's program starts, wherever they lie.
HOOKS = (
    "sitecustomize.py",
    "usercustomize.py",
    "conftest.py",
    "pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pyvenv.cfg",
    ".gitattributes",
    ".gitmodules",
    "Makefile",
    "makefile",
    "GNUmakefile",
)
_SHADOWED = frozenset(sys.stdlib_module_names) | {
    "torch",
    "numpy",
    "scipy",
    "pandas",
    "sklearn",
    "jax",
    "jaxlib",
    "tensorflow",
    "transformers",
    "datasets",
    "pytest",
}
_EVAL_LIKE = re.compile(
    r"^\s*(?:async\s+)?def\s+(?:evaluate|compute_metrics|accuracy|score)\s*\(", re.MULTILINE
)


@dataclass(frozen=True)
class Rules:
    """What a submission may do. All globs are relative to the top of the tree; views: files of ours in it,
    which count for nothing; free: existing files may change wherever they are. size_cap: bytes of one file;
    diff_cap: bytes added by all files together.
    """

    fixed: tuple[str, ...]
    variable: tuple[str, ...]
    strict: bool = False
    views: tuple[str, ...] = ()
    free: bool = False
    size_cap: int = SIZE_CAP
    diff_cap: int = DIFF_CAP


@dataclass(frozen=True)
class Finding:
    """changes: what is taken over; broken: path -> why it may not change (empty: it complies); dropped: new
    paths that the ignore rules name, which are no part of a submission; flags: remarks that decide nothing;
    seeds_only: nothing but literals of seeds was changed; too_much: all of it together is over its cap.
    """

    changes: tuple[Change, ...]
    broken: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    seeds_only: bool = False
    too_much: bool = False


def judge(
    before: Manifest,
    after: Manifest,
    rules: Rules,
    *,
    ignored: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    escaping: Iterable[str] = (),
    texts: Mapping[str, str] | None = None,
    edits: Mapping[str, tuple[str, str]] | None = None,
    binary: Iterable[str] = (),
    framed: Mapping[str, tuple[str, str]] | None = None,
) -> Finding:
    """Compare. ignored: new paths that the baseline's ignore rules name; sizes: bytes of new or changed
    files; escaping: links that lead out of the tree; texts: the text of new files; edits: the text of changed
    files before and after; binary: new files that are no text; framed: the text of
    each existing file that is other now, before and after ("" where it is no plain file any more).
    """
    hidden, leaving = set(ignored), set(escaping)
    taken: list[Change] = []
    broken: dict[str, str] = {}
    dropped: list[str] = []
    differing = changes(before, after)
    pairs_moved = renames(before, after, differing)
    moved = {old: f" (renamed to {new})" for old, new in pairs_moved}
    moved |= {new: f" (renamed from {old})" for old, new in pairs_moved}
    arrived = {new for _, new in pairs_moved}
    for change in differing:
        if change.path in rules.views:
            continue
        if change.what == "added" and change.path in hidden and not named(change.path, rules.fixed):
            dropped.append(change.path)
            continue
        taken.append(change)
        why = _why_not(change, after, rules, leaving, (sizes or {}).get(change.path, 0))
        why = why or _outside_regions(change.path, *(framed or {}).get(change.path, ("", "")))
        if why:
            broken[change.path] = why + moved.get(change.path, "")
    pairs = edits or {}
    added = {
        c.path: 0 if c.path in arrived else added_bytes(c.path, sizes or {}, pairs)
        for c in taken
        if c.what != "removed"
    }
    too_much = sum(added.values()) > rules.diff_cap
    if too_much:
        largest = max(added, key=lambda path: added[path])
        broken.setdefault(
            largest,
            f"the largest of {len(added)} files that add {sum(added.values())} bytes, more than the cap of "
            f"{rules.diff_cap} on all of a submission (diff_cap)",
        )
    flags = [
        f"⚠ eval-like: {path}"
        for path, text in (texts or {}).items()
        if _EVAL_LIKE.search(text) and path not in dropped
    ]
    flags += [f"binary: {path}" for path in binary if path not in dropped]
    flags += [f"link: {c.path}" for c in taken if c.what != "removed" and after[c.path].mode == LINK]
    flags += [f"⚠ seed literal: {path}" for path in witness.seeds_among(pairs)]
    lucky = {change.path for change in taken} == set(pairs) and witness.seeds_only(pairs)
    return Finding(tuple(taken), broken, tuple(dropped), tuple(flags), lucky, too_much)


def renames(before: Manifest, after: Manifest, differing: Sequence[Change]) -> list[tuple[str, str]]:
    """Old and new path of each file that was moved as it is. A move is a removal and an addition, each of
    which is judged by its own path.
    """
    gone: dict[str, list[str]] = {}
    for change in differing:
        if change.what == "removed":
            gone.setdefault(before[change.path].digest, []).append(change.path)
    return [
        (old.pop(0), change.path)
        for change in differing
        if change.what in ("added", "changed") and (old := gone.get(after[change.path].digest))
    ]


def added_bytes(path: str, sizes: Mapping[str, int], edits: Mapping[str, tuple[str, str]]) -> int:
    """Bytes that a file adds: an edited text's new lines, else all of it. 0 for what is no plain file."""
    if path not in edits:
        return sizes.get(path, 0)
    old, new = (Counter(text.splitlines(keepends=True)) for text in edits[path])
    return sum(len(line.encode("utf-8", "replace")) * count for line, count in (new - old).items())


def _why_not(change: Change, after: Manifest, rules: Rules, leaving: set[str], size: int) -> str:
    path, is_new = change.path, change.what == "added"
    if named(path, rules.fixed):
        return f"a fixed file was {change.what}"
    if change.what != "removed":
        if after[path].mode == OTHER:
            return "a device, socket or pipe"
        if path in leaving:
            return "a link that leads out of the tree"
        if size > rules.size_cap:
            return f"{size} bytes, more than the cap of {rules.size_cap}"
    if named(path, rules.variable):
        return ""
    if not is_new:
        return "" if rules.free else f"a file outside Variable was {change.what}"
    if rules.strict:
        return "a new file, and the protocol is strict about its variable files"
    return takes_over(path)


def _outside_regions(path: str, before: str, after: str) -> str:
    """Why an edit of a file with regions may not be, or nothing. Where the baseline's file marks what may
    change with lines that hold `autoresearch: begin` and `autoresearch: end`, the rest of it is fixed.
    """
    if BEGIN not in before:
        return ""
    return "" if _frame(before) == _frame(after) else f"{path} was changed outside its marked regions"


BEGIN, _END = "autoresearch: begin", "autoresearch: end"


def _frame(text: str) -> list[str]:
    """A file's lines without those in its regions; the marks belong to the frame."""
    found, inside = [], False
    for line in text.splitlines():
        inside = inside and _END not in line
        if not inside:
            found.append(line)
        inside = inside or BEGIN in line
    return found


def takes_over(path: str) -> str:
    """Why a new path would change how somebody else's program runs, or nothing."""
    parts = path.split("/")
    if ".git" in path.lower().split("/"):
        return "a repository inside the tree"
    if parts[-1] in HOOKS or parts[-1].endswith(".pth"):
        return f"{parts[-1]} changes how other programs start"
    module = parts[-1].partition(".")[0] if parts[-1].endswith((".py", ".so", ".pyd", ".pyc")) else ""
    package = parts[-2] if parts[-1].startswith("__init__.") and len(parts) > 1 else ""
    for name in (module, package):
        if name in _SHADOWED:
            return f"it would be imported in place of the module {name}"
    return ""
