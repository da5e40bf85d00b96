"""Rows of other tools' files into a ledger, as what they are: `import` events that never count.

Each row keeps what the file says of it, and gets the ledger's word for its status. No number of theirs was
measured here, so none is the value of a goal, a best so far, or evidence; they are shown and searched. Taking
in the same file twice changes nothing. To read a further format: a row in FORMATS and a sign in `detect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.ledger.columns import unescape
from cartlab.loops import experiences, journal_file, tsv
from cartlab.loops.campaign import board, tables
from cartlab.model import STATUSES, digest_of, parsed_json


@dataclass(frozen=True)
class Taken:
    """One row of a file. status: the ledger's word; value: None where the file has none that is a number;
    native: the row as the file has it; cells: further cells of results.tsv that it fills.
    """

    status: str
    value: float | None
    commit: str
    description: str
    native: dict[str, Any]
    cells: Mapping[str, Any] = field(default_factory=dict)


# A word of a file -> a status of the ledger. What failed in a way that a word does not tell has crashed.
_KARPATHY = {"keep": "keep", "discard": "discard", "crash": "crashed"}
_JOURNAL = {**_KARPATHY, "checks_failed": "checks_failed"}
_LEO = {
    **_KARPATHY,
    "baseline": "baseline",
    "keep (reworked)": "keep",
    "discard (guard fail)": "checks_failed",
    "no-op": "no_change",
    "metric-error": "metric_error",
    "hook-blocked": "compliance_failed",
    "blocked": "busy_invalid",
    "drift/blocked": "inconclusive",
}
_EXPERIENCES = {
    "improved": "keep",
    "not_improved": "discard",
    "parity_violation": "parity_violation",
    "—": "baseline",
    "": "inconclusive",
}


def _number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if abs(value) != float("inf") and value == value else None


def from_karpathy(text: str) -> list[Taken]:
    """karpathy's results.tsv. A crash has the metric 0 there, which is none."""
    return [
        Taken(
            _KARPATHY[row.status],
            None if row.status == "crash" else _number(row.metric),
            row.commit,
            row.description,
            asdict(row),
        )
        for row in tsv.parse_karpathy(text).rows
    ]


def from_leo(text: str) -> list[Taken]:
    """leo's results.tsv."""
    table = tsv.parse_leo(text)
    return [
        Taken(
            _LEO.get(row.status.lower(), "inconclusive"),
            None if row.status.lower() == "crash" else _number(row.metric),
            row.commit.strip("-"),
            row.description,
            {**asdict(row), "direction": table.direction},
        )
        for row in table.rows
    ]


def from_journal(text: str) -> list[Taken]:
    """autoresearch.jsonl, and `.auto/log.jsonl`, which has the same lines. BadInput for a damaged line."""
    journal = journal_file.parse(text)
    if journal.damaged:
        raise BadInput(f"line {journal.damaged[0]} cannot be read; nothing was taken in", "mend the line")
    out = []
    for line in journal.results:
        failed = line.status == "crash"
        native = {**asdict(line), "asi": dict(line.asi), "other": dict(line.other)}
        out.append(
            Taken(
                _JOURNAL[line.status],
                None if failed else line.metric,
                line.commit.strip("0") and line.commit,
                line.description,
                native,
            )
        )
    return out


def from_experiences(text: str) -> list[Taken]:
    """experiences.md."""
    return [
        Taken(
            "compliance_failed" if row.compliance.startswith("❌ files") else _EXPERIENCES[row.verdict],
            _number(row.result),
            "",
            row.strategy,
            asdict(row),
        )
        for row in experiences.parse(text).rows
        if row.verdict in _EXPERIENCES
    ]


def from_experiments(text: str) -> list[Taken]:
    """EXPERIMENTS.md; rows that wait or run have no result and are left out."""
    out = []
    for row in tables.parse(text):
        if row.status not in ("queued", "running"):
            words = {"yes": "keep", "n/a": "baseline"}
            status = words.get(row.verified, "discard") if row.status == "passed" else "crashed"
            status = "unverified" if row.status == "dropped" else status
            out.append(Taken(status, _number(row.metric), "", row.change or row.note, asdict(row)))
    return out


