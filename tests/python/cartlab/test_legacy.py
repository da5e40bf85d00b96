"""The predecessor's policy against the appendix that describes it, and the faults that it is kept for."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest

from cartlab import legacy
from cartlab.legacy import TIERS, Look, bootstrap_interval, faster_needed, look, outliers, status_of


def test_the_tiers_are_the_appendixs() -> None:
    assert {name: tuple(row) for name, row in TIERS.items()} == {
        "screen": (5000, 1, 0, (3,), (3,)),
        "accept-stack": (30000, 2, 1, (3, 5, 7), (3, 5, 7)),
        "accept": (50000, 3, 2, (3,), (7, 11, 15, 21, 31)),
        "calibrate": (50000, 3, 2, (11,), (5, 8, 11, 15, 21, 31)),
    }
    assert [legacy.baseline_first(pair) for pair in range(4)] == [True, False, True, False]
    assert legacy.load_limit(6) == pytest.approx((2.0, 1.7))


@pytest.mark.parametrize("n", [3, 5, 7])
def test_the_bootstrap_is_python_s_random_with_the_known_seed_and_entries(n: int) -> None:
    values = [1.0 + 0.01 * ((7 * i) % n) for i in range(n)]
    rng = random.Random(12345)
    medians = []
    for _ in range(20_000):
        medians.append(statistics.median([rng.choice(values) for _ in values]))
    medians.sort()
    assert bootstrap_interval(values) == (medians[500], medians[19_499])


def test_its_interval_of_three_pairs_is_their_range_which_covers_three_times_in_four() -> None:
    assert bootstrap_interval([1.02, 0.99, 1.01]) == (0.99, 1.02)
    rng = random.Random(1)
    hits = 0
    for _ in range(2000):
        values = [rng.gauss(1.0, 0.01) for _ in range(3)]
        hits += min(values) <= 1.0 <= max(values)
    assert 0.72 < hits / 2000 < 0.78


def test_outliers_need_four_values_and_either_rule_finds_them() -> None:
    assert outliers([1.0, 1.0, 9.0]) == []
    assert outliers([1.0, 1.01, 1.02, 9.0]) == [3]
    assert outliers([1.0, 1.01, 1.02, 1.03]) == []
    assert outliers([5.0, 5.0, 5.0, 5.0]) == []


@pytest.mark.parametrize(("pairs", "needed"), [(3, 3), (5, 4), (7, 6), (11, 9), (15, 12), (31, 24)])
def test_a_win_needs_three_quarters_of_the_pairs(pairs: int, needed: int) -> None:
    assert faster_needed(pairs) == needed


def test_three_steady_pairs_of_a_large_gain_converge_at_once_where_the_cap_is_three() -> None:
    at = look([1.050, 1.051, 1.052], (3,), load_fine=True)
    assert (at.decision, at.stops, at.stable, at.win) == ("converged_candidate_win", True, True, True)
    assert status_of("accept", at, True) == "keep"
    assert look([1.050, 1.051, 1.052], (3, 5, 7), load_fine=True).decision == "continue"


def test_the_last_three_checkpoint_medians_must_agree() -> None:
    steady = [1.05, 1.0505, 1.051, 1.0502, 1.0508, 1.0504, 1.0506]
    assert look(steady, (3, 5, 7), True).gates["span"]
    moving = [1.04, 1.0405, 1.041, 1.05, 1.0505, 1.06, 1.061]
    assert not look(moving, (3, 5, 7), True).gates["span"]


def test_a_run_that_never_converges_ends_at_its_last_checkpoint() -> None:
    wild = [1.2, 0.9, 1.1, 1.0, 1.3, 0.8, 1.15]
    at = look(wild, (3, 5, 7), True)
    assert (at.decision, at.stops, at.valid) == ("max_samples_no_convergence", True, False)
    with pytest.raises(ValueError, match="3 or 5 or 7"):
        look(wild[:4], (3, 5, 7), True)


def a_look(**changes: object) -> Look:
    gates = dict.fromkeys(("span", "cv", "interval", "outliers", "load"), True)
    base = Look(7, 1.05, 1.04, 1.06, 0.0, 7, gates, True, False, "converged_candidate_win", True)
    return base._replace(**changes)


def test_every_combination_gives_a_status_of_its_tier() -> None:
    allowed = {
        "screen": {"triage_promote", "triage_discard", "inconclusive"},
        "accept-stack": {"keep_stack", "discard_stack", "inconclusive"},
        "accept": {"keep", "keep_small_gain", "discard", "inconclusive"},
        "calibrate": {"inconclusive"},
    }
    seen: dict[str, set[str]] = {tier: set() for tier in allowed}
    for estimate, low, high, faster, held, fine, limit in itertools.product(
        (0.99, 1.0, 1.005, 1.02, 1.05),
        (0.98, 1.0, 1.01),
        (1.0, 1.02, 1.06),
        (3, 6, 7),
        (True, False),
        (True, False),
        (True, False),
    ):
        win = estimate >= 1.03 and low > 1.0 and faster >= 6
        no_win = estimate < 1.01 and high < 1.03
        valid = held and (win or no_win)
        word = "converged_candidate_win" if valid and win else "max_samples_no_convergence"
        at = a_look(
            estimate=estimate,
            low=low,
            high=high,
            faster=faster,
            win=win,
            no_win=no_win,
            decision=word,
            gates=dict.fromkeys(("span", "cv"), held),
        )
        for tier in allowed:
            seen[tier].add(status_of(tier, at, fine, limit_reached=limit))
    assert seen == allowed


def test_a_stack_may_ignore_the_load_and_an_acceptance_may_not() -> None:
    at = a_look()
    assert status_of("accept-stack", at, load_fine=False, load_ignored=True) == "keep_stack"
    assert status_of("accept-stack", at, load_fine=False) == "inconclusive"
    assert status_of("accept", at, load_fine=True) == "keep"
    assert status_of("accept", a_look(gates={"load": False}), load_fine=False) == "inconclusive"


def test_a_calibration_stops_on_span_and_interval() -> None:
    steady = [[100.0, 100.1, 100.2]] * 11
    at = legacy.single_look(steady, (5, 8, 11, 15), True)
    assert at.stops
    assert all(at.gates.values())
    wild = [[100.0 + 20 * (i % 3)] * 3 for i in range(11)]
    assert not legacy.single_look(wild, (5, 8, 11, 15), True).stops
    assert not legacy.single_look(steady[:5], (5, 8, 11), True).stops


def test_a_legacy_verdict_says_so() -> None:
    made = legacy.verdict_of("accept", a_look(), load_fine=True)
    assert (made.status, made.marks, made.evidence) == ("keep", ("legacy",), None)
    assert "comparison" in made.reasons[-1]
    assert legacy.cells_of(a_look(), True, False)["pair_ratio_bootstrap_ci95"] == [1.04, 1.06]
