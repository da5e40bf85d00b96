"""One generation: its queued experiments in waves, as many at once as there are slots and budget.

A wave is made, measured and decided before the next is launched, so the budget check before a launch knows
what was spent, and the champion of the next wave is the newest. Researchers of a wave run at once, and so do
its measurements; whatever is written to git or decided is done one after another in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cartlab.loops import commands, dispatch, views
from cartlab.loops.campaign import budget, compute, experiment, slots, told, verdicts
from cartlab.loops.campaign.budget import Budget
from cartlab.loops.campaign.experiment import Launch, Plan
from cartlab.loops.campaign.records import Campaign, Experiment
from cartlab.loops.desk import Desk
from cartlab.loops.protocol import Protocol
from cartlab.loops.running import TRAIN_GRACE_S
from cartlab.model import STATUSES


def worst_case_s(limits: Budget, asked: Protocol, policy: str, k: int, eval_s: float) -> float:
    """The most that one launch can cost in seconds of a slot: every run to its hard limit, and the one that
    has to repeat a win.
    """
    runs = budget.runs_of(policy, k) + (0 if policy in ("verified", "paired") else 1)
    if not asked.train_command:
        return runs * eval_s
    return budget.worst_case_s(limits, runs, grace_s=TRAIN_GRACE_S, eval_s=eval_s)


def cost_of(desk: Desk, campaign: Campaign) -> float:
    """worst_case_s of this campaign's next launch."""
    goal = campaign.goal
    asked = views.protocol_of(goal)
    return worst_case_s(
        campaign.budget, asked, str(goal.body["policy"]), int(goal.body["k"]), desk.options.eval_limit_s
    )


def remaining(desk: Desk, campaign: Campaign) -> float:
    """What the cap leaves, by the ledger."""
    return budget.remaining_s(campaign.budget, budget.spent(desk.ledger.events(), desk.goal_id))


