"""`supervise PROTOCOL`: rounds of research, attempt by attempt, until the protocol's own end."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.cli.options import positive_int
from cartlab.errors import UsageError
from cartlab.outcome import Outcome

DISPOSITIONS = ("keep", "remove")


@dataclass(frozen=True)
class Request:
    protocol: str
    researcher: str
    extend: int | None
    worktree: str
    approve: str | None
    dry_run: bool
    flags: loopdesk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "protocol", metavar="PROTOCOL", help="autoresearch-protocol.md, or the experiment's folder"
    )
    parser.add_argument(
        "--researcher",
        metavar="CMD",
        help="a shell line that writes one round's code; {prompt}, {work}, {submission} are filled in",
    )
    parser.add_argument(
        "--extend", type=positive_int, metavar="N", help="go on with a goal that is done, for N more rounds"
    )
    parser.add_argument(
        "--worktree",
        choices=DISPOSITIONS,
        default="keep",
        help="what becomes of the worktree at the end (default: keep)",
    )
    parser.add_argument(
        "--approve", metavar="REASON", help="allow a researcher's command that needs it; recorded"
    )
    loopdesk.declare(parser)


def translate(space: argparse.Namespace) -> Request:
    if not (space.researcher or "").strip():
        raise UsageError(
            "supervise needs a researcher: any command that edits the working copy",
            'add --researcher "CMD", or drive it yourself: `attempt start PROTOCOL`',
        )
    return Request(
        space.protocol,
        space.researcher,
        space.extend,
        space.worktree,
        space.approve,
        space.dry_run,
        loopdesk.flags(space),
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops import approvals, dispatch, supervise, views

    out = context.answer()
    out.report.inputs = [request.protocol]
    approvals.require(request.researcher, request.approve)
    context.about = loopdesk.protocol_file(context, request.protocol).parent
    if request.dry_run:
        out.status = "planned"
        file, known = (
            loopdesk.protocol_file(context, request.protocol),
            loopdesk.goal_of(context, request.protocol),
        )
        out.text = supervise.foretell(context.repo, file, request.researcher, known, request.extend)
        return out
    ledger = loopdesk.open_ledger(context)
    desk = loopdesk.desk_of(context, ledger, request.protocol, request.flags)
    desk = loopdesk.approved(desk, request.approve)
    goal = supervise.run(desk, request.researcher, request.extend)
    ledger.project()
    tree = desk.worktree(goal)
    place = f"worktree: {tree.path} (kept)"
    if request.worktree == "remove":
        supervise.remove_worktree(desk, goal)
        place = f"worktree: {tree.path} (removed; the accepted commit is {goal.accepted[:12]})"
    best = views.best_of(goal)
    # Also where the best value is a baseline's: what was kept before the protocol was changed is in it.
    merge = f"git merge {goal.accepted[:12]}" if any(one.kept for one in goal.closed_rounds()) else None
    out.ledger, out.recorded = str(context.root.path / "events.jsonl"), True
    out.attempt_id = goal.last.id if goal.last else None
    out.report.outputs = [str(tree.path / dispatch.top_of(goal) / "experiences.md")]
    out.report.next = context.line("show")
    out.details = {
        "goal": goal.id,
        "state": goal.state,
        "reason": goal.reason,
        "best": {"value": best.number, "text": best.text, "round": best.round},
        "rounds": len(goal.closed_rounds()),
        "accepted": goal.accepted,
        "merge": merge,
        "isolation": desk.options.isolation,
    }
    out.text = [*views.report(goal), "", place, *([f"to take it over: {merge}"] if merge else [])]
    return out
