"""`doctor`: what this machine does to measurements, and what can be done about it. Changes and records
nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartlab.cli.context import Context
from cartlab.errors import CartlabError
from cartlab.outcome import Outcome

if TYPE_CHECKING:
    from cartlab.advice import Finding


@dataclass(frozen=True)
class Request:
    pass


_GO_ON = {
    "supervise": "`supervise` or `attempt start`",
    "journal": "`journal log` or `journal run`",
    "campaign": "`campaign run`",
}


def declare(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def translate(space: argparse.Namespace) -> Request:
    return Request()


def run(context: Context, request: Request) -> Outcome:
    from cartlab import advice, host

    found = list(advice.report())
    out = context.answer()
    out.report.inputs = [f"host class {host.host_class()}"]
    out.report.next = context.line("next")
    out.details = {"host": dict(host.facts()), "findings": [finding.to_json() for finding in found]}
    found += _loops(context)
    width = max(len(finding.name) for finding in found)
    for finding in found:
        out.text.append(f"{finding.level:4}  {finding.name:{width}}  {finding.found}")
        if finding.advice:
            out.text.append(f"{'':4}  {'':{width}}  -> {finding.advice}")
    return out


def _loops(context: Context) -> list[Finding]:
    """What there is to say about the running research loops of this root, else about its newest."""
    try:
        root = context.root.path
    except CartlabError:
        return []  # doctor speaks of the machine, wherever it is called
    if not (root / "events.jsonl").is_file():
        return []
    from datetime import datetime, timezone

    from cartlab.advice import GOOD, POOR, Finding
    from cartlab.ledger import Ledger
    from cartlab.loops import stall
    from cartlab.loops.desk import going, newest

    events = Ledger.open(root, mend=False).events()
    out, now = [], datetime.now(timezone.utc)
    last = newest(events)
    for goal in going(events) or ([last] if last is not None else []):
        why = stall.stalled(goal, now, stall.held(root, goal.id))
        hint = f"go on with {_GO_ON[goal.loop]}, or end it with `stop`" if why else ""
        out.append(Finding("loop", POOR if why else GOOD, why or f"{goal.id} is {goal.state}", hint))
    return out
