"""The verdict on a measured experiment: against the champion of this moment, and through five checks.

Experiments of a wave are decided one after another, best first, so that the next best is promoted where the
best does not pass its checks. The verdict is in the ledger before a ref or a file moves, and what follows it
can be carried out again by whoever comes after a kill.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.loops import acceptance, commands, rounds, trees, views
from cartlab.loops.campaign import experiment, mechanism, records, told, verification
from cartlab.loops.campaign.experiment import Launch, Plan
from cartlab.loops.campaign.folder import Folder
from cartlab.loops.campaign.records import Campaign, Experiment
from cartlab.loops.campaign.verification import Check
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Try
from cartlab.loops.policies import better
from cartlab.loops.running import Failed, Value, rooted
from cartlab.loops.views import Best
from cartlab.model import STATUSES

BRANCH = "autoresearch/{slug}-gen{gen}"
_LOG_CAP = 1 << 20


@dataclass(frozen=True)
class Verdict:
    """What is recorded: the result, what it was compared with, the checks, the sentence on its mechanism."""

    result: rounds.Result
    best: Best
    checks: tuple[Check, ...] = ()
    delta: float | None = None
    audit: str = ""


def campaign_of(desk: Desk) -> Campaign:
    """The campaign as the ledger has it now."""
    return records.read(desk.ledger.events(), desk.goal_id)


def folder_of(campaign: Campaign) -> Folder:
    """Its documents."""
    return Folder(Path(campaign.folder))


def decide(desk: Desk, launch: Launch, plan: Plan) -> Verdict:
    """Hold it against the champion as it is now. Nothing is written but a second run's measurements."""
    campaign = campaign_of(desk)
    best = experiment.best_of(campaign)
    if launch.result is not None:
        value = launch.result.value
        return Verdict(launch.result, best, delta=None if value is None else value.number - best.number)
    if launch.pairs is not None:
        return _decide_pairs(desk, campaign, launch, plan, best)
    policy, wanted = str(campaign.goal.body["policy"]), campaign.direction
    value = experiment.shown(launch.values)
    number = experiment.middle(launch.values)
    inputs: dict[str, Any] = {
        "best": best.number,
        "values": [one.number for one in launch.values],
        "measurements": [one.seq for one in launch.values],
        "k": len(launch.values),
    }
    delta = value.number - best.number
    if not better(number, best.number, wanted):
        result = rounds.Result(
            "discard", f"{number:.9g} is not better than the champion's {best.text}", value, inputs=inputs
        )
        return Verdict(result, best, delta=delta)
    second, why = _again(desk, campaign, launch, plan)
    if second is not None:
        key = "measurements" if policy in ("verified", "greedy") else "verified_by"
        inputs[key] = [*inputs.get(key, []), second.seq]
        inputs["values"].append(second.number)
    noise = float(campaign.goal.body.get("noise", 0.0))
    numbers = [number, *([] if second is None else [second.number])]
    repeated = verification.repeated(number, None if second is None else second.number, noise)
    if why:
        repeated = Check("a", False, f"the second run failed: {why}")
    checks = (
        repeated,
        verification.direction(numbers, best.number, wanted),
        *_of_files(desk, campaign, launch, plan),
    )
    return _stands(desk, launch, plan, _concluded(launch, best, value, delta, checks, inputs))


def _decide_pairs(desk: Desk, campaign: Campaign, launch: Launch, plan: Plan, best: Best) -> Verdict:
    assert launch.pairs is not None
    found = launch.pairs
    runs = _evaluations(desk, launch.experiment.one.id)
    pairs = [(runs[cand], runs[base]) for cand, base in found.inputs["measurements"]]
    value = experiment.shown([cand for cand, _ in pairs])
    delta = statistics.median(cand.number - base.number for cand, base in pairs)
    inputs = {**found.inputs, "best": best.number}
    if found.status != "keep":
        return Verdict(
            rounds.Result(str(found.status), found.reason, value, inputs=inputs), best, delta=delta
        )
    right = better(delta, 0.0, campaign.direction)
    checks = (
        verification.repeated_in_pairs(str(found.status), len(pairs)),
        Check("c", right, f"the median pair moves by {delta:+.6g}, {campaign.direction} is better"),
        *_of_files(desk, campaign, launch, plan),
    )
    return _stands(desk, launch, plan, _concluded(launch, best, value, delta, checks, inputs))


