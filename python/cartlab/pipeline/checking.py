"""Checks as evidence: run them, remember them by tree, and say whether a failure counts against a
candidate.

A full pass that is recorded for a tree is used again; a failing check counts unless the same command fails
on the baseline too. What the commands are and how they run is cartlab.checks'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cartlab.errors import BadRef
from cartlab.ledger import Event, Ledger
from cartlab.model import Build, Plan, Ref
from cartlab.outcome import Outcome, Report, Side
from cartlab.pipeline import learning
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.voice import Voice
from cartlab.root import make_folder
from cartlab.round import round_part
from cartlab.words import counted

KIND = "checks"


def record(ledger: Ledger, found: Any) -> None:
    """One note of kind `checks` in the ledger, bound to the tree that was checked."""
    words = "passed" if found.passed else "failed"
    text = f"{'quick' if found.quick else 'full'} checks {words}: {', '.join(found.surfaces)}"
    ledger.append("note", None, {"file": None, "kind": KIND, "text": text, "checks": found.to_json()})


def recorded_pass(events: Iterable[Event], tree: str, surfaces: Iterable[Any]) -> bool:
    """Did each full command of these surfaces, as they are now, pass when it last ran on this tree?"""
    newest: dict[tuple[str, str], bool] = {}
    for event in events:
        body = event["body"]
        if event["type"] != "note" or body.get("kind") != KIND:
            continue
        run: Mapping[str, Any] = body["checks"]
        if run["tree"] == tree and not run["quick"]:
            newest |= {(one["surface"], one["command"]): one["passed"] for one in run["checks"]}
    return all(newest.get((one.name, command), False) for one in surfaces for command in one.full)


def full_checks(
    lab: Lab,
    ledger: Ledger,
    plan: Plan,
    builds: list[Build | None],
    config: Any,
    repo: Path,
    root: Path,
    voice: Voice,
) -> tuple[bool, str]:
    """(passed, reason) for the candidate of an acceptance run; runs what no record answers for."""
    surfaces = lab.surfaces(config, "auto", lab.changed(repo, plan.base.commit, plan.cand.commit))
    names = [surface.name for surface in surfaces]
    if recorded_pass(ledger.events(), plan.cand.tree, surfaces):
        voice.say(f"checks: passed before on this tree ({', '.join(names)})")
        return True, f"the full checks passed before on this tree: {', '.join(names)}"
    found = lab.run_checks(
        config, surfaces, quick=False, root=root, ref=plan.cand, build=builds[1], progress=voice.progress
    )
    record(ledger, found)
    if found.passed:
        voice.say(f"checks: passed ({', '.join(names)})")
        return True, f"the full checks passed: {', '.join(names)}"
    failed = [(check.surface, check.command) for check in found.failures]
    same = [
        replace(surface, full=commands)
        for surface in surfaces
        if (commands := tuple(command for name, command in failed if name == surface.name))
    ]
    before = lab.run_checks(
        config, same, quick=False, root=root, ref=plan.base, build=builds[0], progress=voice.progress
    )
    old = {(check.surface, check.command) for check in before.failures}
    new = [pair for pair in failed if pair not in old]
    for check in found.failures:
        voice.warn(f"check failed ({check.surface}): {check.command}")
        for line in check.tail.rstrip().splitlines()[-10:]:
            voice.warn(f"  | {line}")
    if not new:
        what = counted(len(failed), "check fails", "checks fail")
        return True, f"{what} on the baseline too and so not against the candidate"
    what = counted(len(new), "check fails that passes", "checks fail that pass")
    return False, f"{what} on the baseline, first: {new[0][1]}"


def check(
    text: str | None,
    surface: str,
    quick: bool,
    lab: Lab,
    repo: Path,
    root: Path,
    voice: Voice,
    *,
    dry_run: bool,
    recorded: bool,
    lease_wait: float | None = None,
) -> Outcome:
    """The `checks` command: the working tree as it lies there, or a revision in a clean checkout."""
    config = lab.load_config(repo)
    ref = lab.resolve(repo, text) if text is not None else None
    surfaces = lab.surfaces(config, surface, _touched(lab, repo, ref) if surface == "auto" else ())
    what = f"{ref.name} {ref.commit[:12]}" if ref else "the working tree"
    out = Outcome(
        command="checks",
        report=Report(phase="prototype", inputs=[what], next="scripts/autoresearch.py next"),
        ledger=str(root / "events.jsonl"),
        candidate=Side(ref.name, ref.commit, ref.tree) if ref else Side(),
    )
    commands = [(one.name, command) for one in surfaces for command in (one.quick if quick else one.full)]
    if dry_run:
        out.status, out.recorded = "planned", False
        out.text = [f"would check {what}:", *(f"  {name}: {command}" for name, command in commands)]
        out.details = {"commands": [list(pair) for pair in commands]}
        return out
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    # A build or a test suite beside a measurement disturbs it.
    with lab.lease(lease_wait, voice.progress):
        build = lab.build(config, ref, root, progress=voice.progress) if ref else None
        found = lab.run_checks(
            config, surfaces, quick=quick, root=root, ref=ref, build=build, progress=voice.progress
        )
    stale = learning.stale_source(config, repo) if ref is None and not quick else None
    keep = recorded and found.tree is not None and stale is None
    if keep:
        record(ledger, found)
        ledger.project()
    out.recorded = keep
    out.candidate.tree = found.tree
    out.details = {"checks": found.to_json()}
    for one in found.checks:
        out.text.append(
            f"{'passed' if one.passed else 'FAILED'} {one.surface}: {one.command} ({one.seconds:.1f} s)"
        )
        if not one.passed:
            out.text += [f"  | {line}" for line in one.tail.rstrip().splitlines()[-20:]]
    if found.tree is None:
        out.text.append("the working tree changed while it was checked: not recorded")
        out.reasons.append("the working tree changed while it was checked: not recorded")
    if stale is not None:
        why = f"the native module is older than {stale}, so that other code was checked: not recorded"
        out.text += [why, learning.build_line(config, repo)]
        out.reasons += [why, learning.build_line(config, repo)]
    if not found.passed:
        first = found.failures[0]
        out.status, out.exit_code = "checks_failed", 17
        out.reasons.append(
            f"{len(found.failures)} of {len(found.checks)} checks failed, first: {first.command}"
        )
        out.report.decision = "discard"
        out.report.next = (
            f"scripts/autoresearch.py checks --surface {first.surface}{' --quick' if quick else ''}"
        )
    out.report.outputs = ["events.jsonl"] if keep else []
    return out


def _touched(lab: Lab, repo: Path, ref: Ref | None) -> list[str]:
    """The paths that choose the surfaces under `auto`: what is uncommitted, or what the commit changed."""
    if ref is None:
        return lab.dirty(repo)
    try:
        parent = lab.resolve(repo, f"{ref.commit}~1")
    except BadRef:  # a first commit: everything is new
        return []
    return lab.changed(repo, parent.commit, ref.commit)
