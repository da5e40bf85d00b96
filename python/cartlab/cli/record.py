"""`record AGG`: take in an aggregate that was made elsewhere, or lower a verdict of ours. Runs record
themselves.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from cartlab.cli.context import Context
from cartlab.outcome import Outcome
from cartlab.root import make_folder


@dataclass(frozen=True)
class Request:
    path: Path
    status: str | None = None
    description: str | None = None
    artifact: str | None = None
    dry_run: bool = False


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("aggregate", type=Path, metavar="AGG", help="the aggregate.json of a run")
    parser.add_argument("--status", metavar="S", help="record this lower status; needs --description")
    parser.add_argument("--description", metavar="D", help="what it is, or why the status is lowered")
    parser.add_argument("--artifact", metavar="P", help="where its files are kept")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.aggregate, space.status, space.description, space.artifact, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.ledger import Ledger
    from cartlab.pipeline.answer import side, verdict_text
    from cartlab.pipeline.importing import lowered, read_aggregate, take_in
    from cartlab.round import round_part

    aggregate = read_aggregate(context.cwd / request.path)
    root = context.root.path
    status = lowered(aggregate.verdict.status, request.status, request.description)
    plan = aggregate.plan
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.attempt_id, out.workload_hash = plan.attempt_id, plan.workload.hash
    out.harness_hash, out.policy_hash = plan.harness_hash, plan.policy_hash
    out.baseline, out.candidate = side(plan.base, None), side(plan.cand, None)
    out.report.inputs = [str(request.path)]
    out.report.next = context.line("status")
    if request.dry_run:
        out.status, out.recorded = "planned", False
        out.text = [f"would record {plan.attempt_id} as {status}"]
        return out
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    kind, done, status = take_in(ledger, aggregate, request.status, request.description, request.artifact)
    ledger.project()
    out.recorded = bool(kind)
    out.reasons = [done]
    out.report.outputs = ["results.tsv"] if kind else []
    out.details = {"event": kind or None, "recorded_status": status}
    out.text = [*verdict_text(aggregate.verdict), f"recorded as {status}: {done}"]
    return out
