"""What has to be there before a campaign plans, and before it starts an experiment.

A gate names the document, and the line where there is one. They read people's documents and write nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cartlab.errors import NotLegalNow
from cartlab.loops.campaign.folder import PREVIOUS_WORK, Folder, without_block
from cartlab.loops.campaign.hypotheses import ANGLES, is_source

BEFORE_RUN = ("COMPUTE.md", "DATA.md", "BUDGET.md")
BEFORE_PLAN = ("TASK.md", "PREVIOUS_WORK.md", "DEEPRESEARCH.md", "IDEA_ANGLES.md")
_COMMIT = re.compile(r"\bcommit [0-9a-f]{6,40}\b")
_NOTHING = re.compile(r"none\b.*", re.IGNORECASE)
_ANGLE = re.compile(r"#{2,}\s+(?:angle\s+)?([A-Z])\s*(?:[:.)\u2013\u2014-]\s*(.*))?", re.IGNORECASE)


def may_run(folder: Folder) -> None:
    """NotLegalNow where compute, data or the budget was never settled: no experiment starts before."""
    for name in BEFORE_RUN:
        if folder.read(name) is None:
            raise NotLegalNow(
                f"no experiment starts before {', '.join(BEFORE_RUN)} exist; there is no {name} in "
                f"{folder.path}",
                "`campaign init` writes what is missing",
            )


def may_plan(folder: Folder) -> dict[str, str]:
    """The angles with those that IDEA_ANGLES.md adds. NotLegalNow names the document and line that is
    missing or not cited.
    """
    texts = {name: folder.read(name) for name in BEFORE_PLAN}
    empty = [name for name, text in texts.items() if text is None or not any(_written(text))]
    if empty:
        found = "there is none" if all(texts[name] is None for name in empty) else "nothing is written"
        raise NotLegalNow(
            f"planning needs {', '.join(empty)}; {found} in {folder.path}",
            "research comes before hypotheses: write it, then plan",
        )
    _previous_work(folder.read("PREVIOUS_WORK.md") or "")
    _cited("DEEPRESEARCH.md", folder.read("DEEPRESEARCH.md") or "", commits=False)
    angles, _ = idea_angles(folder.read("IDEA_ANGLES.md") or "")
    return angles


def idea_angles(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The angles, those of the document added; and the ideas below each, as written."""
    angles, ideas, letter = dict(ANGLES), dict[str, list[str]](), ""
    for _, line in _lines(text):
        if line.startswith("#"):
            hit = _ANGLE.fullmatch(line)
            letter = hit[1].upper() if hit else ""
            if hit:
                angles.setdefault(letter, (hit[2] or "").strip() or f"angle {letter}")
        elif letter and (idea := _bullet(line)) and not _NOTHING.fullmatch(idea):
            ideas.setdefault(letter, []).append(idea)
    return angles, ideas


def _previous_work(text: str) -> None:
    found: dict[str, int] = {}
    below: dict[str, int] = {}
    heading = ""
    for number, line in _lines(text):
        if line.startswith("## "):
            heading = line[3:].strip()
            found[heading.casefold()] = number
        elif _bullet(line):
            below[heading.casefold()] = below.get(heading.casefold(), 0) + 1
    for name in PREVIOUS_WORK:
        if name.casefold() not in found:
            raise NotLegalNow(
                f"PREVIOUS_WORK.md must have the heading `## {name}`; it has none",
                "all five: " + ", ".join(PREVIOUS_WORK),
            )
        if not below.get(name.casefold()):
            raise NotLegalNow(
                f"PREVIOUS_WORK.md line {found[name.casefold()]}: `## {name}` has no bullet below it",
                "write `- none` where nothing was found",
            )
    _cited("PREVIOUS_WORK.md", text, commits=True)


def _cited(name: str, text: str, commits: bool) -> None:
    bullets = 0
    for number, line in _lines(text):
        said = _bullet(line)
        if said is None:
            continue
        bullets += 1
        bare = commits and (
            _NOTHING.fullmatch(said) or _COMMIT.search(said) or re.search(r"\(source: ", said)
        )
        if not bare and not is_source(said):
            where = "a URL, file:line or commit" if commits else "a URL or file:line"
            raise NotLegalNow(
                f"{name} line {number}: every bullet must have {where}; found {said[:80]!r}", "cite it"
            )
    if not bullets:
        raise NotLegalNow(
            f"{name} must have bullets; it has none", "one claim a bullet, each with its source"
        )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments; a comment of several lines leaves its numbers."""
    blank = without_block(text)
    blank = re.sub(r"<!--.*?-->", lambda hit: "\n" * hit[0].count("\n"), blank, flags=re.DOTALL)
    for number, line in enumerate(blank.splitlines(), 1):
        yield number, line.strip()


def _bullet(line: str) -> str | None:
    hit = re.fullmatch(r"[-*+]\s+(.+)", line)
    return None if hit is None else hit[1].strip()


def _written(text: str) -> Iterator[str]:
    """What a person wrote: lines that are neither empty nor headings."""
    return (line for _, line in _lines(text) if line and not line.startswith("#"))
