"""Each combination of tier, bounds, validity and budget gives exactly one status: the contract's table,
written again.
"""

from __future__ import annotations

import itertools

import pytest

from cartlab.decide import decide, too_many_dropped
from cartlab.model import POLICY, STATUSES, TIERS, Evidence, Validity, Verdict

BOUNDS = (None, 0.97, 1.005, 1.01, 1.02, 1.03, 1.05)
ESTIMATES = (0.99, 1.0, 1.005, 1.01, 1.04)
FLOORS = (1.0, 1.02, 1.04)


def an_evidence(
    lcb: float | None = None,
    ucb: float | None = None,
    hl: float | None = 1.02,
    floor: float = 1.0,
    used: int = 12,
    dropped: int = 0,
    pooled: int = 0,
    faster: int = 12,
) -> Evidence:
    return Evidence(used, dropped, pooled, hl, lcb, ucb, 1.0, max(1.01, floor), floor, 0.01, faster)


OK = Validity(checks="passed")


def status(tier: str, ev: Evidence | None, validity: Validity = OK, ended: bool = True) -> str:
    return decide(tier, ev, validity, ended).status


def expected_of_accept(tier: str, lcb: float, ucb: float, floor: float, ended: bool) -> tuple[str, bool]:
    """The contract's sentences, each on its own, with unknown bounds as 0 and infinity."""
    margin, guard = max(1.03, floor), max(1.01, floor)
    stack = "_stack" if tier == "accept-stack" else ""
    true = []
    if lcb >= margin:
        true.append(("keep" + stack, True))
    if guard <= lcb < margin and (ucb < margin or ended):
        true.append(("keep_small_gain", True))
    if lcb < guard and (ucb < guard or (ended and ucb < 1.03)):
        true.append(("discard" + stack, True))
    if not true:
        true.append(("inconclusive", ended))
    assert len(true) == 1, "the contract's rows overlap"
    return true[0]


@pytest.mark.parametrize("tier", ["accept", "accept-stack", "confirm"])
def test_accept_tiers_follow_the_table_for_every_pair_of_bounds(tier: str) -> None:
    seen = set()
    for lcb, ucb, hl, floor, ended in itertools.product(BOUNDS, BOUNDS, ESTIMATES, FLOORS, (False, True)):
        if lcb is not None and ucb is not None and lcb > ucb:
            continue
        verdict = decide(tier, an_evidence(lcb, ucb, hl, floor), OK, ended)
        want, final = expected_of_accept(tier, lcb or 0.0, ucb or 99.0, floor, ended)
        assert (verdict.status, verdict.final) == (want, ended if tier == "confirm" else final)
        seen.add(verdict.status)
    stack = "_stack" if tier == "accept-stack" else ""
    assert seen == {"keep" + stack, "keep_small_gain", "discard" + stack, "inconclusive"}


def test_screen_follows_the_table_for_every_estimate_share_and_bound() -> None:
    seen = set()
    for hl, faster, ucb, ended in itertools.product(ESTIMATES, range(7), BOUNDS, (False, True)):
        verdict = decide("screen", an_evidence(None, ucb, hl, used=6, faster=faster), Validity(), ended)
        below = ucb is not None and ucb < 1.01
        if below or (hl < 1.0 and faster <= 2):
            want = "triage_discard"
        elif hl >= 1.01 and faster >= 5:
            want = "triage_promote"
        else:
            want = "inconclusive"
        assert verdict.status == want
        assert verdict.final == (ended or below)
        word = "defer" if want == "inconclusive" and 1.0 <= hl < 1.01 else STATUSES[want].decision
        assert verdict.decision == word
        seen.add(want)
    assert seen == {"triage_discard", "triage_promote", "inconclusive"}


@pytest.mark.parametrize(("hl", "faster"), [(1.04, 5), (0.99, 0), (1.005, 3)])
def test_a_screen_of_fewer_than_six_blocks_is_not_judged_by_their_share(hl: float, faster: int) -> None:
    for used in range(1, 6):
        share = min(faster, used)
        verdict = decide("screen", an_evidence(None, None, hl, used=used, faster=share), Validity(), True)
        assert verdict.status == "inconclusive"
        assert f"a screen is judged by 6 blocks, found {used}" in verdict.reasons
    # The upper bound needs no share.
    bound = decide("screen", an_evidence(None, 1.005, hl, used=5, faster=5), Validity(), True)
    assert bound.status == "triage_discard"


def test_a_named_problem_is_the_status_whatever_the_numbers_say() -> None:
    problems = set(STATUSES) - {"keep", "keep_stack", "keep_small_gain", "discard", "discard_stack"}
    for tier, problem, lcb, ended in itertools.product(TIERS, sorted(problems), BOUNDS, (False, True)):
        for ev in (None, an_evidence(lcb, 1.2)):
            verdict = decide(tier, ev, Validity(problem, "why", checks="passed"), ended)
            assert (verdict.status, verdict.reasons, verdict.final) == (problem, ("why",), True)
            assert not verdict.keeps


def test_a_problem_or_a_failed_check_without_a_reason_says_what_its_status_means() -> None:
    assert decide("screen", None, Validity("crashed"), True).reasons == (STATUSES["crashed"].meaning,)
    failed = decide("accept", an_evidence(1.05, 1.2), Validity(checks="failed"), True)
    assert failed.reasons == ("the checks fail",)
    why = Validity(checks="failed", reason="one check fails")
    assert decide("accept", None, why, True).reasons == ("one check fails",)


