"""A campaign's events, and the campaign that they tell: a pure fold, on top of the goal's.

A campaign is a goal with loop "campaign"; its experiments are the goal's attempts (goals.Try), their `round`
is the generation. Bodies beyond goals.py's, each with "goal":
  goal      op "opened": describes.campaign {slug, folder, mode, budget}; describes.protocol as every goal has
            (none in mode "design_only")
            op "budget": budget, where BUDGET.md's limits were changed
            op "generation": gen, phase "opened" (lever, rung, angles, rejected, listed: its hypotheses),
            "critiqued" (verdicts) or "closed" (champion: exp_id of a new one or null). Attempts are made
            from listed and verdicts, so that a kill between two of them loses none
            op "not_run": gen, exp_id, worst_case_s, remaining_s: a launch that the budget does not cover
            op "told": event, message: what the notifier was told
            op "blocker": reason
            op "launcher_used": command (its hash), where a launcher's approval held for this run alone
  lever     id, rung, op "opened" (title, program, baseline, base) | "queued" (title, source) | "dry" |
            "searched" (source: the search that is due before rung 3)
  proposal  state "proposed": round, exp_id, angle, lever, hypothesis, adopted (the commit of an edit that
            stood in the checkout before its hypothesis, or null)
            state "critiqued": quality, novel, scores, survives, reason
            state "closed" without a decision: reason, why it never ran
  decision  exp_id, gen, delta (value less what it was compared with), baseline, seconds, verified "yes" |
            "no" | "n/a" (absent: no), champion (did it become the champion), note, audit
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import goals
from cartlab.loops.campaign.budget import Budget
from cartlab.loops.campaign.hypotheses import Hypothesis, Seen
from cartlab.loops.goals import Goal, Try
from cartlab.loops.states import VIEWS

LOOP = "campaign"
FIRST_LEVER = "1"
BASELINE_ID = "0"
Event = Mapping[str, Any]


@dataclass
class Experiment:
    """A hypothesis and what became of it. one: its attempt; not_run: why it was not launched, or ""."""

    exp_id: str
    gen: int
    lever: str
    hypothesis: Hypothesis
    one: Try
    not_run: str = ""

    @property
    def decision(self) -> Mapping[str, Any]:
        """The verdict's body; empty where there is none."""
        return self.one.decision or {}

    @property
    def adopted(self) -> str | None:
        """The commit whose change it measures instead of a researcher's: an edit that was there already."""
        found = self.one.steps.get("proposed", {}).get("adopted")
        return None if found is None else str(found)

    @property
    def planned(self) -> bool:
        """Did it come further than its critique: only then it is an experiment of the tables."""
        return "queued" in self.one.steps or "dispatched" in self.one.steps

    @property
    def pruned(self) -> str | None:
        """Why it never ran, or None."""
        if self.one.state != "closed" or self.one.decision is not None:
            return None
        return str(self.one.steps["closed"].get("reason") or "closed")

    @property
    def status(self) -> str:
        """queued, running, passed, failed or dropped; proposed or pruned where it is none of these yet."""
        if self.decision:
            return VIEWS[self.decision["status"]].campaign[0]
        if self.pruned is not None:
            return "dropped" if self.planned else "pruned"
        if self.one.state in (None, "proposed", "critiqued"):
            return "proposed"
        return "queued" if self.one.state == "queued" else "running"

    @property
    def verified(self) -> str:
        """yes, no or n/a; a verdict that nobody gave is no, and none is due where nothing was measured."""
        if not self.decision:
            return ""
        given = str(self.decision.get("verified") or "")
        if given:
            return given
        return "n/a" if VIEWS[self.decision["status"]].campaign[0] in ("failed", "queued") else "no"

    @property
    def kept(self) -> bool:
        """A verified winner."""
        return self.one.kept and self.verified == "yes"

    @property
    def value(self) -> float | None:
        """What it measured."""
        found = self.decision.get("value")
        return None if found is None else float(found)

    @property
    def delta(self) -> float | None:
        """Against what it was compared with, in the metric's units."""
        found = self.decision.get("delta")
        return None if found is None else float(found)

    @property
    def seconds(self) -> float:
        """Train and eval together."""
        return sum(float(b["seconds"]) for _, b in self.one.measurements if b["role"] in ("train", "eval"))


