"""EXPERIMENTS.md: one row an experiment in ten columns, as text and as values. A view of the ledger.

A bar, a backslash and a line's end in a cell are escaped, so that every text comes back as it was. The reader
takes a table that others wrote: columns in any order, their names with an explanation in brackets, columns
that are missing or unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from cartlab.errors import BadInput
from cartlab.loops.campaign.records import BASELINE_ID, Campaign, Experiment

COLUMNS = {
    "exp_id": "exp_id",
    "angle": "angle",
    "change": "change (one line)",
    "source": "source (url)",
    "status": "status",
    "metric": "metric",
    "delta": "delta",
    "verified": "verified",
    "seconds": "seconds",
    "note": "note",
}
STATUSES = ("queued", "running", "passed", "failed", "dropped")
VERIFIED = ("yes", "no", "n/a", "")
NOTHING = "\u2014"


@dataclass(frozen=True)
class Row:
    """One row; all cells are text, as they stand in the table."""

    exp_id: str
    angle: str = ""
    change: str = ""
    source: str = ""
    status: str = "queued"
    metric: str = ""
    delta: str = ""
    verified: str = ""
    seconds: str = ""
    note: str = ""


def escape(text: str) -> str:
    """A cell's text: no control characters, line ends as <br>, bars and backslashes escaped."""
    kept = "".join(c for c in text.replace("\r\n", "\n") if c.isprintable() or c == "\n").strip()
    kept = kept.replace("\\", "\\\\").replace("|", "\\|").replace("<br>", "\\<br>")
    return kept.replace("\n", "<br>")


def _unescape(cell: str) -> str:
    return re.sub(r"\\([\\|<])|<br>", lambda hit: hit[1] or "\n", cell)


def lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table's lines."""
    rule = "|" + "|".join("-" * (len(name) + 2) for name in head) + "|"
    body = ("| " + " | ".join(map(escape, row)) + " |" for row in rows)
    return ["| " + " | ".join(head) + " |", rule, *body]


def render(rows: Iterable[Row]) -> str:
    """The table's text."""
    cells = ([getattr(row, key) for key in COLUMNS] for row in rows)
    return "\n".join(lines(tuple(COLUMNS.values()), cells)) + "\n"


def parse(text: str) -> tuple[Row, ...]:
    """The rows of the first table that has exp_id and status; BadInput names the line that cannot be read."""
    rows: list[Row] = []
    known = {item.name for item in fields(Row)}
    for number, cells in cells_of(text, ("exp_id", "status"), "EXPERIMENTS.md"):
        found = {key: cell for key, cell in cells.items() if key in known}
        if found["status"] not in STATUSES or found.get("verified", "") not in VERIFIED:
            raise BadInput(
                f"EXPERIMENTS.md line {number}: status must be one of {', '.join(STATUSES)} and verified "
                f"yes, no or n/a; found {found['status']!r} and {found.get('verified', '')!r}"
            )
        rows.append(Row(**found))
    return tuple(rows)


def cells_of(text: str, needed: Sequence[str], name: str) -> list[tuple[int, dict[str, str]]]:
    """The first table that has the needed columns, each row with its line's number; a column's key is the
    first word of its head. BadInput where there is no such table, or a row has other cells than its head.
    """
    keys: list[str] = []
    rows: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            if keys:
                break
            continue
        cells = split(line)
        if not keys:
            names = [re.split(r"[\s(]", cell.strip().lower())[0] for cell in cells]
            keys = names if set(needed) <= set(names) else []
        elif not set("".join(cells)) <= set("-: "):
            if len(cells) != len(keys):
                raise BadInput(
                    f"{name} line {number}: expected {len(keys)} cells, found {len(cells)}",
                    "escape a bar inside a cell as \\|",
                )
            rows.append((number, dict(zip(keys, cells, strict=True))))
    if not keys:
        raise BadInput(f"{name} must have a table with the columns {' and '.join(needed)}; it has none")
    return rows


def split(line: str) -> list[str]:
    """The cells of a table's line: bars divide it, escaped ones do not."""
    parts, cell, escaped = [], "", False
    for c in line.strip().removeprefix("|"):
        if c == "|" and not escaped:
            parts.append(cell)
            cell = ""
        else:
            cell += c
        escaped = c == "\\" and not escaped
    parts += [cell] if cell.strip() else []
    return [_unescape(part.strip()) for part in parts]


# --- from the ledger ------------------------------------------------------------------------------


def number(value: float | None, signed: bool = False) -> str:
    """A value as the tables have it; "" for none."""
    if value is None:
        return ""
    return f"{value:+.6g}" if signed else f"{value:.6g}"


def rows_of(campaign: Campaign) -> tuple[Row, ...]:
    """Row 0 for the baseline, then every experiment that went to compute or waits for it."""
    rows = [_baseline(campaign)] if campaign.baseline else []
    return (*rows, *(row_of(one) for one in campaign.experiments if one.planned))


def _baseline(campaign: Campaign) -> Row:
    return Row(BASELINE_ID, NOTHING, "baseline", NOTHING, "passed", campaign.baseline, "0", "n/a")


def row_of(one: Experiment) -> Row:
    """One experiment's row."""
    decision = one.decision
    return Row(
        one.exp_id,
        one.hypothesis.angle,
        one.hypothesis.change,
        one.hypothesis.source,
        one.status,
        str(decision.get("text") or ""),
        number(one.delta, signed=True),
        one.verified,
        f"{one.seconds:.1f}" if one.seconds else "",
        str(decision.get("note") or one.not_run or one.pruned or ""),
    )
