"""`campaign ladder`: on which rung the search stands, and the levers that people add to it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.artefacts import read_text
from cartlab.cli import campaign_desk
from cartlab.cli.context import Context
from cartlab.errors import UsageError
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    slug: str | None
    add: str
    program: str | None
    source: str
    rung: int
    searched: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    campaign_desk.declare_slug(parser)
    parser.add_argument(
        "--add", default="", metavar="TITLE", help="queue a lever; it is opened at the next signal"
    )
    parser.add_argument(
        "--program", metavar="FILE", help="with --add: its program.md, what to build and how to search in it"
    )
    parser.add_argument("--source", default="", metavar="URL", help="with --add: where it is from")
    parser.add_argument(
        "--rung",
        type=int,
        choices=(2, 3),
        default=3,
        help="with --add: its rung (default: 3, another method)",
    )
    parser.add_argument(
        "--searched",
        default="",
        metavar="SOURCE",
        help="record the look at other people's methods that rung 3 needs",
    )


def translate(space: argparse.Namespace) -> Request:
    if space.add.strip() and space.rung == 3 and space.program is None:
        raise UsageError(
            "a lever of rung 3 is another method and has a program of its own", "add --program FILE"
        )
    if not space.add.strip() and (space.program is not None or space.source):
        raise UsageError("--program and --source describe a lever that --add TITLE queues")
    return Request(
        space.slug,
        space.add.strip(),
        space.program,
        space.source.strip(),
        space.rung,
        space.searched.strip(),
        space.dry_run,
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.cli import loopdesk
    from cartlab.loops.campaign import documents, ladder, records
    from cartlab.loops.commands import plain
    from cartlab.loops.desk import Desk

    campaign = campaign_desk.look(context, request.slug)
    program = ""
    if request.program is not None:
        program = read_text(context.cwd / request.program, "the lever's program")
    writes = bool(request.add or request.searched)
    out = campaign_desk.answer(context, campaign)
    if writes and not request.dry_run:
        desk = Desk(
            context.repo,
            context.root.path,
            loopdesk.open_ledger(context),
            campaign.goal.id,
            context.talk,
        )
        if request.searched:
            desk.tell_lever("searched", source=plain(request.searched, 300))
        if request.add:
            desk.tell_lever(
                "queued",
                id=ladder.next_id(campaign),
                rung=request.rung,
                title=plain(request.add, 200),
                program=program,
                source=plain(request.source, 300),
            )
        documents.render(desk)
        campaign = records.read(desk.ledger.events(), desk.goal_id)
        out = campaign_desk.answer(context, campaign)
    out.recorded = writes and not request.dry_run
    out.status = "planned" if request.dry_run else out.status
    at = ladder.position(campaign)
    out.report.next = context.line("campaign run --researcher CMD")
    out.details = {
        **(out.details or {}),
        "rung": at.rung,
        "lever": at.lever.id,
        "stagnant": at.stagnant,
        "batch": at.batch,
        "dry": at.dry,
        "searched": at.searched,
        "signal": ladder.signal(at, campaign.budget),
        "next": ladder.next_step(at, campaign.budget),
        "queued": [{"id": one.id, "rung": one.rung, "title": one.title} for one in at.queued],
    }
    out.text = ladder.lines(at, campaign.budget)
    return out
