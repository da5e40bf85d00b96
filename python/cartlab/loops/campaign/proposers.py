"""Who proposes: one angle each, the least explored first; and what a proposer is told. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cartlab.loops.campaign import matrix
from cartlab.loops.campaign.asking import LIMIT_S, Question
from cartlab.loops.campaign.hypotheses import TRANSFORMATIONS
from cartlab.loops.campaign.records import Campaign

RUNG_WORDS = {
    1: "Change one variable of the champion.",
    2: "The search is stuck: change one variable of a family that the champion's own gain does not touch.",
    3: "The search is stuck: propose within the new lever's program, which is another method.",
}
TRIED_ROWS = 50


@dataclass(frozen=True)
class Options:
    """each: hypotheses that are taken from one proposer, at most; limit_s: its deadline."""

    each: int = 4
    limit_s: float = LIMIT_S


def angles_for(
    campaign: Campaign, angles: Mapping[str, str], rung: int, ideas: Mapping[str, Sequence[str]]
) -> list[str]:
    """The angles of the next generation's proposers. The first generation asks as many as its matrix has
    places; from rung 2 on the champion's own angle is left out.
    """
    open_to = dict(angles)
    champion = campaign.champion
    if rung >= 2 and champion is not None:
        open_to.pop(champion.hypothesis.angle, None)
    if campaign.generations:
        return matrix.least_explored(campaign.angle_counts(), campaign.budget.proposers, open_to)
    size = campaign.budget.seed_experiments
    must = matrix.required_angles(size, ideas)
    return [*must, *(letter for letter in angles if letter not in must)][:size]


def questions(
    campaign: Campaign,
    angles: Mapping[str, str],
    ideas: Mapping[str, Sequence[str]],
    rung: int,
    given: Sequence[str],
    options: Options,
) -> list[Question]:
    """One question an angle."""
    gen = len(campaign.generations)
    # A matrix that is larger than the angles are many takes several of each.
    each = options.each if gen else -(-campaign.budget.seed_experiments // len(given))
    return [
        Question(
            f"g{gen}-propose-{at}-{letter}",
            "propose",
            prompt(campaign, angles, ideas, rung, letter, each),
            {"AR_ANGLE": letter, "AR_GENERATION": str(gen), "AR_RUNG": str(rung)},
        )
        for at, letter in enumerate(given, 1)
    ]


def prompt(
    campaign: Campaign,
    angles: Mapping[str, str],
    ideas: Mapping[str, Sequence[str]],
    rung: int,
    letter: str,
    each: int,
) -> str:
    """What one proposer is told. It names the documents and holds no file's content."""
    champion = campaign.champion
    stands = (
        f"experiment {champion.exp_id} ({champion.hypothesis.change}) with {champion.decision['text']}"
        if champion is not None
        else f"the baseline{' with ' + campaign.baseline if campaign.baseline else ''}"
    )
    tried = [
        f"- {one.exp_id} ({one.hypothesis.angle}, {one.status}): {one.hypothesis.change}"
        for one in campaign.experiments[-TRIED_ROWS:]
    ]
    several = "hypothesis" if each == 1 else "hypotheses"
    lines = [
        f"# Propose for angle {letter}: {angles[letter]}",
        "",
        f"Campaign {campaign.slug}, generation {len(campaign.generations)}. Metric: {campaign.metric}, "
        f"{campaign.direction} is better. Champion: {stands}.",
        RUNG_WORDS[min(rung, 3)],
        f"Propose at most {each} {several} of angle {letter} only. Other angles have proposers of their own.",
        "",
        "## Read first",
        f"In {campaign.folder}: program.md, FINDINGS.md, leaderboard.md, DEEPRESEARCH.md, IDEA_ANGLES.md. "
        "The working directory is a copy of the champion's code; change nothing in it.",
        "",
        "## A hypothesis",
        "One variable, in one line, that nobody tried. Answer three questions before you write it down: by "
        "which path it moves the metric, by how much and which way, and which result would prove you wrong.",
        "",
        "## Ideas listed for this angle",
        *([f"- {idea}" for idea in ideas.get(letter, ())] or ["- none"]),
        "",
        "You may spin a new one from an old: " + ", ".join(TRANSFORMATIONS) + ". Then name its parent.",
        "",
        "## Tried or proposed already",
        *(tried or ["- nothing"]),
        "",
        "## Answer",
        "Write the submission file (AR_SUBMISSION) as JSON:",
        json.dumps({"hypotheses": [{**_FORM, "angle": letter, "direction": campaign.direction}]}),
    ]
    return "\n".join(lines) + "\n"


_FORM = {
    "id": "short-name",
    "angle": "",
    "change": "one line",
    "mechanism": "A, so B, so the metric",
    "expected_delta": 0.002,
    "direction": "",
    "falsification": "what would disprove it",
    "source": "URL or file:line",
    "builds_on": "baseline, or an experiment's number",
    "parent": None,
    "transformation": None,
    "settings": None,
}
