"""Taking in an aggregate that was made elsewhere, or lowering a verdict of our own. Neither ever counts as
evidence.

An aggregate is validated: its schema, its plan, and its verdict, which is derived again from its block
values. A status may be lowered with a reason, never raised.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.artefacts import AGGREGATE_SCHEMA
from cartlab.decide import decide
from cartlab.errors import BadInput, UsageError
from cartlab.ledger import Ledger
from cartlab.model import STATUSES, Block, Plan, Validity, Verdict, parsed_json
from cartlab.stats.evidence import evidence

# How much a status claims; only downwards may a person go. What failed claims nothing.
CLAIMS = {
    "keep": 4,
    "keep_stack": 4,
    "keep_small_gain": 3,
    "triage_promote": 2,
    "inconclusive": 1,
    "baseline": 1,
}


@dataclass(frozen=True)
class Aggregate:
    """A validated aggregate file."""

    source: str
    body: Mapping[str, Any]
    plan: Plan
    verdict: Verdict


def read_aggregate(path: Path) -> Aggregate:
    """The file as an aggregate, or BadInput saying what is wrong with it."""
    try:
        body = parsed_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"expected an aggregate at {path}, found: {error.strerror}", "give the path of one"
        ) from None
    except ValueError as error:
        raise BadInput(f"{path.name} must be JSON; {error}", "give an aggregate.json of a run") from None
    if not isinstance(body, dict) or body.get("schema") != AGGREGATE_SCHEMA:
        found = body.get("schema") if isinstance(body, dict) else type(body).__name__
        raise BadInput(
            f"{path.name} must have schema {AGGREGATE_SCHEMA}; found {found!r}", "give an aggregate.json"
        )
    try:
        plan, verdict = Plan.from_json(body["plan"]), Verdict.from_json(body["verdict"])
        if plan.policy == "legacy":
            raise BadInput(
                f"{path.name} is of the legacy policy, which is for comparison where it was measured",
                "`export` carries the whole ledger, its row included",
            )
        blocks = [
            Block(at, one["coin"], "", (), (), 0, float(one["y"]), one["dropped"])
            for at, one in enumerate(body["block_values"])
        ]
        validity = Validity.from_json(body["validity"])
        derived = derive(plan, blocks, int(body["earlier_blocks"]), validity, bool(body["budget_ended"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"{path.name} lacks what an aggregate needs: {error}", "give the file as the run wrote it"
        ) from None
    if verdict.status not in STATUSES:
        raise BadInput(
            f"{path.name} has a status that there is not: {verdict.status!r}",
            "give the file as it was written",
        )
    # A run that compared outputs only judged nothing, so that there is nothing to derive.
    if verdict.status != "ok" and derived.status != verdict.status:
        raise BadInput(
            f"{path.name} says {verdict.status}, but its own block values give {derived.status}",
            "give the file as the run wrote it",
        )
    return Aggregate(path.name, body, plan, verdict)


def derive(plan: Plan, blocks: list[Block], earlier: int, validity: Validity, budget_ended: bool) -> Verdict:
    """The verdict that these block values give."""
    found = (
        evidence(blocks, plan.floor, plan.alpha, earlier, forced=plan.forced, design=plan.design)
        if blocks
        else None
    )
    return decide(plan.tier, found, validity, budget_ended)


def lowered(old: str, new: str | None, reason: str | None) -> str:
    """The status that is recorded; UsageError for one that claims more, or that has no reason."""
    if new is None or new == old:
        return old
    if new not in STATUSES or new in ("planned", "ok", "refused"):
        known = ", ".join(name for name in STATUSES if name not in ("planned", "ok", "refused"))
        raise UsageError(f"there is no status {new!r}", f"one of {known}")
    if CLAIMS.get(new, 0) >= CLAIMS.get(old, 0):
        raise UsageError(
            f"--status may lower a verdict, never raise one: {old} to {new}", "measure it instead"
        )
    if not reason:
        raise UsageError(f"lowering {old} to {new} needs a reason", 'add --description "why"')
    return new


def row_of(
    aggregate: Aggregate, status: str, description: str | None, artifact: str | None
) -> dict[str, Any]:
    """The cells of results.tsv that an imported aggregate fills."""
    plan, found = aggregate.plan, aggregate.verdict.evidence
    values = [one["y"] for one in aggregate.body["block_values"] if one["dropped"] is None]
    ratios = [math.exp(y) for y in values]
    return {
        "commit": plan.cand.commit,
        "baseline_commit": plan.base.commit,
        "mode": plan.command,
        "benchmark_tier": plan.benchmark_tier,
        "workload_hash": plan.workload.hash,
        "measured_pairs": len(values),
        "median_pair_ratio": statistics.median(ratios) if ratios else None,
        "mean_pair_ratio": statistics.fmean(ratios) if ratios else None,
        "candidate_faster_pairs": sum(y > 0 for y in values),
        "decision": STATUSES[status].decision,
        "status": status,
        "description": description,
        "artifact": artifact,
        "hl_ratio": found.hl if found else None,
        "lcb": found.lcb if found else None,
        "ucb": found.ucb if found else None,
        "e_value": found.e_value if found else None,
        "guard": found.guard if found else None,
        "policy_hash": plan.policy_hash,
        "harness_hash": plan.harness_hash,
    }


def take_in(
    ledger: Ledger, aggregate: Aggregate, requested: str | None, description: str | None, artifact: str | None
) -> tuple[str, str, str]:
    """Append the event; returns (kind of event, what was done, status it has now). Views are the caller's."""
    status = lowered(aggregate.verdict.status, requested, description)
    own = ledger.attempts().get(aggregate.plan.attempt_id)
    if own is not None:
        # What our own attempt ended as is in the ledger; a file does not say it, nor does it undo a lowering.
        status = lowered(own.status or "interrupted", requested, description)
    if own is not None and status == own.status:
        return "", f"already recorded as {own.status}; nothing was added", status
    if own is not None:
        body = dict(own.decision or aggregate.verdict.to_json())
        row = STATUSES[status]
        body |= {
            "status": status,
            "decision": row.decision,
            "exit_code": row.exit_code,
            "reasons": [f"lowered by hand: {description}", *(body.get("reasons") or [])],
            "overrides": own.status,
            "tier": own.plan.tier,
            "pair": own.plan.pair.to_json(),
        }
        ledger.append("decision", own.id, body)
        finished = {**(own.finished or {}), "status": status, "description": description}
        ledger.append("attempt_finished", own.id, finished)
        return "decision", f"lowered from {own.status}", status
    body = {
        "source": aggregate.source,
        "row": row_of(aggregate, status, description, artifact),
        "plan": aggregate.plan.to_json(),
        "verdict": aggregate.verdict.to_json(),
    }
    ledger.append("import", aggregate.plan.attempt_id, body)
    return "import", "imported: shown in results.tsv, never counted as evidence", status
