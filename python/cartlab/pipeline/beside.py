"""The further workloads that an acceptance run measures beside the default one, which alone decides.

Contract: SPECS.md sections 4 and 5. Each is an attempt of its own over the same two builds, part of the one
that it belongs to. A workload with `guards = true` is measured for every win, all others with `--full`. A
guard whose estimate is no gain marks the win `benchmark-only`; a candidate that does other work on any of
them has changed behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cartlab.model import Verdict, Workload

if TYPE_CHECKING:
    from cartlab.pipeline.attempt import Attempt

MARK = "benchmark-only"
TIERS_BESIDE = ("accept", "accept-stack")
# What a further workload finds and the verdict cannot stand beside.
SPOILS = ("behaviour_changed", "tampered")


class Beside(NamedTuple):
    """What the further workloads say. problem: (status, reason) that takes the verdict's place, or None."""

    marks: tuple[str, ...] = ()
    problem: tuple[str, str] | None = None


def names(attempt: Attempt, verdict: Verdict) -> list[str]:
    """The workloads that this run measures besides its own."""
    plan, config = attempt.plan, attempt.config
    if plan.tier not in TIERS_BESIDE or plan.part_of is not None or plan.legacy is not None:
        return []
    if plan.workload.name != config.default_workload:
        return []
    return [
        name
        for name, one in config.workloads.items()
        if name != plan.workload.name and (plan.full or (one.guards and verdict.keeps))
    ]


def measure(attempt: Attempt, verdict: Verdict) -> Beside:
    """Measure them one after the other; KeyboardInterrupt where one was interrupted."""
    marks: list[str] = []
    for name in names(attempt, verdict):
        runner = replace(attempt.request.runner, workload=name)
        if "game" not in attempt.config.workload(name).params:
            runner = replace(runner, rom_path=None, game=None, state_dir=None)
        workload, source = attempt.lab.workload(attempt.config, attempt.repo, runner)
        attempt.voice.say(f"beside it, {source}")
        out = _sub(attempt, workload).carry_out()
        if out.status == "interrupted":
            raise KeyboardInterrupt
        if out.status in SPOILS:
            return Beside(tuple(marks), (out.status, f"on workload {name}: {_first(out.reasons)}"))
        shown = "no estimate" if out.ratio is None else f"estimate {out.ratio:.4f}"
        attempt.voice.say(f"workload {name}: {out.status}, {shown}")
        if workload.guards and (out.ratio is None or out.ratio <= 1.0) and MARK not in marks:
            marks.append(MARK)
            attempt.voice.say(f"workload {name} does not share the gain: {MARK}, no round completes with it")
    return Beside(tuple(marks))


def _first(reasons: Sequence[str]) -> str:
    return reasons[0] if reasons else "no reason given"


def _sub(attempt: Attempt, workload: Workload) -> Attempt:
    """The attempt of one further workload: the same refs, builds, checks and budget."""
    plan, lab = attempt.plan, attempt.lab
    part = replace(
        plan,
        attempt_id=lab.attempt_id(plan.command, plan.cand),
        workload=workload,
        harness_hash=lab.harness_hash(attempt.repo, workload),
        part_of=plan.attempt_id,
        warnings=(),
    )
    return replace(
        attempt,
        plan=part,
        began=lab.clock(),
        builds=list(attempt.builds),
        earlier=[],
        blocks=[],
        equality=None,
        drawn_equality=None,
        counted=None,
        limit_stop_reason=None,
        seconds=dict.fromkeys(attempt.seconds, 0.0),
        problem_details={},
        marks=(),
    )
