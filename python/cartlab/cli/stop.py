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
    from pathlib import Path

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
    loops = _loops(ledger, root, request) if ledger is not None else []
    if loops:
        out.text = [
            f"the loop {one} ends after its current round or wave; the command that ran it takes it up again"
            for one in loops
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


def _loops(ledger: Ledger, root: Path, request: Request) -> list[str]:
    """Ask the running loops to end, each that a process works on and the newest; their ids."""
    from cartlab.loops import stall
    from cartlab.loops.desk import going

    known = going(ledger.events())
    asked = [goal.id for goal in known if goal is known[-1] or stall.held(root, goal.id)]
    for goal in () if request.dry_run else asked:
        ledger.append("goal", None, {"goal": goal, "op": "stop", "reason": request.reason or "asked to stop"})
    return asked
