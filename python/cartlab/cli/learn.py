"""What probe and diagnose have in common: the refusal of a stale build, the run, its file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from cartlab.cli.context import Context
from cartlab.cli.options import declare_runner, runner
from cartlab.errors import NotLegalNow
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Runner

LEARNING = "evidence: learning"


@dataclass(frozen=True)
class Request:
    seconds: float
    file: str
    split: bool
    profile: bool
    dry_run: bool
    runner: Runner


def declare(parser: argparse.ArgumentParser) -> None:
    declare_runner(parser)


def request(
    space: argparse.Namespace, *, seconds: float, file: str, split: bool, profile: bool = False
) -> Request:
    return Request(seconds, file, split, profile, space.dry_run, runner(space))


def run(context: Context, request: Request) -> Outcome:
    """Time the working tree's package, keep the numbers in the root, and say what they are worth."""
    from cartlab.artefacts import write_whole
    from cartlab.pipeline import learning

    out = context.answer()
    lab, repo = context.lab, context.repo
    config = lab.load_config(repo)
    workload, source = lab.workload(config, repo, request.runner)
    context.talk.say(source)
    out.workload_hash = workload.hash
    out.recorded = False
    target = context.root.path / "benchmarks" / request.file
    out.ledger = str(context.root.path / "events.jsonl")
    try:
        package = learning.package_of(config, repo)
    except NotLegalNow as stale:
        out.status, out.exit_code = "refused", stale.exit_code
        out.reasons = [stale.message, stale.hint]
        out.report.next = stale.hint
        out.text = [LEARNING, f"refused: {stale.message}", stale.hint]
        return out
    out.report.inputs = [f"working tree, {package.artifact.relative_to(repo)}"]
    if request.dry_run:
        out.status = "planned"
        out.report.next = context.line(context.command)
        out.text = [LEARNING, f"would time {package.artifact.relative_to(repo)} for {request.seconds:g} s"]
        return out
    # Its numbers are for learning only, but it would disturb whoever measures.
    with lab.lease(request.runner.lease_wait, context.talk.progress):
        context.talk.progress("timing the working tree's package")
        found = learning.probe(
            learning.as_build(package, repo),
            workload,
            repo,
            request.seconds,
            engine=request.profile,
            split=request.split,
        )
    import json

    write_whole(target, json.dumps(found, indent=1) + "\n")
    out.details = found
    out.report.outputs = [f"benchmarks/{request.file}"]
    out.report.next = context.line("diagnose --quick" if context.command == "probe" else "next")
    out.text = [LEARNING, *lines(found, request.split), f"file: {target}"]
    return out


def lines(found: dict[str, Any], split: bool) -> list[str]:
    """The numbers for people."""
    from cartlab.pipeline.learning import phase_lines

    seconds = found["seconds"]
    shown = [
        f"{found['workload']}: median {found['median_speed']:,.0f} {found['unit']} "
        f"over {found['slices']} slices "
        f"(slowest {found['slowest_speed']:,.0f}, fastest {found['fastest_speed']:,.0f}), "
        f"{found['cpu_share']:.2f} processors busy",
    ]
    if split:
        shown.append("outside a step, in seconds:")
        shown += [f"  {name.replace('_', ' '):<24} {value:.3f}" for name, value in seconds.items()]
        shown.append("inside a step:")
        shown += phase_lines(found)
    return shown
