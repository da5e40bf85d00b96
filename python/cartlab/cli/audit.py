"""`audit ID`: run a kept attempt again from a fresh checkout and compare with what is stored."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.cli.options import positive_int
from cartlab.errors import BadInput, BadRoot, NotLegalNow
from cartlab.loops import isolation
from cartlab.outcome import Outcome, finite
from cartlab.words import counted

if TYPE_CHECKING:
    from cartlab.ledger import Attempt, Ledger
    from cartlab.loops.audit import Found

RUNS = 3


@dataclass(frozen=True)
class Request:
    id: str
    runs: int
    isolation: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="a kept attempt of a loop or of a speed round, or a part of its id"
    )
    parser.add_argument(
        "--runs",
        type=positive_int,
        default=RUNS,
        metavar="N",
        help=f"a loop's attempt: pairs of it and of what it started from ({RUNS})",
    )
    parser.add_argument(
        "--isolation", choices=isolation.CHOICES, default="auto", help="how far its commands are confined"
    )


def translate(space: argparse.Namespace) -> Request:
    return Request(space.id, space.runs, space.isolation, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.ledger import Ledger
    from cartlab.loops import audit, desk

    root = context.root.path
    if not root.is_dir():
        raise BadRoot(f"expected a state folder, found nothing at {root}", "run `init` first")
    speed = _speed(Ledger.open(root, mend=False), request.id)
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = [request.id]
    if speed is None:
        goal, one = desk.attempt_named(Ledger.open(root, mend=False).events(), request.id)
        out.attempt_id = one.id
        if request.dry_run:
            return _planned(out, f"{counted(request.runs, 'pair')} of {one.id} and what it started from")
        ledger = loopdesk.open_ledger(context)
        level = isolation.level(request.isolation)
        options = desk.Options(isolation=level)
        its = desk.Desk(loopdesk.repository_of(context, goal), root, ledger, goal.id, context.talk, options)
        with its.alone():
            found = audit.audit(its, goal, one, request.runs)
        ledger.project()
    else:
        out.attempt_id = speed.id
        loopdesk.must_record(context)
        if request.dry_run:
            return _planned(out, f"accept {speed.plan.base.commit[:12]} {speed.plan.cand.commit[:12]} anew")
        found = _measure(context, speed)
    return _answer(out, context, found)


def _planned(out: Outcome, what: str) -> Outcome:
    out.status, out.text = "planned", [f"would measure {what}"]
    return out


def _answer(out: Outcome, context: Context, found: Found) -> Outcome:
    from cartlab.loops.audit import WORDS
    from cartlab.model import STATUSES

    row = STATUSES[WORDS[found.word]]
    out.status, out.exit_code, out.recorded = row.name, row.exit_code, True
    out.reasons = [found.reason]
    out.report.next = context.line(f"show {out.attempt_id}" if "-r" in str(out.attempt_id) else "verify")
    out.details = {
        "word": found.word,
        "interval": [finite(end) for end in found.interval],
        "gain": found.gain,
    }
    out.text = [f"{out.attempt_id}: {found.word.replace('_', ' ')}", found.reason]
    return out


# --- a speed round's attempt ------------------------------------------------------------------------


def _speed(ledger: Ledger, name: str) -> Attempt | None:
    """The one attempt of the speed rounds that the name means, None where there is none."""
    known: dict[str, Any] = ledger.attempts()
    hits = [known[name]] if name in known else [one for key, one in known.items() if name in key]
    if len(hits) > 1:
        raise BadInput(f"expected one attempt with {name!r}, found {len(hits)}", "`status` lists the ids")
    return hits[0] if hits else None


def _measure(context: Context, past: Attempt) -> Found:
    from dataclasses import replace

    from cartlab.loops import audit
    from cartlab.model import STATUSES
    from cartlab.pipeline.request import Request as Wanted
    from cartlab.pipeline.run import run as measured

    if past.status is None or not STATUSES[past.status].keeps:
        raise NotLegalNow(
            f"an audit asks whether a kept attempt holds; {past.id} is {past.status or 'open'}",
            "`status` lists what was kept",
        )
    stored = (past.decision or {}).get("evidence") or {}
    plan = past.plan
    wanted = Wanted("accept", "accept", plan.base.commit, plan.cand.commit, recorded=False, pool=False)
    wanted = replace(wanted, any_paths=True, runner=replace(wanted.runner, workload=None))
    out = measured(wanted, context.lab, context.repo, context.root.path, context.talk)
    if out.workload_hash != plan.workload.hash:
        found = audit.Found("moved", "today's workload is another one, so nothing compares", (0.0, 0.0), 0.0)
    elif out.exit_code not in (0, 10, 11):
        found = audit.Found("not_reproduced", f"{out.status}: {'; '.join(out.reasons)}", (0.0, 0.0), 0.0)
    else:
        found = audit.compare_bounds((stored.get("lcb"), stored.get("ucb")), out.ratio, out.ucb)
    ledger = loopdesk.open_ledger(context)
    ledger.note("scratchpad.md", f"audit of {past.id}: {found.word}, {found.reason}", past.id, "audit")
    ledger.project()
    return found
