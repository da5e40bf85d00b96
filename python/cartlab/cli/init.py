"""`init`: make the root's files where they are missing. A file that is there is never changed."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.outcome import Outcome
from cartlab.root import make_folder

FILES = ("events.jsonl", "results.tsv", "current.json", "ideas.md", "scratchpad.md")


@dataclass(frozen=True)
class Request:
    dry_run: bool = False
    repair: bool = False


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair",
        action="store_true",
        help="set a damaged line of events.jsonl and all after it aside, in a file beside it",
    )


def translate(space: argparse.Namespace) -> Request:
    return Request(space.dry_run, space.repair)


def run(context: Context, request: Request) -> Outcome:
    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = [f"root {root} ({context.root.source})"]
    out.report.next = context.line("status")
    if request.dry_run:
        missing = [name for name in FILES if not (root / name).exists()]
        out.status = "planned"
        out.text = [f"would make in {root}: {', '.join(missing) or 'nothing, all is there'}"]
        return out
    from cartlab.ledger import Ledger
    from cartlab.round import round_part

    make_folder(root)
    ledger = Ledger.open(root, repair=request.repair, round_part=round_part)
    for report in ledger.reports:
        context.talk.warn(report)
    made = ledger.init()
    out.report.outputs = made or ["nothing new"]
    out.details = {"made": made}
    out.text = [
        f"root: {root} ({context.root.source})",
        f"made: {', '.join(made) or 'nothing, all was there'}",
    ]
    return out
