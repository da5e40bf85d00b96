"""From evidence to a verdict: the one place where a status is given.

Contract: the table of docs/benchmarking.md. Pure and total: each combination of tier, bounds, validity
and budget gives exactly one status, read from the top of `decide` downwards. Nothing here measures,
computes statistics or knows a round.

To add a rule: put it where it belongs in the order of `decide`, and its row into test_decide.py's table.
"""

from __future__ import annotations

from cartlab.model import POLICY, STATUSES, TIERS, Evidence, Policy, Tier, Validity, Verdict


def decide(
    tier: str,
    evidence: Evidence | None,
    validity: Validity,
    budget_ended: bool,
    policy: Policy = POLICY,
) -> Verdict:
    """The verdict on what is known now.

    tier: a name in TIERS. evidence: None where nothing was measured. budget_ended: no further block will be
    measured in this run. A verdict that is not `final` is what the run would end with if it stopped here;
    measure on.
    """
    row = TIERS[tier]
    if validity.problem is not None:
        return _verdict(
            validity.problem, [validity.reason or STATUSES[validity.problem].meaning], evidence, validity
        )
    if row.proves and validity.checks == "failed":
        return _verdict("checks_failed", [validity.reason or "the checks fail"], evidence, validity)
    if evidence is None or evidence.used + evidence.dropped == 0:
        return _verdict("inconclusive", ["no block was measured"], evidence, validity, budget_ended)
    if too_many_dropped(evidence, policy):
        new = evidence.dropped + evidence.used - evidence.pooled
        share = f"{evidence.dropped} of {new} blocks dropped, more than {policy.max_dropped:.0%}"
        return _verdict("busy_invalid", [share], evidence, validity, budget_ended)
    if tier in ("calibrate", "single"):
        return _verdict("baseline", [_estimate(evidence)], evidence, validity, budget_ended)
    if evidence.lcb is not None and evidence.ucb is not None and evidence.lcb > evidence.ucb:
        crossed = (
            f"the bounds cross ({evidence.lcb:.3f} > {evidence.ucb:.3f}): the blocks are not of one kind"
        )
        return _verdict("inconclusive", [crossed], evidence, validity, budget_ended)
    if not row.proves:
        status, why = _triage(evidence, policy)
        ends = budget_ended or _below(evidence.ucb, policy.promote)
        return _deferred(_verdict(status, why, evidence, validity, ends), evidence.hl, policy)
    status, why, ends = _accept(row, evidence, budget_ended, policy)
    # The confirm run always measures its whole budget: its estimate must not depend on when it was looked at.
    final = budget_ended or (ends and tier != "confirm")
    return _gated(_verdict(status, why, evidence, validity, final), validity)


def too_many_dropped(evidence: Evidence, policy: Policy = POLICY) -> bool:
    """Were more of this run's blocks dropped than a valid run may lose."""
    new = evidence.dropped + evidence.used - evidence.pooled
    return evidence.dropped > policy.max_dropped * new


def _below(bound: float | None, threshold: float) -> bool:
    return bound is not None and bound < threshold


def _reaches(bound: float | None, threshold: float) -> bool:
    return bound is not None and bound >= threshold


def _triage(evidence: Evidence, policy: Policy) -> tuple[str, list[str]]:
    """screen: a filter on the estimate and the share of positive blocks."""
    hl = evidence.hl if evidence.hl is not None else 1.0
    seen = f"{_estimate(evidence)}, {evidence.faster} of {evidence.used} blocks faster"
    up, of_up = policy.promote_share
    down, of_down = policy.demote_share
    if _below(evidence.ucb, policy.promote):
        return "triage_discard", [seen, f"upper bound {evidence.ucb:.3f} < {policy.promote:.2f}"]
    if evidence.used < policy.triage_blocks:
        # Of three blocks all are faster once in eight times by chance alone.
        few = f"a screen is judged by {policy.triage_blocks} blocks, found {evidence.used}"
        return "inconclusive", [seen, few]
    if hl >= policy.promote and evidence.faster * of_up >= up * evidence.used:
        return "triage_promote", [seen]
    if hl < policy.demote and evidence.faster * of_down <= down * evidence.used:
        return "triage_discard", [seen]
    return "inconclusive", [seen, *_still_needed(evidence)]


