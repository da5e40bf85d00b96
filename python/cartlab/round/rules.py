"""What completes a round, what keeps a candidate from its confirm run, and what pauses a round.

Contract: SPECS.md section 6. Pure: facts about the repository come in as values. Each rule is a line
that people can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cartlab.model import STATUSES, TIERS, Evidence, Tier, Verdict
from cartlab.round.states import Kept, Round

MIN_TARGET = 1.10
BAR_SHARE = 0.7
# A confirm run that ended so has not been had: it is continued or run again.
UNFINISHED = ("interrupted", "busy_invalid")
# Ends that are a candidate's own fault in a way that a second candidate can repeat.
DEATHS = (
    "behaviour_changed",
    "build_failed",
    "crashed",
    "timeout",
    "compliance_failed",
    "metric_error",
    "no_change",
)
DISCARDS = ("discard", "discard_stack", "triage_discard")


class CandidateFacts(NamedTuple):
    """What the repository and the ledger say of a candidate, gathered by the caller.

    outside: commits of BASE..CAND that change built paths and lie in no accepted attempt. checks_passed: a
    recorded full pass of exactly its tree. known_trees, known_patches: of candidates accepted in earlier
    rounds.
    """

    commit: str
    tree: str
    patch_id: str | None
    on_branch: bool
    descends: bool
    outside: tuple[str, ...]
    checks_passed: bool
    known_trees: frozenset[str] = frozenset()
    known_patches: frozenset[str] = frozenset()
    touched: tuple[str, ...] = ()  # protected paths that it changes without leave
    mechanism: str | None = None  # stated with the confirm run; else what its recorded runs state
    falsify: str | None = None


def confirm_bar(target: float, strict: bool = False) -> float:
    """The lower bound that the confirm run must reach: 1.07 for a target of 1.10, the target itself if
    strict.
    """
    return target if strict else round(1.0 + BAR_SHARE * (target - 1.0), 9)


def confirm_blocks(strict: bool, tier: Tier = TIERS["confirm"]) -> int:
    """The valid blocks that a confirm run has."""
    return tier.full_blocks if strict else tier.blocks


def confirm_status(status: str, used: int, tier: Tier, strict: bool) -> str:
    """How a confirm run ended, for its having been had: one that a limit stopped short is as good as
    interrupted.
    """
    measured = STATUSES[status].keeps or status in (*DISCARDS, "inconclusive")
    return "interrupted" if measured and used < confirm_blocks(strict, tier) else status


def confirm_candidate(found: Round) -> Kept | None:
    """The newest accepted result whose estimate reaches the target and that had no confirm run yet."""
    for kept in reversed(found.kept):
        counts = "forced" not in kept.marks and "benchmark-only" not in kept.marks and kept.policy != "legacy"
        official = kept.benchmark_tier in ("stack_acceptance", "local_acceptance")
        had = found.confirms.get(kept.tree)
        if counts and official and kept.estimate >= found.target and (had is None or had in UNFINISHED):
            return kept
    return None


def confirm_obstacles(found: Round, facts: CandidateFacts) -> list[str]:
    """Why this candidate may not have its confirm run; empty if it may."""
    kept = [k for k in found.kept if k.tree == facts.tree]
    candidate = found.candidates.get(facts.tree)
    had = found.confirms.get(facts.tree)
    rules = [
        (not kept, "no accept or accept-stack against the round's baseline kept it"),
        (bool(kept) and all("forced" in k.marks for k in kept), "its evidence was forced"),
        (bool(kept) and all(k.policy == "legacy" for k in kept), "the legacy policy proves nothing"),
        (
            bool(kept) and all("benchmark-only" in k.marks for k in kept),
            "the rollout workload does not gain from it: benchmark-only",
        ),
        (
            bool(kept) and max(k.estimate for k in kept) < found.target,
            f"its estimate does not reach the target {found.target:.2f}",
        ),
        (had is not None and had not in UNFINISHED, f"its confirm run was had: {had}"),
        (
            not (facts.mechanism or (candidate and candidate.mechanism)),
            "no mechanism stated (--mechanism or a Mechanism: trailer)",
        ),
        (
            not (facts.falsify or (candidate and candidate.falsify)),
            "no falsification stated (--falsify or Falsified-by:)",
        ),
        (not facts.checks_passed, "no full checks of exactly its tree have passed"),
        (not facts.on_branch, "it is neither HEAD of the current branch nor its ancestor"),
        (not facts.descends, "it does not descend from the round's baseline"),
        (facts.tree == found.baseline_tree, "it is the baseline"),
        (facts.tree in facts.known_trees, "its tree was accepted in an earlier round"),
        (
            facts.patch_id is not None and facts.patch_id in facts.known_patches,
            "its patch was accepted in an earlier round",
        ),
        (bool(facts.outside), f"commits outside accepted attempts: {', '.join(facts.outside)}"),
        (bool(facts.touched), f"it touches protected paths: {', '.join(facts.touched)}"),
    ]
    return [why for broken, why in rules if broken]


def completes(
    found: Round, verdict: Verdict, recorded: bool, policy: str, benchmark_tier: str = "local_acceptance"
) -> list[str]:
    """Why a finished confirm run does not complete the round; empty if it does."""
    bar = confirm_bar(found.target, found.strict)
    evidence = verdict.evidence or Evidence(0, 0, 0, None, None, None, None, 1.01, 1.0, 0.01, 0)
    estimate = evidence.hl or 0.0
    needed = confirm_blocks(found.strict)
    rules = [
        (not STATUSES[verdict.status].keeps, f"the confirm run ended as {verdict.status}"),
        (benchmark_tier != "local_acceptance", f"its tier is {benchmark_tier}, not local_acceptance"),
        (evidence.used < needed, f"it has {evidence.used} of {needed} blocks"),
        (not recorded, "the run was not recorded"),
        (policy != "anytime", f"the {policy} policy proves nothing"),
        (
            any(m in verdict.marks for m in ("forced", "imported", "benchmark-only")),
            f"marked {', '.join(verdict.marks)}",
        ),
        (estimate < found.target, f"the estimate {estimate:.4f} does not reach {found.target:.2f}"),
        ((evidence.lcb or 0.0) < bar, f"the lower bound {evidence.lcb or 0.0:.3f} does not reach {bar:.3f}"),
    ]
    return [why for broken, why in rules if broken]


def pause_due(found: Round) -> tuple[str, str] | None:
    """A pause rule that the attempts since the last resume call for: (rule, reason), or None."""
    ends = found.since_resume
    if not found.active or found.state == "paused":
        return None
    if found.damage:
        return "untrustworthy", found.damage
    if not ends:
        return None
    last = ends[-1]
    if last["status"] == "tampered":
        return "untrustworthy", f"attempt {last['attempt']} has clocks or digests that no honest run gives"
    if str(last["limit_stop_reason"] or "").startswith("wall clock limit"):
        return "limits_exhausted", f"attempt {last['attempt']} stopped at its {last['limit_stop_reason']}"
    ours = last["base_tree"] == found.baseline_tree
    if last["status"] == "build_failed" and last["side"] == "baseline" and ours:
        return "access_failed", "the round's baseline, which was built before, does not build now"
    if last["disagree"] and last["status"] in STATUSES and STATUSES[last["status"]].keeps:
        return "untrustworthy", f"attempt {last['attempt']}: {last['disagree'][0]}"
    judged = [e for e in ends if e["status"] != "interrupted"]
    if len(judged) < 2 or last["status"] == "interrupted":
        return None
    before = judged[-2]
    both = {before["status"], last["status"]}
    if both == {"checks_failed"}:
        return (
            "regressions_persist",
            f"attempts {before['attempt']} and {last['attempt']} failed their checks",
        )
    if both == {"busy_invalid"}:
        return "untrustworthy", "more than 30 % of the blocks were dropped twice"
    if before["tree"] == last["tree"]:
        return None
    if len(both) == 1 and all(map(_died, (before, last))):
        return "same_reason_twice", f"two candidates ended as {last['status']}"
    dead = before["status"] in DISCARDS and last["status"] in DISCARDS
    idea = (last["mechanism"] or "").strip().lower()
    if dead and idea and idea == (before["mechanism"] or "").strip().lower():
        return "same_reason_twice", f"two candidates with the mechanism {last['mechanism']!r} were discarded"
    return None


def _died(end: Mapping[str, Any]) -> bool:
    """Did a candidate die by itself: no calibration, and not because its baseline does not build."""
    return end["status"] in DEATHS and end["tier"] != "calibrate" and end["side"] != "baseline"
