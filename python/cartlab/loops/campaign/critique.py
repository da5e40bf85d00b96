"""Critique before compute: critics' scores, and who survives them. The judging is pure.

A hypothesis survives with a mean quality of at least 6 of 10 and more than half of the votes for "novel". Of
the survivors the best go to compute, and among these are three angles at least: where they are fewer, the
best of another angle that its critics found novel takes the place of the weakest double. Scores are opinions;
none of them is a measurement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.artefacts import read_text
from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import approvals, commands
from cartlab.loops.campaign import asking, planning, records, told
from cartlab.loops.campaign.asking import LIMIT_S, Question
from cartlab.loops.campaign.records import Campaign, Experiment
from cartlab.loops.desk import Desk
from cartlab.words import counted

QUALITY = 6.0
ANGLES = 3


@dataclass(frozen=True)
class Score:
    """One critic's opinion of one hypothesis. quality: 0 to 10; novel: is it no near-duplicate."""

    exp_id: str
    critic: str
    quality: float
    novel: bool
    note: str = ""


@dataclass(frozen=True)
class Rules:
    """quality: the least mean; half_passes: is an exact half of the votes enough; keep: how many go on."""

    quality: float = QUALITY
    half_passes: bool = False
    keep: int = 4


@dataclass
class Verdict:
    """What the panel said of one. votes: "2 of 3"; swapped: is it there for its angle."""

    exp_id: str
    angle: str
    quality: float
    novel: bool
    votes: str
    survives: bool = False
    reason: str = ""
    scores: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The form of the ledger."""
        return {key: value for key, value in vars(self).items() if key != "angle"}


def judge(
    candidates: Sequence[tuple[str, str]], scores: Sequence[Score], rules: Rules | None = None
) -> list[Verdict]:
    """A verdict for each candidate (exp_id, angle), in their order. BadInput where one has no score."""
    asked = rules or Rules()
    found = [_opinion(exp_id, angle, scores, asked) for exp_id, angle in candidates]
    ranked = sorted(found, key=lambda one: (-one.quality, int(one.exp_id)))
    passed = [one for one in ranked if one.novel and one.quality >= asked.quality]
    chosen = passed[: asked.keep]
    for one in passed[asked.keep :]:
        one.reason = f"good, but {asked.keep} better ones go first"
    if chosen:
        _spread(chosen, [one for one in ranked if one.novel and one not in chosen], asked)
    for one in found:
        one.survives = one in chosen
        if one.survives:
            one.reason = one.reason or f"quality {one.quality:.3g}, novel for {one.votes}"
    return found


def _opinion(exp_id: str, angle: str, scores: Sequence[Score], rules: Rules) -> Verdict:
    mine = [score for score in scores if score.exp_id == exp_id]
    if not mine:
        raise BadInput(
            f"every hypothesis must be scored before compute is spent; experiment {exp_id} has no score",
            "let each critic score all of them",
        )
    quality = sum(score.quality for score in mine) / len(mine)
    votes = sum(score.novel for score in mine)
    novel = votes * 2 >= len(mine) if rules.half_passes else votes * 2 > len(mine)
    reason = ""
    if not novel:
        reason = f"novel for only {votes} of {len(mine)}"
    elif quality < rules.quality:
        reason = f"quality {quality:.3g} is below {rules.quality:g}"
    said = [
        {"critic": s.critic, "quality": s.quality, "novel": s.novel, **({"note": s.note} if s.note else {})}
        for s in mine
    ]
    return Verdict(exp_id, angle, quality, novel, f"{votes} of {len(mine)}", reason=reason, scores=said)


def _spread(chosen: list[Verdict], others: list[Verdict], rules: Rules) -> None:
    """Bring at least three angles among the chosen, as far as novel candidates of others are there."""
    while len({one.angle for one in chosen}) < min(ANGLES, rules.keep):
        have = {one.angle for one in chosen}
        new = next((one for one in others if one.angle not in have), None)
        if new is None:
            return
        if len(chosen) >= rules.keep:
            weakest = next(one for one in reversed(chosen) if sum(o.angle == one.angle for o in chosen) > 1)
            chosen.remove(weakest)
            weakest.reason = f"gave its place to experiment {new.exp_id}: angle {weakest.angle} has others"
        chosen.append(new)
        new.reason = f"for its angle {new.angle}: the others were too much alike (quality {new.quality:.3g})"


def parse(bodies: Sequence[Any], campaign: Campaign, critic: str = "") -> list[Score]:
    """Scores from JSON; BadInput names what is missing. critic: who gave them, instead of their own word."""
    names = {one.exp_id: one.exp_id for one in campaign.experiments}
    last = campaign.generation
    for one in campaign.of_generation(last.number) if last else ():
        names.setdefault(one.hypothesis.id, one.exp_id)
    out = []
    for at, body in enumerate(bodies, 1):
        if not isinstance(body, Mapping):
            raise BadInput(f"score {at}: expected an object, found {body!r:.60}", _FORM)
        name = str(body.get("id", body.get("exp_id", "")))
        if name not in names:
            raise BadInput(f"score {at}: id must name a hypothesis of this generation; found {name!r}", _FORM)
        quality, novel = body.get("quality"), body.get("novel")
        if isinstance(quality, bool) or not isinstance(quality, (int, float)) or not 0 <= quality <= 10:
            raise BadInput(f"score {at}: quality must be a number from 0 to 10; found {quality!r}", _FORM)
        if not isinstance(novel, bool):
            raise BadInput(f"score {at}: novel must be true or false; found {novel!r}", _FORM)
        who = critic or commands.plain(str(body.get("critic") or ""), 80)
        if not who:
            raise BadInput(f"score {at}: critic must say who gave it; found none", _FORM)
        assert math.isfinite(quality)
        out.append(
            Score(names[name], who, float(quality), novel, commands.plain(str(body.get("note") or ""), 300))
        )
    return out


_FORM = '{"id": "3", "critic": "first", "quality": 7, "novel": true, "note": "why"}'


def waiting(campaign: Campaign) -> list[Experiment]:
    """The hypotheses of the newest generation that have no critique yet; NotLegalNow where none is due."""
    last = campaign.generation
    if last is None or last.closed or last.critiqued or last.seed:
        what = "no generation was planned" if last is None else f"generation {last.number} waits for none"
        if last is not None and last.seed and not last.closed:
            what = "the seed matrix was checked as a whole and goes to compute as it is"
        raise NotLegalNow(
            f"a critique is due after `campaign plan`; {what}",
            "`campaign run` goes on" if last is not None and not last.closed else "`campaign plan` first",
        )
    return [one for one in campaign.of_generation(last.number) if one.one.state == "proposed"]


def critique(
    desk: Desk,
    *,
    file: Path | None = None,
    command: str | None = None,
    rules: Rules | None = None,
    limit_s: float = LIMIT_S,
) -> Campaign:
    """Let the newest generation be scored, and queue its survivors; the campaign as it is then."""
    if command is not None:
        approvals.admit(desk.ledger, desk.goal_id, command, desk.options.approve)
    campaign = planning.complete(desk)
    candidates = waiting(campaign)
    asked = rules or Rules(keep=campaign.budget.hypotheses_per_gen)
    if file is not None:
        scores = parse(planning.listed(read_text(file, "scores", _FORM), str(file), "scores"), campaign)
    else:
        assert command is not None
        scores = _ask(desk, campaign, candidates, command, limit_s)
    _enough(campaign, candidates, scores)
    verdicts = judge([(one.exp_id, one.hypothesis.angle) for one in candidates], scores, asked)
    desk.tell(
        "generation",
        gen=campaign.generations[-1].number,
        phase="critiqued",
        quality=asked.quality,
        half_passes=asked.half_passes,
        keep=asked.keep,
        verdicts=[one.to_json() for one in verdicts],
    )
    campaign = planning.complete(desk)
    queued = sum(one.survives for one in verdicts)
    if queued:
        told.tell(desk, "code_ready", f"{counted(queued, 'experiment')} queued")
    return records.read(desk.ledger.events(), desk.goal_id)


def _enough(campaign: Campaign, candidates: Sequence[Experiment], scores: Sequence[Score]) -> None:
    """BadInput where a hypothesis has fewer critics than the budget wants, or one scored it twice."""
    for one in candidates:
        who = [score.critic for score in scores if score.exp_id == one.exp_id]
        if len(set(who)) < len(who):
            raise BadInput(f"experiment {one.exp_id} must have one score a critic; one gave it two")
        if len(who) < campaign.budget.critics:
            raise BadInput(
                f"experiment {one.exp_id} must be scored by critics = {campaign.budget.critics}; it was by "
                f"{len(who)}",
                "let more critics score it, or lower critics in BUDGET.md",
            )


def _ask(
    desk: Desk, campaign: Campaign, candidates: Sequence[Experiment], command: str, limit_s: float
) -> list[Score]:
    gen = campaign.generations[-1].number
    questions = [
        Question(
            f"g{gen}-critique-{at}",
            "critique",
            prompt(campaign, candidates),
            {"AR_CRITIC": str(at), "AR_GENERATION": str(gen)},
        )
        for at in range(1, campaign.budget.critics + 1)
    ]
    out: list[Score] = []
    for at, answer in enumerate(asking.ask(desk, campaign, command, questions, limit_s), 1):
        if answer.problem:
            desk.voice.warn(answer.problem)
            continue
        bodies = planning.listed(json.dumps(answer.body), answer.question.name, "scores")
        out += parse(bodies, campaign, f"critic {at}")
    return out


def prompt(campaign: Campaign, candidates: Sequence[Experiment]) -> str:
    """What a critic is told."""
    shown = [
        {"exp_id": one.exp_id, **{key: value for key, value in one.hypothesis.to_json().items() if value}}
        for one in candidates
    ]
    lines = [
        f"# Criticise generation {campaign.generations[-1].number} of campaign {campaign.slug}",
        "",
        f"Metric: {campaign.metric}, {campaign.direction} is better. The board is in {campaign.folder}: "
        "FINDINGS.md, leaderboard.md, EXPERIMENTS.md, DEEPRESEARCH.md. Change nothing.",
        "",
        "Score every hypothesis below: quality from 0 to 10, for impact times plausibility; novel, false "
        "where it is nearly one that was tried. Write the submission file (AR_SUBMISSION) as JSON:",
        json.dumps({"scores": [{"id": candidates[0].exp_id, "quality": 7, "novel": True, "note": "why"}]}),
        "",
        "```json",
        json.dumps(shown, indent=1, ensure_ascii=False),
        "```",
    ]
    return "\n".join(lines) + "\n"