def from_board(text: str) -> list[Taken]:
    """board.jsonl."""
    out = []
    for row in board.parse(text):
        kept = "keep" if row.verified else "unverified"
        status = kept if row.keep else "crashed" if row.metric is None else "discard"
        native = {**asdict(row), "other": dict(row.other)}
        out.append(Taken(status, row.metric, "", row.note or row.exp_id, native))
    return out


# Of a speed controller's row, what is text; a ratio of its own is no estimate of ours.
_SPEED_CELLS = ("baseline_commit", "benchmark_tier", "workload_hash", "median_pair_ratio", "mean_pair_ratio")


def from_speed(text: str) -> list[Taken]:
    """A speed controller's results.tsv: the document's columns in any number and order, by their names."""
    lines = text.split("\n")
    head = lines[0].rstrip("\r").split("\t")
    missing = [name for name in ("commit", "status", "description") if name not in head]
    if missing:
        raise BadInput(f"results.tsv must have the column {missing[0]}; found {lines[0][:200]!r}")
    out = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = [unescape(cell) for cell in line.rstrip("\r").split("\t")]
        if len(cells) != len(head):
            raise BadInput(
                f"results.tsv line {number}: expected {len(head)} cells, found {len(cells)}",
                "a cell may hold no tab",
            )
        row = dict(zip(head, cells, strict=True))
        status = row["status"] if row["status"] in STATUSES else "inconclusive"
        value = _number(row.get("median_pair_ratio"))
        kept: dict[str, Any] = {name: row[name] for name in _SPEED_CELLS[:3] if row.get(name)}
        kept |= {name: found for name in _SPEED_CELLS[3:] if (found := _number(row.get(name))) is not None}
        out.append(Taken(status, value, row["commit"], row["description"], dict(row), kept))
    return out


FORMATS: dict[str, Callable[[str], list[Taken]]] = {
    "experiences": from_experiences,
    "journal": from_journal,
    "karpathy": from_karpathy,
    "leo": from_leo,
    "experiments": from_experiments,
    "board": from_board,
    "speed": from_speed,
}


def detect(text: str) -> str | None:
    """The format that a file shows by its beginning, None where it is none of ours."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    first = _object(lines[0])
    if first is not None:
        if first.get("type") == "config" or {"run", "status"} <= set(first):
            return "journal"
        return "board" if {"exp_id", "keep"} <= set(first) else None
    if lines[0].startswith("#") and any(line.split("\t") == list(tsv.LEO) for line in lines):
        return "leo"
    if lines[0].startswith("commit\t"):
        return "karpathy"
    if {"commit", "status", "benchmark_tier"} <= set(lines[0].split("\t")):
        return "speed"
    heads = [line for line in lines if line.startswith("|")][:1]
    cells = [cell.strip().lower() for cell in heads[0].strip("|").split("|")] if heads else []
    if cells == [name.lower() for name in experiences.COLUMNS]:
        return "experiences"
    return "experiments" if {"exp_id", "status"} <= set(cells) else None


def _object(line: str) -> dict[str, Any] | None:
    try:
        body = parsed_json(line)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def read(text: str, form: str) -> list[Taken]:
    """The file's rows in that format."""
    if form not in FORMATS:
        raise BadInput(f"expected one of {', '.join(FORMATS)}; found {form!r}")
    return FORMATS[form](text)


def take_in(ledger: Ledger, rows: Iterable[Taken], form: str, name: str) -> list[str]:
    """One `import` event a row that is not there yet; returns their names."""
    known = {event["body"].get("origin") for event in ledger.events() if event["type"] == "import"}
    taken = []
    for at, row in enumerate(rows, 1):
        origin = digest_of([form, at, row.native])
        if origin in known:
            continue
        known.add(origin)
        attempt = f"imported-{origin[:8]}-{form}-{at}"
        ledger.append(
            "import",
            attempt,
            {
                "source": f"{name}, row {at}",
                "format": form,
                "origin": origin,
                "status": row.status,
                "value": row.value,
                "native": row.native,
                "row": {
                    **row.cells,
                    "commit": row.commit or None,
                    "mode": form,
                    "decision": STATUSES[row.status].decision,
                    "status": row.status,
                    "description": row.description,
                },
            },
        )
        taken.append(attempt)
    return taken
