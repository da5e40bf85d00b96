"""`campaign run`: generations of experiments until the budget or the ladder is at its end."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cartlab.cli import campaign_desk
from cartlab.cli.context import Context
from cartlab.cli.options import positive, positive_int
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.words import counted

if TYPE_CHECKING:
    from cartlab.loops.campaign.experiment import Plan

# A campaign that stands still and needs somebody; every other end is 0.
BLOCKED = 23


@dataclass(frozen=True)
class Request:
    slug: str | None
    researcher: str
    generations: int | None
    slots: int | None
    devices: tuple[str, ...]
    propose: bool
    limit: float
    eval_limit: float
    explained: tuple[tuple[str, str], ...]
    dry_run: bool
    flags: campaign_desk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    campaign_desk.declare_slug(parser)
    parser.add_argument(
        "--researcher",
        metavar="CMD",
        help="a shell line that makes one experiment's change in {work} (AR_ROLE=experiment, AR_HYPOTHESIS), "
        "and with --propose also proposes, criticises, searches and names methods",
    )
    parser.add_argument(
        "--propose",
        action="store_true",
        help="where nothing is queued, let the researcher propose and criticise the next generation",
    )
    parser.add_argument(
        "--generations", type=positive_int, metavar="N", help="stop after N generations (default: at the end)"
    )
    parser.add_argument(
        "--slots",
        type=positive_int,
        metavar="P",
        help="experiments at once, at most BUDGET.md's parallelism (its default); 1 under the policy paired",
    )
    parser.add_argument(
        "--devices", default="", metavar="A,B", help="a device for each slot, as CUDA_VISIBLE_DEVICES"
    )
    parser.add_argument(
        "--limit", type=positive, default=1800.0, metavar="S", help="a researcher's deadline, seconds (1800)"
    )
    parser.add_argument(
        "--eval-limit",
        type=positive,
        default=600.0,
        metavar="S",
        help="an evaluation's deadline, seconds (600); it counts in the worst case of each launch",
    )
    parser.add_argument(
        "--explain",
        action="append",
        default=[],
        metavar="TEXT=WHY",
        help="a part of a stderr line that does no harm, and why; recorded, and believed by check e",
    )
    campaign_desk.declare(parser)


def translate(space: argparse.Namespace) -> Request:
    if not (space.researcher or "").strip():
        raise UsageError(
            "campaign run needs a researcher: any command that makes a hypothesis's change in a working copy",
            'add --researcher "CMD"',
        )
    explained = []
    for text in space.explain:
        part, equals, why = text.partition("=")
        if not equals or len(part.strip()) < 4 or not why.strip():
            raise UsageError(
                f"--explain expects TEXT=WHY with at least four characters of the line; found {text!r}",
                "--explain 'RuntimeWarning: overflow=also in the baseline'",
            )
        explained.append((part.strip(), why.strip()))
    devices = tuple(name.strip() for name in space.devices.split(",") if name.strip())
    return Request(
        space.slug,
        space.researcher,
        space.generations,
        space.slots,
        devices,
        space.propose,
        space.limit,
        space.eval_limit,
        tuple(explained),
        space.dry_run,
        campaign_desk.flags(space),
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops.campaign import budget, documents, driver, experiment, hands, ladder
    from cartlab.loops.campaign.board import UNBEATEN

    campaign_desk.may_call(request.researcher, request.flags)
    if request.dry_run:
        return _foretell(context, request)
    desk, campaign = campaign_desk.open_desk(context, request.slug, request.flags)
    desk = replace(desk, options=replace(desk.options, eval_limit_s=request.eval_limit))
    plan = _plan(request, campaign.budget.parallelism)
    helpers = hands.of_command(request.researcher, request.limit) if request.propose else hands.by_hand()
    campaign = driver.run(desk, plan, helpers, request.generations)
    documents.render(desk)
    desk.ledger.project()
    out = campaign_desk.answer(context, campaign)
    if campaign.mode == "design_only":
        out.report.outputs = ["PLAN.md", "RESULTS.md"]
        out.text = [f"campaign {campaign.slug} is design-only: RESULTS.md holds the matrix and how to run it"]
        out.report.next = context.line("campaign done")
        return out
    best = experiment.best_of(campaign)
    used = budget.spent(desk.ledger.events(), desk.goal_id)
    out.report.outputs = ["EXPERIMENTS.md", "leaderboard.md", "RESULTS.md"]
    out.report.next = context.line(
        "campaign done" if campaign.goal.state in driver.ENDS else "campaign ladder"
    )
    out.details = {
        **(out.details or {}),
        "state": campaign.goal.state,
        "reason": campaign.goal.reason,
        "best": {"value": best.number, "text": best.text, "experiment": str(best.round)},
        "baseline": campaign.baseline,
        "generations": len([one for one in campaign.generations if one.closed]),
        "experiments": [
            {
                "exp_id": one.exp_id,
                "gen": one.gen,
                "angle": one.hypothesis.angle,
                "status": "not-run" if one.not_run and not one.decision else one.status,
                "value": one.value,
                "delta": one.delta,
                "verified": one.verified,
            }
            for one in campaign.experiments
            if one.planned
        ],
        "spent_s": used.compute_s,
        "cap_s": campaign.budget.cap_s,
        "isolation": desk.options.isolation,
    }
    champion = campaign.champion
    stands = (
        UNBEATEN
        if champion is None
        else f"best verified: experiment {champion.exp_id}, {campaign.metric} {best.text}"
    )
    out.text = [
        f"campaign {campaign.slug}: {campaign.goal.state} ({campaign.goal.reason})",
        stands,
        f"spent {used.compute_s:.0f} s of {campaign.budget.cap_s:.0f} s, "
        f"{counted(used.experiments_run, 'experiment')}",
        *ladder.lines(ladder.position(campaign), campaign.budget),
    ]
    if campaign.goal.state == "blocked":
        out.status, out.exit_code = "blocked", BLOCKED
    return out


def _plan(request: Request, parallelism: int) -> Plan:
    from cartlab.loops.campaign.experiment import Plan

    wanted = request.slots or parallelism
    if wanted > parallelism:
        raise UsageError(
            f"--slots may be at most BUDGET.md's parallelism, {parallelism}; found {wanted}",
            "raise parallelism there first",
        )
    return Plan(request.researcher, wanted, request.devices, request.limit, dict(request.explained))


def _foretell(context: Context, request: Request) -> Outcome:
    """What would be run and what it may cost; nothing is written and no command is run."""
    from pathlib import Path

    from cartlab.ledger import Ledger
    from cartlab.loops.campaign import driver, gates, generation, ladder
    from cartlab.loops.campaign.folder import Folder
    from cartlab.loops.desk import Desk, Options

    campaign = campaign_desk.foreseen(context, request.slug)
    gates.may_run(Folder(Path(campaign.folder)))
    slots = _plan(request, campaign.budget.parallelism).slots
    out = campaign_desk.answer(context, campaign)
    out.status, out.recorded = "planned", None
    if campaign.mode == "design_only":
        out.text = ["design-only: nothing would be run"]
        return out
    ledger = Ledger.open(context.root.path, mend=False)
    desk = Desk(
        context.repo,
        context.root.path,
        ledger,
        campaign.goal.id,
        context.talk,
        Options(eval_limit_s=request.eval_limit),
    )
    desk = generation.limited(desk, campaign)
    cost, left = generation.cost_of(desk, campaign), generation.remaining(desk, campaign)
    waiting = campaign.queued()
    baseline = "" if "baseline_runs" in campaign.goal.body else f"{driver.BASELINE_RUNS} baseline runs, then "
    out.text = [
        f"would run {baseline}{counted(len(waiting), 'queued experiment')}, {slots} at once",
        f"each may cost {cost:.0f} s, {left:.0f} s are left: that covers {int(left // cost)}",
        *(f"  {one.exp_id} {one.hypothesis.angle}: {one.hypothesis.change}" for one in waiting),
        *ladder.lines(ladder.position(campaign), campaign.budget),
    ]
    out.details = {**(out.details or {}), "worst_case_s": cost, "remaining_s": left, "queued": len(waiting)}
    return out