@dataclass
class Generation:
    """One generation. angles: given to its proposers; champion: the new one's exp_id where it brought one;
    rejected: what was no hypothesis, and why; listed: {exp_id, hypothesis, duplicate}; verdicts: {exp_id,
    quality, novel, votes, scores, survives, reason}; seed: did it go to compute without a critique.
    """

    number: int
    lever: str = FIRST_LEVER
    rung: int = 1
    angles: tuple[str, ...] = ()
    critiqued: bool = False
    closed: bool = False
    champion: str | None = None
    rejected: tuple[str, ...] = ()
    listed: tuple[Mapping[str, Any], ...] = ()
    verdicts: tuple[Mapping[str, Any], ...] = ()
    seed: bool = False


@dataclass
class Lever:
    """An axis of the search. rung: 1 to 3; state: queued, opened or dry; program: its own program.md."""

    id: str
    rung: int
    title: str = ""
    state: str = "queued"
    program: str = ""
    source: str = ""
    baseline: str = ""
    base: str = ""


@dataclass
class Campaign:
    """The campaign as its events tell it. stagnation: closed generations without a new champion, since the
    last one or since the lever was changed; searches: what was searched before rung 3; base: the commit that
    it started from.
    """

    goal: Goal
    budget: Budget
    slug: str
    folder: str
    mode: str = "run"
    experiments: list[Experiment] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    levers: list[Lever] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)
    stagnation: int = 0
    blocker: str = ""
    base: str = ""
    # (exp_id, generation) of each champion, in order.
    champions: list[tuple[str, int]] = field(default_factory=list)

    @property
    def direction(self) -> str:
        """higher or lower."""
        return self.budget.direction

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self.budget.metric

    @property
    def baseline(self) -> str:
        """The baseline's value as printed; "" in design-only mode."""
        return str(self.goal.body.get("protocol", {}).get("baseline", ""))

    @property
    def champion(self) -> Experiment | None:
        """The best verified experiment: each champion beat the one before it. None: the baseline stands."""
        return self.experiment(self.champions[-1][0]) if self.champions else None

    @property
    def generation(self) -> Generation | None:
        """The newest generation."""
        return self.generations[-1] if self.generations else None

    @property
    def lever(self) -> Lever:
        """The lever that is searched now."""
        opened = [lever for lever in self.levers if lever.state == "opened"]
        return opened[-1] if opened else Lever(FIRST_LEVER, 1, "the first program", "opened")

    def experiment(self, exp_id: str) -> Experiment:
        """One experiment by its number; BadInput where there is none."""
        for one in self.experiments:
            if one.exp_id == exp_id:
                return one
        raise BadInput(f"there is no experiment {exp_id!r} in {self.slug}", "EXPERIMENTS.md lists them")

    def of_generation(self, number: int) -> list[Experiment]:
        """The hypotheses of one generation."""
        return [one for one in self.experiments if one.gen == number]

    def running(self) -> list[Experiment]:
        """Launched and without a verdict."""
        return [one for one in self.experiments if one.status == "running"]

    def queued(self) -> list[Experiment]:
        """Waiting to be launched."""
        return [one for one in self.experiments if one.status == "queued" and not one.decision]

    def leaderboard(self) -> list[Experiment]:
        """The verified winners, best first."""
        sign = -1.0 if self.direction == "higher" else 1.0
        return sorted(
            (one for one in self.experiments if one.kept and one.value is not None),
            key=lambda one: (sign * float(one.value or 0.0), int(one.exp_id)),
        )

    def angle_counts(self) -> dict[str, int]:
        """How many hypotheses each angle had, those that were pruned too."""
        counts: dict[str, int] = {}
        for one in self.experiments:
            counts[one.hypothesis.angle] = counts.get(one.hypothesis.angle, 0) + 1
        return counts

    def seen(self) -> Seen:
        """What was proposed already, for finding duplicates. A duplicate itself adds nothing."""
        out = Seen()
        for one in self.experiments:
            submitted = one.one.steps.get("submitted", {})
            out.add(
                f"experiment {one.exp_id}",
                one.hypothesis.change,
                one.hypothesis.settings or submitted.get("settings"),
                submitted.get("patch_id"),
            )
        return out

    def next_id(self) -> str:
        """The number of the next hypothesis."""
        return str(max((int(one.exp_id) for one in self.experiments), default=0) + 1)


def attempt_id(goal: str, exp_id: str) -> str:
    """The attempt of an experiment."""
    return f"{goal}-e{exp_id}"


# --- writing --------------------------------------------------------------------------------------


