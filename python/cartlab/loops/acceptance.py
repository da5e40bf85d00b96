"""What a value that won has to stand before it is kept: the checks, then the sealed holdout.

Both run in a fresh layout of the attempt's commit. The check files are the baseline's, laid over the
candidate's, and the baseline's own run says which tests there have to be: fewer tests, or more skipped ones,
fail like a failing one. The baseline's runs are recorded once a segment under a name of their own.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import commands, holdout, manifest, trees, views, witness
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import top_of
from cartlab.loops.goals import Goal, Try
from cartlab.loops.running import Bench, Failed, rooted
from cartlab.loops.witness import Collected, Usual, Witnesses

CHECKS_LIMIT_S = 600.0
# Experiments that run at once wait for the one that makes the baseline's run.
_one_at_a_time = threading.Lock()


def reference(goal: Goal) -> Try:
    """The name under which the baseline's own runs of this segment are recorded."""
    return Try(f"{goal.id}-reference{goal.segment}", 0)


def _runs(desk: Desk, goal: Goal, role: str) -> list[dict[str, Any]]:
    name = reference(goal).id
    return [
        dict(event["body"])
        for event in desk.ledger.events()
        if event["type"] == "measurement" and event["attempt"] == name and event["body"]["role"] == role
    ]


def usual(desk: Desk, goal: Goal, seed: int) -> Usual:
    """What the baseline's evaluation is like, from its run of this segment, which is made where there is
    none.
    """
    asked = views.protocol_of(goal).witnesses
    if not (asked.seconds or asked.work):
        return Usual()
    with _one_at_a_time:
        return _usual(desk, goal, asked, seed)


def _usual(desk: Desk, goal: Goal, asked: Witnesses, seed: int) -> Usual:
    found = [body for body in _runs(desk, goal, "eval") if body["value"] is not None]
    if not found:
        one = reference(goal)
        bench = Bench(desk, one, views.protocol_of(goal), top_of(goal), goal.first)
        try:
            bench.value(seed)
        except Failed as failed:
            raise NotLegalNow(
                f"the baseline's own run cannot be a witness: {failed.insight}",
                "correct the protocol's Witnesses section",
            ) from None
        finally:
            desk.clear(one.id)
        found = _runs(desk, goal, "eval")
    body = found[-1]
    if asked.work and body["work"] is None:
        raise NotLegalNow(
            f"the baseline's evaluation prints no line METRIC {asked.work}=<items>",
            "let it print one, or take `work` out of the protocol's Witnesses section",
        )
    stated = body["stated_s"]
    return Usual(None if stated is None else body["seconds"] - stated, body["work"])


def stands(desk: Desk, goal: Goal, one: Try, bench: Bench) -> Failed | None:
    """None where a winning attempt may be kept."""
    asked = bench.protocol.witnesses
    if not (asked.checks or goal.body.get("holdout")):
        return None
    desk.step(one, "checking")
    return (_checked(desk, goal, bench) if asked.checks else None) or holdout.look(desk, goal, bench)


def _checked(desk: Desk, goal: Goal, bench: Bench) -> Failed | None:
    with _one_at_a_time:
        before = _checks_of_the_baseline(desk, goal)
    try:
        after = run_checks(bench, goal.first)
    except Failed as failed:
        return failed
    why = witness.weaker(before, after)
    return None if why is None else Failed("checks_failed", f"checks: {why}")


def _checks_of_the_baseline(desk: Desk, goal: Goal) -> Collected:
    found = [body for body in _runs(desk, goal, "checks") if body["passed"]]
    if not found:
        one = reference(goal)
        base = goal.first
        bench = Bench(desk, one, views.protocol_of(goal), top_of(goal), base)
        try:
            run_checks(bench, base)
        except Failed as failed:
            raise NotLegalNow(
                f"the baseline's own checks do not pass: {failed.insight}",
                "they have to before they can hold a candidate",
            ) from None
        finally:
            desk.clear(one.id)
        found = _runs(desk, goal, "checks")
    return Collected(frozenset(found[-1]["ids"]), frozenset(found[-1]["skipped"]))


def run_checks(bench: Bench, base: str) -> Collected:
    """The check command on the attempt's commit with the baseline's check files; Failed where it fails."""
    desk, asked = bench.desk, bench.protocol.witnesses
    folder = bench.lay("checks")
    _lay_over(bench, base, folder, asked.check_files)
    file = folder.parent / "junit.xml"
    desk.voice.progress(f"{bench.name}: checks (at most {CHECKS_LIMIT_S:g} s)")
    command = commands.fill(asked.checks, junit=file)
    ran = bench.run(
        command, "checks", folder / bench.top, CHECKS_LIMIT_S, "checks", extra={"AR_JUNIT": str(file)}
    )
    try:
        found = witness.junit(file.read_bytes()) if file.is_file() else Collected(frozenset(), frozenset())
        words = commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)
    except BadInput as error:
        found, words = Collected(frozenset(), frozenset()), error.message
    passed = ran.returncode == 0
    desk.measured(
        bench.one,
        "checks",
        tree=trees.tree_of(desk.repo, bench.commit),
        seconds=ran.seconds,
        returncode=ran.returncode,
        passed=passed,
        ids=sorted(found.ids),
        skipped=sorted(found.skipped),
    )
    if not passed:
        raise Failed("checks_failed", f"checks: {words}")
    return found


def _lay_over(bench: Bench, base: str, folder: Path, globs: tuple[str, ...]) -> None:
    if not globs:
        return
    named = rooted(bench.top, globs)
    other = folder.parent / "baseline"
    trees.lay(bench.desk.repo, base, other)
    own = manifest.matching(manifest.scan(folder), named)
    theirs = manifest.matching(manifest.scan(other), named)
    trees.take(manifest.changes(own, theirs), other, folder)
