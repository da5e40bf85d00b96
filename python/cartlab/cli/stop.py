"""`stop`: the user asks to stop. An open round is paused by that, until `round resume`; a research loop that
runs ends after its current round.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartlab.cli.context import Context
from cartlab.outcome import Outcome

if TYPE_CHECKING:
    from cartlab.ledger import Ledger


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
    loop = _loop(ledger, request) if ledger is not None else None
    if loop is not None:
        out.text = [
            f"the loop {loop} ends after its current round or wave; the command that ran it takes it up again"
        ]
        out.recorded = not request.dry_run
        out.status = "planned" if request.dry_run else "ok"
        out.report.next = context.line("show")
    elif ledger is None or found is None:
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


def _loop(ledger: Ledger, request: Request) -> str | None:
    """Ask a running loop to end; its id, None where none runs."""
    from cartlab.loops.desk import newest

    goal = newest(ledger.events())
    if goal is None or goal.state != "running":
        return None
    if not request.dry_run:
        ledger.append(
            "goal", None, {"goal": goal.id, "op": "stop", "reason": request.reason or "asked to stop"}
        )
    return goal.id