def _stands(desk: Desk, launch: Launch, plan: Plan, verdict: Verdict) -> Verdict:
    """A win that is verified has to pass the protocol's own checks and its holdout as well."""
    if verdict.result.status != "keep":
        return verdict
    campaign = campaign_of(desk)
    bench = experiment.bench_of(desk, campaign, launch, plan)
    failed = acceptance.stands(desk, campaign.goal, launch.experiment.one, bench)
    if failed is None:
        return verdict
    result = replace(verdict.result, status=failed.verdict, insight=failed.insight, inputs=None, value=None)
    return Verdict(result, verdict.best, verdict.checks)


def _concluded(
    launch: Launch,
    best: Best,
    value: Value,
    delta: float,
    checks: tuple[Check, ...],
    inputs: dict[str, Any],
) -> Verdict:
    idea = launch.experiment.hypothesis
    checks = tuple(sorted(checks, key=lambda one: one.letter))
    if not verification.holds(checks):
        why = verification.failed(checks)
        return Verdict(
            rounds.Result("unverified", f"a win that failed its checks: {why}", value, inputs=inputs),
            best,
            checks,
            delta,
        )
    found = mechanism.audit(f"experiment {launch.experiment.exp_id}", idea.change, idea.expected_delta, delta)
    result = rounds.Result(
        "keep", f"worked: {commands.plain(idea.change, 200)} ({delta:+.6g})", value, inputs=inputs
    )
    return Verdict(result, best, checks, delta, found.line)


def _again(desk: Desk, campaign: Campaign, launch: Launch, plan: Plan) -> tuple[Value | None, str]:
    """The run that has to repeat a win, with a seed of its own; or why it gave nothing."""
    desk.voice.progress(f"{launch.name}: a win; it runs again with another seed")
    bench = experiment.bench_of(desk, campaign, launch, plan)
    try:
        return bench.value(rounds.draw_seed(desk.goal()), launch.label("-verify")), ""
    except Failed as failed:
        return None, failed.insight


def _of_files(desk: Desk, campaign: Campaign, launch: Launch, plan: Plan) -> tuple[Check, Check, Check]:
    """The checks b, d and e: what the tree, the logs and the clocks say."""
    goal, one = campaign.goal, launch.experiment.one
    asked, top = views.protocol_of(goal), str(goal.body["top"])
    data = goal.body.get("data", {})
    current = next(found for found in desk.goal().tries if found.id == one.id)
    split = verification.split(
        trees.manifest_of(desk.repo, str(current.commit)),
        rooted(top, tuple(data.get("train", ()))),
        rooted(top, tuple(data.get("held_out", ()))),
        str(data.get("no_split", "")),
    )
    folder = desk.run_folder(one.id)
    seconds, log = None, ""
    if asked.train_command:
        trained = [body for _, body in current.measurements if body["role"] == "train"]
        first = next((body for body in trained if _of_launch(str(body["log"]), launch)), None)
        seconds = 0.0 if first is None else float(first["seconds"])
        log = "" if first is None else _text(folder / str(first["log"]))
    spoken = {
        path.stem: _text(path)
        for path in sorted(folder.glob("*.err"))
        if path.stem.startswith(("train", "eval")) and _of_launch(path.name, launch)
    }
    return (
        split,
        verification.effort(seconds, asked.time_limit_s, log, asked.metric, asked.direction),
        verification.stderr(spoken, {**dict(goal.body.get("explained", {})), **plan.explained}),
    )


def _of_launch(name: str, launch: Launch) -> bool:
    """Is a log of this start's own tree, and not an earlier start's. The logs of pairs bear no number of a
    start: a later one writes them again.
    """
    if launch.pairs is not None:
        return not Path(name).stem.endswith(("-base", "-a", "-b"))
    rest = Path(name).stem.removeprefix("train").removeprefix("eval")
    mine = f"-{launch.number}" if launch.number > 1 else ""
    head = rest[: len(mine)]
    return head == mine and not (not mine and rest[1:2].isdigit())


def _text(path: Path) -> str:
    return path.read_bytes()[:_LOG_CAP].decode("utf-8", "replace") if path.is_file() else ""


def _evaluations(desk: Desk, attempt: str) -> dict[int, Value]:
    current = next(one for one in desk.goal().tries if one.id == attempt)
    return {
        seq: Value(float(body["value"]), str(body["text"]), seq)
        for seq, body in current.measurements
        if body["role"] == "eval" and body.get("value") is not None
    }


