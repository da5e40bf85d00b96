"""e-BH, the group-sequential design and the planner's table, against definitions, scipy and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartlab import stats
from cartlab.decide import decide
from cartlab.model import Validity
from cartlab.simulate import MACHINES, block_values, records
from cartlab.stats.groupseq import _cumulative, bounds_at


@given(st.lists(st.floats(0.0, 1e6), max_size=8), st.sampled_from([0.01, 0.05, 0.2]))
def test_e_bh_keeps_the_largest_set_that_its_definition_allows(e_values: list[float], alpha: float) -> None:
    kept = stats.e_bh(e_values, alpha)
    m = len(e_values)
    sizes = [0] + [
        len(group)
        for k in range(1, m + 1)
        for group in itertools.combinations(range(m), k)
        if all(e_values[i] >= m / (alpha * k) for i in group)
    ]
    assert len(kept) == max(sizes)
    if kept:
        assert min(e_values[i] for i in kept) >= max(
            [e_values[i] for i in range(m) if i not in kept], default=0.0
        )


def test_e_bh_is_the_plain_rule_for_one_candidate_and_counts_those_without_evidence() -> None:
    assert stats.e_bh([100.0]) == [0]
    assert stats.e_bh([99.9]) == []
    assert stats.discoveries({"a": 250.0, "b": None, "c": 90.0}) == []
    assert stats.discoveries({"a": 300.0, "b": None, "c": 150.0}) == ["a", "c"]
    with pytest.raises(ValueError, match="0 or more"):
        stats.e_bh([-1.0])


def test_e_bh_holds_its_false_discovery_rate_on_candidates_that_share_a_baseline() -> None:
    rng = np.random.default_rng(9)
    shares = []
    for _ in range(300):
        shared = rng.normal(0.0, 0.01, 24)
        gains = np.array([0.0] * 6 + [0.05] * 2)
        y = gains[:, None] + shared + rng.normal(0.0, 0.005, (8, 24))
        wealth = np.exp(stats.wealth_paths(y, 1.0)[:, -1])
        found = stats.e_bh(list(wealth), 0.05)
        shares.append(sum(i < 6 for i in found) / max(1, len(found)))
    assert float(np.mean(shares)) <= 0.05


@pytest.mark.parametrize("n", [1, 2, 5, 12, 20])
def test_the_exact_null_of_the_signed_rank_sum_is_the_counted_one(n: int) -> None:
    if n <= 12:
        sums = [sum(r for r, s in enumerate(signs, 1) if s) for signs in itertools.product((0, 1), repeat=n)]
        plain = [sum(s <= w for s in sums) / 2**n for w in range(n * (n + 1) // 2 + 1)]
        assert list(_cumulative(n)) == pytest.approx(plain)
    assert _cumulative(n)[-1] == pytest.approx(1.0)


def test_the_signed_rank_p_is_scipys() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    for seed in range(10):
        values = np.random.default_rng(seed).normal(0.01, 0.02, 12 + seed)
        for centre in (0.0, 0.01, 0.03):
            oracle = scipy_stats.wilcoxon(values - centre, alternative="greater", method="exact").pvalue
            assert stats.signed_rank_p(list(values), centre) == pytest.approx(oracle)


@given(st.lists(st.floats(-0.2, 0.2), min_size=12, max_size=30), st.sampled_from([0.005, 0.0005]))
@settings(max_examples=40)
def test_the_bounds_are_the_tests_inversion(values: list[float], alpha: float) -> None:
    low, high = bounds_at(values, alpha)
    if low is None or high is None:
        assert 2.0 ** -len(values) > alpha
        return
    assert stats.signed_rank_p(values, low - 1e-9) <= alpha < stats.signed_rank_p(values, low + 1e-9)
    assert stats.signed_rank_p([-v for v in values], -(high + 1e-9)) <= alpha


def test_all_looks_together_spend_no_more_than_alpha() -> None:
    spent = stats.looks(12 * 2**20, 0.01)
    assert [look.blocks for look in spent[:5]] == [12, 24, 48, 96, 192]
    assert 0.0095 < sum(look.alpha for look in spent) <= 0.01
    assert stats.looks(11) == []


def test_between_looks_the_bounds_stand_still_and_at_looks_they_only_tighten() -> None:
    y, _ = block_values(MACHINES[1], 1.02, 1, 100, np.random.default_rng(3))
    values = list(y[0])
    seen = [stats.group_bounds(values[:n]) for n in range(1, 101)]
    assert seen[10] == (None, None)
    for n in range(12, 100):
        if n + 1 not in (12, 24, 48, 96):
            assert seen[n] == seen[n - 1]
        else:
            assert seen[n][0] >= seen[n - 1][0]
            assert seen[n][1] <= seen[n - 1][1]


@pytest.mark.parametrize("noise", MACHINES, ids=lambda noise: noise.name)
def test_the_group_design_keeps_no_more_than_one_in_a_hundred_that_change_nothing(noise: object) -> None:
    y, _ = block_values(noise, 1.01, 1500, 48, np.random.default_rng(11))
    kept = [(stats.group_bounds(list(row))[0] or 0.0) > 1.01 for row in y]
    assert np.mean(kept) <= 0.01


def test_the_group_design_decides_by_the_same_table() -> None:
    y, coin = block_values(MACHINES[0], 1.05, 1, 12, np.random.default_rng(2))
    blocks = records(list(y[0]), list(coin[0]))
    found = stats.evidence(blocks, design="groupseq")
    assert found.lcb is not None
    assert decide("accept", found, Validity(checks="passed"), False).status == "keep"
    early = stats.evidence(blocks[:11], design="groupseq")
    assert (early.lcb, early.ucb) == (None, None)
