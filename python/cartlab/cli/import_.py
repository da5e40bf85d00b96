"""`import FILE`: results of another ledger, shown and marked as imported, never evidence."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from cartlab.cli.context import Context
from cartlab.errors import BadInput
from cartlab.outcome import Outcome
from cartlab.root import make_folder


@dataclass(frozen=True)
class Request:
    file: Path
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="what `export` wrote")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.file, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.exchange import import_export, read_export
    from cartlab.ledger import Ledger
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
    if request.dry_run:
        found = read_export(data)
        out.status, out.text = "planned", [f"would import from {len(found.events)} events"]
        return out
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    taken = import_export(ledger, data)
    ledger.project()
    out.recorded = bool(taken)
    out.report.outputs = ["events.jsonl", "results.tsv"] if taken else []
    out.details = {"imported": taken}
    out.text = [f"imported {len(taken)} attempts" + ("" if taken else ": all were here before")]
    return out
