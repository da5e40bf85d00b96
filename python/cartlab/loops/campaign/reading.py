"""The campaign's Markdown documents read back, as far as they are a form: what was rendered, and what other
tools or people wrote in the same form. Pure.

EXPERIMENTS.md and board.jsonl have their readers beside their writers (tables, board), BUDGET.md in budget,
IDEA_ANGLES.md in gates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cartlab.loops.campaign import tables
from cartlab.loops.campaign.board import UNBEATEN, Leader
from cartlab.loops.campaign.folder import BEGIN, END
from cartlab.loops.campaign.tables import Row

_BEST = re.compile(r"Best verified configuration: experiment (\S+),")


@dataclass(frozen=True)
class Results:
    """RESULTS.md. best: the experiment that it names, None where it names none; unbeaten: does it say that
    the baseline is; rows: its comparison.
    """

    best: str | None
    unbeaten: bool
    rows: tuple[Row, ...]


def leaderboard(text: str) -> tuple[Leader, ...]:
    """The rows of leaderboard.md; none where it says that there is no winner. BadInput names a bad line."""
    if not any(line.lstrip().startswith("|") for line in text.splitlines()):
        return ()
    out = []
    for _, cells in tables.cells_of(text, ("rank", "exp_id"), "leaderboard.md"):
        value = next((cells[key] for key in cells if key not in Leader._fields), cells.get("value", ""))
        out.append(Leader(**{key: cells.get(key, "") for key in Leader._fields} | {"value": value}))
    return tuple(out)


def findings(text: str) -> dict[str, tuple[str, ...]]:
    """FINDINGS.md: the bullets of each section, rendered ones and people's, in their order."""
    out: dict[str, list[str]] = {}
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("## "):
            section = line[3:].strip()
            out.setdefault(section, [])
        elif section and line.startswith("- ") and line not in (BEGIN, END):
            out[section].append(line[2:].strip())
    return {name: tuple(bullets) for name, bullets in out.items()}


def results(text: str) -> Results:
    """RESULTS.md; BadInput where its comparison cannot be read."""
    hit = _BEST.search(text)
    has_table = any(line.lstrip().startswith("| exp_id") for line in text.splitlines())
    return Results(hit[1] if hit else None, UNBEATEN in text, tables.parse(text) if has_table else ())
