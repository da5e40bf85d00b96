"""`verify`: replay the ledger's chain and derive every decision again from the raw slices. Reads only."""

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
    return out
