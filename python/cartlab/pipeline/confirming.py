"""What changes a round: opening it on live HEAD, ending a pause or the round, and the one confirm run of a
candidate.

Facts about the repository are gathered here; whether they suffice is cartlab.round's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.ledger import Ledger
from cartlab.ledger.attempts import calibration_of
from cartlab.model import Ref, Verdict, digest_of
from cartlab.outcome import Outcome
from cartlab.pipeline.checking import recorded_pass
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request, Runner
from cartlab.pipeline.voice import Voice
from cartlab.round import CandidateFacts, Round, acts, confirm_candidate, fold, lesson, require_legal
from cartlab.round.fold import accepted_before


def open_now(
    lab: Lab,
    repo: Path,
    ledger: Ledger,
    voice: Voice,
    *,
    runner: Runner,
    goal: str,
    target: float,
    strict: bool,
    may_touch: tuple[str, ...],
) -> None:
    """Open a round whose baseline is live HEAD; refused without a calibration of exactly that tree on this
    host.
    """
    require_legal(fold(ledger.events()), "round open")
    config = lab.load_config(repo)
    head = lab.resolve(repo, "HEAD")
    workload, source = lab.workload(config, repo, runner)
    voice.say(source)
    calibrated = calibration_of(ledger.attempts(), lab.host_class())
    if calibrated is None or calibrated.plan.base.tree != head.tree:
        raise NotLegalNow(
            f"a round's baseline is calibrated first; {head.commit[:12]} is not, on this host",
            "scripts/autoresearch.py calibrate HEAD",
        )
    pinned = {
        "workload_hash": workload.hash,
        "harness_hash": lab.harness_hash(repo, workload),
        "protected_hash": digest_of(list(config.protected)),
        "calibration": calibrated.id,
    }
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    acts.open_round(ledger, head, at, pinned, goal, target, strict, may_touch)


def end(ledger: Ledger, verb: str, reason: str) -> None:
    """Resume or abandon, each with its reason."""
    {"resume": acts.resume, "abandon": acts.abandon}[verb](ledger, reason)


def confirm(
    text: str | None,
    lab: Lab,
    repo: Path,
    root: Path,
    ledger: Ledger,
    voice: Voice,
    *,
    runner: Runner,
    dry_run: bool,
    mechanism: str | None,
    falsify: str | None,
) -> Outcome:
    """The candidate's confirm run: every obstacle is named before anything is built; the end completes the
    round or sends it back to its candidates.
    """
    from cartlab.pipeline.run import run

    found = fold(ledger.events())
    require_legal(found, "confirm")
    assert found is not None  # require_legal refuses without a round
    ready = confirm_candidate(found)
    name = text or (ready.commit if ready else None)
    if name is None:
        raise NotLegalNow("no accepted candidate is due for its confirm run", "scripts/autoresearch.py next")
    cand = lab.resolve(repo, name)
    facts = facts_of(lab, repo, ledger, found, cand)
    asked = Request(
        command="round confirm",
        tier="confirm",
        base=found.baseline_commit,
        cand=cand.commit,
        full=found.strict,
        dry_run=dry_run,
        mechanism=mechanism,
        falsify=falsify,
        runner=runner,
    )
    if not dry_run:
        acts.start_confirm(ledger, facts, digest_of([cand.tree, lab.attempt_id("confirm", cand)]))
    out = run(asked, lab, repo, root, voice)
    if dry_run or out.attempt_id is None or out.status in ("interrupted", "busy_invalid"):
        return out
    attempt = ledger.attempts()[out.attempt_id]
    body: Mapping[str, Any] = attempt.decision or {}
    artifact = (attempt.finished or {}).get("artifact")
    event = acts.complete(
        ledger,
        facts,
        attempt.id,
        Verdict.from_json(body),
        attempt.plan.recorded,
        attempt.plan.policy,
        artifact,
    )
    ended = fold(ledger.events())
    if event["body"]["action"] == "complete" and ended is not None:
        ledger.note("scratchpad.md", lesson(ended), attempt.id, "lesson")
        out.text.append(f"round complete; the next baseline is {cand.commit}")
        out.report.next = "scripts/autoresearch.py report --session"
    else:
        out.text.append(f"the round is not complete: {event['body']['reason']}")
        out.reasons.append(event["body"]["reason"])
        out.report.next = "scripts/autoresearch.py next"
    ledger.project()
    return out


def facts_of(lab: Lab, repo: Path, ledger: Ledger, found: Round, cand: Ref) -> CandidateFacts:
    """What the repository and the ledger say of a candidate."""
    config = lab.load_config(repo)
    base = Ref("baseline", found.baseline_commit, found.baseline_tree)
    changed = lab.changed(repo, base.commit, cand.commit)
    surfaces = lab.surfaces(config, "auto", changed)
    trees, patches = accepted_before(ledger.events(), found.id)
    accepted = {kept.commit for kept in found.kept}
    return CandidateFacts(
        commit=cand.commit,
        tree=cand.tree,
        patch_id=lab.patch_id(repo, base, cand),
        on_branch=lab.is_ancestor(repo, cand.commit, "HEAD"),
        descends=lab.is_ancestor(repo, base.commit, cand.commit),
        outside=tuple(lab.strangers(repo, base.commit, cand.commit, config.build.inputs, accepted)),
        checks_passed=recorded_pass(ledger.events(), cand.tree, surfaces),
        known_trees=frozenset(trees),
        known_patches=frozenset(patches),
        touched=tuple(lab.protected(changed, config.protected, tuple(found.body.get("may_touch") or ()))),
    )


def shown(ledger: Ledger | None) -> tuple[dict[str, Any], list[str]]:
    """The newest round as facts and as lines."""
    found = fold(ledger.events()) if ledger is not None else None
    if found is None:
        return {"round": None}, ["no round was ever opened: every command works as typed"]
    best = found.best
    facts: dict[str, Any] = {
        "round": found.id,
        "state": found.state,
        "goal": found.body["goal"],
        "baseline_commit": found.baseline_commit,
        "target": found.target,
        "best_estimate": best.estimate if best else None,
        "best_lcb": best.lcb if best else None,
        "candidates": [
            {"commit": one.commit, "status": one.status, "ratio": one.hl} for one in found.candidates.values()
        ],
        "kept": [{"commit": one.commit, "status": one.status, "ratio": one.estimate} for one in found.kept],
    }
    lines = [
        f"round {found.id}: {found.state}, target {found.target:.2f}, goal: {found.body['goal']['title']}",
        f"baseline {found.baseline_commit}",
        f"best: {best.estimate:.4f} (lower bound {best.lcb:.3f})" if best else "best: nothing accepted yet",
    ]
    if found.pause_rule:
        lines.append(f"paused by {found.pause_rule}: {found.pause_reason}")
    lines += [f"  {one.commit[:12]} {one.status or 'running'}" for one in found.candidates.values()]
    return facts, lines
