"""`holdout seal|final|status`: an evaluator that no researcher can read, and its budget of looks."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.cli.options import positive_int
from cartlab.errors import UsageError
from cartlab.outcome import Outcome

VERBS = ("seal", "final", "status")


@dataclass(frozen=True)
class Request:
    verb: str
    protocol: str | None
    folder: str | None
    line: str
    looks: int
    dry_run: bool
    flags: loopdesk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=VERBS, metavar="|".join(VERBS))
    parser.add_argument("protocol", nargs="?", metavar="PROTOCOL", help="seal: the goal's protocol")
    parser.add_argument("--files", metavar="DIR", help="seal: the evaluator's folder, outside the repository")
    parser.add_argument(
        "--command",
        dest="line",
        default="",
        metavar="CMD",
        help="seal: run in a fresh layout of the attempt; code 0 passes; {holdout} is the sealed folder",
    )
    parser.add_argument(
        "--looks", type=positive_int, default=5, metavar="N", help="seal: how often it may be asked (5)"
    )
    loopdesk.declare(parser)


def translate(space: argparse.Namespace) -> Request:
    if space.verb == "seal" and not (space.protocol and space.files and space.line.strip()):
        raise UsageError(
            "holdout seal needs the protocol, the files and the command",
            'holdout seal PROTOCOL --files DIR --command "python {holdout}/test.py"',
        )
    return Request(
        space.verb,
        space.protocol,
        space.files,
        space.line,
        space.looks,
        space.dry_run,
        loopdesk.flags(space),
    )


def _foresee(context: Context, request: Request) -> None:
    """The refusal that the real call would give."""
    from cartlab.loops import holdout, isolation

    if request.verb == "seal":
        goal = loopdesk.goal_of(context, str(request.protocol))
        level = isolation.level(request.flags.isolation)
        holdout.require_sealable(goal, context.repo, level, context.cwd / str(request.folder))
    else:
        desk = loopdesk.foreseen(context, request.flags)
        if request.verb == "final":
            desk.require_free()
            holdout.require_final(desk)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops import holdout

    if request.verb == "seal":
        context.about = loopdesk.protocol_file(context, str(request.protocol)).parent
    out = context.answer()
    out.ledger = str(context.root.path / "events.jsonl")
    out.report.next = context.line("show")
    if request.dry_run:
        _foresee(context, request)
        out.status, out.text = "planned", [f"would {request.verb} the goal's holdout"]
        return out
    ledger = loopdesk.open_ledger(context)
    if request.verb == "seal":
        desk = loopdesk.desk_of(context, ledger, str(request.protocol), request.flags)
        with desk.alone():
            out.details = holdout.seal(desk, context.cwd / str(request.folder), request.line, request.looks)
        out.recorded = True
        out.text = [f"sealed {request.folder}: {request.looks} looks", f"digest {out.details['digest'][:12]}"]
        return out
    desk = loopdesk.current_desk(context, ledger, request.flags)
    if request.verb == "final":
        with desk.alone():
            passed = holdout.final(desk)
        out.recorded, out.details = True, {"passed": passed}
        out.status, out.exit_code = ("ok", 0) if passed else ("checks_failed", 17)
        out.text = ["the accepted result passes the sealed test" if passed else "it does not pass"]
        return out
    goal = desk.goal()
    sealed = goal.body.get("holdout") or {}
    out.details = {"sealed": bool(sealed), "looks": sealed.get("looks"), "spent": holdout.spent(goal)}
    out.text = [f"{key}: {value}" for key, value in out.details.items()]
    return out
