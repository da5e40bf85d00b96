"""A session's files: where they are, and how they are written from the ledger.

The lines, the document's block and missing scripts are views; all else in them is people's text and is left.
"""

from __future__ import annotations

from pathlib import Path

from cartlab import disk
from cartlab.loops import journal_file, manifest, trees
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal
from cartlab.loops.journal import document, session
from cartlab.sources import git


def place_of(desk: Desk, goal: Goal) -> Path:
    """Where the session's files are: in the root, or in the worktree where they are committed."""
    if session.terms_of(goal).commit:
        return desk.worktree(goal).path
    return desk.root / "journal" / goal.id


def render(desk: Desk, goal: Goal) -> None:
    """Write the session's files: the lines and the block of the document from the ledger, all else only where
    it is missing, because it is people's text.
    """
    terms, place = session.terms_of(goal), place_of(desk, goal)
    place.mkdir(parents=True, exist_ok=True)
    lines = journal_file.render(session.journal_of(desk.ledger.events(), goal.id))
    for path in (place / session.LINES, *(Path(name) for name in goal.body.get("copies") or ())):
        _write(path, lines)
    about = place / session.DOCUMENT
    if about.is_file():
        text = about.read_text(encoding="utf-8", errors="replace")
    else:
        text = _committed(desk, goal, session.DOCUMENT) or document.fresh(terms)
    if not (place / session.IDEAS).exists() and (waiting := _committed(desk, goal, session.IDEAS)):
        _write(place / session.IDEAS, waiting)
    _write(about, document.with_tried(text, document.tried(goal)))
    for name, body in ((session.SCRIPT, terms.script), (session.CHECKS, terms.checks)):
        if body and not (place / name).exists():
            _write(place / name, body)
            (place / name).chmod(0o755)


def _committed(desk: Desk, goal: Goal, name: str) -> str:
    """A session file that the repository has of an earlier session; "" where it has none."""
    done = git.ask(desk.repo, "cat-file", "blob", f"{goal.accepted}:{name}")
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _write(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace_bytes(disk.current(), path, text.encode("utf-8"))


def edited_scripts(desk: Desk, goal: Goal) -> list[str]:
    """The session's scripts that differ from what the ledger pinned."""
    terms, place = session.terms_of(goal), place_of(desk, goal)
    return [
        name
        for name, body in ((session.SCRIPT, terms.script), (session.CHECKS, terms.checks))
        if (place / name).is_file() and (place / name).read_text(encoding="utf-8", errors="replace") != body
    ]


def with_files(desk: Desk, goal: Goal, tree: str) -> str:
    """A tree with the session's files as they are now in place of what it has of them."""
    place = place_of(desk, goal)
    base = dict(trees.manifest_of(desk.repo, tree))
    for name in session.FILES:
        base.pop(name, None)
        if (place / name).is_file() and not (place / name).is_symlink():
            base[name] = manifest.read(place / name)
    return trees.write(desk.repo, place, base, goal.accepted)
