"""What is told at the end of a session, and the lesson that a complete round leaves in scratchpad.md.

Contract: SPECS.md section 6 (report --session) and the document's list: branch, refs, latest
aggregate, accepted commits, rejects with reasons, checks, changed files, cleanup, limits, artefacts,
baseline, target, cumulative ratio, next experiment. Pure: what the repository says comes in as facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cartlab.ledger import Event, attempts_of
from cartlab.model import STATUSES, Json
from cartlab.round.actions import Action
from cartlab.round.fold import fold
from cartlab.round.states import Round


class SessionFacts(NamedTuple):
    """What only the repository and the machine can say."""

    branch: str | None
    head_commit: str | None
    changed_files: tuple[str, ...]
    dirty_files: tuple[str, ...]
    left_behind: tuple[str, ...]  # worktrees, processes or temporary folders of ours that still exist
    checks: tuple[str, ...]  # one line a recorded check run


def session_report(events: Sequence[Event], facts: SessionFacts, proposals: Sequence[Action]) -> Json:
    """Every key is present; unknown is null."""
    found = fold(events)
    attempts = attempts_of(events)
    since = found.opened_seq if found is not None else 0
    ours = [a for a in attempts.values() if a.started_seq > since and a.plan.recorded]
    last = next((a for a in reversed(ours) if a.finished is not None), None)
    artefacts = [a.finished["artifact"] for a in ours if a.finished and a.finished.get("artifact")]
    return {
        "branch": facts.branch,
        "baseline": found.baseline_commit if found else (last.plan.base.commit if last else None),
        "candidate": last.plan.cand.commit if last else facts.head_commit,
        "latest_aggregate": last.finished.get("artifact") if last and last.finished else None,
        "accepted": [
            {
                "commit": k.commit,
                "status": k.status,
                "estimate": k.estimate,
                "lcb": k.lcb,
                "attempt_id": k.attempt,
            }
            for k in (found.kept if found else [])
        ],
        "rejects": rejects(found),
        "checks": list(facts.checks),
        "changed_files": list(facts.changed_files),
        "cleanup": {"dirty_files": list(facts.dirty_files), "left_behind": list(facts.left_behind)},
        "benchmark_limits": sorted(
            {
                str(a.finished["limit_stop_reason"])
                for a in ours
                if a.finished and a.finished.get("limit_stop_reason")
            }
        ),
        "artefacts": artefacts,
        "round": None
        if found is None
        else {"id": found.id, "state": found.state, "goal": found.body["goal"]},
        "round_baseline": found.baseline_commit if found else None,
        "next_baseline": found.completed["commit"] if found and found.completed else None,
        "round_target": found.target if found else None,
        "cumulative_ratio": cumulative(found),
        "next_experiment": proposals[0].to_json() if proposals else None,
    }


def cumulative(found: Round | None) -> Json | None:
    """How far the round came: what its confirm run says once it is complete, before that the best kept."""
    done = found.completed if found else None
    if done:
        return {"estimate": done["estimate"], "lcb": done["lcb"]}
    best = found.best if found else None
    return None if best is None else {"estimate": best.estimate, "lcb": best.lcb}


def rejects(found: Round | None) -> list[Json]:
    """The round's candidates that were not kept, each with its reason."""
    if found is None:
        return []
    kept = {k.tree for k in found.kept}
    out = []
    for candidate in found.candidates.values():
        if candidate.tree in kept or candidate.status is None or candidate.promoted:
            continue
        reasons = list(candidate.reasons)
        if candidate.tree in found.confirm_reasons:
            reasons.append(f"confirm: {found.confirm_reasons[candidate.tree]}")
        out.append({"commit": candidate.commit, "status": candidate.status, "reasons": reasons})
    return out


def session_lines(report: Json) -> list[str]:
    """The report as text, a line a key."""
    out = []
    for key, value in report.items():
        label = key.replace("_", " ")
        if isinstance(value, list):
            out.append(f"{label}: {len(value) or 'none'}")
            out += [f"  {_flat(item)}" for item in value]
        else:
            out.append(f"{label}: {_flat(value)}")
    return out


def _flat(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, dict) and {"command", "reason"} <= set(value):
        return f"scripts/autoresearch.py {value['command']} ({value['reason']})"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_flat(v)}" for k, v in value.items())
    if isinstance(value, list):
        return "; ".join(_flat(v) for v in value) or "none"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def lesson(found: Round) -> str:
    """The block that a complete round appends to scratchpad.md."""
    done = found.completed or {}
    lines = [
        f"Round {found.id} complete: {found.body['goal']['title']}",
        f"baseline {found.baseline_commit}, candidate {done.get('commit')}, "
        f"estimate {_flat(done.get('estimate'))}, lower bound {_flat(done.get('lcb'))}, "
        f"target {found.target:.2f}",
    ]
    for kept in found.kept:
        candidate = found.candidates.get(kept.tree)
        why = candidate.mechanism if candidate and candidate.mechanism else "no mechanism stated"
        lines.append(f"kept {kept.commit[:12]} ({kept.status}, {kept.estimate:.4f}): {why}")
    for reject in rejects(found):
        word = STATUSES[reject["status"]].meaning if reject["status"] in STATUSES else reject["status"]
        why = "; ".join(reject["reasons"]) or word
        lines.append(f"not kept {reject['commit'][:12]} ({reject['status']}): {why}")
    return "\n".join(lines)
