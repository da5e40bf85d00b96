"""What the campaign's commands have in common: which campaign, its desk, approvals, their answer's keys."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.loops import isolation
from cartlab.outcome import Outcome

if TYPE_CHECKING:
    from cartlab.loops.campaign.records import Campaign
    from cartlab.loops.desk import Desk


@dataclass(frozen=True)
class Flags:
    """How the commands of others are run. approve: the reason that allows one which needs it."""

    isolation: str
    may_write: tuple[str, ...]
    approve: str


def declare_slug(parser: argparse.ArgumentParser) -> None:
    """SLUG, the newest campaign where it is left out."""
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the campaign (default: the newest one)")


def declare(parser: argparse.ArgumentParser) -> None:
    """The flags of whatever calls a researcher, a proposer or a critic."""
    group = parser.add_argument_group("how the command is run")
    group.add_argument(
        "--isolation",
        choices=isolation.CHOICES,
        default="auto",
        help="how far it is confined; what was had is recorded (default: the best there is)",
    )
    group.add_argument(
        "--may-write", action="append", default=[], metavar="DIR", help="a further folder that it may write"
    )
    group.add_argument(
        "--approve", default="", metavar="REASON", help="allow a command that needs it; recorded"
    )


def flags(space: argparse.Namespace) -> Flags:
    """The namespace's part of it."""
    return Flags(space.isolation, tuple(space.may_write), space.approve.strip())


def may_call(command: str, chosen: Flags) -> None:
    """NotLegalNow where a command line needs an approval and has none; asked before anything is written."""
    from cartlab.loops import approvals

    approvals.require(command, chosen.approve)


def open_desk(context: Context, slug: str | None, chosen: Flags) -> tuple[Desk, Campaign]:
    """The campaign's desk."""
    from cartlab.loops.campaign import records
    from cartlab.loops.desk import Desk, Options

    campaign = look(context, slug)
    ledger = loopdesk.open_ledger(context)
    level, writable = loopdesk.confinement(context, chosen.isolation, chosen.may_write)
    desk = Desk(
        context.repo,
        context.root.path,
        ledger,
        campaign.goal.id,
        context.talk,
        Options(isolation=level, writable=writable, approve=chosen.approve),
    )
    return desk, records.read(ledger.events(), desk.goal_id)


def look(context: Context, slug: str | None) -> Campaign:
    """The campaign, read only. From here on its repository is meant, wherever the command was typed."""
    from cartlab.ledger import Ledger
    from cartlab.loops.campaign import records

    loopdesk.here(context)
    if not context.root.path.is_dir():
        return records.newest((), slug)
    campaign = records.newest(Ledger.open(context.root.path, mend=False).events(), slug)
    context.repo = loopdesk.repository_of(context, campaign.goal)
    return campaign


def foreseen(context: Context, slug: str | None) -> Campaign:
    """The campaign as a run would find it, read only: with the limits that BUDGET.md has by now."""
    from cartlab.loops.campaign import opening

    campaign = look(context, slug)
    return replace(campaign, budget=opening.budget_now(campaign))


def answer(context: Context, campaign: Campaign) -> Outcome:
    """An answer with what every campaign command says."""
    out = context.answer()
    out.ledger, out.recorded = str(context.root.path / "events.jsonl"), True
    out.report.inputs = [campaign.slug]
    champion = campaign.champion
    out.details = {
        "goal": campaign.goal.id,
        "slug": campaign.slug,
        "folder": campaign.folder,
        "mode": campaign.mode,
        "champion": None if champion is None else champion.exp_id,
        "stagnation": campaign.stagnation,
    }
    return out
