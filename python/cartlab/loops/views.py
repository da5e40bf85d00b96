"""The supervisor's files from the ledger: experiences.md as a value, and who is best so far. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cartlab.loops.experiences import Experiences, Row
from cartlab.loops.goals import Goal, Try
from cartlab.loops.protocol import Protocol
from cartlab.loops.states import VIEWS

INTERRUPTED = "interrupted: the round is run again"


@dataclass(frozen=True)
class Best:
    """The best value of the current segment, as number and as text, and its round (0: the baseline)."""

    number: float
    text: str
    round: int


def protocol_of(goal: Goal) -> Protocol:
    """The protocol with all its changes."""
    return Protocol.from_json(goal.body["protocol"])


def best_of(goal: Goal) -> Best:
    """The baseline, or the newest round that was kept: each kept one beat the best before it."""
    protocol = protocol_of(goal)
    best = Best(float(protocol.baseline), protocol.baseline, 0)
    for one in goal.closed_rounds():
        if one.kept and one.segment == goal.segment and one.decision is not None:
            best = Best(float(one.decision["value"]), str(one.decision["text"]), one.round)
    return best


def row_of(one: Try) -> Row:
    """One attempt as a row of the table."""
    decision = one.decision or {}
    words = VIEWS[decision["status"]].supervisor if decision else ("", "")
    return Row(
        round=one.round,
        compliance=str(decision.get("compliance") or words[1]),
        result=str(decision.get("text") or ""),
        verdict=words[0],
        strategy=str(one.steps.get("submitted", {}).get("strategy") or ""),
        insight=str(decision.get("insight") or ""),
        note="; ".join(one.notes),
    )


def experiences_of(goal: Goal) -> Experiences:
    """The whole file. A round's row is that of its last attempt; an open one has no verdict yet."""
    protocol, best = protocol_of(goal), best_of(goal)
    latest: dict[int, Try] = {}
    for one in goal.tries:
        latest[one.round] = one
    zero = goal.body.get("zero") or {}
    rows = [Row(0, "✅", protocol.baseline, "—", zero.get("strategy", ""), "initial", zero.get("note", ""))]
    # A round that was cut short is run again: it has no row until then.
    rows += [row_of(one) for one in latest.values() if not (one.decision or {}).get("retried")]
    return Experiences(
        metric=protocol.metric,
        best=best.text,
        best_round=best.round,
        rounds=len(goal.closed_rounds()),
        max_rounds=protocol.max_rounds,
        status=goal.state
        if goal.state in ("not_started", "completed", "target_reached")
        else _header(goal.state),
        rows=tuple(rows),
    )


def _header(state: str) -> str:
    return "stopped_by_user" if state == "stopped_by_user" else "running"


def report(goal: Goal, keep: int = 5) -> list[str]:
    """The final report, in the document's form."""
    protocol, best = protocol_of(goal), best_of(goal)
    base = float(protocol.baseline)
    gained = best.number - base
    percent = f" ({gained / abs(base) * 100:+.2f} %)" if base else ""
    rows = [row_of(one) for one in goal.closed_rounds()]
    insights = [row for row in rows if row.verdict == "improved"] or rows
    return [
        "# Autoresearch Complete",
        "",
        "## Result",
        f"- Best: {protocol.metric} = {best.text} (Round {best.round})",
        f"- Baseline: {protocol.metric} = {protocol.baseline}",
        f"- Improvement: {gained:+.9g}{percent}",
        f"- Rounds: {len(rows)} / {protocol.max_rounds}",
        f"- Termination: {goal.reason or goal.state}",
        "",
        "## Key Insights",
        *(
            [f"- R{row.round} ({row.verdict or 'undecided'}): {row.insight}" for row in insights[-keep:]]
            or ["- none"]
        ),
    ]
