"""Planning a generation: hypotheses from a file or from proposers, checked, numbered and recorded.

The first generation is the seed matrix: the research has to be written, the matrix has to be diverse, and
its experiments are queued at once. Later ones are proposed by angle and wait for their critique. One event
holds a generation's whole list before any attempt is made from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.artefacts import read_text
from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import approvals, commands
from cartlab.loops.campaign import (
    asking,
    edits,
    gates,
    hypotheses,
    ladder,
    matrix,
    opening,
    proposers,
    records,
    told,
)
from cartlab.loops.campaign.folder import Folder
from cartlab.loops.campaign.hypotheses import Hypothesis
from cartlab.loops.campaign.records import Campaign, Experiment
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Try
from cartlab.words import counted


@dataclass(frozen=True)
class Raw:
    """One proposal as it came. angle: the one that its proposer was given; by: who, for messages."""

    body: Any
    angle: str | None = None
    by: str = ""


@dataclass(frozen=True)
class Draft:
    """A generation before it is recorded. kept: (exp_id, hypothesis, why it is a duplicate or None)."""

    gen: int
    lever: str
    rung: int
    kept: tuple[tuple[str, Hypothesis, str | None], ...]
    rejected: tuple[str, ...] = ()
    angles: tuple[str, ...] = ()

    @property
    def live(self) -> list[Hypothesis]:
        """Those that are no duplicates."""
        return [one for _, one, why in self.kept if why is None]


def read_file(path: Path) -> list[Raw]:
    """A file's hypotheses: a JSON list, {"hypotheses": [...]}, or one object a line."""
    text = read_text(path, "hypotheses", "a JSON list of objects")
    return [Raw(body) for body in listed(text, str(path), "hypotheses")]


def listed(text: str, name: str, key: str) -> list[Any]:
    """The objects of a JSON list, of an object's list, or of JSON lines."""
    try:
        body = json.loads(text)
    except RecursionError:
        raise BadInput(f"{name} must be a flat list; it is nested too deep") from None
    except ValueError:
        try:
            body = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise BadInput(f"{name} must be JSON or JSON lines; {error}") from None
    if isinstance(body, Mapping) and key in body:
        body = body[key]
    elif isinstance(body, Mapping):
        body = [body]
    if not isinstance(body, list):
        raise BadInput(f'{name} must hold a list, or {{"{key}": [...]}}; found {type(body).__name__}')
    return body


def draft(
    campaign: Campaign,
    raw: Sequence[Raw],
    angles: Mapping[str, str],
    rung: int = 1,
    given: Sequence[str] = (),
) -> Draft:
    """Read, number and sort out proposals: those without a field are rejected by its name, and those that
    were seen are duplicates.
    """
    seen, number = campaign.seen(), int(campaign.next_id())
    kept: list[tuple[str, Hypothesis, str | None]] = []
    rejected: list[str] = []
    for at, one in enumerate(raw, 1):
        try:
            found = hypotheses.parse(one.body, angles, default_id=f"{one.by or 'h'}{at}")
        except BadInput as error:
            rejected.append(f"{one.by}: {error.message}" if one.by else error.message)
            continue
        if one.angle is not None and found.angle != one.angle:
            rejected.append(
                f"{one.by}: hypothesis {found.id}: angle must be {one.angle}, the one it was given; "
                f"found {found.angle}"
            )
            continue
        exp_id = str(number + len(kept))
        kept.append((exp_id, found, seen.why(found.change, found.settings)))
        seen.add(f"experiment {exp_id}", found.change, found.settings)
    return Draft(
        len(campaign.generations), campaign.lever.id, rung, tuple(kept), tuple(rejected), tuple(given)
    )


def check_seed(campaign: Campaign, made: Draft, angles: Mapping[str, str], ideas: Iterable[str]) -> None:
    """BadInput with every rule of the seed matrix that does not hold; duplicates are no part of it."""
    limit = campaign.budget.seed_experiments
    faults = list(made.rejected)
    if len(made.live) > limit:
        faults.append(
            f"the first matrix must have at most seed_experiments = {limit}; it has {len(made.live)}"
        )
    if not made.live and not faults:
        faults.append("the first matrix must have hypotheses; it has none")
    if not faults:
        faults = matrix.matrix_faults(made.live, angles, ideas)
    if faults:
        raise BadInput(
            "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else ""),
            "replace what is too much by ideas from other angles of IDEA_ANGLES.md",
            details={"faults": faults},
        )


def may_open(campaign: Campaign) -> None:
    """NotLegalNow while a generation is under way."""
    last = campaign.generation
    if last is not None and not last.closed:
        step = "campaign run" if last.critiqued or last.seed else "campaign critique"
        raise NotLegalNow(
            f"a generation is planned when the one before it is closed; {last.number} is under way",
            f"`{step}` goes on with it",
        )


