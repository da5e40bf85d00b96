"""The loop around the generations: what is due next, until the budget or the ladder is at its end.

Everything it does next is read from the ledger, so a campaign that was killed anywhere goes on by being run
again: closed generations stay as they are, an experiment of the dead process is interrupted and started again
(three times at most), one that has its verdict is finished.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.loops import approvals, policies, rounds, views
from cartlab.loops.campaign import (
    compute,
    experiment,
    gates,
    generation,
    ladder,
    opening,
    planning,
    records,
    results,
    told,
    verdicts,
    verification,
)
from cartlab.loops.campaign.experiment import Plan
from cartlab.loops.campaign.folder import keys_of
from cartlab.loops.campaign.records import Campaign, Experiment, Generation
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import top_of
from cartlab.loops.goals import Try
from cartlab.loops.running import Bench, Failed

# Runs of the baseline with a seed each: the first is row 0, all three say how wide the noise is.
BASELINE_RUNS = 3
# Ends that a later run does not take up again by itself; the others are pauses.
ENDS = ("target_reached", "completed", "budget_exhausted", "converged")


@dataclass(frozen=True)
class Hands:
    """What the loop asks others for. propose: open a generation, criticise, queue; search: sources of other
    people's methods; method: (title, program) of another method, or None; render: renew the documents.
    """

    render: Callable[[Desk], object]
    propose: Callable[[Desk], None] | None = None
    search: Callable[[Desk], str] | None = None
    method: Callable[[Desk], tuple[str, str, str] | None] | None = None


def run(desk: Desk, plan: Plan, hands: Hands, generations: int | None = None) -> Campaign:
    """Go on until an end, or for so many generations; the campaign as it then is."""
    with desk.alone():
        campaign = opening.take_up_budget(desk, verdicts.campaign_of(desk))
        if campaign.mode == "design_only":
            return _leave_design(desk, campaign, hands)
        gates.may_run(verdicts.folder_of(campaign))
        approvals.admit(desk.ledger, desk.goal_id, plan.researcher, desk.options.approve)
        compute.renew(desk, campaign)
        desk = generation.limited(desk, campaign)
        compute.spend(desk)
        before = len([one for one in campaign.generations if one.closed])
        prepare(desk, campaign, plan)
        try:
            reason, why = _until_end(desk, plan, hands, generations, before)
        except Exception as error:
            told.tell(desk, "error", str(error))
            raise
        close(desk, hands, reason, why)
        return verdicts.campaign_of(desk)


def _leave_design(desk: Desk, campaign: Campaign, hands: Hands) -> Campaign:
    """Without a protocol or compute nothing is run: the matrix and how to run it are all that is left."""
    hands.render(desk)
    told.tell(desk, "approval_required", f"design-only: no compute or no protocol @ {campaign.slug}")
    return verdicts.campaign_of(desk)


# --- the start ------------------------------------------------------------------------------------


def prepare(desk: Desk, campaign: Campaign, plan: Plan) -> None:
    """What a dead process left, what people wrote down, and the baseline."""
    recover(desk, planning.complete(desk))
    desk.tell("state", state="running")
    data = verdicts.data_of(keys_of(verdicts.folder_of(campaign).read("DATA.md")))
    wanted = {"data": data, "explained": {**campaign.goal.body.get("explained", {}), **plan.explained}}
    if any(campaign.goal.body.get(key) != value for key, value in wanted.items()):
        desk.tell(
            "protocol",
            describes=wanted,
            keys=list(wanted),
            segment=False,
            who="cartlab",
            why="DATA.md and the explained lines of stderr, as they are now",
        )
    if not (data["no_split"] or (data["train"] and data["held_out"])):
        desk.voice.warn(
            "DATA.md names no `train` and `held_out` files and no `no_split = reason`: no win can be verified"
        )


def recover(desk: Desk, campaign: Campaign) -> None:
    """Finish what has a verdict; start again what has none, at most three times."""
    for one in campaign.experiments:
        if one.one.state in (None, "closed", "proposed", "critiqued", "queued"):
            continue
        if one.decision:
            verdicts.finish(desk, one.one)
        elif experiment.launches_of(one) < experiment.LAUNCHES:
            generation.again(desk, one, "failed (interrupted): its process ended")
        else:
            give_up(desk, one)


def give_up(desk: Desk, found: Experiment) -> None:
    """Fail an experiment whose process ended each time."""
    if found.one.state != "interrupted":
        desk.step(found.one, "interrupted")
    best = experiment.best_of(verdicts.campaign_of(desk))
    result = rounds.Result("crashed", f"failed (interrupted): its process ended {experiment.LAUNCHES} times")
    verdicts.record(desk, found, verdicts.Verdict(result, best))


def measure_baseline(desk: Desk, campaign: Campaign) -> bool:
    """Row 0, measured here whatever the protocol says it was, and how wide the noise is. False where the
    budget does not cover it.
    """
    goal = campaign.goal
    if "baseline_runs" in goal.body:
        return True
    asked, policy = views.protocol_of(goal), str(goal.body["policy"])
    runs = 1 if policy == "paired" else BASELINE_RUNS
    cost = generation.worst_case_s(campaign.budget, asked, "greedy", 1, desk.options.eval_limit_s) / 2
    one = Try(records.attempt_id(goal.id, records.BASELINE_ID), 0)
    bench = Bench(desk, one, asked, top_of(goal), goal.accepted, what="the baseline")
    try:
        values = []
        for at in range(runs):
            if generation.remaining(desk, campaign) < cost:
                return False
            values.append(bench.value(rounds.draw_seed(goal), f"-base{at + 1}"))
    except Failed as failed:
        raise NotLegalNow(
            f"the baseline cannot be measured: {failed.insight}",
            "a campaign starts from an experiment that works: `handoff` checks it",
        ) from None
    finally:
        desk.clear(one.id)
    numbers = [value.number for value in values]
    desk.tell(
        "protocol",
        describes={
            "protocol": replace(asked, baseline=values[0].text).to_json(),
            "noise": verification.noise_of(numbers, asked.eval_tolerance),
            "baseline_runs": [value.seq for value in values],
        },
        keys=["baseline"],
        segment=False,
        who="cartlab",
        why="measured",
    )
    said = float(asked.baseline) if asked.baseline else None
    if said is not None and abs(said - numbers[0]) > verification.noise_of(numbers, asked.eval_tolerance):
        desk.voice.warn(f"the protocol's baseline is {asked.baseline}; measured here it is {values[0].text}")
    return True


def warn_of_short_training(desk: Desk, campaign: Campaign) -> None:
    """Say at the baseline, before compute is spent, that a training as short as its own verifies no win."""
    asked, name = views.protocol_of(campaign.goal), records.attempt_id(campaign.goal.id, records.BASELINE_ID)
    took = [
        float(event["body"]["seconds"])
        for event in desk.ledger.events()
        if event["type"] == "measurement" and event["attempt"] == name and event["body"]["role"] == "train"
    ]
    if took and (short := verification.cut_short(max(took), asked.time_limit_s)):
        desk.voice.warn(
            f"the baseline's {short}: an experiment that is as short fails check d, and no win of it can be "
            f"verified. Let training use its {{time_limit}} (more steps or epochs), or set the protocol's "
            f"time_limit to about {max(took) / 0.85:.2g} s, hand off again and open a new campaign"
        )


# --- the loop -------------------------------------------------------------------------------------


def _until_end(desk: Desk, plan: Plan, hands: Hands, generations: int | None, before: int) -> tuple[str, str]:
    if not measure_baseline(desk, verdicts.campaign_of(desk)):
        return "budget_exhausted", "the budget does not cover the baseline"
    warn_of_short_training(desk, verdicts.campaign_of(desk))
    while True:
        campaign = verdicts.campaign_of(desk)
        if (end := ended(campaign)) is not None:
            return end
        done = len([one for one in campaign.generations if one.closed]) - before
        if generations is not None and done >= generations:
            return "paused", f"{done} generation{'s' if done > 1 else ''}, as asked"
        current = open_generation(campaign)
        if current is None or not (current.critiqued or current.seed):
            step = (
                "generation"
                if current is not None
                else ladder.next_step(ladder.position(campaign), campaign.budget)
            )
            if step in ("completed", "converged"):
                return step, ladder.signal(ladder.position(campaign), campaign.budget) or step
            if generation.remaining(desk, campaign) < generation.cost_of(desk, campaign):
                return "budget_exhausted", "the budget covers no further experiment"
            if step != "generation":
                stuck = climb(desk, campaign, hands, step)
                if stuck:
                    return "paused", stuck
            elif hands.propose is None:
                return "paused", "nothing is queued: `campaign plan` and `campaign critique` queue hypotheses"
            else:
                stuck = _propose(desk, campaign, hands)
                if stuck:
                    return "paused", stuck
            hands.render(desk)
            continue
        covered = generation.run(desk, current.number, plan)
        campaign = verdicts.campaign_of(desk)
        if not covered:  # it stays open: with a larger cap it goes on
            return "budget_exhausted", "the budget covers no further experiment"
        if campaign.goal.stop_asked or campaign.blocker:
            continue
        close_generation(desk, campaign, current)
        hands.render(desk)


def ended(campaign: Campaign) -> tuple[str, str] | None:
    """Whether a person, a blocker or the target ends it now. A batch's or the ladder's end is no matter of
    this: those are signals first.
    """
    if campaign.goal.stop_asked:
        return "stopped_by_user", campaign.goal.stop_asked
    if campaign.blocker:
        return "blocked", campaign.blocker
    asked, champion = views.protocol_of(campaign.goal), campaign.champion
    if (
        asked.target is not None
        and champion is not None
        and policies.reaches(experiment.best_of(campaign).number, asked.target, asked.direction)
    ):
        return "target_reached", f"{campaign.metric} reached {asked.target:g}"
    return None


def due(campaign: Campaign) -> tuple[str, str]:
    """What somebody has to do next: why, and the command that does it."""
    state, last = campaign.goal.state, campaign.generation
    if state in ENDS:
        return "it has ended", "campaign done"
    if campaign.queued() and campaign.mode != "design_only":
        why = f"{len(campaign.queued())} experiments are queued"
        return why + (
            f"; {campaign.goal.reason}" if state == "blocked" else ""
        ), "campaign run --researcher CMD"
    if last is not None and not (last.closed or last.seed or last.critiqued):
        return "a generation waits for its critics", "campaign critique --researcher CMD"
    if campaign.mode == "design_only" and last is not None:
        return "its matrix is planned, and nothing is run", "campaign done"
    if last is None:
        return "its first matrix is to be planned", "campaign plan --hypotheses FILE"
    if not last.closed or ladder.next_step(ladder.position(campaign), campaign.budget) == "generation":
        return "the next generation is to be planned", "campaign plan --researcher CMD"
    return "the search is stuck on its rung", "campaign ladder"


def open_generation(campaign: Campaign) -> Generation | None:
    """The generation that is not closed yet."""
    return next((one for one in campaign.generations if not one.closed), None)


def close_generation(desk: Desk, campaign: Campaign, found: Generation) -> None:
    """The last event of a generation: who became champion in it."""
    won = [name for name, gen in campaign.champions if gen == found.number]
    champion = won[-1] if won else None
    desk.tell("generation", gen=found.number, phase="closed", champion=champion)
    best = experiment.best_of(campaign)
    words = f"new champion: experiment {champion}" if champion else "no new champion"
    desk.voice.say(f"generation {found.number}: {words}; best {campaign.metric} {best.text}")


def _propose(desk: Desk, campaign: Campaign, hands: Hands) -> str:
    """Ask for a generation; "" where there now is another one, else what is missing."""
    assert hands.propose is not None
    before = _shape(campaign)
    hands.propose(desk)
    after = verdicts.campaign_of(desk)
    if _shape(after) == before:
        return "the proposers gave no generation: see `campaign plan`"
    return ""


def _shape(campaign: Campaign) -> tuple[Any, ...]:
    last = campaign.generation
    return (
        len(campaign.generations),
        len(campaign.experiments),
        len(campaign.queued()),
        last is not None and last.critiqued,
        last is not None and last.closed,
    )


def climb(desk: Desk, campaign: Campaign, hands: Hands, step: str) -> str:
    """One step on the ladder; what is missing for it, or ""."""
    at = ladder.position(campaign)
    best = experiment.best_of(campaign)
    stands = {"baseline": best.text, "base": campaign.goal.accepted}
    why = ladder.signal(at, campaign.budget)
    if step == "queued":
        lever = at.queued[0]
        desk.tell_lever("opened", id=lever.id, rung=lever.rung, why=why, **stands)
        words = f"rung {lever.rung}: {lever.title}"
    elif step == "climb":
        title = ladder.RUNGS[at.rung + 1]
        desk.tell_lever(
            "opened", id=ladder.next_id(campaign), rung=at.rung + 1, title=title, why=why, **stands
        )
        words = f"rung {at.rung + 1}: {title}"
    elif step == "search":
        if hands.search is None:
            return (
                "rung 3 needs a look at other people's methods first: `campaign ladder --searched SOURCE` "
                "records it"
            )
        source = hands.search(desk) or "nothing found"
        desk.tell_lever("searched", source=source, why=why)
        words = f"looked for other people's methods: {source}"
    else:
        if hands.method is None:
            return "rung 3 needs another method: `campaign ladder --add TITLE --program FILE` queues one"
        found = hands.method(desk)
        name = ladder.next_id(campaign)
        if found is None:
            desk.tell_lever("dry", id=name, rung=ladder.TOP, title="no new method", why=why)
            words = "rung 3: no new method"
        else:
            title, program, source = found
            desk.tell_lever(
                "opened",
                id=name,
                rung=ladder.TOP,
                title=title,
                program=program,
                source=source,
                why=why,
                **stands,
            )
            words = f"rung 3: {title}"
    desk.voice.say(f"{why}: {words}")
    return ""


# --- the end --------------------------------------------------------------------------------------


def close(desk: Desk, hands: Hands, reason: str, why: str) -> None:
    """Say why it stopped, in the ledger and to the notifier, and renew the documents."""
    before = verdicts.campaign_of(desk)
    desk.tell("state", state=reason, reason=why)
    hands.render(desk)
    results.keep_winner(desk, before)
    if reason in ENDS:
        champion = before.champion
        best = "baseline unbeaten" if champion is None else experiment.best_of(before).text
        told.tell(desk, "train_done", f"{best} @ {before.slug}")
