"""The open round as the pipeline meets it: what it forbids, what it marks, and what a finished run does to
it.

The rules and the states are cartlab.round's; here they are asked before a run and told after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.ledger import Event, Ledger
from cartlab.ledger.attempts import Attempt
from cartlab.model import TIERS, Plan, digest_of
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.voice import Voice
from cartlab.round import Round, acts, confirm_candidate, fold, lesson, pause_due, require_legal

SCRIPT = "scripts/autoresearch.py"
RESUME = f"{SCRIPT} round resume --reason TEXT"


def watch(lab: Lab, repo: Path, ledger: Ledger, voice: Voice) -> Event | None:
    """Before a command goes on: finish what a killed one left of the round, and pause it where a rule that no
    attempt shows says so. Returns the event that ended a confirm run, if there was one left to record.
    """
    settled = settle(ledger, voice)
    found = active(ledger)
    if found is not None and found.state != "paused":
        due = pause_due(found) or _refs_missing(lab, repo, found)
        if due is not None:
            pause(ledger, voice, *due)
    return settled


def _refs_missing(lab: Lab, repo: Path, found: Round) -> tuple[str, str] | None:
    rests_on = list(dict.fromkeys([found.baseline_commit, *(kept.commit for kept in found.kept)]))
    gone = lab.missing(repo, rests_on)
    if not gone:
        return None
    what = "its baseline" if found.baseline_commit in gone else "an accepted commit"
    return "refs_missing", f"{what} {gone[0][:12]} is no longer in the repository"


def pause(ledger: Ledger, voice: Voice, rule: str, reason: str, commits: Sequence[str] = ()) -> None:
    """Pause the open round and say so."""
    acts.pause(ledger, rule, reason, commits)
    ledger.project()
    voice.say(f"round paused by {rule}: {reason}")


def settle(ledger: Ledger, voice: Voice) -> Event | None:
    """Record what a confirm run that was had means, and the lesson of a complete round, where either is
    missing.
    """
    found = active(ledger)
    if found is not None and found.state == "confirming" and any(map(_decided, ledger.abandoned())):
        ledger.close_abandoned()
    event = acts.settle(ledger)
    found = fold(ledger.events())
    if found is not None and found.completed is not None and not found.lesson_told:
        ledger.note("scratchpad.md", lesson(found), found.completed["attempt"], "lesson")
    if event is not None:
        ledger.project()
        done = event["body"]["action"] == "complete"
        voice.say("round complete" if done else f"the round is not complete: {event['body']['reason']}")
    return event


def _decided(attempt: Attempt) -> bool:
    return attempt.plan.tier == "confirm" and attempt.decision is not None


def bind(plan: Plan, ledger: Ledger | None, protected: Sequence[str]) -> Plan:
    """The plan with the round it belongs to; NotLegalNow where the open round does not allow it."""
    found = fold(ledger.events()) if ledger is not None else None
    require_legal(
        found,
        plan.tier,
        plan.base.tree,
        plan.workload.public.hash,
        plan.harness_hash,
        digest_of(list(protected)),
    )
    if found is None or not found.active:
        return plan
    return replace(plan, round_id=found.id)


def still_confirming(ledger: Ledger) -> None:
    """NotLegalNow where another process had the confirm run while this one waited for its turn."""
    found = active(ledger)
    if found is None or found.state != "confirming" or found.ended_confirm is not None:
        raise NotLegalNow("this confirm run was had meanwhile, by another process", f"{SCRIPT} next")


def unrelated(lab: Lab, repo: Path, ledger: Ledger, plan: Plan, config: Any, voice: Voice) -> None:
    """Pause the round where a proof would include commits of no recorded candidate; NotLegalNow then."""
    found = active(ledger)
    if found is None or not TIERS[plan.tier].proves:
        return
    known = {one.commit for one in found.candidates.values()} | {plan.cand.commit}
    base, cand = found.baseline_commit, plan.cand.commit
    loose = lab.strangers(repo, base, cand, config.build.inputs, known)
    new = [commit for commit in loose if commit not in found.excused]
    if new:
        names = ", ".join(commit[:12] for commit in new[:3])
        reason = f"{plan.cand.name} would include {names}, of no recorded candidate"
        pause(ledger, voice, "unrelated_changes", reason, new)
        require_legal(active(ledger), plan.tier)


def access_failed(ledger: Ledger | None, voice: Voice, reason: str) -> None:
    """Pause an open round because what its workload needs cannot be reached."""
    found = active(ledger) if ledger is not None else None
    if ledger is not None and found is not None and found.state != "paused":
        pause(ledger, voice, "access_failed", reason)


def may_touch(ledger: Ledger) -> tuple[str, ...]:
    """Protected paths that the open round lets its candidates change."""
    found = active(ledger)
    return () if found is None else tuple(found.body.get("may_touch") or ())


def judged_before(ledger: Ledger, plan: Plan, patch_id: str | None) -> list[str]:
    """Lines about the newest earlier verdicts on the same tree or patch, of another pair or round."""
    same_tree: Attempt | None = None
    same_patch: Attempt | None = None
    for one in ledger.attempts().values():
        if (
            one.plan.tier in ("calibrate", "single")
            or one.plan.part_of
            or one.status in (None, "interrupted")
        ):
            continue
        if one.plan.cand.tree == plan.cand.tree:
            if one.plan.pair != plan.pair or one.plan.round_id != plan.round_id:
                same_tree = one
        elif patch_id is not None and (one.finished or {}).get("patch_id") == patch_id:
            same_patch = one
    rows = (("tree", same_tree), ("patch", same_patch))
    return [
        f"the same {what} was judged before: {one.status} as {one.plan.cand.commit[:12]} by {one.id}"
        for what, one in rows
        if one is not None
    ]


def cells(ledger: Ledger, plan: Plan, estimate: float | None) -> dict[str, Any]:
    """What an attempt_finished event says for the round besides the verdict."""
    found = active(ledger)
    against = found is not None and plan.base.tree == found.baseline_tree and not plan.part_of
    return {"ratio_vs_round_baseline": estimate if against and TIERS[plan.tier].proves else None}


def after(ledger: Ledger, plan: Plan, voice: Voice) -> str | None:
    """What a finished run does to its round; returns the next command line where the round has one."""
    if plan.round_id is None or plan.part_of is not None:
        return None
    settled = settle(ledger, voice) if plan.tier == "confirm" else None
    if settled is not None and settled["body"]["action"] == "complete":
        return f"{SCRIPT} report --session"
    found = active(ledger)
    if found is None or found.state == "paused":
        return None
    due = pause_due(found)
    if due is not None:
        pause(ledger, voice, *due)
        return RESUME
    ready = confirm_candidate(found)
    if ready is not None and ready.attempt == plan.attempt_id:
        voice.say(f"the estimate {ready.estimate:.4f} reaches the target {found.target:.2f}: confirm it")
        return f"{SCRIPT} round confirm {ready.commit[:12]}"
    return f"{SCRIPT} next"


def active(ledger: Ledger) -> Round | None:
    """The round that is neither complete nor abandoned, or None."""
    found = fold(ledger.events())
    return found if found is not None and found.active else None
