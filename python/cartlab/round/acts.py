"""The acts on a round: each checks against the newest events under the ledger's lock and appends one event.

Source: SPECS.md section 6. What they check is in states, rules and actions; what they store is listed
here.
  open            round_id, goal {id, title, opened_at}, baseline_commit, baseline_tree, target, strict,
  may_touch, policy,
                  policy_hash, workload_hash, harness_hash, protected_hash, calibration (attempt id or null)
  confirm         tree, commit, seed (drawn after the candidate was fixed; of the held-out half)
  confirm_failed  tree, reason        complete  tree, commit, attempt, estimate, lcb, artifact
  pause           rule, reason, commits (unrelated_changes)        resume, abandon  reason
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cartlab.errors import NotLegalNow, UsageError
from cartlab.ledger import Event, Ledger
from cartlab.model import POLICY, Json, Ref, Verdict, digest_of
from cartlab.round.actions import require_legal
from cartlab.round.fold import fold, history
from cartlab.round.rules import MIN_TARGET, CandidateFacts, completes, confirm_obstacles
from cartlab.round.states import PAUSE_RULES, Round, transition

Hashes = dict[str, Any]


def open_round(
    ledger: Ledger,
    baseline: Ref,
    opened_at: str,
    pinned: Hashes,
    goal: str = "",
    target: float = MIN_TARGET,
    strict: bool = False,
    may_touch: Sequence[str] = (),
) -> Event:
    """Open a round on live HEAD. pinned: workload_hash, harness_hash, protected_hash, calibration. Refused
    while one is open.
    """
    if target < MIN_TARGET:
        raise UsageError(f"expected a target of {MIN_TARGET:.2f} or more, found {target}")
    title = goal.strip() or f"faster by {target - 1.0:.0%}"

    def make(events: Sequence[Event]) -> tuple[str, str | None, Json]:
        require_legal(fold(events), "round open")
        number = len(history(events)) + 1
        tag = digest_of([number, opened_at, baseline.commit])[:6]
        return (
            "round",
            None,
            {
                "action": "open",
                "round_id": f"round-{number}-{tag}",
                "goal": {"id": f"goal-{number}-{tag}", "title": title, "opened_at": opened_at},
                "baseline_commit": baseline.commit,
                "baseline_tree": baseline.tree,
                "target": target,
                "strict": strict,
                "may_touch": list(may_touch),
                "policy": POLICY.name,
                "policy_hash": POLICY.hash,
                "workload_hash": pinned.get("workload_hash"),
                "harness_hash": pinned.get("harness_hash"),
                "protected_hash": pinned.get("protected_hash"),
                "calibration": pinned.get("calibration"),
            },
        )

    return ledger.transact(make)


def _act(ledger: Ledger, action: str, body: Callable[[Round], Json]) -> Event:
    def make(events: Sequence[Event]) -> tuple[str, str | None, Json]:
        found = fold(events)
        if found is None or not found.active:
            raise NotLegalNow(
                f"no round is open: nothing to {action.replace('_', ' ')}", "open one: `round open`"
            )
        transition(found.state, action, found.left)
        return "round", None, {"action": action, "round_id": found.id, **body(found)}

    return ledger.transact(make)


def _reason(reason: str) -> str:
    if not reason.strip():
        raise UsageError("expected a reason, found none", "add --reason TEXT")
    return reason.strip()


def pause(ledger: Ledger, rule: str, reason: str, commits: Sequence[str] = ()) -> Event:
    """Pause the round by one of PAUSE_RULES. commits: full ids that a resume lets pass from then on."""
    if rule not in PAUSE_RULES:
        raise UsageError(f"expected a pause rule of {', '.join(PAUSE_RULES)}; found {rule!r}")
    named = {"commits": list(commits)} if commits else {}
    why = reason.strip() or PAUSE_RULES[rule]
    return _act(ledger, "pause", lambda found: {"rule": rule, "reason": why, **named})


def resume(ledger: Ledger, reason: str) -> Event:
    """End a pause; the round is again what it was."""
    why = _reason(reason)
    return _act(ledger, "resume", lambda found: {"reason": why})


def abandon(ledger: Ledger, reason: str) -> Event:
    """End the round without completing it."""
    why = _reason(reason)
    return _act(ledger, "abandon", lambda found: {"reason": why})


def start_confirm(ledger: Ledger, facts: CandidateFacts, seed: str) -> Event:
    """Note that the candidate's one confirm run begins, or goes on; NotLegalNow with every obstacle that
    there is. seed: of the held-out draw; a run that goes on keeps the one that it began with.
    """

    def body(found: Round) -> Json:
        obstacles = confirm_obstacles(found, facts)
        if obstacles:
            raise NotLegalNow(
                f"{facts.commit[:12]} may not be confirmed: {'; '.join(obstacles)}", "ask `next`"
            )
        return {"tree": facts.tree, "commit": facts.commit, "seed": found.draws.get(facts.tree, seed)}

    return _act(ledger, "confirm", body)


def complete(
    ledger: Ledger,
    candidate: CandidateFacts | Ref,
    attempt: str,
    verdict: Verdict,
    recorded: bool,
    policy: str,
    artifact: str | None,
    benchmark_tier: str = "local_acceptance",
) -> Event:
    """Complete the round, or record why the confirm run does not: the event's action says which."""

    def make(events: Sequence[Event]) -> tuple[str, str | None, Json]:
        found = fold(events)
        if found is None or not found.active:
            raise NotLegalNow("no round is open: nothing to complete", "open one: `round open`")
        lacking = completes(found, verdict, recorded, policy, benchmark_tier)
        action = "confirm_failed" if lacking else "complete"
        transition(found.state, action)
        body: Json = {"action": action, "round_id": found.id, "tree": candidate.tree, "attempt": attempt}
        if lacking:
            return "round", None, {**body, "reason": "; ".join(lacking)}
        evidence = verdict.evidence
        assert evidence is not None  # completes() asks for its bounds
        body |= {
            "commit": candidate.commit,
            "estimate": evidence.hl,
            "lcb": evidence.lcb,
            "artifact": artifact,
        }
        return "round", None, body

    return ledger.transact(make)


def settle(ledger: Ledger) -> Event | None:
    """What a confirm run that was had means, where that is not recorded yet: `complete` or `confirm_failed`.

    A process can die between the end of the run and this event; whichever command comes next calls it.
    """
    found = fold(ledger.events())
    end = found.ended_confirm if found is not None else None
    if found is None or end is None or found.state != "confirming":
        return None
    verdict = Verdict.from_json(end.decision)
    try:
        return complete(
            ledger,
            end.candidate,
            end.attempt,
            verdict,
            end.recorded,
            end.policy,
            end.artifact,
            end.benchmark_tier,
        )
    except NotLegalNow:  # another process was first
        return None