def plan(
    desk: Desk,
    *,
    file: Path | None = None,
    command: str | None = None,
    rung: int | None = None,
    options: proposers.Options | None = None,
    adopt: str | None = None,
) -> Campaign:
    """Plan the next generation from a file or by proposers; the campaign as it is then.

    rung: how wide to search, the ladder's where none is given; adopt: the id of the hypothesis that the
    checkout's edit already carries out.
    """
    if command is not None:
        approvals.admit(desk.ledger, desk.goal_id, command, desk.options.approve)
    campaign = opening.take_up_budget(desk, complete(desk))
    may_open(campaign)
    rung = rung or ladder.position(campaign).rung
    place = Folder(Path(campaign.folder))
    angles = gates.may_plan(place)
    _, ideas = gates.idea_angles(place.read("IDEA_ANGLES.md") or "")
    goal = campaign.goal
    edit = None
    if "protocol" in goal.body:
        edit = edits.edit_of(desk.repo, campaign)
        if edit is not None and adopt is None:
            raise edits.refusal(desk.repo, edit)
    first = not campaign.generations
    given: list[str] = []
    if file is not None:
        raw = read_file(file)
    else:
        assert command is not None
        given = proposers.angles_for(campaign, angles, rung, ideas)
        raw = propose(desk, campaign, command, angles, ideas, rung, given, options or proposers.Options())
    made = draft(campaign, raw, angles, rung, given)
    if first:
        check_seed(campaign, made, angles, ideas)
    elif file is not None and made.rejected:
        raise BadInput("; ".join(made.rejected[:3]), details={"faults": list(made.rejected)})
    adopted = None
    if adopt is not None:
        adopted = edits.adopt(
            desk.repo, campaign, edit, adopt, [(exp_id, one) for exp_id, one, _ in made.kept]
        )
    if first:
        told.tell(
            desk,
            "research_ready",
            f"{campaign.slug}: sources cited, {counted(len(made.live), 'hypothesis', 'hypotheses')}",
        )
    desk.tell(
        "generation",
        gen=made.gen,
        phase="opened",
        lever=made.lever,
        rung=made.rung,
        angles=list(made.angles),
        rejected=list(made.rejected),
        seed=first,
        listed=[
            {
                "exp_id": exp_id,
                "hypothesis": one.to_json(),
                "duplicate": why,
                "adopted": adopted[1] if adopted is not None and adopted[0] == exp_id else None,
            }
            for exp_id, one, why in made.kept
        ],
    )
    campaign = complete(desk)
    told.tell(
        desk,
        "plan_ready",
        f"{campaign.slug}: generation {made.gen}, {counted(len(made.live), 'hypothesis', 'hypotheses')}",
    )
    if first:
        told.tell(desk, "code_ready", f"{counted(len(campaign.queued()), 'experiment')} queued")
    return records.read(desk.ledger.events(), desk.goal_id)


def propose(
    desk: Desk,
    campaign: Campaign,
    command: str,
    angles: Mapping[str, str],
    ideas: Mapping[str, Sequence[str]],
    rung: int,
    given: Sequence[str],
    options: proposers.Options,
) -> list[Raw]:
    """Ask one proposer an angle, all at once; what they proposed. One that answers nothing is said."""
    questions = proposers.questions(campaign, angles, ideas, rung, given, options)
    answers = asking.ask(desk, campaign, command, questions, options.limit_s)
    if answers and all(answer.problem for answer in answers):
        raise BadInput(
            f"at least one proposer must answer; none of {len(answers)} did: {answers[0].problem}",
            "nothing was planned; look at the command",
        )
    raw: list[Raw] = []
    for letter, answer in zip(given, answers, strict=True):
        if answer.problem:
            desk.voice.warn(answer.problem)
            continue
        try:
            bodies = listed(json.dumps(answer.body), answer.question.name, "hypotheses")
        except BadInput as error:
            desk.voice.warn(error.message)
            continue
        raw += [Raw(body, letter, f"proposer {letter}") for body in bodies[: options.each]]
    return raw


# --- from the list to attempts --------------------------------------------------------------------


def complete(desk: Desk) -> Campaign:
    """Make what the newest generation's events promise and a kill may have left out: its attempts, and what
    the critique said of them. Can be called at any time.
    """
    campaign = records.read(desk.ledger.events(), desk.goal_id)
    last = campaign.generation
    if last is None or last.closed:
        return campaign
    known = {one.exp_id: one for one in campaign.experiments}
    for item in last.listed:
        _take_up(desk, last.number, last.lever, item, known.get(str(item["exp_id"])), last.seed)
    if last.critiqued:
        campaign = records.read(desk.ledger.events(), desk.goal_id)
        for verdict in last.verdicts:
            _judge(desk, campaign.experiment(str(verdict["exp_id"])), verdict)
    campaign = records.read(desk.ledger.events(), desk.goal_id)
    mine = campaign.of_generation(last.number)
    if all(one.pruned is not None for one in mine):
        # No survivor: nothing is run, the generation counts as stagnant, and the campaign goes on.
        desk.tell("generation", gen=last.number, phase="closed", champion=None, reason="no survivor")
        campaign = records.read(desk.ledger.events(), desk.goal_id)
    return campaign


def _take_up(
    desk: Desk, gen: int, lever: str, item: Mapping[str, Any], known: Experiment | None, seed: bool
) -> None:
    exp_id = str(item["exp_id"])
    one = known.one if known else Try(records.attempt_id(desk.goal_id, exp_id), gen)
    if known is None:
        body = Hypothesis.from_json(item["hypothesis"])
        desk.step(one, "proposed", **records.proposed(exp_id, lever, body, item.get("adopted")))
        one.state = "proposed"
    if one.state != "proposed":
        return
    if item.get("duplicate"):
        desk.step(one, "closed", reason=commands.plain(str(item["duplicate"]), 200))
    elif seed:
        desk.step(one, "queued")


def _judge(desk: Desk, experiment: Experiment, verdict: Mapping[str, Any]) -> None:
    one = experiment.one
    if one.state == "proposed":
        said = {key: verdict[key] for key in ("quality", "novel", "votes", "scores", "survives", "reason")}
        desk.step(one, "critiqued", **said)
        one.state = "critiqued"
    if one.state == "critiqued":
        if verdict["survives"]:
            desk.step(one, "queued")
        else:
            desk.step(one, "closed", reason=str(verdict["reason"]))
