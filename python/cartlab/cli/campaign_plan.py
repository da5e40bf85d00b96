"""`campaign plan`: the next generation's hypotheses, from a file or from a command that proposes them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import campaign_desk
from cartlab.cli.context import Context
from cartlab.cli.options import positive, positive_int
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.words import counted


@dataclass(frozen=True)
class Request:
    slug: str | None
    file: str | None
    command: str | None
    rung: int | None
    each: int
    limit: float
    adopt: str | None
    dry_run: bool
    flags: campaign_desk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    campaign_desk.declare_slug(parser)
    parser.add_argument(
        "--hypotheses",
        metavar="FILE",
        help="a JSON list of objects with id, angle, change, mechanism, expected_delta, falsification, "
        "source and builds_on",
    )
    parser.add_argument(
        "--researcher",
        metavar="CMD",
        help="a shell line that proposes, run once an angle with AR_ROLE=propose; {prompt} and {submission} "
        "are filled in",
    )
    parser.add_argument(
        "--adopt",
        metavar="ID",
        help="the hypothesis that an edit in the checkout already carries out: the edit is measured as it is",
    )
    parser.add_argument(
        "--rung", type=positive_int, metavar="N", help="1 to 3: how wide to search (default: the ladder's)"
    )
    parser.add_argument(
        "--each", type=positive_int, default=4, metavar="N", help="hypotheses taken from a proposer (4)"
    )
    parser.add_argument(
        "--limit", type=positive, default=1800.0, metavar="S", help="a proposer's deadline, seconds (1800)"
    )
    campaign_desk.declare(parser)


def translate(space: argparse.Namespace) -> Request:
    if (space.hypotheses is None) == (space.researcher is None):
        raise UsageError(
            "campaign plan takes hypotheses from a file or from a command, one of the two",
            "--hypotheses FILE, or --researcher CMD",
        )
    if (space.rung or 1) > 3:
        raise UsageError(f"--rung must be 1, 2 or 3; found {space.rung}", "`campaign ladder` shows the rung")
    return Request(
        space.slug,
        space.hypotheses,
        space.researcher,
        space.rung,
        space.each,
        space.limit,
        space.adopt,
        space.dry_run,
        campaign_desk.flags(space),
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops.campaign import documents, planning, proposers

    if request.command is not None:
        campaign_desk.may_call(request.command, request.flags)
    file = None if request.file is None else context.cwd / request.file
    if request.dry_run:
        return _foretell(context, request)
    desk, _ = campaign_desk.open_desk(context, request.slug, request.flags)
    with desk.alone():
        campaign = planning.plan(
            desk,
            file=file,
            command=request.command,
            rung=request.rung,
            options=proposers.Options(request.each, request.limit),
            adopt=request.adopt,
        )
        documents.render(desk)
    desk.ledger.project()
    last = campaign.generations[-1]
    mine = campaign.of_generation(last.number)
    live = [one for one in mine if one.pruned is None]
    out = campaign_desk.answer(context, campaign)
    out.report.outputs = ["PLAN.md", "EXPERIMENTS.md"]
    step = "plan" if last.closed else "run" if last.seed else "critique"
    out.report.next = context.line(f"campaign {step} --researcher CMD")
    out.details = {
        **(out.details or {}),
        "generation": last.number,
        "angles": list(last.angles),
        "hypotheses": [{"exp_id": one.exp_id, **one.hypothesis.to_json()} for one in live],
        "duplicates": {one.exp_id: one.pruned for one in mine if one.pruned is not None},
        "rejected": list(last.rejected),
    }
    wrong = [one.exp_id for one in live if one.hypothesis.direction != campaign.direction]
    if wrong:
        context.talk.warn(
            f"experiment {', '.join(wrong)}: predicted to make {campaign.metric} worse "
            f"({campaign.direction} is better)"
        )
    out.text = [
        f"generation {last.number}: {counted(len(live), 'hypothesis', 'hypotheses')}"
        + (", queued" if last.seed else ", to be criticised" if live else "; none is new, it is closed"),
        *(f"  {one.exp_id} {one.hypothesis.angle}: {one.hypothesis.change}" for one in live),
        *(f"  duplicate {one.exp_id}: {one.pruned}" for one in mine if one.pruned is not None),
        *(f"  rejected: {text}" for text in last.rejected),
    ]
    return out


def _foretell(context: Context, request: Request) -> Outcome:
    """What would be planned: the gates and the file are read, nothing is written and no command is run."""
    from pathlib import Path

    from cartlab.loops.campaign import edits, gates, ladder, planning, proposers
    from cartlab.loops.campaign.folder import Folder

    campaign = campaign_desk.foreseen(context, request.slug)
    planning.may_open(campaign)
    place = Folder(Path(campaign.folder))
    angles = gates.may_plan(place)
    _, ideas = gates.idea_angles(place.read("IDEA_ANGLES.md") or "")
    rung = request.rung or ladder.position(campaign).rung
    edit = edits.edit_of(context.repo, campaign) if "protocol" in campaign.goal.body else None
    if edit is not None and request.adopt is None:
        raise edits.refusal(context.repo, edit)
    out = campaign_desk.answer(context, campaign)
    out.status, out.recorded = "planned", None
    if request.file is None:
        given = proposers.angles_for(campaign, angles, rung, ideas)
        out.text = [f"would ask {counted(len(given), 'proposer')}: " + ", ".join(given)]
        return out
    made = planning.draft(campaign, planning.read_file(context.cwd / request.file), angles, rung)
    if not campaign.generations:
        planning.check_seed(campaign, made, angles, ideas)
    out.text = [
        f"would plan generation {made.gen} with {counted(len(made.live), 'hypothesis', 'hypotheses')}",
        *made.rejected,
    ]
    return out
