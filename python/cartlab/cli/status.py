"""`status [--limit N] [--rejects]`: where things stand, from the root to the next action. Changes nothing
that is measured.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.cli.context import Context
from cartlab.cli.next import actions_now, age_seconds
from cartlab.cli.options import whole
from cartlab.outcome import Outcome
from cartlab.words import counted

FILES = ("results.tsv", "current.json", "ideas.md", "scratchpad.md")
NOTE_LINES = 5


@dataclass(frozen=True)
class Request:
    limit: int = 5
    rejects: bool = False


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=whole, default=5, metavar="N", help="how many results to show (default 5)"
    )
    parser.add_argument("--rejects", action="store_true", help="only what was not kept, with its reasons")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.limit, space.rejects)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.glance import glance
    from cartlab.sources import branch, dirty

    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    facts: dict[str, Any] = {
        "root": str(root),
        "root_source": context.root.source,
        "branch": branch(context.repo),
        "dirty": dirty(context.repo),
        "files": {name: str(root / name) for name in FILES},
    }
    if (root / "events.jsonl").exists():
        from cartlab.ledger import Ledger
        from cartlab.round import round_part

        ledger = Ledger.open(root, round_part=round_part)
        for report in ledger.reports:
            context.talk.warn(report)
        ledger.project()
        action = actions_now(context, glance(root))[0]
        facts |= recorded(ledger, request)
        ledger.project()
    else:
        action = actions_now(context, None)[0]
        facts |= {
            "goal": None,
            "round": None,
            "latest_accepted": None,
            "calibration": None,
            "results": [],
            "running": [],
        }
    facts["notes"] = tail(root / "scratchpad.md", NOTE_LINES)
    out.report.inputs = ["events.jsonl", *FILES]
    out.report.next = context.line(action["command"])
    out.details = facts
    out.text = lines(facts, action["reason"])
    return out


def recorded(ledger: Any, request: Request) -> dict[str, Any]:
    """What the ledger knows: round, latest accepted, calibration, results, runs that have not ended."""
    from cartlab.ledger import current_of
    from cartlab.round import round_part

    attempts = ledger.attempts()
    abandoned = {one.id for one in ledger.abandoned()}
    current = current_of(ledger.events(), round_part(ledger.events()))
    results = [
        result_of(one)
        for one in attempts.values()
        if one.finished is not None and one.plan.recorded and not (request.rejects and keeps(str(one.status)))
    ]
    return {
        "goal": current["goal"],
        "loop": loop_of(ledger.events()),
        "round": {
            key: current[key] for key in ("round_id", "state", "baseline_commit", "target", "best_estimate")
        },
        "latest_accepted": current["latest_accepted"],
        "calibration": current["last_calibration"],
        "results": results[-request.limit :] if request.limit > 0 else [],
        "running": [
            {
                "attempt_id": one.id,
                "command": one.plan.command,
                "blocks": len(one.blocks),
                "state": "killed: the same command continues it" if one.id in abandoned else "running",
            }
            for one in attempts.values()
            if one.finished is None
        ],
    }


def loop_of(events: Any) -> dict[str, Any] | None:
    """The newest research loop, None where none was opened."""
    if all(event["type"] != "goal" for event in events):
        return None
    from cartlab.loops.desk import newest

    goal = newest(events)
    if goal is None:
        return None
    return {
        "goal": goal.id,
        "state": goal.state,
        **_standing(goal, events),
        "worktree": goal.body["worktree"],
    }


def loops_of(events: Any) -> list[dict[str, Any]]:
    """All research loops in the order they were opened: kind, state and best value."""
    if all(event["type"] != "goal" for event in events):
        return []
    from cartlab.loops import goals

    return [
        {"goal": goal.id, "loop": goal.loop, "state": goal.state, **_standing(goal, events)}
        for goal in goals.fold(events).values()
    ]


def _standing(goal: Any, events: Any) -> dict[str, Any]:
    """Closed rounds or generations, and the best value as it was printed; each kind of loop knows its own."""
    from cartlab.loops import views
    from cartlab.loops.campaign import records
    from cartlab.loops.journal import session

    rounds, best = len(goal.closed_rounds()), "none"
    if goal.loop == session.LOOP:
        found = session.best_of(goal)
        best = "none" if found is None else found.text
    elif goal.loop == records.LOOP:
        campaign = records.read(events, goal.id)
        champion = campaign.champion
        rounds = sum(one.closed for one in campaign.generations)
        best = campaign.baseline or "none" if champion is None else str(champion.decision["text"])
    elif goal.loop == "supervise":
        best = views.best_of(goal).text
    return {"rounds": rounds, "best": best}


def keeps(status: str) -> bool:
    from cartlab.model import STATUSES

    return status in STATUSES and STATUSES[status].keeps


def result_of(attempt: Any) -> dict[str, Any]:
    """One finished attempt as a line of `status`."""
    body = attempt.decision or {}
    evidence = body.get("evidence") or {}
    return {
        "attempt_id": attempt.id,
        "command": attempt.plan.command,
        "baseline": attempt.plan.base.commit,
        "candidate": attempt.plan.cand.commit,
        "status": attempt.status,
        "ratio": evidence.get("hl"),
        "lcb": evidence.get("lcb"),
        "ucb": evidence.get("ucb"),
        "blocks": evidence.get("used"),
        "reasons": list(body.get("reasons") or []),
        "at": attempt.finished_at,
    }


def tail(path: Path, count: int) -> list[str]:
    """The last lines of a people's file, empty ones left out."""
    if not path.is_file():
        return []
    shown = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return shown[-count:]


