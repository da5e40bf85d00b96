"""A session as the ledger has it: its terms, its best value, and autoresearch.jsonl as a view. Pure.

A journal's goal holds a protocol as every goal does (metric, direction, limits, what may change) and under
"journal" its terms. A second `init` is a protocol event; where results exist it starts a new segment. The
baseline is an attempt like any other, with the verdict `baseline`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cartlab.errors import UsageError
from cartlab.loops import journal_file, policies
from cartlab.loops.compliance import DIFF_CAP
from cartlab.loops.confidence import Point, confidence
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal_file import NO_COMMIT, Config, Journal, Result
from cartlab.loops.protocol import Protocol
from cartlab.loops.states import VIEWS
from cartlab.loops.views import Best
from cartlab.loops.witness import Witnesses
from cartlab.model import Stored

LOOP = "journal"
DOCUMENT, SCRIPT, CHECKS = "autoresearch.md", "autoresearch.sh", "autoresearch.checks.sh"
LINES, IDEAS = "autoresearch.jsonl", "autoresearch.ideas.md"
FILES = (DOCUMENT, SCRIPT, CHECKS, LINES, IDEAS)
BENCHMARK_LIMIT_S, CHECKS_LIMIT_S = 600.0, 300.0
# So many experiments fill an agent's memory; then it is told to hand over.
HAND_OVER = 15
BASELINE_HYPOTHESIS = "baseline measurement"


@dataclass(frozen=True)
class Terms(Stored):
    """What `init` was told. script, checks: the two scripts' text ("": no checks); guards: `name<=number` or
    `name>=number`, what no keep may break; noise: values so near the best one count as equal, in the
    metric's unit; simpler_by: net code lines that have to go for a keep at an equal value; complex_lines:
    added lines a percent gained that draw a remark; max_seconds: wall time of the segment; nonce: only METRIC
    lines that carry AR_NONCE count; diff_cap: bytes that a submission may add.
    """

    name: str
    metric: str
    unit: str
    direction: str
    script: str
    checks: str = ""
    objective: str = ""
    command: str = ""
    scope: tuple[str, ...] = ()
    off_limits: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    noise: float = 0.0
    simpler_by: int = 1
    complex_lines: int = 50
    baseline_runs: int = 1
    limit_s: float = BENCHMARK_LIMIT_S
    checks_limit_s: float = CHECKS_LIMIT_S
    max_experiments: int | None = None
    max_seconds: float | None = None
    target: float | None = None
    locale: str = "fr"
    commit: bool = False
    nonce: bool = False
    diff_cap: int = DIFF_CAP

    _tuples = ("scope", "off_limits", "constraints", "secondary", "guards")

    def protocol(self) -> Protocol:
        """The goal's protocol: what every loop's parts ask of one."""
        return Protocol(
            title=self.name,
            research_question=self.objective or self.name,
            max_rounds=self.max_experiments or 1_000_000,
            target=self.target,
            metric=self.metric,
            direction=self.direction,
            baseline="",
            fixed=(SCRIPT, CHECKS, *self.off_limits),
            time_limit=f"{self.limit_s:g}",
            epoch_limit="1",
            variable=self.scope,
            variable_range="",
            eval_command=f"bash {SCRIPT}",
            strict_variable=bool(self.scope),
            diff_cap=self.diff_cap,
            witnesses=Witnesses(nonce=self.nonce),
        )


def terms_of(goal: Goal) -> Terms:
    """The session's terms with all changes."""
    return Terms.from_json(goal.body["journal"])


def guard(text: str) -> tuple[str, str, float]:
    """A guard as (name, "<=" or ">=", bound); UsageError for anything else."""
    hit = re.fullmatch(r"\s*([A-Za-z_µ][\w.µ-]*)\s*(<=|>=)\s*(-?[\d.]+(?:[eE][+-]?\d+)?)\s*", text)
    if hit is None:
        raise UsageError(f"a guard is NAME<=NUMBER or NAME>=NUMBER; found {text!r}", "--guard 'rss_mb<=900'")
    return hit[1], hit[2], float(hit[3])


def broken_guard(terms: Terms, metrics: Mapping[str, float]) -> str | None:
    """The first guard that the values break, in words; a value that is missing breaks its guard."""
    for text in terms.guards:
        name, sign, bound = guard(text)
        value = metrics.get(name)
        if value is None:
            return f"{name} was not measured, and its bound is {name}{sign}{bound:g}"
        if value > bound if sign == "<=" else value < bound:
            return f"{name} is {value:g}, and its bound is {name}{sign}{bound:g}"
    return None


# --- the newest segment -----------------------------------------------------------------------------


def tries(goal: Goal) -> list[Try]:
    """The decided attempts of the current segment; what was interrupted is none."""
    return [
        one
        for one in goal.tries
        if one.segment == goal.segment and one.decision is not None and not one.decision.get("retried")
    ]


def baseline_of(goal: Goal) -> Try | None:
    """The segment's first experiment, once it was measured."""
    return next((one for one in tries(goal) if one.status == "baseline"), None)


