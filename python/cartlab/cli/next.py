"""`next`: the one next action, with its reason and its exact command line.

With an open round the round's own list is the authority; without one, every command works as typed, and
this is advice from what was recorded last, an open research loop's next command among it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartlab.cli.context import Context
from cartlab.glance import ROWS, Glance, glance
from cartlab.outcome import Outcome
from cartlab.root import CONFIG_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cartlab.ledger import Event
    from cartlab.loops.goals import Goal
    from cartlab.round import Action

SCRIPT = "scripts/autoresearch.py"
WEEK_SECONDS = 7 * 86400


@dataclass(frozen=True)
class Request:
    """`next` has no choices."""


def declare(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def translate(space: argparse.Namespace) -> Request:
    return Request()


def run(context: Context, request: Request) -> Outcome:
    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    seen = glance(root)
    if seen is None and (root / "events.jsonl").exists():
        from cartlab.ledger import Ledger
        from cartlab.round import round_part

        ledger = Ledger.open(root, round_part=round_part)
        for report in ledger.reports:
            context.talk.warn(report)
        ledger.project()
        seen = glance(root)
    actions = actions_now(context, seen)
    seen = glance(root) or seen  # what a killed command left of a round may have been finished just now
    first = actions[0]
    out.report.inputs = ["current.json", "results.tsv"] if seen else [f"root {root}"]
    out.report.next = context.line(first["command"])
    state = seen.current.get("state") if seen else None
    none = "no round is open: every command works as typed"
    if not (context.repo / CONFIG_NAME).is_file():
        none = (
            f"{context.repo.name} has no {CONFIG_NAME}: research loops work here, the speed commands do not"
        )
    where = f"round {seen.current['round_id']}: {state}" if seen and state else none
    out.details = {
        "actions": [{**one, "command": context.line(one["command"])} for one in actions],
        "round": state,
    }
    out.text = [
        where,
        *(f"{at}. {one['reason']}\n   {context.line(one['command'])}" for at, one in enumerate(actions, 1)),
    ]
    return out


def actions_now(context: Context, seen: Glance | None) -> list[dict[str, Any]]:
    """The open round's own list; advice where there is none. A repository that cannot be measured for speed
    is asked for its loops alone.
    """
    if not (context.repo / CONFIG_NAME).is_file():
        return of_loops(context)
    if seen and seen.current.get("state") not in (None, "abandoned"):
        return live(context)
    found = advice(seen, measured_here(context))
    loops, newest = open_loops(context)
    return loops + found if newest else found + loops


def seen_in(events: Sequence[Event]) -> Glance:
    """What glance() would see once the views are those of these events; writes nothing."""
    from cartlab.ledger import current_of, parse_table, results_tsv
    from cartlab.round import round_part

    return Glance(current_of(events, round_part(events)), parse_table(results_tsv(events))[-ROWS:])


def proposals(context: Context) -> list[Action]:
    """What the round (or its absence) proposes, from the ledger, live HEAD and this host's calibration."""
    from cartlab.ledger import Ledger
    from cartlab.ledger.attempts import calibration_of
    from cartlab.ledger.store import utc_now
    from cartlab.pipeline.rounds import watch
    from cartlab.round import NextFacts, fold, next_actions, round_part

    ledger = Ledger.open(context.root.path, mend=False, round_part=round_part)
    lab, repo = context.lab, context.repo
    watch(lab, repo, ledger, context.talk)
    head = lab.resolve(repo, "HEAD")
    found = fold(ledger.events())
    contract: list[str] = []
    if found is not None and found.active and found.state != "paused":
        config = lab.load_config(repo)
        contract = lab.protected(lab.changed(repo, found.baseline_commit, head.commit), config.contract, ())
    newest = calibration_of(ledger.attempts(), lab.host_class(), lab.toolchain(repo, _memory(context)))
    calibrated = newest.finished_at if newest else None
    facts = NextFacts(
        utc_now(),
        head.commit,
        head.tree,
        calibrated,
        tuple(contract),
        head_calibrated=newest is not None and newest.plan.base.tree == head.tree,
    )
    return next_actions(found, facts)


def live(context: Context) -> list[dict[str, Any]]:
    """The same in the form of advice()."""
    return [
        {
            "action": one.action,
            "reason": one.reason,
            "command": one.command.removeprefix(f"{SCRIPT} "),
            "legal": True,
        }
        for one in proposals(context)
    ]


def of_loops(context: Context) -> list[dict[str, Any]]:
    """What the newest research loop of the root wants next, in the form of advice()."""
    from cartlab.ledger import Ledger
    from cartlab.loops import desk

    root = context.root.path
    events = Ledger.open(root, mend=False).events() if (root / "events.jsonl").is_file() else []
    goal = desk.newest(events)
    if goal is None:
        why = f"no loop was opened yet, and without an {CONFIG_NAME} nothing else can be measured here"
        return [_action("handoff", why, "handoff DESIGN.md --run-vp")]
    return of_goal(context, events, goal)


def open_loops(context: Context) -> tuple[list[dict[str, Any]], bool]:
    """What the newest loop that has not ended wants next, and whether the ledger's last event is a loop's:
    what somebody is at comes first. Where no loop was ever opened the ledger is not even parsed.
    """
    path = context.root.path / "events.jsonl"
    if not path.is_file():
        return [], False
    opened, last = False, b""
    with path.open("rb") as file:
        for last in file:
            opened = opened or b'"type":"goal"' in last
    if not opened:
        return [], False
    from cartlab.ledger import Ledger
    from cartlab.loops import goals
    from cartlab.loops.states import OVER

    events = Ledger.open(context.root.path, mend=False).events()
    going = [goal for goal in goals.fold(events).values() if goal.state not in OVER]
    return (of_goal(context, events, going[-1]) if going else []), b'"goal":"' in last


