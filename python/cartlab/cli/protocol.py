"""`protocol set KEY VALUE`: change the running goal's protocol, as its user; logged with who and why."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    key: str
    value: str
    reason: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("set",), metavar="set")
    parser.add_argument("key", metavar="KEY", help="max_rounds, target, variable, fixed, time_limit, ...")
    parser.add_argument(
        "value", nargs="+", metavar="VALUE", help="the new value, as the protocol file has it"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; recorded")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.key, " ".join(space.value), space.reason, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops import dispatch, opening

    out = context.answer()
    if request.dry_run:
        opening.changed(loopdesk.foreseen(context).goal(), request.key, request.value)
        out.status, out.text = "planned", [f"would set {request.key} to {request.value}"]
        return out
    ledger = loopdesk.open_ledger(context)
    desk = loopdesk.current_desk(context, ledger)
    out.text = opening.change(desk, request.key, request.value, request.reason or "asked for")
    if desk.worktree(desk.goal()).exists():
        dispatch.render_views(desk, desk.goal())
    out.ledger, out.recorded = str(context.root.path / "events.jsonl"), True
    out.details = {"goal": desk.goal_id, "key": request.key, "value": request.value}
    out.report.outputs = ["events.jsonl"]
    return out