# --- acting ---------------------------------------------------------------------------------------


def record(desk: Desk, found: Experiment, verdict: Verdict) -> None:
    """Write it down, then carry it out."""
    campaign = campaign_of(desk)
    goal, result = campaign.goal, verdict.result
    current = next(one for one in goal.tries if one.id == found.one.id)
    kept = STATUSES[result.status].keeps
    value = result.value
    desk.decided(
        found.one,
        result.status,
        exp_id=found.exp_id,
        gen=found.gen,
        policy=str(goal.body["policy"]),
        insight=result.insight,
        value=None if value is None else value.number,
        text="" if value is None else value.text,
        measurement=None if value is None else value.seq,
        tree=current.steps.get("submitted", {}).get("tree"),
        best_before=verdict.best.number,
        baseline=verdict.best.text,
        delta=verdict.delta,
        seconds=sum(float(b["seconds"]) for _, b in current.measurements if b["role"] in ("train", "eval")),
        segment=goal.segment,
        direction=campaign.direction,
        inputs=result.inputs or {},
        verified="yes" if kept else "no" if value is not None else "n/a",
        verification=[one.to_json() for one in verdict.checks],
        champion=kept,
        audit=verdict.audit,
        note=result.insight,
        retried=False,
    )
    finish(desk, found.one)


def finish(desk: Desk, one: Try) -> None:
    """Carry out what was decided, from wherever it was left: the champion's commit, branch and worktree, or
    nothing; then close.
    """
    campaign = campaign_of(desk)
    goal = campaign.goal
    current = next(found for found in goal.tries if found.id == one.id)
    decision = current.decision
    if decision is None:
        raise NotLegalNow(f"{one.id} has no verdict yet", "`campaign run` goes on with it")
    if current.kept:
        if "accepted" not in current.steps:
            desk.require_run(current, decision)
            found = campaign.experiment(str(decision["exp_id"]))
            message = (
                f"autoresearch: experiment {found.exp_id}, {campaign.metric}={decision['text']} "
                f"({commands.plain(found.hypothesis.change, 60)})\n\n{decision['audit']}"
            )
            made = trees.commit(desk.repo, current.steps["submitted"]["tree"], [goal.accepted], message)
            trees.keep_ref(desk.repo, f"{trees.REFS}accepted/{goal.id}", made)
            desk.step(one, "accepted", commit=made)
        goal = desk.goal()
        stand_on(desk, campaign, current.round, goal.accepted)
    elif "rolled_back" not in current.steps or current.state == "decided":
        desk.step(one, "rolled_back")
    _keep_log(desk, campaign, current)
    desk.clear(one.id)
    if current.state != "closed":
        desk.step(one, "closed")
    if current.kept:
        told.tell(
            desk,
            "experiment_kept",
            f"{campaign.metric} {decision['text']} by experiment {decision['exp_id']} @ {campaign.slug}",
        )


def stand_on(desk: Desk, campaign: Campaign, gen: int, commit: str) -> None:
    """Put the generation's branch and the campaign's worktree on a commit. A branch that somebody else moved
    is left where it is.
    """
    name = BRANCH.format(slug=campaign.slug, gen=gen)
    if not trees.own_branch(desk.repo, name, commit):
        desk.voice.warn(f"the branch {name} was moved by somebody else and is left alone; see {commit[:12]}")
    tree = desk.worktree(campaign.goal)
    if tree.exists():
        tree.move_to(commit)
    else:
        tree.create(commit)


def _keep_log(desk: Desk, campaign: Campaign, current: Try) -> None:
    """exp-ID/train.log beside the campaign's documents, for people."""
    exp_id = str((current.decision or {}).get("exp_id"))
    logs = [body for _, body in current.measurements if body["role"] == "train"]
    if logs:
        place = Folder(Path(campaign.folder) / f"exp-{exp_id}")
        place.write("train.log", _text(desk.run_folder(current.id) / str(logs[0]["log"])))


def data_of(keys: Mapping[str, str]) -> dict[str, Any]:
    """DATA.md's split: globs of the training and of the held-out files, or why there is none."""
    return {
        "train": keys.get("train", "").replace(",", " ").split(),
        "held_out": keys.get("held_out", "").replace(",", " ").split(),
        "no_split": keys.get("no_split", ""),
    }