def run(desk: Desk, gen: int, plan: Plan) -> bool:
    """Run what is queued in a generation. False where the budget covers no further launch: what is left is
    recorded as not run.
    """
    while True:
        campaign = verdicts.campaign_of(desk)
        waiting = [one for one in campaign.queued() if one.gen == gen]
        if not waiting or campaign.goal.stop_asked or campaign.blocker:
            return True
        cost, left = cost_of(desk, campaign), remaining(desk, campaign)
        covered = int(left // cost) if cost > 0 else len(waiting)
        if covered < 1:
            not_run(desk, waiting, cost, left)
            return False
        most = min(plan.slots, campaign.budget.parallelism)
        most = 1 if campaign.goal.body["policy"] == "paired" else most
        with slots.taken(desk.root, min(covered, len(waiting)), most) as free:
            wave(desk, campaign, waiting[: len(free)], free, plan)
        check_loop(desk)


def not_run(desk: Desk, left_over: Sequence[Experiment], cost: float, left: float) -> None:
    """Record those that the budget does not cover, each once."""
    for one in left_over:
        if not one.not_run:
            desk.tell("not_run", gen=one.gen, exp_id=one.exp_id, worst_case_s=cost, remaining_s=left)
            desk.voice.say(
                f"experiment {one.exp_id}: not-run, it may cost {cost:.0f} s and {left:.1f} s are left"
            )


def wave(
    desk: Desk, campaign: Campaign, chosen: Sequence[Experiment], free: Sequence[int], plan: Plan
) -> None:
    """Some experiments at once, one a slot: made, recorded, measured, decided."""
    verdicts.stand_on(desk, campaign, chosen[0].gen, campaign.goal.accepted)
    launches = [experiment.start(desk, campaign, one, slot) for one, slot in zip(chosen, free, strict=True)]
    commands.at_once(lambda one: experiment.research(desk, campaign, one, plan), launches)
    for one in launches:
        dispatch.require_program(one.failed)
    for one in launches:
        experiment.take_in(desk, campaign, one)
    to_measure = [one for one in launches if one.result is None]
    if to_measure and not any(_trained(other) for other in campaign.experiments):
        told.tell(desk, "train_started", f"generation {chosen[0].gen} @ {campaign.slug}")
    commands.at_once(lambda one: experiment.measure(desk, campaign, one, plan), to_measure)
    for one in best_first(launches, campaign.direction):
        if one.result is not None and one.result.retry and one.number < experiment.LAUNCHES:
            again(desk, one.experiment, one.result.insight)
            continue
        verdict = verdicts.decide(desk, one, plan)
        verdicts.record(desk, one.experiment, verdict)
        desk.voice.say(line_of(one, verdict))


def _trained(one: Experiment) -> bool:
    return any(body["role"] in ("train", "eval") for _, body in one.one.measurements)


def best_first(launches: Sequence[Launch], direction: str) -> list[Launch]:
    """Those that measured something by their value, best first; the others before them, as they came."""
    sign = -1.0 if direction == "higher" else 1.0
    without = [one for one in launches if one.result is not None or not one.values]
    measured = [one for one in launches if one not in without]
    return [*without, *sorted(measured, key=lambda one: sign * experiment.middle(one.values))]


def again(desk: Desk, found: Experiment, why: str) -> None:
    """Put an experiment whose workflow broke back into the queue."""
    desk.step(found.one, "interrupted", why=why)
    desk.step(found.one, "queued", why=why)
    desk.clear(found.one.id)
    desk.voice.say(f"experiment {found.exp_id}: {why}; it is started again")


def line_of(launch: Launch, verdict: verdicts.Verdict) -> str:
    """What became of it, in one line."""
    result = verdict.result
    value = "no value" if result.value is None else result.value.text
    return (
        f"{launch.name} ({launch.experiment.hypothesis.angle}): {value} - {result.status}: {result.insight}"
    )


def check_loop(desk: Desk) -> None:
    """The guard against doing the same in vain: BLOCKER.md, an event, and the campaign stands still."""
    campaign = verdicts.campaign_of(desk)
    why = repeating(campaign.experiments)
    if why is not None and not campaign.blocker:
        desk.tell("blocker", reason=why)
        verdicts.folder_of(campaign).write(
            "BLOCKER.md",
            f"# Blocked: {campaign.slug}\n\n{why}\n\nPut that right, then go on with `campaign run`.\n",
        )
        told.tell(desk, "blocker", why)


def repeating(found: Sequence[Experiment]) -> str | None:
    """Why the last experiments are the same action with the same effect, or None. A value that was measured
    is new information; a failure in the same words is none.
    """
    ended = sorted(
        (one for one in found if one.decision and one.one.state == "closed"),
        key=lambda one: one.one.decided_seq,
    )[-dispatch.SAME :]
    if not dispatch.alike([one.one for one in ended]):
        return None
    status = str(ended[-1].decision["status"])
    pooled = all(one.decision.get("inputs", {}).get("pooled") for one in ended)
    nothing_new = pooled or all(one.decision.get("value") is None for one in ended)
    if not nothing_new:
        return None
    names = ", ".join(one.exp_id for one in ended)
    meaning = STATUSES[status].meaning
    return f"{dispatch.SAME} experiments in a row ({names}) ended alike: {meaning}: {_words(ended[-1])}"


def _words(one: Experiment) -> str:
    return str(one.decision.get("insight", ""))


def limited(desk: Desk, campaign: Campaign) -> Desk:
    """The desk with the limits of a campaign's runs: one evaluation a run; where nothing is trained it is the
    run, and ends at the experiment's seconds.
    """
    asked = views.protocol_of(campaign.goal)
    limit = desk.options.eval_limit_s
    if not asked.train_command:
        limit = min(limit, campaign.budget.seconds_per_experiment + TRAIN_GRACE_S)
    return replace(
        desk,
        options=replace(
            desk.options,
            eval_retries=0,
            eval_limit_s=limit,
            launcher=compute.launcher_of(desk.ledger.events(), campaign),
        ),
    )
