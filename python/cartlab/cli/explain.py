"""`explain ID`: one attempt from its plan to its verdict, as the ledger has it. ID may be the start of an
id.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.errors import BadInput
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    id: str


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="an attempt's id or a part of it that only one has")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.id)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.ledger import Ledger
    from cartlab.model import Verdict
    from cartlab.pipeline import halves
    from cartlab.pipeline.answer import side, verdict_text

    root = context.root.path
    attempts = Ledger.open(root, mend=False).attempts()
    hits = [name for name in attempts if request.id in name]
    if len(hits) != 1:
        raise BadInput(
            f"expected one attempt with {request.id!r}, found {len(hits)}", "`status` lists the ids"
        )
    attempt = attempts[hits[0]]
    plan, done = attempt.plan, attempt.finished or {}
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.attempt_id, out.recorded = attempt.id, plan.recorded
    out.baseline, out.candidate = side(plan.base, None), side(plan.cand, None)
    out.workload_hash, out.harness_hash = plan.workload.hash, plan.harness_hash
    out.policy_hash = plan.policy_hash
    out.report.inputs = [attempt.id]
    out.details = {
        "plan": plan.to_json(),
        "decisions": [dict(one) for one in attempt.decisions],
        "finished": dict(done),
        "blocks": [
            {"index": b.index, "coin": b.coin, "y": b.y, "dropped": b.dropped} for b in attempt.blocks
        ],
    }
    out.text = [
        f"{attempt.id}: {plan.command} {plan.base.commit[:12]} -> {plan.cand.commit[:12]}, {attempt.started}",
        f"mechanism: {plan.mechanism or 'not stated'}",
        f"falsified by: {plan.falsify or 'not stated'}",
    ]
    if attempt.decision is not None:
        out.text += verdict_text(Verdict.from_json(attempt.decision))
        out.text += halves.lines(attempt.decision.get("halves"), None)
    elif attempt.finished is None:
        out.text.append("not finished: the same command continues it")
    if problem := (done.get("problem") or {}):
        out.text += [
            f"  {key}: {value}" for key, value in problem.items() if isinstance(value, str) and value
        ]
    for b in attempt.blocks:
        out.text.append(
            f"  block {b.index}: y {b.y:+.5f}, coin {b.coin}"
            + (f", {half}" if (half := b.witness.get("half")) else "")
            + (f", {b.dropped}" if b.dropped else "")
        )
    return out