def test_without_a_block_no_tier_says_anything() -> None:
    for tier in TIERS:
        for found in (None, an_evidence(None, None, None, used=0, faster=0)):
            verdict = decide(tier, found, OK, True)
            assert (verdict.status, verdict.reasons) == ("inconclusive", ("no block was measured",))


def test_failed_checks_are_a_verdict_only_where_checks_prove_something() -> None:
    for tier, row in TIERS.items():
        found = status(tier, an_evidence(1.05, 1.2), Validity(checks="failed"))
        assert (found == "checks_failed") == row.proves, tier


def test_every_combination_gives_one_known_status_with_its_word_and_code() -> None:
    validities = [
        Validity(problem, "", forced, checks)
        for problem in (None, *STATUSES)
        for forced in (False, True)
        for checks in ("passed", "failed", "not_run")
    ]
    evidences = [None] + [
        an_evidence(lcb, ucb, hl, floor, dropped=dropped, used=used, faster=min(used, 5))
        for lcb in BOUNDS[::2]
        for ucb in BOUNDS[::2]
        for hl in (None, 0.99, 1.04)
        for floor in (1.0, 1.04)
        for dropped in (0, 5)
        for used in (0, 12)
    ]
    for tier, ev, validity, ended in itertools.product(TIERS, evidences, validities, (False, True)):
        verdict = decide(tier, ev, validity, ended)
        assert isinstance(verdict, Verdict)
        row = STATUSES[verdict.status]
        assert verdict.exit_code == row.exit_code
        assert verdict.decision in (row.decision, "defer")
        assert verdict.reasons
        if ended:
            assert verdict.final
        if verdict.keeps and validity.problem is None:
            assert TIERS[tier].proves
            assert validity.checks == "passed"
            assert ev is not None
            assert ev.lcb is not None
            assert ev.lcb >= ev.guard
            if validity.forced:
                assert verdict.status == "keep_small_gain"


def test_a_keep_needs_passed_checks() -> None:
    winner = an_evidence(1.05, 1.2)
    assert status("accept", winner, Validity(checks="passed")) == "keep"
    unchecked = decide("accept", winner, Validity(checks="not_run"), True)
    assert unchecked.status == "inconclusive"
    assert unchecked.reasons[-1] == "the checks were not run: measured, but not kept"
    assert status("accept", winner, Validity(checks="failed")) == "checks_failed"
    assert status("accept", an_evidence(0.9, 0.95), Validity(checks="not_run")) == "discard"


def test_a_forced_run_keeps_a_small_gain_at_most_and_says_so() -> None:
    verdict = decide("accept-stack", an_evidence(1.05, 1.2), Validity(forced=True, checks="passed"), False)
    assert (verdict.status, verdict.marks) == ("keep_small_gain", ("forced",))
    for bounds in ((1.05, 1.2), (1.015, 1.02)):
        forced = decide("accept", an_evidence(*bounds), Validity(forced=True, checks="passed"), True)
        assert forced.reasons[-1] == "the contention rule was waived: at most a small gain"


def test_more_than_three_in_ten_new_blocks_dropped_is_busy_invalid() -> None:
    for used, pooled, dropped, too_many in (
        (7, 0, 3, False),
        (7, 0, 4, True),
        (27, 20, 4, True),
        (20, 20, 1, True),
    ):
        ev = an_evidence(1.05, 1.2, used=used, pooled=pooled, dropped=dropped)
        assert too_many_dropped(ev) == too_many
        assert (status("accept", ev) == "busy_invalid") == too_many
    ev = an_evidence(1.05, 1.2, used=1, dropped=1)
    assert not decide("accept", ev, OK, budget_ended=False).final


def test_bounds_that_cross_decide_nothing() -> None:
    assert status("accept", an_evidence(1.04, 1.02)) == "inconclusive"
    assert status("screen", an_evidence(1.04, 1.005), Validity()) == "inconclusive"


def test_a_calibration_is_context_whatever_it_measures() -> None:
    assert status("calibrate", an_evidence(1.05, 1.2)) == "baseline"
    assert status("single", an_evidence(None, None)) == "baseline"


def test_an_inconclusive_verdict_says_what_it_could_have_shown_and_what_it_needs() -> None:
    ev = Evidence(48, 0, 0, 1.012, 0.99, 1.05, 2.0, 1.01, 1.0, 0.01, 30, 1.031, 120)
    text = " ".join(decide("accept", ev, OK, True).reasons)
    assert "1.031" in text
    assert "120 more blocks" in text
    never = decide("accept", Evidence(9, 0, 0, 1.01, None, None, 2.0, 1.01, 1.0, 0.01, 5), OK, True).reasons
    assert never == (
        "estimate 1.0100",
        "9 blocks show no effect of any size yet",
        "no number of blocks tells 1.0100 from the guard 1.010",
    )


def test_without_an_estimate_nothing_is_said_of_what_blocks_show() -> None:
    none = Evidence(8, 0, 0, None, None, None, None, 1.01, 1.0, 0.01, 0)
    for tier in ("accept", "accept-stack", "confirm"):
        assert decide(tier, none, OK, False).reasons == ("no valid block",)


def test_the_policy_hash_changes_with_each_number() -> None:
    hashes = {POLICY.hash}
    for name, value in POLICY._asdict().items():
        other = value + ("x" if isinstance(value, str) else (1,) if isinstance(value, tuple) else 1)
        hashes.add(POLICY._replace(**{name: other}).hash)
    assert len(hashes) == 1 + len(POLICY)
