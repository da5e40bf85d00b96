"""`round open|show|confirm|resume|abandon`: one improvement round against a fixed baseline. The rules are
cartlab.round's.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import declare_runner, number, runner
from cartlab.cli.report import after_completion
from cartlab.errors import NotLegalNow, UsageError
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Runner
from cartlab.root import make_folder

VERBS = ("open", "show", "confirm", "resume", "abandon")


@dataclass(frozen=True)
class Request:
    verb: str
    cand: str | None
    goal: str
    target: float
    may_touch: tuple[str, ...]
    strict: bool
    reason: str
    mechanism: str | None
    falsify: str | None
    dry_run: bool
    runner: Runner


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=VERBS, metavar="|".join(VERBS))
    parser.add_argument(
        "cand", nargs="?", metavar="CAND", help="confirm: the candidate, else the one that is due"
    )
    parser.add_argument("--goal", default="", metavar="TEXT", help="open: what this round is for")
    parser.add_argument("--target", type=number, default=1.10, metavar="T", help="open: 1.10 or more")
    parser.add_argument(
        "--may-touch", action="append", default=[], metavar="GLOB", help="open: protected paths"
    )
    parser.add_argument(
        "--strict", action="store_true", help="open: the lower bound itself must reach the target"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="resume, abandon: why")
    parser.add_argument("--mechanism", metavar="TEXT", help="confirm: why the candidate is faster")
    parser.add_argument("--falsify", metavar="TEXT", help="confirm: what would show that it is not")
    declare_runner(parser)


def translate(space: argparse.Namespace) -> Request:
    if space.cand is not None and space.verb != "confirm":
        raise UsageError(
            f"round {space.verb} takes no revision, found {space.cand!r}", "open starts from HEAD"
        )
    if space.verb == "confirm" and space.no_record:
        raise UsageError("a confirm run counts or is not had, found --no-record", "leave --no-record out")
    if space.verb == "open":
        from cartlab.round.rules import MIN_TARGET

        if space.target < MIN_TARGET:
            raise UsageError(
                f"expected a --target of {MIN_TARGET:.2f} or more, found {space.target:g}",
                "smaller gains are proven one by one: accept BASE CAND takes no round",
            )
    if space.verb in ("resume", "abandon") and not space.reason.strip():
        raise UsageError(f"round {space.verb} needs a reason", 'add --reason "why"')
    return Request(
        space.verb,
        space.cand,
        space.goal,
        space.target,
        tuple(space.may_touch),
        space.strict,
        space.reason,
        space.mechanism,
        space.falsify,
        space.dry_run,
        runner(space),
    )


def run(context: Context, request: Request) -> Outcome:
    with context.telling():
        return carry_out(context, request)


def carry_out(context: Context, request: Request) -> Outcome:
    from cartlab.pipeline import confirming, rounds
    from cartlab.pipeline.run import open_ledger
    from cartlab.round import fold, require_legal

    root = context.root.path
    writes = request.verb != "show" and not request.dry_run
    if writes:
        make_folder(root)
    ledger = open_ledger(root, context.talk, mend=writes) if root.is_dir() else None
    if request.verb == "confirm":
        if ledger is None:  # Only a dry run makes no root: there is no round in it.
            raise NotLegalNow("no round is open: there is nothing to confirm", context.line("round open"))
        done = confirming.confirm(
            request.cand,
            context.lab,
            context.repo,
            root,
            ledger,
            context.talk,
            runner=request.runner,
            dry_run=request.dry_run,
            mechanism=request.mechanism,
            falsify=request.falsify,
        )
        return after_completion(context, done)
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    if ledger is not None and not request.dry_run:
        rounds.watch(context.lab, context.repo, ledger, context.talk)
    if request.verb == "open":
        confirming.open_now(
            context.lab,
            context.repo,
            ledger,
            context.talk,
            runner=request.runner,
            goal=request.goal,
            target=request.target,
            strict=request.strict,
            may_touch=request.may_touch,
            dry_run=request.dry_run,
        )
    elif request.dry_run and request.verb != "show":
        require_legal(fold(ledger.events()) if ledger is not None else None, f"round {request.verb}")
    if request.dry_run:
        out.status = "planned"
        out.text = [f"would {request.verb} a round"]
        return out
    if ledger is not None and request.verb in ("resume", "abandon"):
        confirming.end(ledger, request.verb, request.reason)
    if ledger is not None and request.verb != "show":
        ledger.project()
        out.recorded = True
        out.report.outputs = ["events.jsonl", "current.json"]
    facts, lines = confirming.shown(ledger)
    out.details, out.text = facts, lines
    return out
