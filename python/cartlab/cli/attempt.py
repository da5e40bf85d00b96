"""`attempt start|submit|close`: one round at a time, for an agent or a person that drives the loop itself.

The rules are the supervisor's: the task list stands before anything is dispatched, the harness checks, trains
and evaluates what is handed in, and only its numbers decide.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.errors import UsageError
from cartlab.outcome import Outcome

VERBS = ("start", "submit", "close")


@dataclass(frozen=True)
class Request:
    verb: str
    what: str | None
    strategy: str | None
    reason: str
    dry_run: bool
    flags: loopdesk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=VERBS, metavar="|".join(VERBS))
    parser.add_argument(
        "what",
        nargs="?",
        metavar="PROTOCOL|ID",
        help="start: the protocol; submit, close: the attempt (the open one)",
    )
    parser.add_argument("--strategy", metavar="TEXT", help="submit: what was tried, in one line")
    parser.add_argument("--reason", default="", metavar="TEXT", help="close: why it is given up")
    loopdesk.declare(parser)


def translate(space: argparse.Namespace) -> Request:
    if space.verb == "start" and not space.what:
        raise UsageError("attempt start needs the protocol", "attempt start PROTOCOL")
    if space.verb == "close" and not space.reason.strip():
        raise UsageError("attempt close gives an attempt up and needs a reason", 'add --reason "why"')
    return Request(space.verb, space.what, space.strategy, space.reason, space.dry_run, loopdesk.flags(space))


def _foresee(context: Context, request: Request) -> None:
    """The refusal that the real call would give."""
    from cartlab.loops import byhand

    if request.verb != "start":
        desk = loopdesk.foreseen(context, request.flags, request.what or "")
        desk.require_free()
        byhand.open_try(desk, request.what)
        return
    goal = loopdesk.goal_of(context, str(request.what))
    if goal is not None and (goal.last is None or goal.last.state != "dispatched"):
        byhand.require_round(goal)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops import byhand, stall, views
    from cartlab.model import STATUSES

    if request.verb == "start":
        context.about = loopdesk.protocol_file(context, str(request.what)).parent
    loopdesk.here(context)
    out = context.answer()
    out.ledger = str(context.root.path / "events.jsonl")
    if request.dry_run:
        _foresee(context, request)
        out.status, out.text = "planned", [f"would {request.verb} an attempt"]
        return out
    ledger = loopdesk.open_ledger(context)
    if request.verb == "start":
        desk = loopdesk.desk_of(context, ledger, str(request.what), request.flags)
        given = byhand.start_by_hand(desk)
        out.attempt_id, out.recorded = given.one.id, True
        out.report.next = context.line('attempt submit --strategy "what was tried"')
        out.details = {
            "work": str(given.work),
            "prompt": str(given.prompt),
            "submission": str(given.submission),
            "round": given.one.round,
            "tasks": list(desk.goal().tries[-1].steps["proposed"]["tasks"]),
            "look_again_after_s": stall.timers(views.protocol_of(desk.goal()).time_limit_s),
        }
        out.text = [
            f"attempt {given.one.id}",
            *out.details["tasks"],
            f"work in: {given.work}",
            f"prompt: {given.prompt}",
        ]
        return out
    desk = loopdesk.current_desk(context, ledger, request.flags, request.what or "")
    if request.verb == "submit":
        one = byhand.submit_by_hand(desk, request.what, request.strategy)
    else:
        one = byhand.close_by_hand(desk, request.what, request.reason)
    ledger.project()
    goal = desk.goal()
    row, best = views.row_of(one), views.best_of(goal)
    status = STATUSES[str(one.status)]
    out.attempt_id, out.recorded = one.id, True
    out.status, out.exit_code = status.name, status.exit_code
    out.report.decision = status.decision
    protocol = desk.repo / str(goal.body["top"])
    out.report.next = context.line(f"attempt start {protocol}" if goal.state == "running" else "show")
    if request.verb == "close":  # what was asked for: its exit code is no Ctrl-C's
        out.status, out.exit_code, out.report.decision = "ok", 0, "defer"
    out.reasons = [row.insight]
    out.details = {
        "round": one.round,
        "value": (one.decision or {}).get("value"),
        "compliance": row.compliance,
        "best": {"value": best.number, "text": best.text, "round": best.round},
        "state": goal.state,
        "tasks": list((one.decision or {}).get("tasks", [])),
    }
    out.text = [
        *out.details["tasks"],
        # The statuses' meanings are those of speed: here the policy alone says what a keep claims.
        f"{one.id}: {row.verdict or status.name} ({status.name} by the policy {goal.body['policy']})",
        row.insight,
        f"best so far: {best.text} (round {best.round})",
    ]
    return out
