"""What changes a round: opening it on live HEAD, ending a pause or the round, and the one confirm run of a
candidate.

Facts about the repository are gathered here; whether they suffice is cartlab.round's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow, UsageError
from cartlab.ledger import Event, Ledger
from cartlab.ledger.attempts import calibration_of
from cartlab.model import STATUSES, Ref, digest_of
from cartlab.outcome import Outcome
from cartlab.pipeline import rounds
from cartlab.pipeline.checking import recorded_pass
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request, Runner
from cartlab.pipeline.voice import Voice
from cartlab.round import (
    CandidateFacts,
    Round,
    acts,
    confirm_candidate,
    confirm_obstacles,
    fold,
    require_legal,
    round_part,
)
from cartlab.round.fold import accepted_before
from cartlab.round.rules import UNFINISHED


def open_now(
    lab: Lab,
    repo: Path,
    ledger: Ledger | None,
    voice: Voice,
    *,
    runner: Runner,
    goal: str,
    target: float,
    strict: bool,
    may_touch: tuple[str, ...],
    dry_run: bool = False,
) -> None:
    """Open a round whose baseline is live HEAD; refused without a calibration of exactly that tree on this
    host. dry_run: only refuse what would be refused. ledger: None where there is none yet.
    """
    require_legal(fold(ledger.events()) if ledger is not None else None, "round open")
    config = lab.load_config(repo)
    head = lab.resolve(repo, "HEAD")
    workload, source = lab.workload(config, repo, runner)
    voice.say(source)
    attempts = ledger.attempts() if ledger is not None else {}
    calibrated = calibration_of(attempts, lab.host_class(), lab.toolchain(repo))
    if ledger is None or calibrated is None or calibrated.plan.base.tree != head.tree:
        raise NotLegalNow(
            f"a round's baseline is calibrated first; {head.commit[:12]} is not, on this host and toolchain",
            "scripts/autoresearch.py calibrate HEAD",
        )
    pinned = {
        "workload_hash": workload.hash,
        "harness_hash": lab.harness_hash(repo, workload),
        "protected_hash": digest_of(list(config.protected)),
        "calibration": calibrated.id,
    }
    if dry_run:
        return
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    acts.open_round(ledger, head, at, pinned, goal, target, strict, may_touch)


def end(ledger: Ledger, verb: str, reason: str) -> None:
    """Resume or abandon, each with its reason; NotLegalNow where there is nothing to resume or abandon."""
    require_legal(fold(ledger.events()), f"round {verb}")
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
    round or sends it back to its candidates. A run that was killed after its end is not had again.
    """
    from cartlab.pipeline.run import close_killed, run

    refuse_other_sizes(runner)
    if not dry_run:
        close_killed(ledger, voice)
        settled = rounds.watch(lab, repo, ledger, voice)
        if settled is not None and _answers(settled, text, lab, repo):
            return recorded_end(ledger, settled, root)
    found = fold(ledger.events())
    require_legal(found, "confirm")
    assert found is not None  # require_legal refuses without a round
    name = text or due(found)
    if name is None:
        raise NotLegalNow("no accepted candidate is due for its confirm run", "scripts/autoresearch.py next")
    cand = lab.resolve(repo, name)
    stated = lab.statements(repo, cand)
    facts = facts_of(lab, repo, ledger, found, cand)._replace(
        mechanism=mechanism or stated.get("Mechanism"), falsify=falsify or stated.get("Falsified-by")
    )
    obstacles = confirm_obstacles(found, facts)
    if obstacles:
        raise NotLegalNow(f"{cand.commit[:12]} may not be confirmed: {'; '.join(obstacles)}", "ask `next`")
    seed = found.draws.get(cand.tree) or lab.draw()
    if not dry_run:
        seed = str(acts.start_confirm(ledger, facts, seed)["body"]["seed"])
    asked = Request(
        command="round confirm",
        tier="confirm",
        base=found.baseline_commit,
        cand=cand.commit,
        full=found.strict,
        dry_run=dry_run,
        mechanism=facts.mechanism,
        falsify=facts.falsify,
        held_out=seed,
        runner=runner,
    )
    out = run(asked, lab, repo, root, voice)
    return out if dry_run else ended(ledger, out)


def _answers(settled: Event, text: str | None, lab: Lab, repo: Path) -> bool:
    body = settled["body"]
    return text is None or body["action"] == "complete" or lab.resolve(repo, text).tree == body["tree"]


