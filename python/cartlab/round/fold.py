"""Events to rounds: a pure fold. Nothing else knows the state of a round.

Source: SPECS.md section 6. A recorded attempt that starts while a round is active belongs to it. Only
what was measured against the round's baseline tree counts as its gain; what came before its opening is
history and never progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cartlab.ledger import Event, attempts_of
from cartlab.ledger.attempts import is_calibration
from cartlab.model import STATUSES, TIERS, Json, Ref
from cartlab.round.actions import NextFacts, next_actions
from cartlab.round.rules import UNFINISHED, confirm_status
from cartlab.round.states import TRANSITIONS, Candidate, ConfirmEnd, Kept, Round, transition

_SCREENED = ("triage_promote", "triage_discard", "inconclusive")


class _Fold:
    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.plans: dict[str, Json] = {}
        self.decisions: dict[str, Json] = {}
        self.block_counts: dict[str, int] = {}

    @property
    def current(self) -> Round | None:
        return self.rounds[-1] if self.rounds else None

    @property
    def active(self) -> Round | None:
        return self.current if self.current is not None and self.current.active else None

    def feed(self, event: Event) -> None:
        kind, name, body = event["type"], event["attempt"], event["body"]
        if kind == "round":
            self._round(event, body)
        elif kind == "attempt_started":
            self.plans[name] = body
            if self.active is not None and _belongs(body):
                self._started(self.active, name, body)
        elif kind == "block" and name is not None and body.get("dropped") is None:
            self.block_counts[name] = self.block_counts.get(name, 0) + 1
        elif kind == "decision":
            self.decisions[name] = body
        elif kind == "attempt_finished" and name in self.plans:
            plan = self.plans[name]
            if self.active is not None and _belongs(plan):
                self._finished(self.active, name, plan, body)
        elif kind == "repair" and body["what"] == "damaged" and self.active is not None:
            self.active.damage = f"line {body['line']} of the ledger and all after it were set aside"
        elif kind == "note" and body.get("kind") == "lesson" and self.current is not None:
            done = self.current.completed
            self.current.lesson_told |= done is not None and done["attempt"] == name

    def _round(self, event: Event, body: Json) -> None:
        action = body["action"]
        if action == "open":
            self.rounds.append(Round(body["round_id"], "open", body, event["seq"]))
            return
        found = self.active
        if found is None:
            return
        moved = transition(found.state, action, found.left)
        if action == "pause":
            found.left, found.pause_rule, found.pause_reason = found.state, body["rule"], body["reason"]
            found.excused |= set(body.get("commits") or ())
        elif action == "resume":
            found.left = found.pause_rule = found.pause_reason = found.damage = None
            found.since_resume = []
        elif action == "confirm":
            found.draws[body["tree"]] = body["seed"]
            found.ended_confirm = None
        elif action == "confirm_failed":
            found.confirm_reasons[body["tree"]] = body["reason"]
            found.ended_confirm = None
        elif action == "complete":
            found.completed = body
            found.ended_confirm = None
        elif action == "abandon":
            found.abandoned = body["reason"]
        found.state = moved

    def _started(self, found: Round, name: str, plan: Json) -> None:
        tier = plan["tier"]
        if not _judges(plan):
            return
        tree = plan["cand"]["tree"]
        candidate = found.candidates.setdefault(
            tree, Candidate(tree, plan["cand"]["commit"], plan["cand"]["name"], plan["base"]["tree"])
        )
        candidate.attempts.append(name)
        candidate.mechanism = plan.get("mechanism") or candidate.mechanism
        candidate.falsify = plan.get("falsify") or candidate.falsify
        if tier == "confirm":
            found.confirms[tree] = "running"

    def _finished(self, found: Round, name: str, plan: Json, body: Json) -> None:
        decision = self.decisions.get(name) or {}
        status, tier = str(body["status"]), plan["tier"]
        if _tells(plan, status):
            found.since_resume.append(
                {
                    "attempt": name,
                    "tier": tier,
                    "tree": plan["cand"]["tree"],
                    "base_tree": plan["base"]["tree"],
                    "status": status,
                    "mechanism": plan.get("mechanism"),
                    "limit_stop_reason": body.get("limit_stop_reason"),
                    "side": (body.get("problem") or {}).get("side"),
                    "disagree": (body.get("witnesses") or {}).get("disagree") or [],
                }
            )
        candidate = found.candidates.get(plan["cand"]["tree"])
        if candidate is None or not _judges(plan):
            return
        evidence: dict[str, Any] = decision.get("evidence") or {}
        candidate.status, candidate.tier = status, tier
        candidate.patch_id = body.get("patch_id") or candidate.patch_id
        candidate.reasons = list(decision.get("reasons") or [])
        for key in ("hl", "lcb", "e_value", "blocks_needed"):
            setattr(candidate, key, evidence.get(key))
        count, seconds = self.block_counts.get(name, 0), (body.get("seconds") or {}).get("blocks")
        if count and seconds:
            # Of the blocks that count, for the proof needs so many of those: dropped ones take time as well.
            candidate.seconds_per_block = seconds / count
        if tier == "confirm":
            self._confirmed(found, name, plan, decision, body)
            return
        if tier == "screen":
            candidate.promoted = status == "triage_promote"
            candidate.base_tree = plan["base"]["tree"]
            if status in _SCREENED and "screened" in _moves(found.state):
                found.state = transition(found.state, "screened")
        elif status in STATUSES and STATUSES[status].keeps and TIERS[tier].proves:
            self._kept(found, name, plan, decision, status)
        elif candidate.promoted and STATUSES[status].decision.startswith("discard"):
            candidate.promoted = False

    @staticmethod
    def _confirmed(found: Round, name: str, plan: Json, decision: Json, body: Json) -> None:
        tree, used = plan["cand"]["tree"], (decision.get("evidence") or {}).get("used") or 0
        found.confirms[tree] = confirm_status(str(body["status"]), used, TIERS["confirm"], found.strict)
        if found.confirms[tree] in UNFINISHED or not decision:
            return
        found.ended_confirm = ConfirmEnd(
            name,
            Ref.from_json(plan["cand"]),
            decision,
            plan["benchmark_tier"],
            plan["policy"],
            plan["recorded"],
            body.get("artifact"),
        )

    def _kept(self, found: Round, name: str, plan: Json, decision: Json, status: str) -> None:
        evidence = decision.get("evidence") or {}
        if plan["base"]["tree"] != found.baseline_tree or evidence.get("lcb") is None:
            return
        found.kept.append(
            Kept(
                name,
                status,
                plan["tier"],
                plan["benchmark_tier"],
                plan["cand"]["commit"],
                plan["cand"]["tree"],
                float(evidence["hl"]),
                float(evidence["lcb"]),
                tuple(decision.get("marks") or ()),
                plan["policy"],
            )
        )
        for candidate in found.candidates.values():
            candidate.consumed = True
        if "kept" in _moves(found.state):
            found.state = transition(found.state, "kept")


def _judges(plan: Json) -> bool:
    """Is it a candidate's own run: no calibration, and not a further workload of another run."""
    return plan["tier"] not in ("calibrate", "single") and not plan.get("part_of")


