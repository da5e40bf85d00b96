"""`show [ID]`: a goal with its rounds, or one attempt with its patch, its runs and why it came out so."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.errors import BadRoot
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    id: str | None


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="an attempt of a loop, or a part of its id; none: the goal"
    )


def translate(space: argparse.Namespace) -> Request:
    return Request(space.id)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.ledger import Ledger
    from cartlab.loops import audit, desk

    root = context.root.path
    if not root.is_dir():
        raise BadRoot(f"expected a state folder, found nothing at {root}", "run `init` first")
    events = Ledger.open(root, mend=False).events()
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    if request.id is not None:
        goal, one = desk.attempt_named(events, request.id)
        return _attempt(context, out, goal, one, audit.of_attempt(events, one.id))
    newest = desk.newest(events)
    if newest is not None and newest.loop == "campaign":
        return _campaign(out, events, newest.id)
    if newest is None:
        out.text = [f"no goal was opened in the root {root}", "`handoff DESIGN.md --run-vp` prepares one"]
        return out
    out.details = {
        "goal": newest.id,
        "state": newest.state,
        "reason": newest.reason,
        "accepted": newest.accepted,
        "attempts": [
            {"id": one.id, "round": one.round, "state": one.state, "status": one.status}
            for one in newest.tries
        ],
    }
    out.text = [
        f"goal {newest.id}: {newest.state}" + (f" ({newest.reason})" if newest.reason else ""),
        *_rounds(events, newest),
    ]
    return out


def _rounds(events: Any, goal: Any) -> list[str]:
    """A goal's rounds as its own document shows them."""
    from cartlab.loops import experiences, journal_file, views
    from cartlab.loops.journal import session

    if goal.loop == session.LOOP:
        return journal_file.summary(session.journal_of(events, goal.id))
    return experiences.render(views.experiences_of(goal)).splitlines()[2:]


def _hypothesis(proposed: Any) -> list[str]:
    """What an experiment of a campaign is to show."""
    idea = proposed.get("hypothesis")
    if not idea:
        return []
    return [
        f"hypothesis: {idea['change']}",
        f"mechanism: {idea['mechanism']}",
        f"expected: {idea['expected_delta']:+g}; wrong if: {idea['falsification']}",
    ]


def _campaign(out: Outcome, events: Any, goal: str) -> Outcome:
    """The newest campaign: its experiments, what it has spent, and who leads."""
    from cartlab.loops.campaign import board, budget, records, tables

    found, spent = records.read(events, goal), budget.spent(events, goal)
    champion = found.champion
    out.details = {
        "goal": goal,
        "slug": found.slug,
        "folder": found.folder,
        "state": found.goal.state,
        "reason": found.goal.reason,
        "accepted": found.goal.accepted,
        "champion": None if champion is None else champion.exp_id,
        "stagnation": found.stagnation,
        "lever": {"id": found.lever.id, "rung": found.lever.rung, "title": found.lever.title},
        "budget": found.budget.to_json(),
        "spent": spent.to_json(),
        "experiments": [
            {"id": one.one.id, "exp_id": one.exp_id, "gen": one.gen, "status": one.status, "value": one.value}
            for one in found.experiments
        ],
    }
    reason = f" ({found.goal.reason})" if found.goal.reason else ""
    last = found.generation
    stage = "nothing is planned" if last is None else f"generation {last.number}"
    out.text = [
        f"campaign {found.slug}: {found.goal.state}{reason}; {stage}",
        f"spent {spent.compute_s / 60:.1f} of {found.budget.cap_s / 60:.1f} minutes of compute; stagnant "
        f"generations: {found.stagnation} of {found.budget.stagnation}",
        *tables.render(tables.rows_of(found)).splitlines(),
        *board.leaderboard(found).splitlines(),
    ]
    return out


def _attempt(context: Context, out: Outcome, goal: Any, one: Any, audits: list[dict[str, Any]]) -> Outcome:
    from cartlab.loops import trees

    out.attempt_id = one.id
    submitted = one.steps.get("submitted", {})
    patch = ""
    if one.commit is not None:
        # A campaign's experiment is made from the champion of its launch, a round from that of its proposal.
        made_from = {**one.steps["proposed"], **one.steps["dispatched"]}["base"]
        patch = trees.patch(loopdesk.repository_of(context, goal), str(made_from), one.commit)
    out.details = {
        "goal": goal.id,
        "round": one.round,
        "state": one.state,
        "steps": {name: dict(body) for name, body in one.steps.items()},
        "measurements": [{"seq": seq, **body} for seq, body in one.measurements],
        "decision": None if one.decision is None else dict(one.decision),
        "audits": audits,
        "patch": patch,
    }
    out.text = [
        f"{one.id}: round {one.round} of {goal.id}, {one.state}",
        *_hypothesis(one.steps["proposed"]),
        f"strategy: {submitted.get('strategy') or 'not handed in yet'}",
        f"verdict: {one.status or 'none yet'}",
    ]
    if one.decision is not None:
        out.text.append(f"why: {one.decision['insight']}")
    for seq, body in one.measurements:
        value = "" if body.get("value") is None else f", {body.get('text')}"
        out.text.append(
            f"  event {seq}: {body['role']}{value}, {body['seconds']:.1f} s, isolation {body['isolation']}"
        )
    out.text += [f"  audit of {body['time']}: {body['word']}, {body['reason']}" for body in audits]
    out.text += patch.splitlines()
    return out
