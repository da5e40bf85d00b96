"""`verify`: replay the ledger's chain and derive every decision again from the raw slices.

It reads only, but for one thing: what does not hold pauses an open round.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.outcome import Outcome

DAMAGED = 22


@dataclass(frozen=True)
class Request:
    """`verify` has no choices."""


def declare(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def translate(space: argparse.Namespace) -> Request:
    return Request()


def run(context: Context, request: Request) -> Outcome:
    from cartlab.verify import verify_root

    root = context.root.path
    report = verify_root(root)
    found = [{"line": one.line, "attempt": one.attempt, "what": one.what} for one in report.findings]
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = ["events.jsonl", "results.tsv", "benchmarks/runs"]
    out.details = {"holds": report.holds, "findings": found}
    if report.holds:
        out.text = ["verified: the chain holds and every decision follows from its slices"]
        return out
    out.status, out.exit_code = "refused", DAMAGED
    out.report.decision = "pause"
    out.report.next = context.line("status")
    out.text = [f"line {one['line']}, {one['attempt'] or 'chain'}: {one['what']}" for one in found]
    out.reasons = out.text[:5]
    _pause(context, out.text[0])
    return out


def _pause(context: Context, finding: str) -> None:
    """Pause an open round: nothing is decided on a ledger that does not hold. One that cannot be read stops
    every command by itself.
    """
    from cartlab.errors import DamagedLedger
    from cartlab.ledger import Ledger
    from cartlab.pipeline.rounds import active, pause
    from cartlab.round import round_part

    try:
        ledger = Ledger.open(context.root.path, round_part=round_part)
    except DamagedLedger:
        return
    found = active(ledger)
    if found is not None and found.state != "paused":
        pause(ledger, context.talk, "untrustworthy", f"verify found: {finding}")
