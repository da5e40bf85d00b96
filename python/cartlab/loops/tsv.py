"""results.tsv as two tools write it, as text and as values: karpathy's five columns, and leo's seven below a
comment that names the metric's direction. Pure.

  karpathy  commit, the metric (the column is called after it), memory in GB, status, description
  leo       iteration, commit, metric, delta, guard, status, description; `# metric_direction: ...` first,
            further comments above the header are kept

Cells are text and are kept as they were written; a tab or a line's end inside one becomes a space.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cartlab.errors import BadInput
from cartlab.loops.protocol import direction_of

KARPATHY_STATUSES = ("keep", "discard", "crash")
LEO = ("iteration", "commit", "metric", "delta", "guard", "status", "description")
_DIRECTION = "# metric_direction:"
_WORDS = {"higher": "higher_is_better", "lower": "lower_is_better"}


@dataclass(frozen=True)
class Karpathy:
    """One row; metric and memory as they stand in the file."""

    commit: str
    metric: str
    memory: str
    status: str
    description: str


@dataclass(frozen=True)
class KarpathyTable:
    """metric: the name of the second column."""

    metric: str
    rows: tuple[Karpathy, ...]


@dataclass(frozen=True)
class Leo:
    """One row. commit: "-" where there is none; guard: "pass", "fail" or "-"."""

    iteration: str
    commit: str
    metric: str
    delta: str
    guard: str
    status: str
    description: str


@dataclass(frozen=True)
class LeoTable:
    """direction: "higher" | "lower" is better; comments: the other lines above the header."""

    direction: str
    rows: tuple[Leo, ...]
    comments: tuple[str, ...] = ()


def parse_karpathy(text: str) -> KarpathyTable:
    """The file's rows; BadInput names the line that cannot be read."""
    lines = _numbered(text)
    head = lines[0][1].split("\t") if lines else []
    if len(head) != 5 or head[0] != "commit" or head[3:] != ["status", "description"]:
        raise BadInput(
            "results.tsv must have the five columns commit, a metric, memory_gb, status and description; "
            f"found {' '.join(head) or 'nothing'!r}",
            "columns are separated by tabs",
        )
    rows = [Karpathy(*_cells(line, number, 5)) for number, line in lines[1:]]
    for (number, _), row in zip(lines[1:], rows, strict=True):
        if row.status not in KARPATHY_STATUSES:
            raise BadInput(
                f"results.tsv line {number}: status must be one of {', '.join(KARPATHY_STATUSES)}; found "
                f"{row.status!r}"
            )
    return KarpathyTable(head[1], tuple(rows))


def render_karpathy(table: KarpathyTable) -> str:
    """The file's text."""
    head = ("commit", table.metric, "memory_gb", "status", "description")
    rows = ((r.commit, r.metric, r.memory, r.status, r.description) for r in table.rows)
    return _lines([head, *rows])


def parse_leo(text: str) -> LeoTable:
    """The file's rows; BadInput names what is missing or the line that cannot be read."""
    direction, comments, rows = "", [], []
    header = False
    for number, line in _numbered(text):
        if line.startswith("#") and not header:
            if line.startswith(_DIRECTION):
                direction = direction_of(line.removeprefix(_DIRECTION))
            else:
                comments.append(line)
        elif not header:
            if tuple(line.split("\t")) != LEO:
                raise BadInput(
                    f"results.tsv line {number}: the columns must be {', '.join(LEO)}; found {line!r}",
                    "columns are separated by tabs",
                )
            header = True
        else:
            rows.append(Leo(*_cells(line, number, len(LEO))))
    if not direction or not header:
        missing = f"the comment `{_DIRECTION} ...`" if not direction else "its header"
        raise BadInput(f"results.tsv must have {missing}; found none", "the direction decides what is best")
    return LeoTable(direction, tuple(rows), tuple(comments))


def render_leo(table: LeoTable) -> str:
    """The file's text."""
    head = [f"{_DIRECTION} {_WORDS[table.direction]}", *table.comments]
    rows = ([getattr(row, name) for name in LEO] for row in table.rows)
    return "".join(f"{line}\n" for line in head) + _lines([LEO, *rows])


def _numbered(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, as a terminal has them; one of nothing but tabs is a row."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip(" ")]


def _cells(line: str, number: int, count: int) -> list[str]:
    cells = line.split("\t")
    if len(cells) != count:
        raise BadInput(
            f"results.tsv line {number}: expected {count} cells, found {len(cells)}",
            "a cell may hold no tab",
        )
    return cells


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows)
