"""What an attempt leaves besides its blocks: the bodies of its decision and its end, aggregate.json, the
manifest, and lines for people.

Nothing here measures, decides or writes: attempt.py does.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from cartlab.artefacts import AGGREGATE_SCHEMA
from cartlab.model import Block, Plan, Verdict
from cartlab.pipeline import answer, halves, rounds
from cartlab.stats.evidence import counts
from cartlab.stats.relink import relink_floor
from cartlab.stats.witnesses import Witnesses, witnesses

if TYPE_CHECKING:
    from cartlab.pipeline.attempt import Attempt


def decision(attempt: Attempt, verdict: Verdict) -> dict[str, Any]:
    """The body of the `decision` event: the verdict, and what it was given from."""
    found = halves_of(attempt)
    return {
        **verdict.to_json(),
        "tier": attempt.plan.tier,
        "pair": attempt.plan.pair.to_json(),
        "validity": attempt.decided_from[0].to_json(),
        "budget_ended": attempt.decided_from[1],
        "pooled_through": attempt.last_seq,
        **({"halves": found} if found else {}),
        **attempt.decided_besides(),
    }


def finished(attempt: Attempt, verdict: Verdict, seconds: dict[str, float]) -> dict[str, Any]:
    """The body of the `attempt_finished` event."""
    plan, repo = attempt.plan, attempt.repo
    hl = verdict.evidence.hl if verdict.evidence else None
    return {
        "status": verdict.status,
        "seconds": seconds,
        "base_build_id": _build_ids(attempt)[0],
        "cand_build_id": _build_ids(attempt)[1],
        "artifact": attempt.folder.relative("aggregate.json"),
        "description": plan.mechanism or f"{plan.cand.name} against {plan.base.name}: {verdict.status}",
        "limit_stop_reason": attempt.limit_stop_reason,
        "relink_floor": relink_floor(attempt.blocks) if plan.tier == "calibrate" else None,
        "toolchain": attempt.lab.toolchain(repo),
        "reason": verdict.reasons[0] if verdict.reasons else "",
        "problem": attempt.problem_details,
        "witnesses": _witnesses(attempt, verdict).to_json(),
        "patch_id": attempt.lab.patch_id(repo, plan.base, plan.cand),
        **rounds.cells(attempt.ledger, plan, hl),
        **attempt.finished_besides(),
    }


def aggregate(attempt: Attempt, verdict: Verdict, seconds: dict[str, float]) -> dict[str, Any]:
    """aggregate.json: the whole run for people and for `record`."""
    return {
        "schema": AGGREGATE_SCHEMA,
        "attempt_id": attempt.id,
        "plan": attempt.plan.to_json(),
        "verdict": verdict.to_json(),
        "validity": attempt.decided_from[0].to_json(),
        "budget_ended": attempt.decided_from[1],
        "earlier_blocks": len(attempt.earlier),
        "block_values": [
            {"y": block.y, "dropped": block.dropped, "coin": block.coin}
            for block in [*attempt.earlier, *attempt.blocks]
        ],
        "builds": _build_ids(attempt),
        "native_sha256": _natives(attempt),
        "equality": _json_of(attempt.equality),
        "held_out_equality": _json_of(attempt.drawn_equality),
        "halves": halves_of(attempt),
        "witnesses": _witnesses(attempt, verdict).to_json(),
        "instructions": _json_of(attempt.counted),
        "seconds": seconds,
        "recorded": attempt.plan.recorded,
        **attempt.decided_besides(),
    }


def manifest(attempt: Attempt) -> dict[str, Any]:
    """What the run was made with, beside the digests of its files."""
    return {
        "attempt_id": attempt.id,
        "harness_hash": attempt.plan.harness_hash,
        "policy_hash": attempt.plan.policy_hash,
        "workload_hash": attempt.plan.workload.hash,
        "native_sha256": _natives(attempt),
        "ledger_tip": list(attempt.ledger.tip),
    }


def notes(attempt: Attempt, verdict: Verdict) -> list[str]:
    """Lines below the verdict: witnesses, halves, times, and where everything is."""
    lines = [_witnesses(attempt, verdict).line()] if attempt.blocks else []
    public, drawn = attempt.equality, attempt.drawn_equality
    unused = None if drawn is None else bool(public.base_digest == drawn.base_digest)
    lines += halves.lines(halves_of(attempt), unused)
    speeds = {
        name: statistics.median(
            [ns / block.steps for block in attempt.blocks for ns in getattr(block, f"{side}_ns")]
        )
        for side, name in (("base", "baseline"), ("cand", "candidate"))
        if attempt.blocks and attempt.plan.workload.kind == "slices"
    }
    if speeds:
        shown = ", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in speeds.items())
        lines.append(f"  median time a batch step: {shown}")
    lines.append(f"ledger: {attempt.root / 'events.jsonl'}")
    lines.append(f"artefacts: {attempt.folder.path}")
    return lines


def halves_of(attempt: Attempt) -> dict[str, Any] | None:
    """The estimates of a confirm run's two halves, None where there are none."""
    return halves.estimates(attempt.plan, [*attempt.earlier, *attempt.blocks])


def progress_line(plan: Plan, blocks: list[Block], verdict: Verdict) -> str:
    """How far the run is and what it sees so far."""
    found = verdict.evidence
    seen = (
        f", ratio {answer.number(found.hl)} [{answer.number(found.lcb)}, {answer.number(found.ucb)}]"
        if found
        else ""
    )
    dropped = sum(not counts(block, plan.forced) for block in blocks)
    lost = f", {dropped} dropped: the machine is busy" if dropped else ""
    return f"block {len(blocks)}, {plan.max_blocks} at most{lost}{seen}"


def _witnesses(attempt: Attempt, verdict: Verdict) -> Witnesses:
    hl = verdict.evidence.hl if verdict.evidence else None
    return witnesses([*attempt.earlier, *attempt.blocks], hl, _json_of(attempt.counted))


def _build_ids(attempt: Attempt) -> list[str | None]:
    return [build.build_id if build else None for build in attempt.builds]


def _natives(attempt: Attempt) -> list[str | None]:
    return [build.artifact_sha256 if build else None for build in attempt.builds]


def _json_of(value: Any) -> Any:
    return None if value is None else value.to_json()
