"""`campaign done`: is the campaign done, and if not, what is missing."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli import campaign_desk
from cartlab.cli.context import Context
from cartlab.outcome import Outcome

NOT_DONE = 23


@dataclass(frozen=True)
class Request:
    slug: str | None
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    campaign_desk.declare_slug(parser)


def translate(space: argparse.Namespace) -> Request:
    return Request(space.slug, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops.campaign import results
    from cartlab.loops.campaign.board import UNBEATEN

    campaign = campaign_desk.look(context, request.slug)
    found = results.faults(campaign)
    champion = campaign.champion
    out = campaign_desk.answer(context, campaign)
    out.recorded = False
    out.reasons = found
    out.details = {**(out.details or {}), "done": not found, "faults": found, "state": campaign.goal.state}
    if found:
        out.status, out.exit_code = "not_done", NOT_DONE
        out.report.next = context.line("campaign run --researcher CMD")
        out.text = [f"campaign {campaign.slug} is not done:", *(f"  {what}" for what in found)]
        return out
    if campaign.mode == "design_only":
        word = "its design is complete, and nothing was measured"
    elif champion is None:
        word = UNBEATEN
    else:
        word = f"experiment {champion.exp_id} is the best verified, {champion.decision['text']}"
    out.text = [f"campaign {campaign.slug} is done: {word}"]
    out.report.next = context.line("verify")
    return out
