"""From the events to the facts of a report: which attempts it shows, and with which blocks.

Of each pair of revisions the newest finished attempt is shown once, a pair without one by its newest; what
was not recorded and what was imported is shown beside it, marked. The only file that is read here is a run's
aggregate, for its count of instructions. Nothing is decided: verdicts are the ledger's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from cartlab.artefacts import RunFolder
from cartlab.ledger import Attempt, Event, attempts_of, blocks_of
from cartlab.ledger.attempts import calibration_of
from cartlab.model import POLICY, TIERS, Block, Plan
from cartlab.pipeline import halves
from cartlab.report import Accepted, Candidate, Noise, Page, Together, diagnose
from cartlab.report import Round as RoundFacts
from cartlab.round import Round, confirm_bar, fold
from cartlab.stats import discoveries
from cartlab.stats.witnesses import witnesses
from cartlab.words import counted

# As many candidates get a card with drawings; all are in the forest plot.
CARDS = 12
CONTEXT_TIERS = ("calibrate", "single")


class Surroundings(NamedTuple):
    """What only the repository, the machine and the clock can say. root: the folder's name alone."""

    root: str
    project: str
    written_at: str
    host_class: str
    branch: str | None
    commit: str | None
    next: Sequence[Mapping[str, Any]]
    session: Mapping[str, Any]
    session_text: Sequence[str]
    remarks: Sequence[str] = ()


def page_of(
    events: Sequence[Event], around: Surroundings, instructions: Callable[[str], Mapping[str, Any] | None]
) -> Page:
    """The facts of a report. instructions: attempt id -> the aggregate's count of both sides, or None."""
    attempts = attempts_of(events)
    found = fold(events)
    shown = _newest_of_pairs(attempts)
    carded = {a.id for a in [a for a in shown if a.blocks or _pooled(a)][-CARDS:]}
    candidates = [_candidate(a, attempts, found, a.id in carded, instructions) for a in shown]
    candidates += [_imported(event) for event in events if event["type"] == "import"]
    return Page(
        root=around.root,
        project=around.project,
        written_at=around.written_at,
        branch=around.branch,
        commit=around.commit,
        events=len(events),
        attempts=len(attempts),
        round=None if found is None else _round(found),
        candidates=tuple(sorted(candidates, key=lambda c: c.at)),
        noise=_noise(attempts, around),
        together=None if found is None else _together(found, attempts),
        checks=tuple(
            f"{e['time'][:16].replace('T', ' ')} {e['body']['text']}"
            for e in events
            if e["type"] == "note" and e["body"].get("kind") == "checks"
        ),
        next=tuple(around.next),
        remarks=(*around.remarks, *_remarks(events, attempts)),
        session=around.session,
        session_text=tuple(around.session_text),
    )


def instructions_of(root: Path, attempt: str) -> Mapping[str, Any] | None:
    """The count of instructions in a run's aggregate.json; None where there is none that can be read."""
    try:
        body = json.loads((RunFolder(root, attempt).path / "aggregate.json").read_text(encoding="utf-8"))
        found = body.get("instructions")
        numbers = {side: float(found[side]) for side in ("base", "cand")}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return numbers


def _newest_of_pairs(attempts: Mapping[str, Attempt]) -> list[Attempt]:
    newest: dict[Any, Attempt] = {}
    for attempt in attempts.values():
        plan = attempt.plan
        if plan.tier in CONTEXT_TIERS or attempt.status == "ok":
            continue
        key = (plan.pair, plan.recorded)
        if key not in newest or attempt.finished is not None or newest[key].finished is None:
            newest[key] = attempt
    return sorted(newest.values(), key=lambda a: a.started_seq)


def _pooled(attempt: Attempt) -> int:
    return int(_evidence(attempt).get("pooled") or 0)


def _evidence(attempt: Attempt) -> Mapping[str, Any]:
    return (attempt.decision or {}).get("evidence") or {}


def _earlier(attempt: Attempt, attempts: Mapping[str, Attempt]) -> list[Block]:
    """The blocks before its own that its evidence rests on; none where it pooled none."""
    plan = attempt.plan
    return blocks_of(attempts, plan.pair, plan.unit, before=attempt.id) if _pooled(attempt) else []


