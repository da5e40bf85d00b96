"""One experiment: a fresh copy of the champion, exactly one diff in it, and the runs that its budget allows.

The researcher's command makes the diff from the hypothesis, in a copy without `.git`; what comes back is
recorded as one commit, judged, and measured by the harness. A copy that comes back as it was is failed and
never evaluated: its number would be the champion's, under another name.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.errors import UsageError
from cartlab.loops import acceptance, commands, dispatch, intake, manifest, rounds, trees, views
from cartlab.loops.campaign import edits, records, slots
from cartlab.loops.campaign.hypotheses import changed_settings
from cartlab.loops.campaign.records import Campaign, Experiment
from cartlab.loops.compliance import Finding
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import Dispatch, top_of
from cartlab.loops.policies import Decided
from cartlab.loops.running import Bench, Failed, Value
from cartlab.loops.views import Best
from cartlab.sources import git

# A broken workflow is started three times at most: once, and two more.
LAUNCHES = 3
RESEARCHER_S = 1800.0
_SETTINGS_CAP = 1 << 20
_UNCHANGED = "the diff did not apply: the copy is byte for byte what it was made from"


@dataclass(frozen=True)
class Plan:
    """How experiments are made. researcher: its shell line; slots: experiments at once; devices: one a slot,
    or none; limit_s: the researcher's deadline; explained: part of a stderr line -> why it does no harm.
    UsageError for devices that two experiments would share.
    """

    researcher: str
    slots: int = 1
    devices: tuple[str, ...] = ()
    limit_s: float = RESEARCHER_S
    explained: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(set(self.devices)) < len(self.devices):
            raise UsageError("--devices names a device twice; no two experiments may share one")
        if self.devices and len(self.devices) < self.slots:
            raise UsageError(
                f"--devices must name one for each of {self.slots} slots; found {len(self.devices)}",
                "add devices, or lower --slots",
            )


@dataclass
class Launch:
    """An experiment on its way. number: which start of it this is; best: the champion that it was made from;
    result: its verdict where the runs gave one already; values, pairs: what was measured.
    """

    experiment: Experiment
    given: Dispatch
    slot: int
    number: int
    best: Best
    result: rounds.Result | None = None
    finding: Finding | None = None
    failed: Failed | None = None
    values: list[Value] = field(default_factory=list)
    pairs: Decided | None = None

    @property
    def name(self) -> str:
        """What people and prompts call it."""
        return f"experiment {self.experiment.exp_id}"

    def label(self, what: str = "") -> str:
        """The end of its logs' names: each start and each run has files of its own."""
        return (f"-{self.number}" if self.number > 1 else "") + what


def best_of(campaign: Campaign) -> Best:
    """The champion's value as the ledger has it now; round: the experiment's number, 0 for the baseline."""
    champion = campaign.champion
    if champion is None:
        return Best(float(campaign.baseline), campaign.baseline, 0)
    body = champion.decision
    return Best(float(body["value"]), str(body["text"]), int(champion.exp_id))


def launches_of(experiment: Experiment) -> int:
    """How often it was started."""
    return int(experiment.one.steps.get("dispatched", {}).get("launch", 0))


# --- the researcher -------------------------------------------------------------------------------


def start(desk: Desk, campaign: Campaign, experiment: Experiment, slot: int) -> Launch:
    """The fresh copy, the prompt and the hypothesis, and the step that says so."""
    goal, one, best = campaign.goal, experiment.one, best_of(campaign)
    number = launches_of(experiment) + 1
    desk.clear(one.id)
    own = desk.work_folder(one.id)
    trees.lay(desk.repo, goal.accepted, own / "work")
    place = own / "work" / top_of(goal)
    inbox = own / "inbox"
    for folder in (place, inbox, desk.run_folder(one.id)):
        folder.mkdir(parents=True, exist_ok=True)
    text = prompt(campaign, experiment, best)
    (desk.run_folder(one.id) / "prompt.md").write_text(text, encoding="utf-8")
    (inbox / "prompt.md").write_text(text, encoding="utf-8")
    (inbox / "hypothesis.json").write_text(
        json.dumps(experiment.hypothesis.to_json(), indent=2, ensure_ascii=False), encoding="utf-8"
    )
    desk.step(
        one,
        "dispatched",
        driver="campaign",
        launch=number,
        slot=slot,
        base=goal.accepted,
        best=best.text,
        best_round=best.round,
    )
    given = Dispatch(one, place, inbox / "prompt.md", inbox / "submission.json")
    return Launch(experiment, given, slot, number, best)