def refuse_other_sizes(runner: Runner) -> None:
    """UsageError for flags under which a confirm run would prove nothing, and yet be had."""
    wrong = {
        "--max-blocks": runner.max_blocks is not None,
        "--force-busy": runner.force_busy,
        "--policy": runner.policy != "anytime",
        "--unit": runner.unit != "block",
    }
    for flag, given in wrong.items():
        if given:
            raise UsageError(
                f"a confirm run has one size and one policy: {flag} would spoil the only one there is",
                "leave it out; --max-wall-clock-minutes may stop it, and the same command continues it",
            )


def due(found: Round) -> str | None:
    """The commit whose confirm run comes next, or is to go on."""
    if found.state == "confirming":
        going = [tree for tree in found.draws if found.confirms.get(tree) in (None, "running", *UNFINISHED)]
        if going and going[-1] in found.candidates:
            return found.candidates[going[-1]].commit
    ready = confirm_candidate(found)
    return ready.commit if ready else None


def then(request: Request, out: Outcome, lab: Lab, repo: Path, root: Path, voice: Voice) -> Outcome:
    """After an acceptance run with --confirm: the confirm run where that run makes it due, else why not."""
    if not request.confirm or request.dry_run:
        return out
    ledger = Ledger.open(root, round_part=round_part)
    found = rounds.active(ledger)
    ready = confirm_candidate(found) if found is not None and found.state != "paused" else None
    if ready is None or ready.tree != out.candidate.tree:
        why = "no round is open" if found is None else f"round {found.id} is {found.state}"
        out.text.append(f"--confirm: no confirm run is due for this candidate ({why})")
        return out
    for line in out.text:
        voice.say(line)
    return confirm(
        ready.commit,
        lab,
        repo,
        root,
        ledger,
        voice,
        runner=replace(request.runner, max_blocks=None, force_busy=False, approve=None),
        dry_run=False,
        mechanism=request.mechanism,
        falsify=request.falsify,
    )


def recorded_end(ledger: Ledger, settled: Event, root: Path) -> Outcome:
    """The answer about a confirm run that ended before and is recorded only now."""
    from cartlab.pipeline.run import remembered

    attempt = ledger.attempts()[settled["body"]["attempt"]]
    decision: Mapping[str, Any] = attempt.decision or {}
    return ended(ledger, remembered(attempt, decision, attempt.plan.base, attempt.plan.cand, root))


def ended(ledger: Ledger, out: Outcome) -> Outcome:
    """The answer of a confirm run with what it means for the round, as the ledger has it now."""
    found = fold(ledger.events())
    assert found is not None  # it was opened before the run
    tree = str(out.candidate.tree)
    out.details = {**(out.details or {}), "round": {"id": found.id, "state": found.state}}
    if found.completed is not None and found.completed["attempt"] == out.attempt_id:
        out.text.append(f"round complete; the next baseline is {found.completed['commit']}")
        out.report.next = "scripts/autoresearch.py report --session"
    elif found.confirms.get(tree) not in UNFINISHED and tree in found.confirm_reasons:
        # A keep that did not complete the round: its run ended well, what was asked did not.
        out.exit_code = out.exit_code or STATUSES["inconclusive"].exit_code
        out.text.append(f"the round is not complete: {found.confirm_reasons[tree]}")
        out.reasons.append(found.confirm_reasons[tree])
        out.report.next = "scripts/autoresearch.py next"
    elif found.state == "paused":
        out.text.append(f"the round is paused by {found.pause_rule}: a resume goes on with what is left")
        out.report.next = rounds.RESUME
    else:
        out.text.append("the confirm run is not finished: the same command continues it")
        out.report.next = "scripts/autoresearch.py round confirm"
    return out


def facts_of(lab: Lab, repo: Path, ledger: Ledger, found: Round, cand: Ref) -> CandidateFacts:
    """What the repository and the ledger say of a candidate."""
    config = lab.load_config(repo)
    base = Ref("baseline", found.baseline_commit, found.baseline_tree)
    changed = lab.changed(repo, base.commit, cand.commit)
    surfaces = lab.surfaces(config, "auto", changed)
    trees, patches = accepted_before(ledger.events(), found.id)
    recorded = {one.commit for one in found.candidates.values() if one.status is not None}
    return CandidateFacts(
        commit=cand.commit,
        tree=cand.tree,
        patch_id=lab.patch_id(repo, base, cand),
        on_branch=lab.is_ancestor(repo, cand.commit, "HEAD"),
        descends=lab.is_ancestor(repo, base.commit, cand.commit),
        outside=tuple(
            commit[:12]
            for commit in lab.strangers(repo, base.commit, cand.commit, config.build.inputs, recorded)
        ),
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