def days(at: str) -> float:
    return age_seconds(at) / 86400


def lines(facts: dict[str, Any], reason: str) -> list[str]:
    """The facts for people."""
    from cartlab.pipeline.answer import number

    changed = facts["dirty"]
    accepted, calibration, state = facts["latest_accepted"], facts["calibration"], facts["round"]
    shown = [
        f"root: {facts['root']} ({facts['root_source']})",
        f"branch: {facts['branch'] or 'none (detached HEAD)'}, "
        + (f"{len(changed)} uncommitted: {', '.join(changed[:5])}" if changed else "clean"),
        f"goal: {(facts['goal'] or {}).get('title') or 'none'}",
        f"round: {state['round_id']} is {state['state']}, baseline {str(state['baseline_commit'])[:12]}"
        if state and state["round_id"]
        else "round: none is open; every command works as typed",
        "latest accepted: "
        + (
            f"{accepted['status']} {accepted['commit'][:12]} against {accepted['baseline_commit'][:12]}"
            if accepted
            else "none"
        ),
        "last calibration: "
        + (
            f"{calibration['commit'][:12]}, {days(calibration['at']):.1f} days ago" if calibration else "none"
        ),
    ]
    for one in facts["running"]:
        shown.append(f"unfinished: {one['attempt_id']} ({counted(one['blocks'], 'block')}), {one['state']}")
    if facts.get("loop"):
        loop = facts["loop"]
        shown.append(
            f"loop: {loop['goal']} is {loop['state']}, {counted(loop['rounds'], 'round')} closed, "
            f"best {loop['best']}"
        )
    shown.append("last results:" if facts["results"] else "last results: none")
    for one in facts["results"]:
        bounds = f"{number(one['ratio'])} [{number(one['lcb'])}, {number(one['ucb'])}]"
        shown.append(
            f"  {one['at']} {one['command']} {one['baseline'][:9]}..{one['candidate'][:9]} {one['status']} "
            f"{bounds} {counted(one['blocks'] or 0, 'block')}"
        )
        if one["reasons"]:
            shown.append(f"    {one['reasons'][0]}")
    if facts["notes"]:
        shown += ["notes:", *(f"  {line}" for line in facts["notes"])]
    shown += [f"file: {path}" for path in facts["files"].values()]
    shown.append(f"next: because {reason}")
    return shown