def prompt(campaign: Campaign, experiment: Experiment, best: Best) -> str:
    """What the researcher is told: the hypothesis and the rules. It holds no file's content."""
    asked, idea = views.protocol_of(campaign.goal), experiment.hypothesis
    base = f"experiment {best.round}" if best.round else "the baseline"
    lines = [
        f"# Experiment {experiment.exp_id} of campaign {campaign.slug}, generation {experiment.gen}",
        "",
        f"Make one change in this working copy, and nothing else: {idea.change}",
        "",
        f"- goal: {asked.metric}, {asked.direction} is better; the copy is {base} at {best.text}",
        f"- why it should help: {idea.mechanism}",
        f"- predicted: {idea.expected_delta:+g} of {asked.metric}",
        f"- it would be wrong if: {idea.falsification}",
        f"- where the idea is from: {idea.source} (angle {idea.angle}, builds on {idea.builds_on})",
        "",
        f"You may change: {', '.join(asked.variable)} ({asked.variable_range})",
        f"You may not change: {', '.join(asked.fixed)}, or anything that evaluates",
        f"Training gets {asked.time_limit_s:g} s; training and evaluation are run for you when you have "
        "ended, with a seed that you cannot know. A short run of your own is fine.",
        "",
        "The hypothesis is beside this file as hypothesis.json. Write what you did, in one line, as JSON to "
        'the submission file: {"strategy": "..."}. If the change cannot be made, change nothing and say why.',
    ]
    program = campaign.lever.program.strip()
    if program:
        lines += ["", "## The program of this lever", "", *program.splitlines()[:50]]
    return "\n".join(lines) + "\n"


def research(desk: Desk, campaign: Campaign, launch: Launch, plan: Plan) -> None:
    """The researcher's one run; safe to call from a thread of its slot. An edit that was adopted is its own
    researcher.
    """
    if launch.experiment.adopted is not None:
        edits.carry(desk.repo, launch.experiment.adopted, desk.work_folder(launch.experiment.one.id) / "work")
        strategy = {"strategy": f"the checkout's edit: {launch.experiment.hypothesis.change}"}
        launch.given.submission.write_text(json.dumps(strategy), encoding="utf-8")
        return
    more = {
        "AR_ROLE": "experiment",
        "AR_EXPERIMENT": launch.experiment.exp_id,
        "AR_GENERATION": str(launch.experiment.gen),
        "AR_HYPOTHESIS": str(launch.given.prompt.with_name("hypothesis.json")),
        **slots.environment(launch.slot, plan.devices),
    }
    launch.failed = dispatch.research(
        desk, campaign.goal, launch.given, plan.researcher, limit_s=plan.limit_s, more=more, what=launch.name
    )


def take_in(desk: Desk, campaign: Campaign, launch: Launch) -> None:
    """Record what came back as one commit, and give the verdict where no run is needed for one."""
    goal, one = campaign.goal, launch.experiment.one

    def more(commit: str) -> Mapping[str, Any]:
        return {
            "patch_id": patch_id(desk.repo, goal.accepted, commit),
            "settings": settings_of(desk.repo, goal.accepted, commit),
        }

    message = (
        f"autoresearch: experiment {launch.experiment.exp_id}, generation {launch.experiment.gen}\n\n"
        f"{commands.plain(launch.experiment.hypothesis.change, 200)}"
    )
    found = intake.take_in(desk, goal, launch.given, message=message, more=more)
    launch.finding = found
    if launch.failed is not None:
        launch.result = rounds.Result(
            launch.failed.verdict, launch.failed.insight, retry=launch.failed.transient
        )
    elif (known := intake.verdict_without_a_run(desk, one, found, _UNCHANGED)) is not None:
        launch.result = rounds.Result(*known)
    elif (twin := twin_of(desk, launch)) is not None:
        desk.step(one, "screened", complies=True, changes=len(found.changes), twin=twin)
        launch.result = rounds.Result(
            "no_change",
            f"a duplicate: the same patch as experiment {twin}, which was measured on an earlier champion",
        )
    else:
        desk.step(one, "screened", complies=True, changes=len(found.changes))


