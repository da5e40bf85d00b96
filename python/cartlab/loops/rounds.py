"""Judging what was taken in, and acting on it: compliance, parity, train, eval, policy, worktree.

`supervise` runs rounds in a row; `attempt start|submit|close` gives them to an agent that drives itself. The
rules are the same, because they are here. Order of what is written: the decision is in the ledger before the
worktree moves or the working copies go, so a killed process leaves nothing that cannot be finished.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.loops import acceptance, commands, policies, tasks, trees, views, witness
from cartlab.loops.compliance import Finding
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import render_views, top_of, view_paths
from cartlab.loops.goals import Goal, Try
from cartlab.loops.intake import PROFILES, verdict_without_a_run
from cartlab.loops.running import Bench, Failed, Value
from cartlab.loops.views import Best

# One pair in so many is a sentinel.
SENTINEL_EVERY = 8
# Verdicts that answer for a tree that is handed in again.
MEASURED = ("keep", "discard", "unverified", "inconclusive")


@dataclass
class Result:
    """How a round came out. retry: it failed of something passing and may be tried once more."""

    status: str
    insight: str
    value: Value | None = None
    compliance: str = "✅"
    inputs: dict[str, Any] | None = None
    retry: bool = False
    done: tuple[str, ...] = ()


def decide(desk: Desk, goal: Goal, one: Try, finding: Finding, policy: str, k: int) -> Result:
    """Compliance, parity, train, eval, and the policy's word on what they gave. Nothing is written but
    measurements and the steps on the way.
    """
    protocol, best = views.protocol_of(goal), views.best_of(goal)
    submitted = _steps(desk, one)["submitted"]
    number, strategy = one.round, str(submitted["strategy"])
    done = [tasks.researched(number, strategy)]
    known = verdict_without_a_run(desk, one, finding, "no change: the submission is the accepted tree")
    if known is not None and finding.broken:
        path, why = next(iter(finding.broken.items()))
        told = tasks.touched_files(path)
        what = f"modified fixed file {path} — {why}" if why.startswith("a fixed file") else known[1]
        return Result(known[0], what, compliance=told, done=(*done, tasks.complied(number, told)))
    if known is not None:
        return Result(*known, done=tuple(done))
    usual = acceptance.usual(desk, goal, draw_seed(goal))
    bench = Bench(desk, one, protocol, top_of(goal), str(submitted["commit"]), usual=usual)
    flags = list(finding.flags) + [f for f in submitted["flags"] if f not in finding.flags]
    if protocol.profile_command and not all(
        (desk.run_folder(one.id) / Path(name.format(n=number)).name).is_file() for name in PROFILES
    ):
        flags.append(tasks.SKIPPED_PROFILE)
    for target in protocol.kernel_targets:
        line = bench.parity(target)
        if line is not None:
            kind = line.partition("kind=")[2].partition(" ")[0]
            told = tasks.parity_broken(target.name, kind, line.partition("detail=")[2][:80])
            desk.step(one, "screened", complies=True, parity=line)
            insight = _joined([line, *flags])
            return Result(
                "parity_violation", insight, compliance=told, done=(*done, tasks.complied(number, told))
            )
    desk.step(one, "screened", complies=True, parity="ok" if protocol.kernel_targets else None)
    done.append(tasks.complied(number))
    desk.step(one, "measuring")
    try:
        value, found = measure(desk, goal, one, bench, best, policy, k)
    except Failed as failed:
        return Result(
            failed.verdict, _joined([failed.insight, *flags]), retry=failed.transient, done=tuple(done)
        )
    done += _trained(desk, one)
    if found.status == "keep" and (unsure := _jumped(goal, bench, best, value)):
        return Result(unsure.verdict, _joined([unsure.insight, *flags]), done=tuple(done))
    if found.status == "keep" and (failed_check := acceptance.stands(desk, goal, one, bench)):
        return Result(failed_check.verdict, _joined([failed_check.insight, *flags]), done=tuple(done))
    won = found.status == "keep"
    insight = _joined([f"{'worked' if won else 'did not help'}: {strategy} ({found.reason})", *flags])
    top_text = value.text if won else best.text
    done.append(tasks.evaluated(protocol, number, value.text, top_text, won))
    return Result(str(found.status), insight, value, inputs=found.inputs, done=tuple(done))


def _jumped(goal: Goal, bench: Bench, best: Best, value: Value) -> Failed | None:
    """None where a gain is no jump, or a further run on another seed gains as well."""
    asked, direction = bench.protocol.witnesses, bench.protocol.direction
    sign = 1.0 if direction == "higher" else -1.0
    earlier = [best.number, *_values_so_far(goal)]
    gain = sign * (value.number - best.number)
    if not witness.jumps(gain, earlier, asked.jump):
        return None
    try:
        again = bench.value(draw_seed(goal), "-jump")
    except Failed as failed:
        return failed
    if policies.gains(again.number, best.number, direction, asked.floor):
        return None
    return Failed(
        "checks_failed",
        f"{value.text} is a jump of more than {asked.jump:g} spreads, and a second run gives {again.text}: "
        "it was luck",
    )


def _values_so_far(goal: Goal) -> list[float]:
    return [
        float(one.decision["value"])
        for one in goal.tries
        if one.segment == goal.segment and one.decision and one.decision.get("value") is not None
    ]


def _trained(desk: Desk, one: Try) -> list[str]:
    """S3 of the first training, with the last loss that its log names."""
    current = next(found for found in desk.goal().tries if found.id == one.id)
    own = current.steps["submitted"]["tree"]
    runs = [body for _, body in current.measurements if body["role"] == "train" and body["tree"] == own]
    if not runs:
        return []
    log = (desk.run_folder(one.id) / runs[0]["log"]).read_text(encoding="utf-8", errors="replace")
    losses = re.findall(r"\bloss\s*[=:]\s*(-?[\d.]+(?:e[+-]?\d+)?)", log, re.IGNORECASE)
    return [tasks.trained(one.round, runs[0]["seconds"], losses[-1] if losses else "—")]


def _joined(parts: list[str]) -> str:
    return commands.plain("; ".join(part for part in parts if part), 1000)


def measure(
    desk: Desk, goal: Goal, one: Try, bench: Bench, best: Best, policy: str, k: int
) -> tuple[Value, policies.Decided]:
    """Runs until the policy has decided. A tree that was measured before is not drawn again."""
    direction, floor = bench.protocol.direction, bench.protocol.witnesses.floor
    tree = trees.tree_of(desk.repo, bench.commit)
    earlier = measured_before(goal, one, tree)
    if earlier is not None:
        value, inputs = earlier
        return value, policies.Decided(
            "discard", f"the same tree was measured before: {value.text}", {**inputs, "pooled": True}
        )
    if policy == "paired":
        return pairs(desk, goal, one, bench, direction, floor)
    values: list[Value] = []
    while True:
        values.append(bench.value(draw_seed(goal), f"-{len(values) + 1}" if values else ""))
        numbers = [value.number for value in values]
        found = policies.judged(policy, best.number, numbers, k, direction, floor)
        if found.status is not None:
            shown = values[numbers.index(policies.shown(policy, numbers))]
            return shown, policies.Decided(
                found.status, found.reason, {**found.inputs, "measurements": [value.seq for value in values]}
            )


def pairs(
    desk: Desk, goal: Goal, one: Try, bench: Bench, direction: str, floor: float = 0.0
) -> tuple[Value, policies.Decided]:
    """Candidate and accepted tree in turn on the same seed, the first of each pair drawn. Now and then, and
    nobody can know when, both are the accepted tree: where such pairs differ, it is not the candidate that
    makes the difference, and nothing is decided.
    """
    base = replace(bench, commit=goal.accepted)
    effects: list[float] = []
    seqs: list[list[int]] = []
    sentinels: list[list[int]] = []
    same: list[float] = []
    shown: Value | None = None
    while True:
        if secrets.randbelow(SENTINEL_EVERY) == 0:
            seed, name = draw_seed(goal), f"-same{len(same) + 1}"
            one_of, other_of = base.value(seed, f"{name}-a"), base.value(seed, f"{name}-b")
            same.append(policies.effect(one_of.number, other_of.number, direction))
            sentinels.append([one_of.seq, other_of.seq])
            if (word := policies.sentinel(same)) is not None and shown is not None:
                inputs = {"sentinels": sentinels, "measurements": seqs}
                return shown, policies.Decided("busy_invalid", word, inputs)
        seed, name = draw_seed(goal), f"-pair{len(effects) + 1}"
        order = [(bench, f"{name}-cand"), (base, f"{name}-base")]
        first = secrets.randbelow(2)
        got = {id(side): side.value(seed, label) for side, label in (order if first else order[::-1])}
        cand, other = got[id(bench)], got[id(base)]
        shown = shown or cand
        effects.append(policies.effect(cand.number, other.number, direction, floor))
        seqs.append([cand.seq, other.seq])
        found = policies.paired(effects)
        if found.status is not None:
            inputs = {**found.inputs, "measurements": seqs, "sentinels": sentinels}
            return shown, policies.Decided(found.status, found.reason, inputs)
        desk.voice.progress(f"{bench.name}: {found.reason}")


def measured_before(goal: Goal, one: Try, tree: str) -> tuple[Value, dict[str, Any]] | None:
    """The value that another attempt of this segment got for the same tree, and the inputs that say so."""
    for other in goal.tries:
        if (
            other.id != one.id
            and other.segment == goal.segment
            and other.steps.get("submitted", {}).get("tree") == tree
            and other.decision is not None
            and other.decision["status"] in MEASURED
            and other.decision.get("value") is not None
        ):
            body = other.decision
            value = Value(float(body["value"]), str(body["text"]), int(body["measurement"]))
            return value, {"attempt": other.id, "best": float(body["inputs"].get("best", body["value"]))}
    return None


def draw_seed(goal: Goal | None = None) -> int:
    """A seed that no researcher can know before its tree is fixed, and that no run of this goal had before:
    what selected an attempt is never asked again to confirm it.
    """
    tries = [] if goal is None else goal.tries
    used = {body.get("seed") for one in tries for _, body in one.measurements}
    while (seed := secrets.randbelow(2**31)) in used:
        continue
    return seed


# --- act ------------------------------------------------------------------------------------------


def act(desk: Desk, goal: Goal, one: Try, result: Result, policy: str) -> None:
    """Record the verdict, then move the worktree or leave it, then close. Can be called again after a kill
    with what the ledger holds (finish).
    """
    best = views.best_of(goal)
    desk.decided(
        one,
        result.status,
        policy=policy,
        compliance=result.compliance,
        insight=result.insight,
        value=None if result.value is None else result.value.number,
        text="" if result.value is None else result.value.text,
        measurement=None if result.value is None else result.value.seq,
        tree=_steps(desk, one).get("submitted", {}).get("tree"),
        best_before=best.number,
        segment=goal.segment,
        direction=views.protocol_of(goal).direction,
        inputs=result.inputs or {},
        retried=result.retry,
        tasks=list(result.done),
    )
    finish(desk, one)


def _steps(desk: Desk, one: Try) -> dict[str, Any]:
    current = next((found for found in desk.goal().tries if found.id == one.id), one)
    return dict(current.steps)


def ending(goal: Goal) -> str | None:
    """Why the loop ends now, or None. These are all the reasons that there are."""
    protocol, best = views.protocol_of(goal), views.best_of(goal)
    done = goal.closed_rounds()
    if (
        protocol.target is not None
        and best.round
        and policies.reaches(best.number, protocol.target, protocol.direction)
    ):
        return "target_reached"
    if done and done[-1].round >= protocol.max_rounds:
        return "completed"
    return None if goal.stop_asked is None else "stopped_by_user"


def finish(desk: Desk, one: Try) -> None:
    """Carry out what was decided, from wherever it was left: accept or roll back, then close."""
    goal = desk.goal()
    current = next(found for found in goal.tries if found.id == one.id)
    decision = current.decision
    if decision is None:
        raise NotLegalNow(f"{one.id} has no verdict yet", "`attempt submit` judges it")
    tree = desk.worktree(goal)
    keep = view_paths(goal)
    number = current.round
    if current.kept:
        if "accepted" not in current.steps:
            desk.require_run(current, decision)
            protocol = views.protocol_of(goal)
            message = tasks.commit_message(protocol, number, str(decision["text"]))
            made = trees.commit(desk.repo, current.steps["submitted"]["tree"], [goal.accepted], message)
            trees.keep_ref(desk.repo, f"{trees.REFS}accepted/{goal.id}", made)
            desk.step(one, "accepted", commit=made)
        tree.move_to(desk.goal().accepted, keep)
    else:
        if "rolled_back" not in current.steps:
            desk.step(one, "rolled_back")
        tree.move_to(goal.accepted, keep)
    desk.clear(one.id)
    if current.state != "closed":
        current.state = "closed"
        told = [tasks.acted(number, current.kept), tasks.terminated(number, ending(goal))]
        desk.step(one, "closed", tasks=told)
    render_views(desk, desk.goal())