def _accept(
    tier: Tier, evidence: Evidence, budget_ended: bool, policy: Policy
) -> tuple[str, list[str], bool]:
    """The bounds against guard and margin. The third value: does the run stop for it."""
    margin = max(policy.margin, evidence.floor)
    lcb, ucb, guard = evidence.lcb, evidence.ucb, evidence.guard
    keep, discard = ("keep_stack", "discard_stack") if tier.stack else ("keep", "discard")
    if _reaches(lcb, margin):
        return keep, [f"lower bound {lcb:.3f} >= {margin:.3f}"], True
    if _reaches(lcb, guard):
        small = f"lower bound {lcb:.3f} >= {guard:.3f}"
        if _below(ucb, margin):
            return "keep_small_gain", [small, f"upper bound {ucb:.3f} < {margin:.3f}"], True
        if budget_ended:
            return "keep_small_gain", [small, "the budget ended"], True
        return "inconclusive", [small, f"not yet clear of {margin:.3f}"], False
    if _below(ucb, guard):
        return discard, [f"upper bound {ucb:.3f} < {guard:.3f}"], True
    if budget_ended and _below(ucb, policy.margin):
        return discard, [f"upper bound {ucb:.3f} < {policy.margin:.3f} at the end of the budget"], True
    return "inconclusive", [_estimate(evidence), *_still_needed(evidence)], False


def _gated(verdict: Verdict, validity: Validity) -> Verdict:
    """What a keep* must have besides its bounds."""
    if not verdict.keeps:
        return verdict
    reasons = list(verdict.reasons)
    if validity.checks != "passed":
        reasons.append("the checks were not run: measured, but not kept")
        return _verdict("inconclusive", reasons, verdict.evidence, validity, verdict.final)
    if validity.forced:
        reasons.append("the contention rule was waived: at most a small gain")
        return _verdict("keep_small_gain", reasons, verdict.evidence, validity, verdict.final)
    return verdict


def _estimate(evidence: Evidence) -> str:
    return "no valid block" if evidence.hl is None else f"estimate {evidence.hl:.4f}"


def _still_needed(evidence: Evidence) -> list[str]:
    """What an inconclusive verdict owes its reader."""
    out = []
    if evidence.resolvable is not None:
        out.append(f"{evidence.used} blocks would have shown a true {evidence.resolvable:.3f}")
    elif evidence.hl is not None:
        out.append(f"{evidence.used} blocks show no effect of any size yet")
    if evidence.blocks_needed is not None:
        out.append(f"about {evidence.blocks_needed} more blocks if the estimate is true")
    elif evidence.hl is not None:
        out.append(f"no number of blocks tells {evidence.hl:.4f} from the guard {evidence.guard:.3f}")
    return out


def _verdict(
    status: str, reasons: list[str], evidence: Evidence | None, validity: Validity, final: bool = True
) -> Verdict:
    row = STATUSES[status]
    marks = (*(("forced",) if validity.forced else ()), *validity.marks)
    return Verdict(status, row.decision, row.exit_code, tuple(reasons), evidence, final, marks)


def _deferred(verdict: Verdict, hl: float | None, policy: Policy) -> Verdict:
    """Report an inconclusive screen with an estimate in [demote, promote) as `defer`: it may be part of a
    stack.
    """
    if verdict.status != "inconclusive" or hl is None or not policy.demote <= hl < policy.promote:
        return verdict
    return Verdict(
        verdict.status,
        "defer",
        verdict.exit_code,
        (*verdict.reasons, "may be part of a stack"),
        verdict.evidence,
        verdict.final,
        verdict.marks,
    )
