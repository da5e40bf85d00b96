"""What the ledger says of the loops: a pure fold from events to goals and their attempts.

Bodies, as the loops write them; each has "goal", the goal's id:
  goal         "op": opened (the whole description), state, protocol (a change: a new segment where it
               touches what a number means), extended (more rounds), holdout (sealed), stop, base (a commit
               before round 1); of a journal also files (they are committed), finalizing and finalized (its
               branches)
  proposal     "state": one step of an attempt (states.step), with what that step found
  measurement  "role", "tree", "command", "value", "seconds", "isolation": a run that the harness made
  decision     "policy", "status", "measurement" (the seq it rests on), "tree", and its inputs
and a note whose attempt is a loop's is guidance for that round.
A decision is only as good as the measurement that it names; `verify` holds them against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cartlab.loops import states
from cartlab.model import STATUSES

Event = Mapping[str, Any]
SUPERVISE = "supervise"


@dataclass
class Try:
    """One attempt. steps: state -> what that step recorded; measurements: (seq, body) in order; decided_at:
    the verdict's time, UTC.
    """

    id: str
    round: int
    state: str | None = None
    steps: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    measurements: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    decision: Mapping[str, Any] | None = None
    decided_seq: int = 0
    decided_at: str = ""
    notes: list[str] = field(default_factory=list)
    segment: int = 0

    @property
    def status(self) -> str | None:
        """The verdict's word in the ledger, None while there is none."""
        return None if self.decision is None else str(self.decision["status"])

    @property
    def kept(self) -> bool:
        """Was it accepted by its decision."""
        return self.status is not None and STATUSES[self.status].keeps

    @property
    def commit(self) -> str | None:
        """The commit that holds its tree, once it was submitted."""
        found = self.steps.get("submitted", {}).get("commit")
        return None if found is None else str(found)


@dataclass
class Goal:
    """A goal from its opening on. body: its description with all changes; segment: how often what a number
    means was changed; accepted: the commit that the worktree stands on; before: the one before it;
    first: what its first attempt was made from.
    """

    id: str
    loop: str
    body: dict[str, Any]
    opened: str
    state: str = "not_started"
    reason: str = ""
    segment: int = 0
    stop_asked: str | None = None
    changed: str = ""
    tries: list[Try] = field(default_factory=list)
    accepted: str = ""
    before: str = ""
    first: str = ""

    @property
    def last(self) -> Try | None:
        """The newest attempt."""
        return self.tries[-1] if self.tries else None

    def closed_rounds(self) -> list[Try]:
        """For each round that has a verdict, its last attempt, in order."""
        latest: dict[int, Try] = {}
        for one in self.tries:
            if one.state == "closed" and one.decision is not None and not one.decision.get("retried"):
                latest[one.round] = one
        return [latest[number] for number in sorted(latest)]


def fold(events: Iterable[Event]) -> dict[str, Goal]:
    """All goals by id, in the order they were opened."""
    goals: dict[str, Goal] = {}
    owners: dict[str, str] = {}  # attempt -> goal
    for event in events:
        body = event["body"]
        if event["type"] == "note" and event["attempt"] in owners:
            one = next(t for t in goals[owners[event["attempt"]]].tries if t.id == event["attempt"])
            one.notes.append(str(body["text"]))
            continue
        name = body.get("goal") if isinstance(body, Mapping) else None
        if event["type"] not in ("goal", "proposal", "measurement", "decision") or name is None:
            continue
        if event["type"] == "goal" and body["op"] == "opened":
            goals[name] = Goal(
                name, body["loop"], dict(body["describes"]), event["time"], accepted=body["baseline_commit"]
            )
            goals[name].first = body["baseline_commit"]
            goals[name].changed = event["time"]
        elif name in goals:
            _apply(goals[name], event)
            if event["type"] == "proposal":
                owners[event["attempt"]] = name
    return goals


def _apply(goal: Goal, event: Event) -> None:
    body, kind = event["body"], event["type"]
    if kind == "goal":
        _on_goal(goal, body)
        return
    found = next((one for one in reversed(goal.tries) if one.id == event["attempt"]), None)
    if found is None:
        if kind != "proposal":
            return  # a baseline's own runs belong to no round
        found = Try(event["attempt"], int(body["round"]), segment=goal.segment)
        goal.tries.append(found)
    if kind == "measurement":
        found.measurements.append((event["seq"], body))
    elif kind == "decision":
        found.decision, found.decided_seq, found.decided_at = body, event["seq"], event["time"]
        found.state = states.step(found.state, "decided")
    else:
        found.state = states.step(found.state, body["state"])
        found.steps[body["state"]] = body
        if body["state"] == "accepted":
            goal.before, goal.accepted = goal.accepted, body["commit"]
        if body["state"] == "closed":
            goal.changed = event["time"]


def _on_goal(goal: Goal, body: Mapping[str, Any]) -> None:
    op = body["op"]
    if op == "state":
        goal.state, goal.reason = body["state"], body.get("reason", "")
        if body["state"] == "running":
            goal.stop_asked = None
    elif op == "protocol":
        goal.body.update(body["describes"])
        goal.segment += 1 if body["segment"] else 0
    elif op == "extended":
        goal.body["protocol"] = {**goal.body["protocol"], "max_rounds": body["max_rounds"]}
    elif op == "stop":
        goal.stop_asked = body.get("reason") or "asked to stop"
    elif op == "holdout":
        goal.body["holdout"] = {key: body[key] for key in ("digest", "command", "looks")}
    elif op == "files":
        goal.body.update(body["describes"])
    elif op in ("finalizing", "finalized"):
        goal.body.pop("finalizing", None)
        goal.body[op] = {"branches": body["branches"], "plan": body["plan"]}
    elif op == "base":
        goal.before, goal.accepted = goal.accepted, body["commit"]
        goal.first = goal.accepted


def new_id(events: Iterable[Event], name: str, now: str) -> str:
    """The id of a goal that is opened now (RFC 3339, UTC): no goal has it yet."""
    stamp = "".join(c for c in now[:19] if c.isdigit())
    made, known = f"{name}-{stamp[:8]}-{stamp[8:]}", fold(events)
    while made in known:
        made += "-2"
    return made
