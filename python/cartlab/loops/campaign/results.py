"""How a campaign ended, and whether it is done: its files, its rows, and a result that is named honestly.

A campaign that beat nothing is done as well, and says so in the words "baseline unbeaten". A design-only one
has its matrix and how to run it, and not one number of the metric anywhere.
"""

from __future__ import annotations

import re
from pathlib import Path

from cartlab.loops import commands, trees
from cartlab.loops.campaign import ladder
from cartlab.loops.campaign.board import UNBEATEN
from cartlab.loops.campaign.budget import Spent
from cartlab.loops.campaign.folder import Folder, block_of
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk
from cartlab.words import counted

FILES = (
    "BUDGET.md",
    "EXPERIMENTS.md",
    "leaderboard.md",
    "IDEA_ANGLES.md",
    "FINDINGS.md",
    "board.jsonl",
    "RESULTS.md",
)
DESIGN_FILES = ("TASK.md", "COMPUTE.md", "PLAN.md", "RESULTS.md")
WINNER = "winner.diff"
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"


def more(campaign: Campaign, spent: Spent) -> list[str]:
    """What RESULTS.md says below its comparison: why it ended, what was not run, what it cost, how a design
    is run.
    """
    if campaign.mode == "design_only":
        return [
            "",
            "## How to run it",
            "",
            "1. `handoff DESIGN.md --run-vp` in the experiment's repository writes its protocol.",
            f"2. `campaign init {campaign.slug}-run --protocol FOLDER` opens the campaign where compute is.",
            "3. `campaign plan --hypotheses FILE` with this matrix, then `campaign run --researcher CMD`.",
        ]
    at = ladder.lines(ladder.position(campaign), campaign.budget)
    lines = ["", "## How it went", "", f"- {campaign.goal.state}: {campaign.goal.reason or 'under way'}"]
    lines += [
        f"- spent {spent.compute_s / 60:.1f} of {campaign.budget.cap_s / 60:.1f} min, "
        f"{counted(spent.experiments_run, 'experiment')}, {counted(spent.generations_run, 'generation')}",
        f"- {at[0]}",
    ]
    if campaign.champion is not None:
        gen = campaign.champions[-1][1]
        lines.append(f"- branch `autoresearch/{campaign.slug}-gen{gen}`; the whole change is in {WINNER}")
    lines += [
        f"- experiment {one.exp_id} ({commands.plain(one.hypothesis.change, 120)}): {one.not_run}"
        for one in campaign.experiments
        if one.not_run and not one.decision
    ]
    return lines


def keep_winner(desk: Desk, campaign: Campaign) -> None:
    """The difference from the baseline to the champion, for people; nothing where the baseline stands."""
    if campaign.champion is not None:
        patch = trees.patch(desk.repo, campaign.base, campaign.goal.accepted)
        Folder(Path(campaign.folder)).write(WINNER, patch)


# --- done -----------------------------------------------------------------------------------------


def faults(campaign: Campaign) -> list[str]:
    """What is missing before the campaign is done; empty where it is."""
    place = Folder(Path(campaign.folder))
    if campaign.mode == "design_only":
        return _design_faults(campaign, place)
    out = [f"{name} is missing in {campaign.folder}" for name in FILES if place.read(name) is None]
    out += [f"experiment {one.exp_id} is {one.status}" for one in campaign.running()]
    out += [
        f"experiment {one.exp_id} is queued and was never recorded as not run"
        for one in campaign.queued()
        if not one.not_run
    ]
    if campaign.goal.state in ("not_started", "running"):
        out.append(f"the campaign is {campaign.goal.state}: no exit condition was met")
    elif campaign.goal.state in ("paused", "blocked"):
        out.append(f"the campaign is {campaign.goal.state}: {campaign.goal.reason or campaign.blocker}")
    return out + _result_faults(campaign, place.read("RESULTS.md"))


def _result_faults(campaign: Campaign, found: str | None) -> list[str]:
    """RESULTS.md has to say what the ledger says."""
    if found is None:
        return []
    said, champion = block_of(found), campaign.champion
    hit = re.search(r"Best verified configuration: experiment (\d+),", said)
    if champion is None:
        if UNBEATEN not in said:
            return [f'RESULTS.md must say "{UNBEATEN}": no verified experiment beat the baseline']
        return [] if hit is None else [f"RESULTS.md names experiment {hit[1]}, which was never verified"]
    if hit is None or hit[1] != champion.exp_id:
        named = "no experiment" if hit is None else f"experiment {hit[1]}"
        return [f"RESULTS.md must name experiment {champion.exp_id}, the best verified; it names {named}"]
    return []


def _design_faults(campaign: Campaign, place: Folder) -> list[str]:
    out = [f"{name} is missing in {campaign.folder}" for name in DESIGN_FILES if place.read(name) is None]
    if not [one for one in campaign.experiments if one.pruned is None]:
        out.append("a design needs its matrix: no hypothesis is planned")
    if "campaign run" not in (place.read("RESULTS.md") or "campaign run"):
        out.append("RESULTS.md must say how the design is run")
    if any(one.value is not None for one in campaign.experiments):
        out.append("a design-only campaign has a measured value in its ledger")
    named = re.compile(
        rf"(?:\b{re.escape(campaign.metric)}\b|\bbest_metric\b|\bMETRIC\b)\s*[=:]\s*({_NUMBER})(?![\w.])"
    )
    for path in sorted(Path(campaign.folder).rglob("*")):
        if path.suffix not in (".md", ".jsonl", ".json", ".log") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if named.search(line):
                out.append(f"{path.name} line {number}: a design-only campaign names a value of its metric")
                break
    return out
