"""The campaign's documents, made again from the ledger; what people wrote in them stays."""

from __future__ import annotations

from pathlib import Path

from cartlab.loops.campaign import board, budget, folder, records, results, tables
from cartlab.loops.campaign.folder import Folder
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk


def render(desk: Desk) -> list[str]:
    """Write what is not as the ledger has it; the names that were written."""
    events = desk.ledger.events()
    campaign = records.read(events, desk.goal_id)
    return write(campaign, budget.spent(events, desk.goal_id))


def write(campaign: Campaign, spent: budget.Spent) -> list[str]:
    """The same from values."""
    place, slug = Folder(Path(campaign.folder)), campaign.slug
    bodies = {
        "EXPERIMENTS.md": (tables.render(tables.rows_of(campaign)), f"# Experiments: {slug}"),
        "leaderboard.md": (board.leaderboard(campaign), f"# Leaderboard: {slug}"),
        "PLAN.md": (board.plan(campaign), f"# Plan: {slug}"),
        "IDEA_ANGLES.md": (board.coverage(campaign), "# Idea angles"),
    }
    done = [name for name, (body, head) in bodies.items() if place.render(name, body, head)]
    if campaign.generations or campaign.goal.state != "not_started":
        done += (
            ["RESULTS.md"]
            if place.render("RESULTS.md", _results(campaign, spent), f"# Results: {slug}")
            else []
        )
    texts = {
        "FINDINGS.md": folder.with_sections(
            place.read("FINDINGS.md"), board.findings(campaign), f"# Findings: {slug}"
        ),
        "board.jsonl": board.merged(place.read("board.jsonl"), board.entries_of(campaign)),
        "BUDGET.md": budget.render(campaign.budget, spent, place.read("BUDGET.md")),
    }
    return done + [name for name, text in texts.items() if place.write(name, text)]


def _results(campaign: Campaign, spent: budget.Spent) -> str:
    return board.results(campaign) + "\n".join(results.more(campaign, spent)) + "\n"
