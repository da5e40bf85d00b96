"""The research loops' events, each claim held against what stood in the ledger before it.

Source: docs/loops.md. Nothing is shared with the loops' own code. What has to hold: an attempt's steps are in
order; a decision that keeps rests on an evaluation that the harness recorded before it, of the tree that was
handed in, with the value that the decision states; under each policy the recorded runs give the stated
verdict; only what was kept is accepted; a kept value beats the best one before it. A journal's baseline is an
attempt too; its keeps may also rest on less code at an equal value, and a broken guard or whoever handed in
may take one back.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cartlab.stats.betting import Bets
from cartlab.verify.acceptance import Acceptance
from cartlab.verify.campaigns import CampaignGoal
from cartlab.verify.derive import FAILURES, KEEPS

_ORDER = (
    ("proposed",),
    ("critiqued", "queued"),
    ("dispatched",),
    ("submitted",),
    ("screened",),
    ("building", "checking", "measuring"),
    ("decided",),
    ("accepted", "rolled_back"),
    ("closed",),
)
_RANK = {name: rank for rank, names in enumerate(_ORDER) for name in names}
# Verdicts that a measurement gives; the others say why there is none.
_MEASURED = (*KEEPS, "discard", "unverified", "inconclusive")
Say = Callable[[str | None, str], None]


@dataclass
class _Try:
    """An attempt as far as it has come."""

    goal: str
    rank: int = -1
    tree: str | None = None
    lines: int = 0
    evals: dict[int, tuple[str, float]] = field(default_factory=dict)
    workloads: dict[int, str | None] = field(default_factory=dict)
    metrics: dict[int, Mapping[str, float]] = field(default_factory=dict)
    checks: int | None = None
    status: str | None = None


@dataclass
class _Goal:
    """A goal's direction and best value in its current segment; journal: a journal's terms; noise: how far
    its baseline's runs lay apart; floor, jump: the smallest gain that counts and the one that has to be seen
    twice, where the goal's loop holds its rounds to them; values: those decided so far in the segment.
    """

    direction: str
    best: float
    trees: dict[str, float] = field(default_factory=dict)
    journal: Mapping[str, Any] | None = None
    noise: float = 0.0
    floor: float = 0.0
    jump: float = 0.0
    values: list[float] = field(default_factory=list)


class LoopReplay:
    """Feed it the loops' events in order; it says what does not hold."""

    def __init__(self, say: Say) -> None:
        self._say = say
        # A journal's keeps for less code: attempt -> the net code lines that were recorded.
        self.simpler: dict[str, int] = {}
        self._goals: dict[str, _Goal] = {}
        self._tries: dict[str, _Try] = {}
        self._campaigns: dict[str, CampaignGoal] = {}
        self._values: dict[int, tuple[str, float]] = {}
        self._acceptance = Acceptance(say)

    def goal(self, event: Mapping[str, Any]) -> None:
        """An opening, a change, or a state."""
        body = event["body"]
        self._acceptance.goal(body)
        if body["op"] == "audit":
            self._audit(body)
        if body["op"] == "opened" and body["loop"] == "campaign":
            self._campaigns[body["goal"]] = CampaignGoal()
        if body["goal"] in self._campaigns:
            self._campaigns[body["goal"]].describe(body, self._say)
        if body["op"] in ("opened", "protocol") and "protocol" in body["describes"]:
            protocol = body["describes"]["protocol"]
            goal = self._goals.get(body["goal"])
            if goal is None or body.get("segment") or body.get("keys") == ["baseline"]:
                terms = body["describes"].get("journal")
                # A journal's baseline is measured as its first experiment.
                best = math.nan if terms else float(protocol["baseline"])
                asked = {} if body["goal"] in self._campaigns else protocol.get("witnesses") or {}
                self._goals[body["goal"]] = _Goal(
                    protocol["direction"],
                    best,
                    journal=terms,
                    floor=float(asked.get("floor", 0.0)),
                    jump=float(asked.get("jump", 0.0)),
                )
            elif "journal" in body["describes"]:
                goal.journal, goal.direction = body["describes"]["journal"], protocol["direction"]

    def proposal(self, event: Mapping[str, Any]) -> None:
        """A step of an attempt."""
        body, name = event["body"], event["attempt"]
        one = self._tries.setdefault(name, _Try(body["goal"]))
        state = body["state"]
        if state == "interrupted":
            # Whoever takes it up again may start anywhere, also from the queue.
            one.rank = _RANK["proposed"]
            return
        if _RANK[state] < one.rank or (state == "proposed") != (one.rank == -1):
            self._say(name, f"the step {state} comes out of order")
        one.rank = _RANK[state]
        if state == "submitted":
            one.tree = body["tree"]
        one.lines = body.get("code_lines", one.lines)
        if state == "accepted" and one.status not in (*KEEPS, "baseline"):
            self._say(name, f"accepted with the verdict {one.status}")

    def measurement(self, event: Mapping[str, Any]) -> None:
        """A run that the harness made."""
        body, one = event["body"], self._tries.get(event["attempt"])
        self._acceptance.measurement(event)
        if body.get("goal") in self._campaigns:
            self._campaigns[body["goal"]].measure(event)
        if body["role"] == "eval" and body.get("value") is not None:
            self._values[event["seq"]] = (str(event["attempt"]), float(body["value"]))
        if one is not None and body["role"] == "eval" and body.get("value") is not None:
            one.evals[event["seq"]] = (body["tree"], float(body["value"]))
            one.workloads[event["seq"]] = body.get("workload")
            one.metrics[event["seq"]] = body.get("metrics") or {}
        if one is not None and body["role"] == "checks":
            one.checks = body.get("returncode")

    def decision(self, event: Mapping[str, Any]) -> None:
        """A verdict on a loop's attempt."""
        body, name = event["body"], event["attempt"]
        one, goal = self._tries.get(name), self._goals.get(body["goal"])
        if one is None or goal is None:
            self._say(name, "a decision on an attempt that was never proposed")
            return
        one.status, one.rank = body["status"], _RANK["decided"]
        earlier = list(goal.values)
        if body.get("value") is not None:
            goal.values.append(float(body["value"]))
        if body["status"] == "baseline" and goal.journal is not None:
            self._baseline(name, one, goal, body)
            return
        if body["status"] not in _MEASURED:
            if body["status"] not in FAILURES and body["status"] not in ("no_change", "interrupted"):
                self._say(name, f"no loop gives the verdict {body['status']}")
            return
        if body["inputs"].get("pooled"):
            if body["status"] in KEEPS or goal.trees.get(str(one.tree)) != body["value"]:
                self._say(name, "it claims the value of a tree that was never measured so")
            return
        rests = one.evals.get(body["measurement"])
        if rests is None or rests != (one.tree, float(body["value"])):
            self._say(name, "its value is not that of an evaluation of its tree")
            return
        goal.trees[str(one.tree)] = float(body["value"])
        if len({one.workloads[seq] for seq in _rests_on(body["inputs"]) if seq in one.workloads}) > 1:
            self._say(name, "its evaluations are not of one workload")
        if body["status"] in KEEPS and goal.journal is None:
            self._acceptance.kept(name, body["goal"], one.tree)
        if body["status"] in KEEPS and goal.jump and not _seen_again(one, goal, body, earlier):
            self._say(name, "kept for a jump that no further run saw again")
        derived = self._derive(one, goal, body)
        if body["goal"] in self._campaigns:
            sign = 1.0 if goal.direction == "higher" else -1.0
            derived = self._campaigns[body["goal"]].decide(event, sign, goal.best, derived, self._say)
        if goal.journal is not None:
            derived = _weighed(one, goal, body, derived)
            if body["inputs"].get("simplification"):
                self.simpler[name] = one.lines
        if derived != body["status"]:
            self._say(name, f"recorded as {body['status']}, its runs give {derived}")
        if body["status"] in KEEPS and not (
            body["inputs"].get("simplification") and _better(goal, goal.best, float(body["value"]))
        ):
            goal.best = float(body["value"])

    def _audit(self, body: Mapping[str, Any]) -> None:
        """An audit's word from its recorded pairs."""
        name, goal = str(body["attempt"]), self._goals.get(body["goal"])
        named = [seq for pair in body["pairs"] for seq in pair]
        if goal is None or any(
            not self._values.get(seq, ("", 0.0))[0].startswith(f"{name}-audit") for seq in named
        ):
            self._say(name, "an audit names evaluations that were not made for it")
            return
        if not body["complete"]:
            return
        sign = 1.0 if goal.direction == "higher" else -1.0
        pairs = [(self._values[x][1], self._values[y][1]) for x, y in body["pairs"]]
        gain = statistics.median(sign * (math.log(x / y) if x > 0 and y > 0 else x - y) for x, y in pairs)
        new, stored = [x for x, _ in pairs], float(body["stored"])
        wide = max(new) - min(new) + body["tolerance"] + 1e-9 * abs(stored)
        inside = min(new) - wide <= stored <= max(new) + wide
        word = "not_reproduced" if gain <= 0 else "reproduced" if inside else "moved"
        if word != body["word"]:
            self._say(name, f"an audit says {body['word']}, its runs give {word}")

    def _baseline(self, name: str, one: _Try, goal: _Goal, body: Mapping[str, Any]) -> None:
        """A journal's first experiment: the median of its runs, and how far they lay apart."""
        runs = [one.evals.get(seq) for seq in body["inputs"]["measurements"]]
        if not runs or any(run is None or run[0] != one.tree for run in runs):
            self._say(name, "its value is not that of an evaluation of its tree")
            return
        values = sorted(run[1] for run in runs if run is not None)
        if not math.isnan(goal.best):
            self._say(name, "a second baseline in one segment")
        if (
            values[(len(values) - 1) // 2] != body["value"]
            or one.evals[body["measurement"]][1] != body["value"]
        ):
            self._say(name, "the baseline is not the median of its runs")
        goal.best, goal.noise = float(body["value"]), values[-1] - values[0]
        goal.trees[str(one.tree)] = goal.best

    def _derive(self, one: _Try, goal: _Goal, body: Mapping[str, Any]) -> str:
        """The verdict that the recorded evaluations give under the decision's policy."""
        sign = 1.0 if goal.direction == "higher" else -1.0
        policy, inputs = body["policy"], body["inputs"]
        if policy == "paired":
            return self._paired(one, sign, inputs, goal.floor)
        values = [one.evals[seq][1] for seq in inputs["measurements"] if seq in one.evals]
        if len(values) != len(inputs["measurements"]):
            return "nothing: an evaluation is missing"
        wins = [sign * (value - goal.best) > goal.floor for value in values]
        if policy == "repeat-k":
            middle = statistics.median(values[: inputs["k"]])
            return "keep" if sign * (middle - goal.best) > goal.floor else "discard"
        if policy == "verified" and wins[0]:
            return "keep" if len(wins) > 1 and wins[1] else "unverified"
        return "keep" if wins[0] else "discard"

    @staticmethod
    def _paired(one: _Try, sign: float, inputs: Mapping[str, Any], floor: float) -> str:
        """The e-process over the recorded pairs, candidate and accepted tree in turn."""
        bets = Bets(inputs["alpha"], (1.0,))
        for cand, base in inputs["measurements"]:
            if cand not in one.evals or base not in one.evals or one.evals[cand][0] != one.tree:
                return "nothing: a pair has no evaluations"
            x, y = one.evals[cand][1] - sign * floor, one.evals[base][1]
            bets.add(sign * (math.log(x / y) if x > 0 and y > 0 else x - y))
        if bets.lcb is not None and bets.lcb >= 1.0:
            return "keep"
        if bets.ucb is not None and bets.ucb <= 1.0:
            return "discard"
        return "inconclusive"


def _seen_again(one: _Try, goal: _Goal, body: Mapping[str, Any], earlier: list[float]) -> bool:
    """Is a kept gain no jump, or did a later run of the same tree, on which its policy does not rest, gain?
    A jump: more than so many spreads (scaled median absolute deviations) of the best and the values before;
    of fewer than three values, or equal ones, there is no spread.
    """
    sign = 1.0 if goal.direction == "higher" else -1.0
    known = [goal.best, *earlier]
    middle = statistics.median(known)
    spread = 1.4826 * statistics.median([abs(value - middle) for value in known]) if len(known) > 2 else 0.0
    if sign * (float(body["value"]) - goal.best) <= goal.jump * spread:
        return True
    last = max(_rests_on(body["inputs"]), default=int(body["measurement"]))
    return any(
        seq > last and tree == one.tree and sign * (value - goal.best) > goal.floor
        for seq, (tree, value) in one.evals.items()
    )


def _rests_on(inputs: Mapping[str, Any]) -> list[int]:
    """The measurements that a decision's inputs name, pairs laid flat."""
    named = inputs.get("measurements") or []
    return [seq for one in named for seq in (one if isinstance(one, list) else [one])]


def _better(goal: _Goal, one: float, other: float) -> bool:
    return one > other if goal.direction == "higher" else one < other


def _weighed(one: _Try, goal: _Goal, body: Mapping[str, Any], derived: str) -> str:
    """A journal's verdict after its own rules: simpler code, guards, a wish for no keep, checks."""
    terms, inputs = goal.journal or {}, body["inputs"]
    if inputs.get("simplification"):
        allowed = max(float(terms["noise"]), goal.noise)
        near = abs(float(body["value"]) - goal.best) <= allowed
        if derived == "discard" and body["policy"] != "paired" and near:
            derived = "keep" if one.lines <= -max(1, int(terms["simpler_by"])) else derived
    if derived in KEEPS and any(_breaks(text, one.metrics[body["measurement"]]) for text in terms["guards"]):
        derived = "discard"
    if derived in KEEPS and inputs.get("lowered"):
        derived = "discard"
    if derived in KEEPS and terms["checks"] and one.checks != 0:
        return "checks_failed"
    return derived


def _breaks(text: str, metrics: Mapping[str, float]) -> bool:
    """Is a guard (`name<=bound` or `name>=bound`) broken; a value that is missing breaks it."""
    sign = "<=" if "<=" in text else ">="
    name, _, bound = text.partition(sign)
    value = metrics.get(name.strip())
    if value is None:
        return True
    return value > float(bound) if sign == "<=" else value < float(bound)
