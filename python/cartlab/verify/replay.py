"""The events in order, each claim held against what was known when it was made.

Source: SPECS.md sections 5 and 6. Evidence of an attempt: blocks that were in the ledger when it
started, of recorded attempts of the same pair and unit, none of the legacy policy, none of an attempt that
had been found to do other work.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cartlab.verify.chain import checked_lines
from cartlab.verify.derive import FAILURES, KEEPS, Derived, derive, halves_of, status_of, value_of
from cartlab.verify.legacy import complaints
from cartlab.verify.loops import LoopReplay
from cartlab.verify.planning import PlanReplay

_RANK = {"keep": 3, "keep_stack": 3, "keep_small_gain": 2, "triage_promote": 1}
_UNHASHED = {"steps", "verify_steps", "warmup_steps", "slice_steps", "slices", "slice_ms", "tier", "seed"}


class Finding(NamedTuple):
    """One thing that does not hold: the line of events.jsonl (0 = another file), the attempt, and what."""

    line: int
    attempt: str | None
    what: str


@dataclass
class Report:
    """What was looked at and what was found."""

    events: int = 0
    blocks: int = 0
    decisions: int = 0
    not_derived: int = 0
    tip: str = "0" * 64
    findings: list[Finding] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Is there no finding."""
        return not self.findings


@dataclass
class _Run:
    """An attempt as far as it has come."""

    name: str
    plan: Mapping[str, Any]
    started_seq: int
    pair: tuple[str, ...]
    blocks: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    decision: Mapping[str, Any] | None = None
    finished: Mapping[str, Any] | None = None
    earlier: list[Mapping[str, Any]] = field(default_factory=list)