def twin_of(desk: Desk, launch: Launch) -> str | None:
    """The experiment that measured this patch before, or None. The same tree is no matter of this: its value
    is taken over.
    """
    campaign = records.read(desk.ledger.events(), desk.goal_id)
    mine = campaign.experiment(launch.experiment.exp_id).one.steps["submitted"]
    for other in campaign.experiments:
        theirs = other.one.steps.get("submitted", {})
        same = bool(mine["patch_id"]) and theirs.get("patch_id") == mine["patch_id"]
        if same and theirs["tree"] != mine["tree"] and other.value is not None:
            return other.exp_id
    return None


def patch_id(repo: Path, base: str, commit: str) -> str:
    """git's stable id of the difference: equal for the same patch on another base; "" for none."""
    text = trees.patch(repo, base, commit).encode("utf-8", "surrogateescape")
    words = git.tell(repo, "patch-id", "--stable", given=text).decode().split() if text else []
    return words[0] if words else ""


def settings_of(repo: Path, base: str, commit: str) -> dict[str, Any]:
    """What changed in the JSON files that both trees have, by dotted key."""
    old, new = trees.manifest_of(repo, base), trees.manifest_of(repo, commit)
    out: dict[str, Any] = {}
    for change in manifest.changes(old, new):
        if change.what != "changed" or not change.path.endswith(".json"):
            continue
        before, after = (_json(repo, found[change.path].digest) for found in (old, new))
        if isinstance(before, dict) and isinstance(after, dict):
            out.update(changed_settings(before, after))
    return dict(list(out.items())[:50])


def _json(repo: Path, digest: str) -> Any:
    try:
        return json.loads(git.tell(repo, "cat-file", "blob", digest)[:_SETTINGS_CAP])
    except ValueError:
        return None


# --- the runs -------------------------------------------------------------------------------------


def bench_of(desk: Desk, campaign: Campaign, launch: Launch, plan: Plan) -> Bench:
    """The runs of this launch's own tree."""
    goal = desk.goal()
    steps = next(one for one in goal.tries if one.id == launch.experiment.one.id).steps
    return Bench(
        desk,
        launch.experiment.one,
        views.protocol_of(campaign.goal),
        top_of(campaign.goal),
        str(steps["submitted"]["commit"]),
        slots.environment(launch.slot, plan.devices),
        usual=acceptance.usual(desk, goal, rounds.draw_seed(goal)),
        what=launch.name,
    )


def measure(desk: Desk, campaign: Campaign, launch: Launch, plan: Plan) -> None:
    """The runs that say what it is worth, before anybody compares; safe to call from a thread of its slot."""
    goal, one = campaign.goal, launch.experiment.one
    bench = bench_of(desk, campaign, launch, plan)
    tree = trees.tree_of(desk.repo, bench.commit)
    earlier = rounds.measured_before(goal, one, tree)
    desk.step(one, "measuring")
    if earlier is not None:
        value, inputs = earlier
        launch.result = rounds.Result(
            "discard",
            f"the same tree was measured before: {value.text}",
            value,
            inputs={**inputs, "pooled": True},
        )
        return
    policy = str(goal.body["policy"])
    try:
        if policy == "paired":
            value, launch.pairs = rounds.pairs(desk, goal, one, bench, bench.protocol.direction)
            launch.values = [value]
            if launch.pairs.status == "busy_invalid":
                launch.result = rounds.Result("busy_invalid", launch.pairs.reason, retry=True)
        else:
            for at in range(int(goal.body["k"]) if policy == "repeat-k" else 1):
                label = launch.label(f"-run{at + 1}" if at else "")
                launch.values.append(bench.value(rounds.draw_seed(desk.goal()), label))
    except Failed as failed:
        launch.result = rounds.Result(failed.verdict, failed.insight, retry=failed.transient)


def shown(values: Sequence[Value]) -> Value:
    """The value that stands for several runs: the one in their middle, the lower of two."""
    return sorted(values, key=lambda value: value.number)[(len(values) - 1) // 2]


def middle(values: Sequence[Value]) -> float:
    """The median of the runs."""
    return statistics.median(value.number for value in values)
