"""The open round as the pipeline meets it: what it forbids, what it marks, and what a finished run does to
it.

The rules and the states are cartlab.round's; here they are asked before a run and told after it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cartlab.ledger import Ledger
from cartlab.model import TIERS, Plan
from cartlab.pipeline.voice import Voice
from cartlab.round import Round, acts, confirm_candidate, fold, pause_due, require_legal

SCRIPT = "scripts/autoresearch.py"


def bind(plan: Plan, ledger: Ledger | None) -> Plan:
    """The plan with the round it belongs to; NotLegalNow where the open round does not allow it."""
    found = fold(ledger.events()) if ledger is not None else None
    require_legal(found, plan.tier, plan.base.tree, plan.workload.hash, plan.harness_hash)
    if found is None or not found.active:
        return plan
    return replace(plan, round_id=found.id)


def may_touch(ledger: Ledger) -> tuple[str, ...]:
    """Protected paths that the open round lets its candidates change."""
    found = fold(ledger.events())
    if found is None or not found.active:
        return ()
    return tuple(found.body.get("may_touch") or ())


def cells(ledger: Ledger, plan: Plan, estimate: float | None) -> dict[str, Any]:
    """What an attempt_finished event says for the round besides the verdict."""
    found = fold(ledger.events())
    against = found is not None and found.active and plan.base.tree == found.baseline_tree
    return {"ratio_vs_round_baseline": estimate if against and TIERS[plan.tier].proves else None}


def after(ledger: Ledger, plan: Plan, voice: Voice) -> str | None:
    """Pause the round where a rule says so; returns the next command line where the round has one."""
    found = fold(ledger.events())
    if plan.round_id is None or found is None or not found.active:
        return None
    due = pause_due(found)
    if due is not None:
        acts.pause(ledger, *due)
        voice.say(f"round paused by {due[0]}: {due[1]}")
        return f"{SCRIPT} round resume --reason TEXT"
    ready = confirm_candidate(found)
    if ready is not None and ready.attempt == plan.attempt_id:
        voice.say(f"the estimate {ready.estimate:.4f} reaches the target {found.target:.2f}: confirm it")
        return f"{SCRIPT} round confirm {ready.commit[:12]}"
    return None


def active(ledger: Ledger) -> Round | None:
    """The round that is neither complete nor abandoned, or None."""
    found = fold(ledger.events())
    return found if found is not None and found.active else None
