"""A verdict as people read it, as five closing lines, and as the JSON object. Formatting only; nothing here
decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cartlab.model import STATUSES, Build, Evidence, Plan, Ref, Verdict
from cartlab.outcome import Outcome, Report, Side

SCRIPT = "scripts/autoresearch.py"

# Tier -> phase of its report. confirm and single are run by other commands over the same pipeline.
PHASE_OF_TIER = {
    "screen": "screen",
    "accept-stack": "acceptance",
    "accept": "acceptance",
    "confirm": "acceptance",
    "calibrate": "orient",
    "single": "diagnose",
}


def side(ref: Ref, build: Build | None) -> Side:
    return Side(ref.name, ref.commit, ref.tree, build.build_id if build else None)


def outcome_of(
    plan: Plan,
    verdict: Verdict,
    builds: Sequence[Build | None],
    seconds: Mapping[str, float],
    *,
    ledger: str,
    recorded: bool,
    outputs: Sequence[str],
    attempt_id: str | None = None,
    notes: Sequence[str] = (),
    details: dict[str, Any] | None = None,
) -> Outcome:
    """The answer of a measurement that ended, or of one that the ledger remembers."""
    evidence = verdict.evidence
    return Outcome(
        command=plan.command,
        report=Report(
            phase=PHASE_OF_TIER[plan.tier],
            inputs=[f"{plan.base.name} {plan.base.commit[:12]}", f"{plan.cand.name} {plan.cand.commit[:12]}"],
            outputs=list(outputs),
            decision=verdict.decision,
            next=next_line(plan, verdict),
        ),
        status=verdict.status,
        exit_code=verdict.exit_code,
        reasons=list(verdict.reasons),
        attempt_id=attempt_id or plan.attempt_id,
        recorded=recorded,
        baseline=side(plan.base, builds[0]),
        candidate=side(plan.cand, builds[1]),
        workload_hash=plan.workload.hash,
        harness_hash=plan.harness_hash,
        policy_hash=plan.policy_hash,
        ratio=evidence.hl if evidence else None,
        lcb=evidence.lcb if evidence else None,
        ucb=evidence.ucb if evidence else None,
        e_value=evidence.e_value if evidence else None,
        guard=evidence.guard if evidence else None,
        alpha=evidence.alpha if evidence else plan.alpha,
        blocks={
            "used": evidence.used if evidence else None,
            "dropped": evidence.dropped if evidence else None,
            "pooled": evidence.pooled if evidence else None,
        },
        candidate_faster_blocks=evidence.faster if evidence else None,
        seconds={key: round(value, 3) for key, value in seconds.items()},
        ledger=ledger,
        details=details,
        text=[*verdict_text(verdict), *notes],
    )


def verdict_text(verdict: Verdict) -> list[str]:
    """The verdict and its evidence, a few lines."""
    marks = f" [{', '.join(verdict.marks)}]" if verdict.marks else ""
    lines = [f"verdict: {verdict.status}{marks} - {STATUSES[verdict.status].meaning}"]
    if verdict.evidence is not None:
        lines += evidence_text(verdict.evidence)
    lines += [f"  reason: {reason}" for reason in verdict.reasons]
    return lines


def evidence_text(evidence: Evidence) -> list[str]:
    """What the blocks say: the estimate, its bounds, how many blocks stand behind them."""
    counts = f"{evidence.used} used ({evidence.pooled} from earlier runs), {evidence.dropped} dropped"
    lines = [
        f"  ratio {number(evidence.hl)} (candidate speed / baseline speed), "
        f"bounds [{number(evidence.lcb)}, {number(evidence.ucb)}], each holding at any stopping time with "
        f"{1 - evidence.alpha:.0%}",
        f"  blocks {counts}; candidate faster in {evidence.faster} of {evidence.used}",
    ]
    if evidence.e_value is not None:
        needed = 1 / evidence.alpha
        lines.append(
            f"  e-value {evidence.e_value:.3g} against ratio <= {evidence.guard:.3f} ({needed:.0f} proves it)"
        )
    if evidence.resolvable is not None:
        lines.append(f"  smallest effect these blocks could have shown: {number(evidence.resolvable)}")
    return lines


def number(value: float | None) -> str:
    """A ratio for people; an unknown one is said, not drawn as 0."""
    return "unknown" if value is None or value != value or abs(value) == float("inf") else f"{value:.4f}"


def percent(value: float | None) -> str:
    return "unknown" if value is None else f"{(value - 1) * 100:+.2f} %"


def next_line(plan: Plan, verdict: Verdict) -> str:
    """The one next command line after a verdict, where no open round knows better."""
    pair = f"{plan.base.name} {plan.cand.name}"
    if plan.legacy is not None:
        # A comparison proves nothing: next comes the policy that does.
        single = plan.tier in ("calibrate", "single")
        return f"{SCRIPT} calibrate {plan.base.name}" if single else f"{SCRIPT} {plan.tier} {pair}"
    again = {"screen": f"screen {pair}", "accept-stack": f"accept-stack {pair}", "accept": f"accept {pair}"}
    table = {
        "triage_promote": f"accept {pair}",
        "triage_discard": "next",
        "keep": "status",
        "keep_stack": "status",
        "keep_small_gain": "status",
        "inconclusive": f"screen {pair} --again" if plan.tier == "screen" else again.get(plan.tier, "next"),
        "interrupted": again.get(plan.tier, f"calibrate {plan.base.name}"),
        "busy_invalid": "status",
        "behaviour_changed": f"screen {pair} --equal-only",
        "checks_failed": f"checks {plan.cand.name}",
        "baseline": "next",
    }
    return f"{SCRIPT} {table.get(verdict.status, 'next')}"


def planned(plan: Plan, typed: str, ledger: str) -> Outcome:
    """A dry run's answer: the frozen plan, and nothing done."""
    limit = "none" if plan.max_seconds is None else f"{plan.max_seconds / 60:g} minutes"
    out = Outcome(
        command=plan.command,
        report=Report(
            phase=PHASE_OF_TIER[plan.tier],
            inputs=[f"{plan.base.name} {plan.base.commit[:12]}", f"{plan.cand.name} {plan.cand.commit[:12]}"],
            decision="defer",
            next=typed,
        ),
        status="planned",
        recorded=False,
        baseline=side(plan.base, None),
        candidate=side(plan.cand, None),
        workload_hash=plan.workload.hash,
        harness_hash=plan.harness_hash,
        policy_hash=plan.policy_hash,
        alpha=plan.alpha,
        ledger=ledger,
        details={"plan": plan.to_json()},
    )
    out.text = [
        f"plan: {plan.command} {plan.base.commit[:12]} -> {plan.cand.commit[:12]} "
        "(dry run: nothing is built or measured)",
        f"  workload {plan.workload.name} {plan.workload.hash[:12]}, at most {plan.max_blocks} "
        f"{size_text(plan)}; time limit {limit}",
        f"  builds: {'fresh target folders' if plan.fresh_build else 'cached'}; policy {plan.policy}, "
        f"design {plan.design}, unit {plan.unit}, tier {plan.benchmark_tier}",
    ]
    return out


def size_text(plan: Plan) -> str:
    """What is measured, after its number."""
    if plan.legacy is None:
        return f"new blocks of {plan.slices} slices a side, {plan.slice_ms:g} ms each"
    sizes = plan.legacy
    return (
        f"pairs of {sizes['steps']} steps x {sizes['repeats']} a side after {sizes['warmups']} to warm up, "
        f"1-minute load below {sizes['max_load']:.2f}"
    )
