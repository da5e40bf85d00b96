"""`import FILE`: results of another ledger, or rows of another tool's table, shown and marked as imported,
never evidence.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.cli.context import Context
from cartlab.errors import BadInput
from cartlab.outcome import Outcome
from cartlab.root import make_folder
from cartlab.words import counted

# importing.FORMATS, whose module brings more along; a test holds them equal.
FORMS = ("auto", "ledger", "experiences", "journal", "karpathy", "leo", "experiments", "board", "speed")


@dataclass(frozen=True)
class Request:
    file: Path
    form: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="what `export` wrote, or another tool's file")
    parser.add_argument(
        "--as",
        dest="form",
        choices=FORMS,
        default="auto",
        help="what the file is: an export, experiences.md, autoresearch.jsonl or .auto/log.jsonl (journal), "
        "results.tsv (karpathy, leo, or a speed controller's), EXPERIMENTS.md, board.jsonl (default: by its "
        "beginning)",
    )


def translate(space: argparse.Namespace) -> Request:
    return Request(space.file, space.form, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.exchange import import_export, read_export
    from cartlab.ledger import Ledger
    from cartlab.loops import importing
    from cartlab.round import round_part

    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = [str(request.file)]
    try:
        data = (context.cwd / request.file).read_bytes()
    except OSError as error:
        raise BadInput(
            f"{request.file} could not be read: {error.strerror}", "give the path of an export"
        ) from None
    text = data.decode("utf-8", "replace")
    form = (importing.detect(text) or "ledger") if request.form == "auto" else request.form
    if form != "ledger":
        return _rows(context, out, request, importing.read(text, form), form)
    if request.dry_run:
        found = read_export(data)
        out.status, out.text = "planned", [f"would import from {counted(len(found.events), 'event')}"]
        return out
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    taken = import_export(ledger, data)
    ledger.project()
    out.recorded = bool(taken)
    out.report.outputs = ["events.jsonl", "results.tsv"] if taken else []
    out.details = {"imported": taken}
    out.text = [f"imported {counted(len(taken), 'attempt')}" + ("" if taken else ": all were here before")]
    return out


def _rows(context: Context, out: Outcome, request: Request, rows: Any, form: str) -> Outcome:
    """Rows of another tool's file."""
    from cartlab.cli import loopdesk
    from cartlab.loops import importing

    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    out.details = {"format": form, "rows": len(rows), "statuses": counts}
    if request.dry_run:
        out.status, out.text = "planned", [f"would import {counted(len(rows), 'row')} of {form}"]
        return out
    ledger = loopdesk.open_ledger(context)
    taken = importing.take_in(ledger, rows, form, request.file.name)
    ledger.project()
    out.recorded = bool(taken)
    out.report.outputs = ["events.jsonl", "results.tsv"] if taken else []
    out.details |= {"imported": taken}
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    out.text = [
        f"imported {len(taken)} of {len(rows)} rows as {form}" + (f" ({told})" if told else ""),
        "they are shown and never count: nobody here measured them",
    ]
    return out