def of_goal(context: Context, events: list[Event], goal: Goal) -> list[dict[str, Any]]:
    """What one loop wants next."""
    from cartlab.loops.states import ENDED, OVER

    word = goal.state.replace("_", " ")
    if goal.loop == "campaign":
        from cartlab.loops.campaign import driver, records

        campaign = records.read(events, goal.id)
        why, command = driver.due(campaign)
        name = f"the campaign {campaign.slug} is {word}"
        return [
            _action(" ".join(command.split()[:2]), f"{name}: {why}", command),
            _action("show", f"{name}: where it stands", "show"),
        ]
    if goal.loop != "supervise":
        name = f"the session {goal.id} is {word}"
        if goal.state in OVER:
            made = goal.body.get("finalized")
            why, command = (
                ("hold its branches against it", "verify") if made else ("make branches of its keeps", "plan")
            )
            return [
                _action("journal finalize", f"{name}: {why}", f"journal finalize {command}"),
                _action("journal summary", f"{name}: what came of it", "journal summary"),
            ]
        return [
            _action("journal status", f"{name}: where it stands and what comes next", "journal status"),
            _action("journal run", f"{name}: go on with an agent", 'journal run --researcher "CMD"'),
        ]
    place = context.repo / str(goal.body["top"])
    name = f"the loop {goal.id} is {word}"
    if goal.state in ENDED:
        more = f'supervise {place} --researcher "CMD" --extend N'
        return [
            _action("show", f"{name}: read what came of it", "show"),
            _action("supervise", "give it more rounds", more),
        ]
    last = goal.last
    if last is not None and last.state == "dispatched" and last.steps["dispatched"]["driver"] == "agent":
        words = 'attempt submit --strategy "what was tried"'
        return [_action("attempt", f"{last.id} is open: hand in what its folder holds", words)]
    return [
        _action(
            "supervise",
            f"{name}: its rounds with an agent's command",
            f'supervise {place} --researcher "CMD"',
        ),
        _action("attempt", "or write the next round yourself", f"attempt start {place}"),
    ]


def measured_here(context: Context) -> Callable[[dict[str, Any]], bool]:
    """Tells of a calibration (as in current.json) whether this class of host and this toolchain made it."""

    def same(calibration: dict[str, Any]) -> bool:
        from cartlab.host import host_class
        from cartlab.sources import toolchain_id

        if calibration.get("host_class") not in (None, host_class()):
            return False
        made_by = calibration.get("toolchain")
        return made_by is None or made_by == toolchain_id(context.repo, _memory(context))

    return same


def _memory(context: Context) -> Path:
    return context.root.path / "tmp" / "toolchain.json"


def advice(seen: Glance | None, here: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """What to do, best first: {"action", "reason", "command", "legal"}. here: measured_here()."""
    if seen is None:
        return [_action("init", "the root has no ledger yet", "init")]
    actions = []
    # The runs inside a bisect name pairs of its search, none that anybody proposed.
    proposed = [row for row in seen.rows if row.get("mode") != "bisect"]
    if proposed:
        last = proposed[-1]
        pair = f"{last.get('baseline_commit', '')[:12]} {last.get('commit', '')[:12]}"
        mode, status = last.get("mode", ""), last.get("status", "")
        if status in ("interrupted", "busy_invalid"):
            words = f"calibrate {last.get('commit', '')[:12]}" if mode == "calibrate" else f"{mode} {pair}"
            actions.append(
                _action(mode, f"the last {mode} ended as {status}: the same command continues it", words)
            )
        elif status == "triage_promote":
            actions.append(
                _action("accept", "the last screen promoted its candidate: prove it", f"accept {pair}")
            )
        elif status == "inconclusive" and mode in ("accept", "accept-stack"):
            actions.append(
                _action(
                    mode, f"the last {mode} was inconclusive: more blocks may decide it", f"{mode} {pair}"
                )
            )
    calibration = seen.current.get("last_calibration")
    why = ""
    if not _fresh(calibration):
        why = "no calibration of the last seven days: measure this host's noise"
    elif not here(calibration or {}):
        why = "the last calibration is of another host or toolchain: measure this one's noise"
    if why:
        actions.append(_action("calibrate", why, "calibrate HEAD"))
    actions.append(
        _action("diagnose", "find where the time goes before changing anything", "diagnose --quick")
    )
    actions.append(
        _action("screen", "a committed candidate is screened against its baseline", "screen HEAD~1 HEAD")
    )
    return actions


def _action(action: str, reason: str, command: str) -> dict[str, Any]:
    return {"action": action, "reason": reason, "command": command, "legal": True}


def _fresh(calibration: dict[str, Any] | None) -> bool:
    if not calibration or not calibration.get("at"):
        return False
    return age_seconds(str(calibration["at"])) < WEEK_SECONDS


def age_seconds(at: str) -> float:
    """Seconds since an RFC 3339 time of the ledger; 0 where the clock was set back since."""
    from datetime import datetime, timezone

    past = datetime.now(timezone.utc) - datetime.fromisoformat(at.replace("Z", "+00:00"))
    return max(0.0, past.total_seconds())
