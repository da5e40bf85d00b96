"""experiences.md: the supervisor's table of rounds, as text and as values. A view: the ledger is the truth.

Form: three header lines and a table of seven columns. The reader also takes the older header that lists
mode, best_commit and best_state; those lines are kept as they are. A cell is one line; a bar in it is
escaped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cartlab.errors import BadInput

COLUMNS = ("Round", "Compliance", "Result", "Verdict", "Strategy", "Insight", "Note")
_BEST = re.compile(r"best: (?P<metric>.+?) = (?P<value>\S+) \(R(?P<round>\d+)\)")
_ROUNDS = re.compile(r"rounds: (?P<done>\d+) / (?P<max>\d+)")
_STATUS = re.compile(r"status: (?P<status>\w+)")
_HEADER = re.compile(r"[a-z_]+: .*")


@dataclass(frozen=True)
class Row:
    """One round. All cells are text; an empty verdict means that it has none yet."""

    round: int
    compliance: str = ""
    result: str = ""
    verdict: str = ""
    strategy: str = ""
    insight: str = ""
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """The seven cells in the order of the columns."""
        return (
            str(self.round),
            self.compliance,
            self.result,
            self.verdict,
            self.strategy,
            self.insight,
            self.note,
        )


@dataclass(frozen=True)
class Experiences:
    """The whole file. best: the best value's text, as the evaluation printed it; other: further header
    lines.
    """

    metric: str
    best: str
    best_round: int
    rounds: int
    max_rounds: int
    status: str
    rows: tuple[Row, ...]
    other: tuple[str, ...] = field(default=())

    def row(self, number: int) -> Row | None:
        """The row of one round, or None."""
        return next((row for row in self.rows if row.round == number), None)


def one_line(text: str) -> str:
    """A text as one printable line, the way it comes back from a cell."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def escape(text: str) -> str:
    """A cell's text: one line, no control characters, bars and backslashes escaped."""
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|")


def _unescape(cell: str) -> str:
    return re.sub(r"\\([\\|])", r"\1", cell.strip())


def table(rows: tuple[Row, ...]) -> list[str]:
    """The table's lines, its head included."""
    rule = "|" + "|".join("-" * (len(name) + 2) for name in COLUMNS) + "|"
    head = "| " + " | ".join(COLUMNS) + " |"
    return [head, rule, *("| " + " | ".join(map(escape, row.cells())) + " |" for row in rows)]


def render(value: Experiences) -> str:
    """The file's text."""
    lines = [
        "# Experiences",
        "",
        f"best: {value.metric} = {value.best} (R{value.best_round})",
        f"rounds: {value.rounds} / {value.max_rounds}",
        f"status: {value.status}",
        *value.other,
        "",
        *table(value.rows),
    ]
    return "\n".join(lines) + "\n"


def parse(text: str) -> Experiences:
    """The values again; BadInput names what is missing or the line that cannot be read."""
    found: dict[str, re.Match[str]] = {}
    other: list[str] = []
    rows: list[Row] = []
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("|"):
            cells = _split(line)
            if not in_table:
                if tuple(cells) != COLUMNS:
                    raise BadInput(
                        f"experiences.md line {number}: the columns must be {' | '.join(COLUMNS)}; "
                        f"found {line!r}"
                    )
                in_table = True
            elif not set("".join(cells)) <= set("-: "):
                rows.append(_row(cells, number))
        elif not in_table:
            for name, pattern in (("best", _BEST), ("rounds", _ROUNDS), ("status", _STATUS)):
                if hit := pattern.fullmatch(line):
                    found[name] = hit
                    break
            else:
                if _HEADER.fullmatch(line):
                    other.append(line)
    missing = [name for name in ("best", "rounds", "status") if name not in found]
    if missing or not in_table:
        what = f"the line `{missing[0]}: ...`" if missing else "its table"
        raise BadInput(
            f"experiences.md must have {what}; found none",
            "`handoff` writes the file; delete a broken one to have it rendered again",
        )
    return Experiences(
        found["best"]["metric"],
        found["best"]["value"],
        int(found["best"]["round"]),
        int(found["rounds"]["done"]),
        int(found["rounds"]["max"]),
        found["status"]["status"],
        tuple(rows),
        tuple(other),
    )


def _split(line: str) -> list[str]:
    """The cells of a table's line: bars divide it, escaped ones do not."""
    cells, cell, escaped = [], "", False
    for c in line.strip().removeprefix("|"):
        if c == "|" and not escaped:
            cells.append(_unescape(cell))
            cell = ""
        else:
            cell += c
        escaped = c == "\\" and not escaped
    return cells if not cell.strip() else [*cells, _unescape(cell)]


def _row(cells: list[str], number: int) -> Row:
    if len(cells) != len(COLUMNS) or not cells[0].isdecimal():
        raise BadInput(
            f"experiences.md line {number}: expected {len(COLUMNS)} cells and a round's number first; "
            f"found {len(cells)} cells starting with {cells[0]!r}",
            "escape a bar inside a cell as \\|",
        )
    return Row(int(cells[0]), *cells[1:])
