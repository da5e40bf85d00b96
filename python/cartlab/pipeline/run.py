"""The order of a measurement's steps, up to the point where something is done: refs, plan, dry run, what is
known already.

What is measured is decided before anything is built. A pair that was decided before is answered from the
ledger, an interrupted one is continued; attempt.py does the work.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cartlab.ledger import Attempt as Past
from cartlab.ledger import Ledger
from cartlab.model import Build, Plan, Ref, Verdict, Workload
from cartlab.outcome import Outcome
from cartlab.pipeline import answer, planning, rounds
from cartlab.pipeline.attempt import Attempt
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request
from cartlab.pipeline.voice import Voice
from cartlab.root import make_folder
from cartlab.round import round_part

# Words that every shell takes as they stand.
PLAIN = re.compile(r"[\w@%+=:,./^-][\w@%+=:,./^~-]*")


def run(request: Request, lab: Lab, repo: Path, root: Path, voice: Voice) -> Outcome:
    """Measure what was asked for and answer. Raises only where nothing is to be recorded (bad ref, damaged
    ledger).
    """
    began = lab.clock()
    config = lab.load_config(repo)
    workload, source = lab.workload(config, repo, request.runner)
    voice.say(source)
    base, cand = lab.resolve(repo, request.base), lab.resolve(repo, request.cand)
    say_dirty(lab.dirty(repo), voice)
    past = open_ledger(root, voice, mend=not request.dry_run) if root.is_dir() else None
    plan = planned(request, lab, repo, base, cand, workload, past)
    for warning in plan.warnings:
        voice.warn(f"warning: {warning}")
    if request.dry_run:
        return answer.planned(plan, typed(request), str(root / "events.jsonl"))
    if past is None:
        make_folder(root)
        past = open_ledger(root, voice)
    past.init()
    for closed in past.close_abandoned():
        voice.warn(f"attempt {closed} was killed before it ended: closed, its blocks are kept")
    if (known := known_verdict(request, plan, past)) is not None:
        past.project()
        return remembered(*known, base, cand, root)
    seen = past.tip
    # Held over builds and checks too: they would disturb whoever measures, and nobody can measure this pair
    # between this plan and its blocks.
    with lab.lease(request.runner.lease_wait, voice.progress):
        past.events()
        if past.tip != seen:
            # Others had their turn meanwhile: the floor, the round and what is known of the pair may be new.
            plan = planned(request, lab, repo, base, cand, workload, past)
            if (known := known_verdict(request, plan, past)) is not None:
                return remembered(*known, base, cand, root)
        return Attempt(plan, request, lab, config, repo, root, past, voice, began).carry_out()


def planned(
    request: Request, lab: Lab, repo: Path, base: Ref, cand: Ref, workload: Workload, past: Ledger | None
) -> Plan:
    """The frozen plan from what the ledger says now, bound to the open round; NotLegalNow where that forbids
    it.
    """
    plan = planning.freeze(request, lab, repo, base, cand, workload, past)
    return rounds.bind(plan, past) if request.pool or request.tier == "calibrate" else plan


def known_verdict(request: Request, plan: Plan, past: Ledger) -> tuple[Past, Mapping[str, Any]] | None:
    """The recorded verdict that answers for this plan, None where something is to be measured."""
    if not request.pool or request.again or request.equal_only:
        return None
    return past.verdict_of(plan.pair, plan.tier, plan.policy_hash)


def open_ledger(root: Path, voice: Voice, mend: bool = True) -> Ledger:
    """The ledger, and a line about a torn end: cut off with `mend`, else left."""
    ledger = Ledger.open(root, mend=mend, round_part=round_part)
    for report in ledger.reports:
        voice.warn(report)
    return ledger


def say_dirty(changed: list[str], voice: Voice) -> None:
    """One line where the working tree has changes: they are neither touched nor measured."""
    if changed:
        names = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
        count = f"{len(changed)} uncommitted change{'s' if len(changed) > 1 else ''}"
        voice.warn(f"the working tree has {count} ({names}): left alone, not measured")


def typed(request: Request) -> str:
    """The command line that does what a dry run showed."""
    script = request.command == "run_git_ref_benchmark"
    words = ["scripts/run_git_ref_benchmark.py"] if script else [answer.SCRIPT, *request.command.split()]
    refs = {"calibrate": [request.base], "single": ["--single", request.base], "confirm": [request.cand]}
    words += refs.get(request.tier, [request.base, request.cand])
    runner = request.runner
    switches = {
        "--again": request.again,
        "--equal-only": request.equal_only,
        "--full": request.full,
        "--no-checks": not request.checks and not script,
        "--no-record": not request.recorded and not script,
        "--force-busy": runner.force_busy,
        "--keep-sources": runner.keep_sources,
    }
    values = {
        "--mechanism": request.mechanism,
        "--falsify": request.falsify,
        "--rom-path": runner.rom_path,
        "--game": runner.game,
        "--state-dir": runner.state_dir,
        "--workload": runner.workload,
        "--max-blocks": runner.max_blocks,
        "--max-wall-clock-minutes": runner.max_minutes,
        "--unit": None if runner.unit == "block" else runner.unit,
        "--design": None if runner.design == "betting" else runner.design,
        "--policy": None if runner.policy == "anytime" else runner.policy,
        "--lease-wait": runner.lease_wait,
        "--approve": runner.approve,
        **runner.legacy,
    }
    words += [flag for flag, given in switches.items() if given]
    for flag, value in values.items():
        if value is not None:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return " ".join(word if PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def remembered(past: Past, body: Mapping[str, Any], base: Ref, cand: Ref, root: Path) -> Outcome:
    """The recorded verdict as this command's answer; refs are named as they were typed now."""
    finished = past.finished or {}
    plan = replace(past.plan, base=base, cand=cand)
    builds = [
        Build(ref, str(key), "", "", "", 0.0, True) if (key := finished.get(name)) else None
        for ref, name in zip((base, cand), ("base_build_id", "cand_build_id"), strict=True)
    ]
    out = answer.outcome_of(
        plan,
        Verdict.from_json(body),
        builds,
        {"build": 0.0, "verify": 0.0, "blocks": 0.0, "other": 0.0},
        ledger=str(root / "events.jsonl"),
        recorded=True,
        outputs=["nothing new: recorded before"],
        attempt_id=past.id,
        details={"remembered": True, "artifact": finished.get("artifact")},
    )
    out.reasons.append(f"recorded before by attempt {past.id}; nothing was measured now")
    out.text.insert(
        0, f"this pair was decided before, by attempt {past.id} ({past.finished_at or past.started})"
    )
    return out