def _belongs(plan: Json) -> bool:
    """Is an attempt the round's: recorded, and of the policy that decides."""
    return bool(plan["recorded"]) and plan.get("policy") != "legacy"


def _tells(plan: Json, status: str) -> bool:
    """May its end pause the round: not that of a look around (bisect, a further workload), nor a calibration
    that went well.
    """
    return plan["tier"] != "single" and not plan.get("part_of") and status != "baseline"


def _moves(state: str) -> set[str]:
    return {event for event, moves in TRANSITIONS.items() if state in moves}


def fold(events: Sequence[Event]) -> Round | None:
    """The newest round, whether it is active or ended; None before any."""
    return history(events)[-1] if any(e["type"] == "round" for e in events) else None


def history(events: Sequence[Event]) -> list[Round]:
    """All rounds, oldest first."""
    folded = _Fold()
    for event in events:
        folded.feed(event)
    return folded.rounds


def accepted_before(events: Sequence[Event], round_id: str) -> tuple[set[str], set[str]]:
    """Trees and patch-ids of what completed or was kept in rounds before this one."""
    trees: set[str] = set()
    patches: set[str] = set()
    for found in history(events):
        if found.id == round_id:
            break
        for kept in found.kept:
            trees.add(kept.tree)
            patch = found.candidates[kept.tree].patch_id if kept.tree in found.candidates else None
            patches |= {patch} if patch else set()
    return trees, patches


def round_part(events: Sequence[Event]) -> Json:
    """The round's keys of current.json, from the newest round; before any only the next actions.

    The actions are those that the events alone show, at the time of the last one; `next` also looks at HEAD.
    """
    found = fold(events)
    proposed = [action.to_json() for action in next_actions(found, _facts_of(events))]
    if found is None:
        return {"next_actions": proposed}
    best = found.best
    return {
        "goal": dict(found.body["goal"]),
        "round_id": found.id,
        "state": found.state,
        "baseline_commit": found.baseline_commit,
        "baseline_tree": found.baseline_tree,
        "target": found.target,
        "strict": found.strict,
        "policy": found.body.get("policy"),
        "policy_hash": found.body.get("policy_hash"),
        "workload_hash": found.body.get("workload_hash"),
        "harness_hash": found.body.get("harness_hash"),
        "protected_hash": found.body.get("protected_hash"),
        "may_touch": list(found.body.get("may_touch") or []),
        "accepted_stack": [
            {
                "attempt_id": k.attempt,
                "status": k.status,
                "commit": k.commit,
                "lcb": k.lcb,
                "estimate": k.estimate,
            }
            for k in found.kept
        ],
        "best_lcb": None if best is None else best.lcb,
        "best_estimate": None if best is None else best.estimate,
        "pause_rule": found.pause_rule,
        "pause_reason": found.pause_reason,
        "next_actions": proposed,
    }


def _facts_of(events: Sequence[Event]) -> NextFacts:
    calibrated = [
        a.finished_at for a in attempts_of(events).values() if is_calibration(a) and a.finished_at is not None
    ]
    now = events[-1]["time"] if events else "1970-01-01T00:00:00.000Z"
    return NextFacts(now, None, None, calibrated[-1] if calibrated else None)