def best_of(goal: Goal) -> Best | None:
    """The best kept value of the segment, the baseline's at the start; None before it was measured."""
    best: Best | None = None
    direction = terms_of(goal).direction
    for one in tries(goal):
        decision = one.decision or {}
        if (one.kept or one.status == "baseline") and decision.get("value") is not None:
            value = float(decision["value"])
            if best is None or policies.better(value, best.number, direction):
                best = Best(value, str(decision["text"]), one.round)
    return best


def noise_of(goal: Goal) -> float:
    """Values so near the best one are equal: as declared, or as far as the baseline's runs lay apart."""
    base = baseline_of(goal)
    spread = 0.0 if base is None else float((base.decision or {})["inputs"].get("spread", 0.0))
    return max(terms_of(goal).noise, spread)


def ending(goal: Goal, now: datetime) -> tuple[str, str] | None:
    """(state, reason) where the session ends after its newest record, or None: count, wall time, target, a
    stop that was asked for.
    """
    terms, best = terms_of(goal), best_of(goal)
    done = tries(goal)
    # A baseline that is there already is no result: the user may have mistaken the target's direction.
    if (
        done
        and terms.target is not None
        and best is not None
        and done[-1].status != "baseline"
        and policies.reaches(best.number, terms.target, terms.direction)
    ):
        return "target_reached", f"target: {best.text} reaches {terms.target:g}"
    if terms.max_experiments is not None and len(done) >= terms.max_experiments:
        return "completed", f"count: {len(done)} of {terms.max_experiments} experiments"
    began = str(goal.body.get("segment_began") or goal.opened)
    spent = (now - datetime.fromisoformat(began.replace("Z", "+00:00"))).total_seconds()
    if terms.max_seconds is not None and spent >= terms.max_seconds:
        return "budget_exhausted", f"wall time: {spent:.0f} of {terms.max_seconds:g} s"
    if goal.stop_asked is not None:
        return "stopped_by_user", goal.stop_asked
    return None


# --- the view -----------------------------------------------------------------------------------------


def journal_of(events: Iterable[Mapping[str, Any]], goal_id: str) -> Journal:
    """autoresearch.jsonl of a goal: what was there before, a config an `init`, a result a decision."""
    own = [event for event in events if _belongs(event, goal_id)]
    submitted: dict[str, Mapping[str, Any]] = {}
    commits: dict[str, str] = {}
    for event in own:
        if event["type"] == "proposal" and event["body"]["state"] in ("submitted", "accepted"):
            commits[event["attempt"]] = str(event["body"]["commit"])
            if event["body"]["state"] == "submitted":
                submitted[event["attempt"]] = event["body"]
    out = _Lines()
    for event in own:
        body, name = event["body"], event["attempt"]
        if event["type"] == "goal" and "journal" in body.get("describes", {}):
            if body["op"] == "opened":
                for line in journal_file.parse(body["describes"].get("before") or "").lines:
                    out.take(line)
            terms = Terms.from_json(body["describes"]["journal"])
            out.take(Config(terms.name, terms.metric, terms.unit, terms.direction))
        elif event["type"] == "decision" and not body.get("retried"):
            out.take(_result(out, event, commits.get(name), submitted.get(name, {})))
    return Journal(tuple(out.lines))


@dataclass
class _Lines:
    """The lines so far, and what the next result has to know of them, as Journal tells of a whole file."""

    lines: list[Config | Result] = field(default_factory=list)
    config: Config | None = None
    runs: int = 0
    segment: int = 0
    current: list[Point] = field(default_factory=list)

    def take(self, line: Config | Result) -> None:
        """Append a line."""
        self.lines.append(line)
        if isinstance(line, Config):
            self.segment += bool(self.current)
            self.config, self.current = line, []
        else:
            self.runs += 1
            self.current.append(Point(line.metric, line.status))


def _belongs(event: Mapping[str, Any], goal_id: str) -> bool:
    return (
        event["type"] in ("goal", "proposal", "decision")
        and isinstance(event["body"], Mapping)
        and event["body"].get("goal") == goal_id
    )


def _result(
    so_far: _Lines, event: Mapping[str, Any], commit: str | None, submitted: Mapping[str, Any]
) -> Result:
    body, config = event["body"], so_far.config
    assert config is not None
    status = VIEWS[body["status"]].journal
    metric = None if body.get("value") is None else float(body["value"])
    asi = dict(submitted.get("asi") or {})
    if body["status"] in ("inconclusive", "busy_invalid"):
        asi["inconclusive"] = True
    if status != "keep":
        asi.setdefault("rollback_reason", str(body["insight"]))
    stamp = datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
    return Result(
        run=so_far.runs + 1,
        commit=commit[:7] if commit and status == "keep" else NO_COMMIT,
        metric=metric,
        status=status,
        description=str(submitted.get("strategy", "")),
        metrics={name: float(value) for name, value in (body.get("metrics") or {}).items()},
        timestamp=round(stamp * 1000),
        segment=so_far.segment,
        confidence=confidence([*so_far.current, Point(metric, status)], config.direction, "factory"),
        asi=asi,
    )


def named(goal: Goal) -> str:
    """What people call the session: its branch, or its id where it has none."""
    return str(goal.body.get("branch") or goal.id)
