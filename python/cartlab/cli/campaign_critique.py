"""`campaign critique`: critics score a generation before any compute is spent; its survivors are queued."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import campaign_desk
from cartlab.cli.context import Context
from cartlab.cli.options import not_negative, positive
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.words import counted


@dataclass(frozen=True)
class Request:
    slug: str | None
    file: str | None
    command: str | None
    quality: float
    half: bool
    limit: float
    dry_run: bool
    flags: campaign_desk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    campaign_desk.declare_slug(parser)
    parser.add_argument(
        "--scores",
        metavar="FILE",
        help='a JSON list of {"id", "critic", "quality": 0 to 10, "novel": true|false}',
    )
    parser.add_argument(
        "--researcher",
        metavar="CMD",
        help="a shell line that scores them, run once a critic with AR_ROLE=critique",
    )
    parser.add_argument(
        "--quality", type=not_negative, default=6.0, metavar="Q", help="the least mean quality (default: 6)"
    )
    parser.add_argument(
        "--half-passes", action="store_true", help="an exact half of the votes is enough to be novel"
    )
    parser.add_argument(
        "--limit", type=positive, default=1800.0, metavar="S", help="a critic's deadline, seconds (1800)"
    )
    campaign_desk.declare(parser)


def translate(space: argparse.Namespace) -> Request:
    if (space.scores is None) == (space.researcher is None):
        raise UsageError(
            "campaign critique takes scores from a file or from a command, one of the two",
            "--scores FILE, or --researcher CMD",
        )
    return Request(
        space.slug,
        space.scores,
        space.researcher,
        space.quality,
        space.half_passes,
        space.limit,
        space.dry_run,
        campaign_desk.flags(space),
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops.campaign import critique, documents

    if request.command is not None:
        campaign_desk.may_call(request.command, request.flags)
    if request.dry_run:
        campaign = campaign_desk.look(context, request.slug)
        due = critique.waiting(campaign)
        out = campaign_desk.answer(context, campaign)
        out.status, out.recorded = "planned", None
        what = counted(len(due), "hypothesis", "hypotheses")
        out.text = [f"would have {what} scored by {counted(campaign.budget.critics, 'critic')}"]
        return out
    desk, before = campaign_desk.open_desk(context, request.slug, request.flags)
    rules = critique.Rules(request.quality, request.half, before.budget.hypotheses_per_gen)
    with desk.alone():
        campaign = critique.critique(
            desk,
            file=None if request.file is None else context.cwd / request.file,
            command=request.command,
            rules=rules,
            limit_s=request.limit,
        )
        documents.render(desk)
    desk.ledger.project()
    last = campaign.generations[-1]
    out = campaign_desk.answer(context, campaign)
    survivors = [verdict for verdict in last.verdicts if verdict["survives"]]
    out.report.outputs = ["PLAN.md", "EXPERIMENTS.md"]
    out.report.next = context.line("campaign run --researcher CMD" if survivors else "campaign plan")
    out.details = {
        **(out.details or {}),
        "generation": last.number,
        "verdicts": [dict(verdict) for verdict in last.verdicts],
        "stagnation": campaign.stagnation,
    }
    out.text = [
        f"generation {last.number}: {len(survivors)} of {len(last.verdicts)} survive",
        *(
            f"  {'+' if verdict['survives'] else '-'} {verdict['exp_id']}: {verdict['reason']}"
            for verdict in last.verdicts
        ),
    ]
    if not survivors:
        out.text.append(f"closed without an experiment: stagnation is {campaign.stagnation}")
    return out