def _candidate(
    attempt: Attempt,
    attempts: Mapping[str, Attempt],
    found: Round | None,
    carded: bool,
    instructions: Callable[[str], Mapping[str, Any] | None],
) -> Candidate:
    plan, body, evidence = attempt.plan, attempt.decision or {}, _evidence(attempt)
    earlier = _earlier(attempt, attempts)
    guard = float(evidence.get("guard") or max(POLICY.guard, plan.floor))
    seen = witnesses([*earlier, *attempt.blocks], evidence.get("hl"), instructions(attempt.id))
    candidate = None if found is None else found.candidates.get(plan.cand.tree)
    return Candidate(
        attempt_id=attempt.id,
        at=attempt.finished_at or attempt.started,
        command=plan.command,
        name=plan.cand.name,
        commit=plan.cand.commit,
        baseline=plan.base.commit,
        title=plan.mechanism or "",
        status=attempt.status or "unfinished",
        decision=str(body.get("decision") or "inconclusive"),
        reasons=tuple(body.get("reasons") or ()) or _why_ended(attempt),
        marks=_marks(plan, body),
        checks=(body.get("validity") or {}).get("checks") if TIERS[plan.tier].proves else None,
        own=plan.recorded and plan.part_of is None,
        in_round=candidate is not None and attempt.id in candidate.attempts,
        used=int(evidence.get("used") or 0),
        pooled=int(evidence.get("pooled") or 0),
        dropped=int(evidence.get("dropped") or 0),
        faster=evidence.get("faster"),
        hl=evidence.get("hl"),
        lcb=evidence.get("lcb"),
        ucb=evidence.get("ucb"),
        e_value=evidence.get("e_value"),
        guard=guard,
        margin=max(POLICY.margin, plan.floor),
        alpha=plan.alpha,
        cpu=seen.cpu,
        instructions=seen.instructions,
        disagree=seen.disagree,
        halves=_halves(plan, [*earlier, *attempt.blocks]),
        diagnostics=diagnose(earlier, attempt.blocks, guard, plan.forced) if carded else None,
    )


def _halves(plan: Plan, blocks: Sequence[Block]) -> tuple[tuple[str, int, float | None], ...]:
    found = halves.estimates(plan, blocks) or {}
    return tuple((half, one["used"], one["hl"]) for half, one in found.items())


def _why_ended(attempt: Attempt) -> tuple[str, ...]:
    if attempt.finished is None:
        return (f"not finished: {counted(len(attempt.blocks), 'block')} so far",)
    reason = attempt.finished.get("limit_stop_reason")
    return (str(reason),) if reason else ()


def _marks(plan: Plan, body: Mapping[str, Any]) -> tuple[str, ...]:
    marks = [*(body.get("marks") or ())]
    marks += [f"beside another, workload {plan.workload.name}"] if plan.part_of is not None else []
    marks += ["unrecorded"] if not plan.recorded else []
    marks += ["sizes changed"] if plan.sizes_changed else []
    marks += [word for word, usual in ((plan.policy, "anytime"), (plan.design, "betting")) if word != usual]
    marks += ["one process a half"] if plan.unit == "process" else []
    return tuple(dict.fromkeys(marks))


def _imported(event: Event) -> Candidate:
    """What an `import` event brought along, marked; it has no blocks here."""
    body = event["body"]
    row: Mapping[str, Any] = body.get("row") or {}
    plan: Mapping[str, Any] = body.get("plan") or {}
    verdict: Mapping[str, Any] = body.get("decision") or body.get("verdict") or {}
    evidence: Mapping[str, Any] = verdict.get("evidence") or {}
    guard = float(row.get("guard") or POLICY.guard)
    return Candidate(
        attempt_id=str(event["attempt"]),
        at=event["time"],
        command=str(row.get("mode") or "import"),
        name=str((plan.get("cand") or {}).get("name") or ""),
        commit=str(row.get("commit") or ""),
        baseline=str(row.get("baseline_commit") or ""),
        title=str(row.get("description") or ""),
        status=str(row.get("status") or "inconclusive"),
        decision=str(row.get("decision") or "inconclusive"),
        reasons=tuple(verdict.get("reasons") or ()),
        marks=("imported, never counted",),
        checks=None,
        own=False,
        in_round=False,
        used=int(evidence.get("used") or row.get("measured_pairs") or 0),
        pooled=0,
        dropped=int(evidence.get("dropped") or 0),
        faster=evidence.get("faster"),
        hl=row.get("hl_ratio"),
        lcb=row.get("lcb"),
        ucb=row.get("ucb"),
        e_value=row.get("e_value"),
        guard=guard,
        margin=max(POLICY.margin, float(plan.get("floor") or 1.0)),
        alpha=float(plan.get("alpha") or POLICY.alpha),
    )