def proposed(exp_id: str, lever: str, hypothesis: Hypothesis, adopted: str | None) -> dict[str, Any]:
    """The body of a `proposed` step beyond what Desk.step adds."""
    return {
        "exp_id": exp_id,
        "angle": hypothesis.angle,
        "lever": lever,
        "hypothesis": hypothesis.to_json(),
        "adopted": adopted,
    }


# --- reading --------------------------------------------------------------------------------------


def read(events: Iterable[Event], goal_id: str) -> Campaign:
    """The campaign of a goal."""
    events = list(events)
    goal = goals.fold(events)[goal_id]
    described = goal.body["campaign"]
    out = Campaign(
        goal,
        Budget.from_json(described["budget"]),
        described["slug"],
        described["folder"],
        described.get("mode", "run"),
    )
    for one in goal.tries:
        body = one.steps.get("proposed", {})
        if "hypothesis" in body:
            out.experiments.append(
                Experiment(
                    str(body["exp_id"]),
                    one.round,
                    str(body["lever"]),
                    Hypothesis.from_json(body["hypothesis"]),
                    one,
                )
            )
    for event in events:
        body = event["body"]
        if not isinstance(body, Mapping) or body.get("goal") != goal_id:
            continue
        if event["type"] == "goal":
            _on_goal(out, body)
        elif event["type"] == "lever":
            _on_lever(out, body)
        elif event["type"] == "decision" and body.get("champion"):
            out.champions.append((str(body["exp_id"]), int(body["gen"])))
            out.stagnation = 0
    return out


def _on_goal(out: Campaign, body: Mapping[str, Any]) -> None:
    op = body["op"]
    if op == "opened":
        out.base = str(body["baseline_commit"])
    elif op == "budget":
        out.budget = Budget.from_json(body["budget"])
    elif op == "generation":
        _on_generation(out, body)
    elif op == "not_run":
        for one in out.experiments:
            if one.exp_id == str(body["exp_id"]):
                one.not_run = (
                    f"not-run: it may cost {body['worst_case_s']:.0f} s, {body['remaining_s']:.1f} s are left"
                )
    elif op == "blocker":
        out.blocker = str(body["reason"])
    elif op == "state" and body["state"] == "running":
        out.blocker = ""


def _on_generation(out: Campaign, body: Mapping[str, Any]) -> None:
    number = int(body["gen"])
    if body["phase"] == "opened":
        out.generations.append(
            Generation(
                number,
                str(body["lever"]),
                int(body["rung"]),
                tuple(body.get("angles", ())),
                rejected=tuple(body.get("rejected", ())),
                listed=tuple(body.get("listed", ())),
                seed=bool(body.get("seed")),
            )
        )
        return
    found = next(one for one in out.generations if one.number == number)
    if body["phase"] == "critiqued":
        found.critiqued, found.verdicts = True, tuple(body.get("verdicts", ()))
    elif body["phase"] == "closed":
        found.closed, found.champion = True, body.get("champion")
        out.stagnation = 0 if found.champion else out.stagnation + 1


def _on_lever(out: Campaign, body: Mapping[str, Any]) -> None:
    if body["op"] == "searched":
        out.searches.append(str(body["source"]))
        return
    found = next((lever for lever in out.levers if lever.id == str(body["id"])), None)
    if found is None:
        found = Lever(str(body["id"]), int(body["rung"]))
        out.levers.append(found)
    for key in ("title", "program", "source", "baseline", "base"):
        setattr(found, key, str(body.get(key) or getattr(found, key)))
    found.state = {"opened": "opened", "dry": "dry"}.get(body["op"], found.state)
    if body["op"] == "opened":
        # The lever that is opened last is the one that is searched.
        out.levers.remove(found)
        out.levers.append(found)
        out.stagnation = 0


def goal_of(events: Iterable[Event], slug: str | None = None) -> str | None:
    """The newest campaign's goal (of a slug), or None."""
    found = [
        goal.id
        for goal in goals.fold(events).values()
        if goal.loop == LOOP and slug in (None, goal.body["campaign"]["slug"])
    ]
    return found[-1] if found else None


def newest(events: Iterable[Event], slug: str | None = None) -> Campaign:
    """The newest campaign (of a slug); NotLegalNow where there is none."""
    events = list(events)
    found = goal_of(events, slug)
    if found is None:
        raise NotLegalNow(
            f"no campaign {slug!r} was opened in this root"
            if slug
            else "no campaign was opened in this root",
            "`campaign init SLUG --protocol FILE` opens one",
        )
    return read(events, found)
