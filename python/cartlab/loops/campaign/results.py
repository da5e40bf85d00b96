"""RESULTS.md, and whether a campaign is done: its files, its rows, and a result that is named honestly.

A campaign that beat nothing is done as well, and says so in the words "baseline unbeaten". A design-only one
has its matrix and how to run it, and not one number of the metric anywhere.
"""

from __future__ import annotations

import re
from pathlib import Path

from cartlab.loops import commands, trees
from cartlab.loops.campaign import budget, experiment, ladder
from cartlab.loops.campaign.budget import Spent
from cartlab.loops.campaign.folder import Folder, block_of
from cartlab.loops.campaign.hypotheses import ANGLES
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk

UNBEATEN = "baseline unbeaten"
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
_DIFF_LINES = 100
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"


def head(campaign: Campaign) -> str:
    """The first line of a new RESULTS.md."""
    return f"# Results: {campaign.slug}"


def render(desk: Desk, campaign: Campaign) -> None:
    """Renew RESULTS.md."""
    events = desk.ledger.events()
    spent = budget.spent(events, campaign.goal.id)
    if campaign.mode == "design_only":
        body = design(campaign)
    else:
        champion = campaign.champion
        patch = ""
        if champion is not None:
            opened = next(
                event["body"]
                for event in events
                if event["type"] == "goal"
                and event["body"]["op"] == "opened"
                and event["body"]["goal"] == campaign.goal.id
            )
            patch = trees.patch(desk.repo, str(opened["baseline_commit"]), campaign.goal.accepted)
        body = text(campaign, spent, patch)
    Folder(Path(campaign.folder)).render("RESULTS.md", "\n".join(body), head(campaign))


def text(campaign: Campaign, spent: Spent, patch: str) -> list[str]:
    """The result for people. patch: from the baseline to the champion."""
    champion, goal = campaign.champion, campaign.goal
    best = experiment.best_of(campaign)
    lines = [f"Ended: {goal.state}{' (' + goal.reason + ')' if goal.reason else ''}.", ""]
    if champion is None:
        lines += [
            f"**{UNBEATEN}**: no experiment was better than {campaign.metric} = {campaign.baseline} and "
            "passed all five checks. The baseline stands.",
        ]
    else:
        gained = best.number - float(campaign.baseline)
        percent = f", {gained / abs(float(campaign.baseline)):+.2%}" if float(campaign.baseline) else ""
        branch = f"autoresearch/{campaign.slug}-gen{champion.gen}"
        lines += [
            f"**Best verified: experiment {champion.exp_id}**, {campaign.metric} = {best.text} against the "
            f"baseline's {campaign.baseline} ({gained:+.6g}{percent}).",
            "",
            f"- change: {champion.hypothesis.change} (angle {champion.hypothesis.angle})",
            f"- commit {goal.accepted[:12]}, branch `{branch}`",
            *(f"- {one.decision['audit']}" for one in campaign.leaderboard() if one.decision.get("audit")),
        ]
    lines += ["", *_table(campaign), "", *_angles(campaign)]
    rung = ladder.lines(ladder.position(campaign), campaign.budget)[0]
    left_out = [one for one in campaign.experiments if one.not_run]
    if left_out:
        lines += ["", "Not run, because the budget did not cover them: "]
        lines += [
            f"- experiment {one.exp_id}: {_cell(one.hypothesis.change)} ({one.not_run})" for one in left_out
        ]
    lines += [
        "",
        f"Spent: {spent.compute_s / 60:.1f} min of {campaign.budget.cap_s / 60:.1f}, {spent.experiments_run} "
        f"experiments, {spent.generations_run} generations; {rung}.",
    ]
    if patch:
        shown = patch.splitlines()
        lines += ["", "From the baseline to the best:", "", "````diff", *shown[:_DIFF_LINES]]
        if len(shown) > _DIFF_LINES:
            lines.append(f"... {len(shown) - _DIFF_LINES} more lines: git show {goal.accepted[:12]}")
        lines.append("````")
    return lines


def _table(campaign: Campaign) -> list[str]:
    rows = [
        f"| exp_id | angle | change | status | {campaign.metric} | delta | verified |",
        "|---|---|---|---|---|---|---|",
        f"| 0 |  | baseline | passed | {campaign.baseline} | 0 | n/a |",
    ]
    for one in campaign.experiments:
        if not one.planned:
            continue
        status = "not-run" if one.not_run else one.status
        value = one.decision.get("text", "")
        delta = "" if one.delta is None else f"{one.delta:+.6g}"
        rows.append(
            f"| {one.exp_id} | {one.hypothesis.angle} | {_cell(one.hypothesis.change)} | {status} | {value} "
            f"| {delta} | {one.verified} |"
        )
    return rows


def _cell(value: str) -> str:
    return commands.plain(value, 200).replace("|", "\\|")


def _angles(campaign: Campaign) -> list[str]:
    ran = {one.hypothesis.angle for one in campaign.experiments if one.decision}
    return [
        f"Angles covered: {', '.join(sorted(ran)) or 'none'}. "
        f"Not covered: {', '.join(letter for letter in ANGLES if letter not in ran) or 'none'}."
    ]


def design(campaign: Campaign) -> list[str]:
    """A design-only campaign's result: what to run and how, and no number of the metric."""
    lines = [
        "Design only: nothing was measured, so nothing is claimed.",
        "",
        "| exp_id | angle | change | why | it would be wrong if |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.exp_id} | {one.hypothesis.angle} | {_cell(one.hypothesis.change)} "
        f"| {_cell(one.hypothesis.mechanism)} | {_cell(one.hypothesis.falsification)} |"
        for one in campaign.experiments
        if one.pruned is None
    ]
    lines += [
        "",
        "To run it, where there is compute:",
        "",
        "1. `handoff DESIGN.md --run-vp` in the experiment's repository writes its protocol.",
        f"2. `campaign init {campaign.slug}-run --protocol FOLDER --compute local` opens the campaign.",
        "3. `campaign plan --hypotheses FILE` with the matrix above, then `campaign run --researcher CMD`.",
    ]
    return lines


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
    hit = re.search(r"Best verified: experiment (\d+)\*\*", said)
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
