"""From what people type to commits: branches, tags, short and full ids, HEAD~3, A..B, merge commits.

A name is verified before anything is planned. Where it names no commit the error says what was found instead.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from cartlab.errors import BadRef
from cartlab.model import Ref
from cartlab.sources import git

_SHALLOW = "this clone is shallow: fetch more history"
# More than any file system takes for a ref's name, and less than a screenful.
_LONGEST = 1000
_HEX = re.compile(r"[0-9a-fA-F]{4,64}")


def resolve(repo: Path, text: str) -> Ref:
    """The commit and tree that `text` names; BadRef (exit code 20) otherwise."""
    # `^REF` is git's word for "not what REF reaches", and comes back from rev-parse as no commit's id.
    odd = any((c.isspace() and c != " ") or c == "\0" for c in text)
    if not text or text.startswith(("-", "^")) or odd or len(text) > _LONGEST:
        raise BadRef(
            "a ref must be a branch, tag, commit or an expression such as HEAD~3; found "
            + (
                repr(text)
                if len(text) <= _LONGEST
                else f"{text[:40]!r} and {len(text) - 40:,} characters more"
            )
        )
    if ".." in text:
        raise BadRef(
            f"one ref was expected; {text!r} is a range", "ranges go where two refs are taken: screen A..B"
        )
    done = git.ask(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    if done.returncode != 0:
        raise _unknown(repo, text)
    commit = done.stdout.decode().split()[-1]
    return Ref(name=text, commit=commit, tree=git.line(repo, "rev-parse", "--verify", f"{commit}^{{tree}}"))


def is_ancestor(repo: Path, older: str, newer: str) -> bool:
    """Is commit `older` an ancestor of, or the same as, commit `newer`?"""
    return git.ask(repo, "merge-base", "--is-ancestor", older, newer).returncode == 0


@dataclass(frozen=True)
class Step:
    """One commit of a line: its id, its subject, and the paths that it changed against its first parent."""

    commit: str
    subject: str
    paths: tuple[str, ...]


def first_parents(repo: Path, good: Ref, bad: Ref) -> list[Step]:
    """The commits after `good` up to `bad` along first parents, oldest first. BadRef where `good` is not on
    that line.
    """
    out = git.tell(
        repo, "log", "--no-show-signature", "--first-parent", "--diff-merges=first-parent",
        "--name-only", "--no-renames", "-z", "--format=%x01%H%x02%P%x02%s%x02",
        f"{good.commit}..{bad.commit}",
    )  # fmt: skip
    steps, parents = [], ""
    for part in out.split(b"\x01")[1:]:
        commit, parents, subject, names = git.shown(part).split("\x02", 3)
        paths = tuple(name for name in names.strip("\0\n").split("\0") if name)
        steps.append(Step(commit, subject, paths))
    if parents.split()[:1] != [good.commit]:
        raise BadRef(
            f"{good.name!r} must be an earlier commit on the first-parent line of {bad.name!r}; it is not",
            f"`git log --first-parent --oneline {bad.name}` lists that line",
        )
    return steps[::-1]


def _unknown(repo: Path, text: str) -> BadRef:
    git.tell(repo, "rev-parse", "--git-dir")  # where git refuses the whole repository no name is at fault
    kind = git.ask(repo, "cat-file", "-t", text).stdout.decode().strip()
    if kind == "tag":
        kind = git.ask(repo, "cat-file", "-t", f"{text}^{{}}").stdout.decode().strip()
    if kind in ("tree", "blob"):
        return BadRef(f"{text!r} must name a commit; it names a {kind}", "give a branch, tag or commit")
    if _HEX.fullmatch(text):
        same = git.ask(repo, "rev-parse", f"--disambiguate={text}").stdout.decode().split()
        if same:
            short = ", ".join(name[:12] for name in same[:5])
            return BadRef(
                f"{text!r} must name one commit; {len(same)} objects begin with it: {short}", "add digits"
            )
        hint = _SHALLOW if _is_shallow(repo) else "fetch it, or look at `git log`"
        return BadRef(
            f"{text!r} looks like a commit id, but no object of that id is in this repository", hint
        )
    if git.ask(repo, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
        return BadRef(f"{text!r} must name a commit; this repository has none yet", "commit first")
    listed = git.ask(repo, "for-each-ref", "--format=%(refname:short)").stdout
    near = difflib.get_close_matches(text, os.fsdecode(listed).split(), 3, 0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`git branch -a` and `git tag` list what is here"
    if any(c in text for c in "~^") and _is_shallow(repo):
        hint = _SHALLOW
    return BadRef(f"{text!r} must name a commit; no branch, tag or commit of that name was found", hint)


def _is_shallow(repo: Path) -> bool:
    return git.ask(repo, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