def _round(found: Round) -> RoundFacts:
    best = found.best
    why = ""
    if found.state == "paused":
        why = f"paused by {found.pause_rule}: {found.pause_reason}"
    elif found.abandoned is not None:
        why = f"abandoned: {found.abandoned}"
    elif found.completed is not None:
        why = f"complete with {str(found.completed.get('commit'))[:12]}, the next baseline"
    elif found.confirm_reasons:
        why = f"the last confirm run failed: {list(found.confirm_reasons.values())[-1]}"
    return RoundFacts(
        id=found.id,
        title=str(found.body["goal"]["title"]),
        state=found.state,
        baseline=found.baseline_commit,
        target=found.target,
        confirm_bar=confirm_bar(found.target, found.strict),
        strict=found.strict,
        best_estimate=None if best is None else best.estimate,
        best_lcb=None if best is None else best.lcb,
        why=why,
        accepted=tuple(Accepted(k.commit, k.status, k.estimate, k.lcb) for k in found.kept),
    )


def _together(found: Round, attempts: Mapping[str, Attempt]) -> Together:
    """e-BH over the candidates of the round's own baseline; a forced or legacy run brings no e-value."""
    values: dict[str, float | None] = {}
    for candidate in found.candidates.values():
        if candidate.base_tree != found.baseline_tree:
            continue
        plan = attempts[candidate.attempts[-1]].plan
        honest = not plan.forced and plan.policy == "anytime"
        label = f"{candidate.commit[:10]} {candidate.mechanism or candidate.name}".strip()
        values[label] = candidate.e_value if honest else None
    stand = set(discoveries(values)) if values else set()
    rows = sorted(values.items(), key=lambda item: -(item[1] or 0.0))
    return Together(POLICY.alpha, tuple((name, value, name in stand) for name, value in rows))


def _noise(attempts: Mapping[str, Attempt], around: Surroundings) -> tuple[Noise, ...]:
    """The newest calibration of each class of host, this one's first."""
    classes = {a.plan.host_class for a in attempts.values()}
    newest = [found for name in sorted(classes) if (found := calibration_of(attempts, name)) is not None]
    newest.sort(key=lambda a: (a.plan.host_class != around.host_class, -a.started_seq))
    return tuple(_calibration(one, around) for one in newest)


def _calibration(one: Attempt, around: Surroundings) -> Noise:
    evidence, done = _evidence(one), one.finished or {}
    at = one.finished_at or one.started
    return Noise(
        attempt_id=one.id,
        commit=one.plan.base.commit,
        at=at,
        age_days=max(0.0, (_seconds(around.written_at) - _seconds(at)) / 86_400.0),
        host_class=one.plan.host_class,
        this_host=one.plan.host_class == around.host_class,
        used=int(evidence.get("used") or 0),
        hl=evidence.get("hl"),
        relink_floor=done.get("relink_floor"),
        diagnostics=diagnose((), one.blocks, 1.0),
    )


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def _remarks(events: Sequence[Event], attempts: Mapping[str, Attempt]) -> list[str]:
    """What a reader must know before the numbers: repairs of the ledger, runs that have not ended."""
    out = []
    for event in events:
        if event["type"] == "repair":
            body = event["body"]
            what = (
                "a torn last line was cut off"
                if body.get("what") == "torn"
                else "a damaged part was set aside"
            )
            out.append(f"The ledger was repaired {event['time'][:10]}: {what} (line {body.get('line')}).")
    open_ones = [a for a in attempts.values() if a.finished is None]
    if open_ones:
        names = ", ".join(f"{a.plan.command} of {a.plan.cand.commit[:10]}" for a in open_ones[-3:])
        verb = "is" if len(open_ones) == 1 else "are"
        out.append(f"{counted(len(open_ones), 'run')} {verb} not finished: {names}.")
    return out
