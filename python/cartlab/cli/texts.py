"""What `note` and `idea` have in common: one stamped block below what people wrote, and its event."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.root import make_folder


@dataclass(frozen=True)
class Request:
    text: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to append")


def translate(space: argparse.Namespace) -> Request:
    text = " ".join(space.text).strip()
    if not text:
        raise UsageError("expected a text, found none", 'give it in quotes: "what was learned"')
    return Request(text, space.dry_run)


def append(context: Context, request: Request, file: str, kind: str) -> Outcome:
    """Append to `file`; no byte that is there changes."""
    from cartlab.ledger import Ledger
    from cartlab.round import round_part

    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    if request.dry_run:
        out.status, out.text = "planned", [f"would append to {root / file}"]
        return out
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    event = ledger.note(file, request.text, kind=kind)
    ledger.project()
    out.recorded = True
    out.report.outputs = [file]
    out.details = {"seq": event["seq"], "file": str(root / file)}
    out.text = [f"appended to {root / file} as event {event['seq']}"]
    return out
