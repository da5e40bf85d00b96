"""The form of current.json, and its content where no round was ever opened.

Contract: SPECS.md section 6. The round's module fills the round's part; here is what a reader can
rely on at any time: every key is present, unknown is null. `last_seq` and `last_hash` say up to which event
the file is right.
"""

from __future__ import annotations

from collections.abc import Sequence

from cartlab.ledger.attempts import attempts_of, calibration_of, latest_accepted
from cartlab.ledger.chain import GENESIS, Event
from cartlab.model import Json

SCHEMA = 1


def no_round() -> Json:
    """The round's part of current.json before any round."""
    return {
        "goal": {"id": None, "title": None, "opened_at": None},
        "round_id": None,
        "state": None,
        "baseline_commit": None,
        "baseline_tree": None,
        "target": None,
        "policy": None,
        "policy_hash": None,
        "workload_hash": None,
        "protected_hash": None,
        "accepted_stack": [],
        "best_lcb": None,
        "best_estimate": None,
        "next_actions": [],
    }


def current_of(events: Sequence[Event], round_part: Json | None = None) -> Json:
    """The whole of current.json."""
    attempts = attempts_of(events)
    accepted = latest_accepted(attempts)
    classes = {a.plan.host_class for a in attempts.values() if a.plan.tier == "calibrate"}
    calibrations = [found for one in classes if (found := calibration_of(attempts, one)) is not None]
    # By their order in the ledger: clocks are set back.
    newest = max(calibrations, key=lambda found: found.started_seq, default=None)
    return {
        "schema": SCHEMA,
        **no_round(),
        **(round_part or {}),
        "latest_accepted": None
        if accepted is None
        else {
            "attempt_id": accepted.id,
            "status": accepted.status,
            "commit": accepted.plan.cand.commit,
            "baseline_commit": accepted.plan.base.commit,
            "at": accepted.finished_at,
        },
        "last_calibration": None
        if newest is None
        else {
            "attempt_id": newest.id,
            "commit": newest.plan.base.commit,
            "host_class": newest.plan.host_class,
            "toolchain": (newest.finished or {}).get("toolchain"),
            "at": newest.finished_at or newest.started,
        },
        "last_seq": events[-1]["seq"] if events else 0,
        "last_hash": events[-1]["hash"] if events else GENESIS,
    }