def workload_hash(workload: Mapping[str, Any]) -> str:
    """The workload's identity from its stored form."""
    kept = {
        key: value
        for key, value in workload["params"].items()
        if key not in _UNHASHED
        and not key.endswith(("_path", "_dir"))
        and not ((isinstance(value, str) and value[:1] in ("/", "~")) or str(value).startswith("\\\\"))
    }
    named = {key: workload[key] for key in ("name", "kind", "command", "metric", "direction", "unit")}
    text = json.dumps({**named, "params": kept}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Replay:
    """Feed it events in order with their lines; read the report at the end."""

    def __init__(self) -> None:
        self.report = Report()
        self.runs: dict[str, _Run] = {}
        self.round: Mapping[str, Any] | None = None  # the active one's opening
        self._opened: dict[str, int] = {}
        self._draws: dict[str, tuple[str, int]] = {}  # candidate tree -> the round's draw, and when
        self._line = 0
        self.loops = LoopReplay(self._say)
        self._plans = PlanReplay(self._say)

    def feed(self, line: int, event: Mapping[str, Any]) -> None:
        """Take the next event."""
        self._line = line
        self.report.events += 1
        self.report.tip = event["hash"]
        handler = getattr(self, f"_on_{event['type']}", None)
        if handler is None:
            return
        try:
            handler(event)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            self._say(
                event["attempt"], f"the {event['type']} event cannot be read: {type(error).__name__} {error}"
            )

    def _on_goal(self, event: Mapping[str, Any]) -> None:
        self.loops.goal(event)
        self._plans.goal(event)

    def _on_proposal(self, event: Mapping[str, Any]) -> None:
        self.loops.proposal(event)
        self._plans.proposal(event)

    def _on_measurement(self, event: Mapping[str, Any]) -> None:
        self.loops.measurement(event)

    def _say(self, attempt: str | None, what: str) -> None:
        self.report.findings.append(Finding(self._line, attempt, what))

    def _on_attempt_started(self, event: Mapping[str, Any]) -> None:
        plan, name = event["body"], event["attempt"]
        if name in self.runs:
            self._say(name, "the attempt was started twice")
        pair = (
            plan["base"]["tree"],
            plan["cand"]["tree"],
            workload_hash(plan["workload"]),
            plan["harness_hash"],
            plan["host_class"],
        )
        run = _Run(name, plan, event["seq"], pair)
        if plan["recorded"] and plan["tier"] not in ("calibrate", "single"):
            run.earlier = self._earlier(run)
        self.runs[name] = run
        floor = self._floor(plan["host_class"])
        if abs(plan["floor"] - floor) > 1e-12 and plan["tier"] not in ("calibrate", "single"):
            self._say(name, f"planned with floor {plan['floor']}, the newest calibration says {floor}")

    def _earlier(self, run: _Run) -> list[Mapping[str, Any]]:
        found = []
        for other in self.runs.values():
            spoiled = self._status(other) in ("behaviour_changed", "tampered")
            same = other.pair == run.pair and other.plan["unit"] == run.plan["unit"]
            if same and other.plan["recorded"] and other.plan["policy"] != "legacy" and not spoiled:
                found += other.blocks
        return [body for _, body in sorted(found, key=lambda item: item[0])]

    @staticmethod
    def _status(run: _Run) -> str | None:
        last = run.finished or run.decision
        return None if last is None else str(last["status"])

    def _floor(self, host_class: str) -> float:
        floor = 1.0
        for run in self.runs.values():
            plan = run.plan
            here = plan["tier"] == "calibrate" and plan["host_class"] == host_class
            counts = plan["recorded"] and plan["unit"] == "block"
            if here and counts and run.finished and self._status(run) == "baseline":
                floor = 1.0 + (run.finished.get("relink_floor") or 0.0)
        return floor

    def _on_block(self, event: Mapping[str, Any]) -> None:
        name, body = event["attempt"], event["body"]
        run = self.runs.get(name)
        self.report.blocks += 1
        if run is None:
            self._say(name, "a block of an attempt that was never started")
            return
        if run.finished is not None:
            self._say(name, f"block {body['index']} came after the attempt's end")
        if body["index"] != len(run.blocks):
            self._say(name, f"expected block {len(run.blocks)}, found block {body['index']}")
        if bool(body.get("unrecorded")) == bool(run.plan["recorded"]):
            self._say(name, f"block {body['index']} and its attempt disagree on being recorded")
        if body["coin"] not in (0, 1):
            self._say(name, f"block {body['index']}: the coin shows {body['coin']}")
        if (body["order"].count("B"), body["order"].count("C")) != (
            len(body["base_ns"]),
            len(body["cand_ns"]),
        ):
            self._say(name, f"block {body['index']}: its order does not have its numbers of slices")
        y = value_of(body)
        if not math.isclose(y, body["y"], rel_tol=0.0, abs_tol=1e-9):
            self._say(name, f"block {body['index']}: y is {y:.9f} by its slices, stated {body['y']:.9f}")
        run.blocks.append((event["seq"], body))

    def _on_decision(self, event: Mapping[str, Any]) -> None:
        name, body = event["attempt"], event["body"]
        run = self.runs.get(name)
        self.report.decisions += 1
        if "goal" in body:
            self.loops.decision(event)
            self._plans.decision(event)
            return
        if run is None:
            self._say(name, "a decision on an attempt that was never started")
            return
        before, run.decision = run.decision, body
        if body.get("overrides") is not None:
            self._lowered(name, before, body)
            return
        if body.get("equal_only") or run.plan["equal_only"]:
            self.report.not_derived += 1
            if body["status"] in _RANK:
                self._say(name, "a run that only compared outputs cannot promote or keep")
            return
        plan = run.plan
        if plan["policy"] == "legacy":
            for what in complaints(plan, [b for _, b in run.blocks], body):
                self._say(name, what)
            return
        found = derive(
            run.earlier,
            [b for _, b in run.blocks],
            plan["floor"],
            plan["alpha"],
            plan["forced"],
            plan["design"],
        )
        self._compare(name, body, found)
        validity = body["validity"]
        status = status_of(plan["tier"], found, validity, body["budget_ended"], plan["floor"])
        if status != body["status"]:
            self._say(name, f"stated {body['status']}, the slices and the rules give {status}")
        if body["status"] in KEEPS and (
            plan["alpha"] != 0.01 or plan["tier"] in ("screen", "calibrate", "single")
        ):
            self._say(name, f"a {plan['tier']} at alpha {plan['alpha']} cannot keep")
        if self._drawn(run) is not None:
            self._halves(name, body, [*run.earlier, *(b for _, b in run.blocks)])
        if body["status"] in KEEPS and self._unshared(name) and "benchmark-only" not in body["marks"]:
            self._say(name, "a guard workload does not share the gain, and the verdict does not say so")
        if plan["forced"] != validity["forced"] or (plan["forced"] and not plan["approval"]):
            self._say(name, "waiving the contention rule needs an approval and shows in the verdict")

    def _compare(self, name: str, body: Mapping[str, Any], found: Derived) -> None:
        stated = body["evidence"]
        if stated is None:
            if found.used + found.dropped:
                self._say(name, f"no evidence stated, the ledger has {found.used} blocks")
            return
        for key, value in found._asdict().items():
            same = (
                stated[key] == value
                if value is None or stated[key] is None or isinstance(value, int)
                else math.isclose(stated[key], value, rel_tol=1e-6)
            )
            if not same:
                self._say(name, f"{key}: stated {stated[key]}, the slices give {value}")

    @staticmethod
    def _drawn(run: _Run) -> str | None:
        """The seed of the run's held-out draw."""
        seed = run.plan["workload"]["params"].get("held_out")
        return None if seed is None else str(seed)

    def _halves(self, name: str, body: Mapping[str, Any], blocks: list[Mapping[str, Any]]) -> None:
        stated = body.get("halves") or {}
        for half, (used, hl) in halves_of(blocks).items():
            one = stated.get(half) or {}
            close = (
                one.get("hl") == hl
                if hl is None or one.get("hl") is None
                else math.isclose(one["hl"], hl, rel_tol=1e-6)
            )
            if one.get("used") != used or not close:
                self._say(
                    name,
                    f"the {half} half: stated {one.get('used')} blocks and {one.get('hl')}, "
                    f"the slices give {used} and {hl}",
                )

    def _unshared(self, name: str) -> bool:
        """Is there a guard workload measured beside this run whose estimate is no gain?"""
        for run in self.runs.values():
            if run.plan.get("part_of") == name and run.plan["workload"].get("guards"):
                stated = (run.decision or {}).get("evidence") or {}
                if (stated.get("hl") or 0.0) <= 1.0:
                    return True
        return False

    def _lowered(self, name: str, before: Mapping[str, Any] | None, body: Mapping[str, Any]) -> None:
        was = 0 if before is None else _RANK.get(before["status"], 0)
        now = _RANK.get(body["status"], 0)
        if now > was or (now == was and now > 0):
            self._say(name, f"an override may only lower a verdict, found {body['status']}")
        if not body.get("reasons"):
            self._say(name, "an override needs a reason")

    def _on_attempt_finished(self, event: Mapping[str, Any]) -> None:
        name, body = event["attempt"], event["body"]
        run = self.runs.get(name)
        if run is None:
            self._say(name, "the end of an attempt that was never started")
            return
        run.finished = body
        stated = None if run.decision is None else run.decision["status"]
        if stated is not None and body["status"] != stated and body["status"] not in FAILURES:
            self._say(name, f"finished as {body['status']}, decided {stated}")
        if stated is None and body["status"] not in (*FAILURES, "ok"):
            self._say(name, f"finished as {body['status']} without a decision")

    def _on_round(self, event: Mapping[str, Any]) -> None:
        body, found = event["body"], self.round
        action = body["action"]
        if action == "open":
            if found is not None:
                self._say(None, f"round {body['round_id']} was opened while {found['round_id']} was active")
            if body["target"] < 1.10:
                self._say(None, f"round {body['round_id']} has a target of {body['target']}")
            self.round = body
            self._draws = {}
            self._opened[body["round_id"]] = event["seq"]
            return
        if found is None or body["round_id"] != found["round_id"]:
            self._say(None, f"{action} of round {body['round_id']}, which is not active")
            return
        if action == "confirm":
            before = self._draws.get(body["tree"])
            if before is not None and before[0] != body["seed"]:
                self._say(None, f"candidate tree {body['tree'][:12]} was given a second held-out draw")
            self._draws[body["tree"]] = before or (body["seed"], event["seq"])
        if action == "complete":
            self._completed(found, body)
        if action in ("complete", "abandon"):
            self.round = None

    def _completed(self, found: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """A round is complete only by a recorded confirm run against its baseline that passes the bar."""
        name, target = body["attempt"], found["target"]
        bar = target if found.get("strict") else 1.0 + 0.7 * (target - 1.0)
        run = self.runs.get(name)
        if run is None or run.decision is None or run.plan["tier"] != "confirm":
            self._say(name, "the round was completed without a confirm run")
            return
        stated = run.decision["evidence"] or {}
        marks = set(run.decision.get("marks") or ())
        draw = self._draws.get(body["tree"])
        needed = 48 if found.get("strict") else 24
        counts = [used for used, _ in halves_of([*run.earlier, *(b for _, b in run.blocks)]).values()]
        broken = [
            ((stated.get("used") or 0) < needed, f"it has {stated.get('used')} of {needed} blocks"),
            (run.plan["benchmark_tier"] != "local_acceptance", f"its tier is {run.plan['benchmark_tier']}"),
            (
                draw is None or draw[0] != self._drawn(run) or draw[1] > run.started_seq,
                "its held-out half is not what the round drew after the candidate was fixed",
            ),
            (abs(counts[0] - counts[1]) > 1, f"its halves have {counts[0]} and {counts[1]} blocks"),
            (run.decision["status"] not in KEEPS, f"its confirm run ended as {run.decision['status']}"),
            ((stated.get("hl") or 0.0) < target, "the estimate is below the target"),
            ((stated.get("lcb") or 0.0) < bar - 1e-9, f"the lower bound is below {bar:.3f}"),
            (not run.plan["recorded"] or run.plan["policy"] != "anytime", "the run may not count"),
            (bool(marks & {"forced", "imported", "legacy", "unrecorded", "benchmark-only"}), "it is marked"),
            (run.plan["base"]["tree"] != found["baseline_tree"], "it ran against another baseline"),
            (run.plan["cand"]["tree"] != body["tree"], "it ran another candidate"),
            (run.started_seq < self.opened_seq(found), "it ran before the round was opened"),
        ]
        for wrong, why in broken:
            if wrong:
                self._say(name, f"round {found['round_id']} is not complete: {why}")

    def opened_seq(self, found: Mapping[str, Any]) -> int:
        """The seq of the event that opened this round."""
        return self._opened[found["round_id"]]

    def _on_import(self, event: Mapping[str, Any]) -> None:
        if event["attempt"] in self.runs:
            self._say(event["attempt"], "an import under the name of an attempt of this ledger")


def verify_events(data: bytes) -> Report:
    """Replay the bytes of an events.jsonl."""
    replay = Replay()
    for line, event, wrong in checked_lines(data):
        if wrong:
            replay.report.findings.append(Finding(line, None, wrong))
        if event is not None:
            replay.feed(line, event)
    return replay.report
