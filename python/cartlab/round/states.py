"""The round's states as a table, and what is known of a round.

Contract: SPECS.md section 6: open -> candidates -> stacked -> confirming -> complete, or paused,
abandoned. A move that is not in the table is an error. To add one: add its row; test_round.py runs every
state against every event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.model import Ref

STATES = ("open", "candidates", "stacked", "confirming", "complete", "paused", "abandoned")
ENDED = ("complete", "abandoned")

# event: {state before: state after}; pause and resume carry the state that was left.
TRANSITIONS: dict[str, dict[str, str]] = {
    "screened": {"open": "candidates", "candidates": "candidates", "stacked": "stacked"},
    "kept": {"open": "stacked", "candidates": "stacked", "stacked": "stacked"},
    "confirm": {"candidates": "confirming", "stacked": "confirming", "confirming": "confirming"},
    "confirm_failed": {"confirming": "candidates"},
    "complete": {"confirming": "complete"},
    "abandon": dict.fromkeys(("open", "candidates", "stacked", "confirming", "paused"), "abandoned"),
    "pause": dict.fromkeys(("open", "candidates", "stacked", "confirming"), "paused"),
    "resume": {"paused": "open"},
}

PAUSE_RULES: dict[str, str] = {
    "access_failed": "something that the work needs could not be reached",
    "limits_exhausted": "a limit that the user set was reached",
    "regressions_persist": "two check failures in a row",
    "refs_missing": "a ref that the round rests on is gone",
    "untrustworthy": "ledger, digests, witnesses or the machine cannot be trusted",
    "unrelated_changes": "commits of no recorded candidate would be included",
    "same_reason_twice": "two candidates died for the same reason",
    "user_stop": "the user asked to stop",
}


def transition(state: str, event: str, left: str | None = None) -> str:
    """The state after `event`. left: the state that a pause left. NotLegalNow where the table has no such
    move.
    """
    after = TRANSITIONS[event].get(state)
    if after is None:
        allowed = ", ".join(name for name, moves in TRANSITIONS.items() if state in moves) or "nothing"
        raise NotLegalNow(
            f"a round that is {state} does not allow {event}; it allows {allowed}",
            "ask `autoresearch.py next`",
        )
    return (left or after) if event == "resume" else after


@dataclass
class Candidate:
    """A candidate of the round by its tree. hl, e_value and blocks_needed: of its newest verdict."""

    tree: str
    commit: str
    name: str
    base_tree: str
    mechanism: str | None = None
    falsify: str | None = None
    patch_id: str | None = None
    status: str | None = None
    tier: str | None = None
    hl: float | None = None
    lcb: float | None = None
    e_value: float | None = None
    blocks_needed: int | None = None
    seconds_per_block: float | None = None
    attempts: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    promoted: bool = False
    consumed: bool = False  # was in the ledger before the newest accepted result: its gain is in that one


@dataclass
class Kept:
    """An accepted result against the round's baseline."""

    attempt: str
    status: str
    tier: str
    benchmark_tier: str
    commit: str
    tree: str
    estimate: float
    lcb: float
    marks: tuple[str, ...]
    policy: str


@dataclass(frozen=True)
class ConfirmEnd:
    """A confirm run that was had. decision: the body of its decision event."""

    attempt: str
    candidate: Ref
    decision: dict[str, Any]
    benchmark_tier: str
    policy: str
    recorded: bool
    artifact: str | None


@dataclass
class Round:
    """A round as its events tell it. `body` is that of its opening; `left` the state that a pause left."""

    id: str
    state: str
    body: dict[str, Any]
    opened_seq: int
    candidates: dict[str, Candidate] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    confirms: dict[str, str] = field(default_factory=dict)  # candidate tree -> its confirm run's status
    confirm_reasons: dict[str, str] = field(default_factory=dict)
    draws: dict[str, str] = field(default_factory=dict)  # candidate tree -> seed of its held-out draw
    ended_confirm: ConfirmEnd | None = None  # a confirm run that was had, and not yet what it means
    lesson_told: bool = False
    damage: str | None = None  # what was set aside of the ledger since the last resume
    excused: set[str] = field(default_factory=set)  # commits that a pause named and a resume let pass
    left: str | None = None
    pause_rule: str | None = None
    pause_reason: str | None = None
    since_resume: list[dict[str, Any]] = field(default_factory=list)  # ends of attempts since the last resume
    completed: dict[str, Any] | None = None
    abandoned: str | None = None

    @property
    def active(self) -> bool:
        """Is it neither complete nor abandoned."""
        return self.state not in ENDED

    @property
    def target(self) -> float:
        """The ratio that completes it."""
        return float(self.body["target"])

    @property
    def strict(self) -> bool:
        """Must the lower bound itself reach the target."""
        return bool(self.body.get("strict", False))

    @property
    def baseline_commit(self) -> str:
        """The fixed baseline."""
        return str(self.body["baseline_commit"])

    @property
    def baseline_tree(self) -> str:
        """The fixed baseline's tree."""
        return str(self.body["baseline_tree"])

    @property
    def best(self) -> Kept | None:
        """The accepted result with the highest lower bound that could count for the target."""
        counting = [k for k in self.kept if "forced" not in k.marks and k.policy != "legacy"]
        return max(counting, key=lambda k: k.lcb, default=None)
