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

from cartlab.errors import BadInput
from cartlab.ledger import Attempt as Past
from cartlab.ledger import Ledger
from cartlab.model import Build, Plan, Ref, Verdict, Workload
from cartlab.outcome import Outcome
from cartlab.pipeline import answer, planning, rounds
from cartlab.pipeline.attempt import Attempt
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.legacy_run import LegacyAttempt, request_of
from cartlab.pipeline.request import Request
from cartlab.pipeline.voice import Voice
from cartlab.root import make_folder
from cartlab.round import fold, require_legal, round_part

# Words that every shell takes as they stand.
PLAIN = re.compile(r"[\w@%+=:,./^-][\w@%+=:,./^~-]*")


def run(request: Request, lab: Lab, repo: Path, root: Path, voice: Voice) -> Outcome:
    """Measure what was asked for and answer. Raises only where nothing is to be recorded (bad ref, damaged
    ledger).
    """
    began = lab.clock()
    request = request_of(request)
    config = lab.load_config(repo)
    past = open_ledger(root, voice, mend=not request.dry_run) if root.is_dir() else None
    binds = request.pool or request.tier == "calibrate"
    if past is not None and not request.dry_run:
        close_killed(past, voice)
        if binds:
            rounds.watch(lab, repo, past, voice)
    if binds:
        require_legal(fold(past.events()) if past is not None else None, request.tier)
    workload = reached(request, lab, config, repo, past, voice)
    base, cand = lab.resolve(repo, request.base), lab.resolve(repo, request.cand)
    say_dirty(lab.dirty(repo), voice)
    plan = planned(request, lab, repo, base, cand, workload, past, config)
    for warning in plan.warnings:
        voice.warn(f"warning: {warning}")
    if request.dry_run:
        return answer.planned(plan, typed(request), str(root / "events.jsonl"))
    if past is None:
        make_folder(root)
        past = open_ledger(root, voice)
    past.init()
    if plan.round_id is not None:
        rounds.unrelated(lab, repo, past, plan, config, voice)
    if (known := known_verdict(request, plan, past)) is not None:
        past.project()
        return remembered(*known, base, cand, root)
    seen = past.tip
    # Held over builds and checks too: they would disturb whoever measures, and nobody can measure this pair
    # between this plan and its blocks.
    with lab.lease(request.runner.lease_wait, voice.progress) as queued:
        past.events()
        if past.tip != seen:
            # Others had their turn meanwhile: the floor, the round and what is known of the pair may be new.
            plan = planned(request, lab, repo, base, cand, workload, past, config)
            if (known := known_verdict(request, plan, past)) is not None:
                return remembered(*known, base, cand, root)
        kind = Attempt if plan.legacy is None else LegacyAttempt
        attempt = kind(plan, request, lab, config, repo, root, past, voice, began, queued=queued or 0.0)
        return attempt.carry_out()


def planned(
    request: Request,
    lab: Lab,
    repo: Path,
    base: Ref,
    cand: Ref,
    workload: Workload,
    past: Ledger | None,
    config: Any,
) -> Plan:
    """The frozen plan from what the ledger says now, bound to the open round; NotLegalNow where that forbids
    it.
    """
    plan = planning.freeze(request, lab, repo, base, cand, workload, past)
    if request.pool or request.tier == "calibrate":
        plan = rounds.bind(plan, past, config.protected)
    if past is not None and request.tier == "confirm" and not request.dry_run:
        rounds.still_confirming(past)
    if past is not None and request.tier in ("screen", "accept", "accept-stack"):
        again = rounds.judged_before(past, plan, lab.patch_id(repo, base, cand))
        plan = replace(plan, warnings=(*plan.warnings, *again))
    return plan


def known_verdict(request: Request, plan: Plan, past: Ledger) -> tuple[Past, Mapping[str, Any]] | None:
    """The recorded verdict that answers for this plan, None where something is to be measured."""
    if not request.pool or request.again or request.equal_only or request.tier == "confirm":
        return None
    known = past.verdict_of(plan.pair, plan.tier, plan.policy_hash)
    # Every workload is more than was asked before: only a run of that extent answers for it.
    return known if known is not None and known[0].plan.full >= request.full else None


def reached(
    request: Request, lab: Lab, config: Any, repo: Path, past: Ledger | None, voice: Voice
) -> Workload:
    """The workload, named in the first line; an open round pauses where what it plays is gone."""
    runner = request.runner
    try:
        workload, source = lab.workload(config, repo, runner)
    except BadInput as error:
        chosen = runner.rom_path or runner.game or runner.state_dir or runner.workload
        if not chosen and not request.dry_run:
            rounds.access_failed(past, voice, error.message)
        raise
    voice.say(source)
    return workload if request.held_out is None else workload.drawn(request.held_out)


def close_killed(ledger: Ledger, voice: Voice) -> None:
    """End the attempts whose process is gone; their blocks and verdicts stay."""
    for closed in ledger.close_abandoned():
        voice.warn(f"attempt {closed} was killed before it ended: closed, its blocks are kept")


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
        # The confirm run has the size of its round.
        "--full": request.full and request.tier != "confirm",
        "--confirm": request.confirm,
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
