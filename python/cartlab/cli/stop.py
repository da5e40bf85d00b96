"""`stop`: the user asks to stop; an open round is paused by that, until `round resume`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    reason: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", metavar="TEXT", help="why")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.reason, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.ledger import Ledger
    from cartlab.pipeline.rounds import active
    from cartlab.round import pause, round_part

    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.phase, out.report.decision = "pause", "pause"
    out.report.next = context.line("round resume --reason TEXT")
    writes = not request.dry_run
    ledger = Ledger.open(root, mend=writes, round_part=round_part) if root.is_dir() else None
    found = active(ledger) if ledger is not None else None
    if ledger is None or found is None:
        out.text = ["no round is open: there is nothing to pause"]
        out.report.next = context.line("next")
    elif request.dry_run:
        out.status, out.text = "planned", [f"would pause round {found.id}"]
    else:
        pause(ledger, "user_stop", request.reason)
        ledger.project()
        out.recorded = True
        out.report.outputs = ["events.jsonl", "current.json"]
        out.text = [f"round {found.id} is paused by user_stop"]
    return out
