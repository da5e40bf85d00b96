"""The statistics against their definitions: plain twins, symmetry, Ville's bound, coverage, and reruns."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartlab import stats
from cartlab.model import POLICY, Block
from cartlab.stats.betting import _median_distance, stakes

log_ratios = st.floats(-0.2, 0.2, allow_nan=False)
sequences = st.lists(log_ratios, min_size=1, max_size=30)


def blocks_of(values: list[float], dropped: dict[int, str] | None = None) -> list[Block]:
    why = dropped or {}
    return [Block(i, 0, "BC", (10,), (10,), 1, y, why.get(i)) for i, y in enumerate(values)]


def test_the_block_value_is_the_median_of_log_time_ratios() -> None:
    assert stats.block_value([200, 100, 110], [100, 100, 100]) == pytest.approx(math.log(1.1))
    assert stats.block_value([100], [200]) == pytest.approx(-math.log(2))
    for bad in (([], []), ([1], [1, 2]), ([0], [1])):
        with pytest.raises(ValueError, match="slice"):
            stats.block_value(*bad)


@given(sequences)
def test_hodges_lehmann_is_the_median_of_pairwise_means_and_odd(values: list[float]) -> None:
    n = len(values)
    plain = statistics.median([(values[i] + values[j]) / 2 for i in range(n) for j in range(i, n)])
    assert stats.hodges_lehmann(values) == pytest.approx(plain, abs=1e-15)
    assert stats.hodges_lehmann([-v for v in values]) == pytest.approx(-plain, abs=1e-15)
    shuffled = sorted(values)
    assert stats.hodges_lehmann(shuffled) == stats.hodges_lehmann(values)


def test_hodges_lehmann_agrees_with_scipy_on_signed_rank_symmetry() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(5).normal(0.02, 0.01, 25)
    centre = stats.hodges_lehmann(list(values))
    # At the estimate the signed-rank statistic is as near to its null mean as one pair of observations
    # allows.
    shifted = values - centre
    rank_sum = scipy_stats.rankdata(np.abs(shifted))[shifted > 0].sum()
    assert abs(rank_sum - 25 * 26 / 4) <= 1.0


def test_the_robust_sd_estimates_a_normal_sd_and_ignores_a_burst() -> None:
    values = np.random.default_rng(2).normal(0.0, 0.02, 4000)
    values[:40] += 5.0
    assert stats.robust_sd(list(values)) == pytest.approx(0.02, rel=0.05)
    scipy_stats = pytest.importorskip("scipy.stats")
    oracle = scipy_stats.median_abs_deviation(values, scale=1 / 1.4826)
    assert stats.robust_sd(list(values)) == pytest.approx(oracle)


@given(st.lists(log_ratios, min_size=1, max_size=25), st.lists(log_ratios, min_size=1, max_size=8))
def test_the_fast_median_distance_is_the_plain_one(values: list[float], centres: list[float]) -> None:
    plain = [float(np.median(np.abs(np.array(values) - c))) for c in centres]
    assert _median_distance(sorted(values), np.array(centres)) == pytest.approx(plain, abs=1e-15)


@given(log_ratios, log_ratios, st.one_of(st.none(), st.floats(0.0, 0.1)))
def test_each_stake_is_odd_increasing_and_below_one(a: float, b: float, scale: float | None) -> None:
    low, high = sorted((a, b))
    s = None if scale is None else np.array(scale)
    for at_low, at_high, mirrored in zip(
        stakes(np.array(low), s, POLICY),
        stakes(np.array(high), s, POLICY),
        stakes(np.array(-low), s, POLICY),
        strict=True,
    ):
        assert at_low <= at_high
        assert mirrored == -at_low
        assert abs(at_low) < 1.0


@given(sequences, st.sampled_from([0.99, 1.0, 1.01, 1.03]))
@settings(max_examples=40)
def test_bets_equal_the_plainly_written_wealth(values: list[float], r0: float) -> None:
    bets = stats.Bets(thresholds=[r0])
    for y in values:
        bets.add(y)
    path = stats.wealth_paths([values], r0)[0]
    assert bets.e_value(r0) == pytest.approx(math.exp(path[-1]), rel=1e-9)


@given(st.lists(log_ratios, min_size=8, max_size=24))
@settings(max_examples=30)
def test_mirrored_values_mirror_the_bounds(values: list[float]) -> None:
    up, down = stats.Bets(), stats.Bets()
    for y in values:
        up.add(y)
        down.add(-y)
    # The grid is even in the ratio, not in its logarithm: the mirrored bound lies within one step.
    if up.lcb is not None and down.ucb is not None:
        assert math.log(up.lcb) == pytest.approx(-math.log(down.ucb), abs=0.0025)
    at_one = math.exp(stats.wealth_paths([values], 1.0, mirrored=True)[0][-1])
    assert down.e_value(1.0) == pytest.approx(at_one, rel=1e-9)


def test_the_first_blocks_stake_on_the_sign_alone() -> None:
    logs = np.log1p([[0.4] * 3, [0.7] * 3, [0.95] * 3, [0.66] * 3, [0.95] * 3]).cumsum(axis=1)
    expected = np.log(np.exp(logs).mean(axis=0))
    path = stats.wealth_paths([[0.001, 0.7, 0.02]], 1.0)[0]
    assert path == pytest.approx(expected)


def test_the_fourth_block_is_scaled_by_the_median_of_the_first_three() -> None:
    y = [0.01, -0.03, 0.02, 0.05]
    h = stakes(np.array(0.05), np.array(0.02), POLICY)
    assert h[3:] == pytest.approx([0.99 * math.tanh(0.8 * 2.5), 0.99 * math.tanh(1.8 * 2.5)])
    logs = np.zeros(5)
    for value in y[:3]:
        logs += np.log1p(np.array(stakes(np.array(value), None, POLICY)))
    logs += np.log1p(np.array(h))
    assert stats.wealth_paths([y], 1.0)[0][3] == pytest.approx(math.log(np.exp(logs).mean()))


@pytest.mark.filterwarnings("error")
def test_effects_of_any_size_overflow_nowhere_and_stake_at_most_the_cap() -> None:
    """A scale next to nothing under a whole distance, and values at the ends of what a double holds."""
    x = np.array([5.0, -5.0, 1e308, 0.0])
    for scale in (5e-324, 1e-308, 0.0):
        bets = stakes(x, np.full(4, scale), POLICY)[3:]
        assert [list(h) for h in bets] == [[0.99, -0.99, 0.99, 0.0]] * 2
    for values in ([0.0, 0.0, 0.0, 5.0, 1e-320, -5.0] * 3, [1e308, 1e308, -1e308, -1e308] * 3):
        bets_of = stats.Bets()
        for y in values:
            bets_of.add(y)
        assert math.isfinite(bets_of.e_value(1.0))
    assert _median_distance([1e308, 1e308], np.zeros(1)) == [1e308]


def test_no_bound_from_fewer_than_eight_blocks_and_one_from_eight() -> None:
    bets = stats.Bets()
    for n in range(1, 9):
        bets.add(0.05)
        assert (bets.lcb is None) == (n < 8)
    assert bets.lcb == 1.051
    assert bets.ucb is not None
    assert bets.ucb == 1.052


def test_a_value_on_every_block_equal_to_r0_wins_nothing() -> None:
    bets = stats.Bets(thresholds=[1.0])
    for _ in range(20):
        bets.add(0.0)
    assert bets.e_value(1.0) == 1.0
    assert bets.lcb == 0.999
    assert bets.ucb == 1.001


@given(st.lists(log_ratios, min_size=8, max_size=30), st.sampled_from([0.98, 1.0, 1.01, 1.03]))
@settings(max_examples=30)
def test_a_lower_bound_means_that_the_wealth_was_once_a_hundred(values: list[float], r0: float) -> None:
    bets = stats.Bets(thresholds=[r0])
    for y in values:
        bets.add(y)
    once = stats.wealth_paths([values], r0)[0].max() >= math.log(100.0)
    if bets.lcb is not None and bets.lcb >= r0:
        assert once
    # The other way round all lower grid values must be rejected as well, which a bound needs and a test
    # does not.
    if not once:
        assert bets.lcb is None or bets.lcb < r0


def test_a_ratio_that_is_not_on_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold"):
        stats.Bets().e_value(1.01234)
    assert stats.Bets(thresholds=[1.01234]).e_value(1.01234) == 1.0


@given(st.lists(log_ratios, min_size=8, max_size=30))
@settings(max_examples=30)
def test_a_smaller_alpha_never_tightens_a_bound(values: list[float]) -> None:
    strict, loose = stats.Bets(alpha=0.001), stats.Bets(alpha=0.05)
    for y in values:
        strict.add(y)
        loose.add(y)
    assert (strict.lcb or 0.0) <= (loose.lcb or 0.0)
    assert (strict.ucb or 9.0) >= (loose.ucb or 9.0)


@given(st.lists(log_ratios, min_size=9, max_size=30))
@settings(max_examples=30)
def test_a_bound_only_ever_tightens(values: list[float]) -> None:
    bets = stats.Bets()
    lcb, ucb = 0.0, math.inf
    for y in values:
        bets.add(y)
        now = (bets.lcb or 0.0, bets.ucb or math.inf)
        assert now[0] >= lcb
        assert now[1] <= ucb
        lcb, ucb = now


@given(st.lists(log_ratios, min_size=2, max_size=24), st.data())
@settings(max_examples=30)
def test_a_run_split_over_reruns_gives_the_same_numbers(values: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values)))
    whole = stats.evidence(blocks_of(values), floor=1.012)
    split = stats.evidence(blocks_of(values[:cut]) + blocks_of(values[cut:]), floor=1.012, pooled=cut)
    assert split.pooled == cut
    assert {**split.to_json(), "pooled": 0} == whole.to_json()


def test_the_path_ends_in_the_evidence() -> None:
    values = list(np.random.default_rng(8).normal(0.02, 0.01, 30))
    blocks = blocks_of(values, {3: "busy: steal 20 %", 9: "clock"})
    last = list(stats.evidence_path(blocks, pooled=5))[-1]
    full = stats.evidence(blocks, pooled=5)
    assert {**full.to_json(), "resolvable": None, "blocks_needed": None} == last.to_json()
    assert (full.used, full.pooled, full.dropped) == (28, 4, 1)


def test_a_forced_run_uses_what_the_contention_rule_dropped_and_nothing_else() -> None:
    blocks = blocks_of([0.01] * 10, {3: "busy: steal 20 %", 9: "clock"})
    assert stats.evidence(blocks).used == 8
    assert stats.evidence(blocks, forced=True).used == 9


def test_no_block_is_no_estimate() -> None:
    nothing = stats.evidence([])
    assert (nothing.used, nothing.hl, nothing.lcb, nothing.ucb, nothing.e_value) == (
        0,
        None,
        None,
        None,
        None,
    )


def test_a_block_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        stats.Bets().add(math.nan)


@pytest.mark.parametrize("noise", ["normal", "t2", "sign"])
def test_ville_wealth_reaches_a_hundred_in_at_most_one_run_of_a_hundred(noise: str) -> None:
    rng = np.random.default_rng(20)
    shape = (8000, 96)
    e = {
        "normal": lambda: rng.normal(0.0, 0.01, shape),
        "t2": lambda: rng.standard_t(2, shape) * 0.01,
        "sign": lambda: rng.choice([-0.01, 0.01], shape),
    }[noise]()
    for mirrored in (False, True):
        ever = (stats.wealth_paths(e, 1.0, mirrored).max(axis=1) >= math.log(100)).mean()
        assert 0.0 < ever <= 0.01


def test_the_forecast_of_blocks_is_within_a_factor_of_two_of_the_median_run() -> None:
    rng = np.random.default_rng(4)
    for sd, effect in ((0.01, 1.02), (0.02, 1.03), (0.02, 1.05)):
        e = rng.normal(0.0, sd, (400, 400))
        path = stats.wealth_paths(e + math.log(effect), 1.01) >= math.log(100)
        took = float(np.median(np.where(path.any(axis=1), path.argmax(axis=1) + 1, 400)))
        forecast = stats.blocks_to_show(math.log(effect / 1.01), list(e[0]))
        assert forecast is not None
        assert took / 2 <= forecast <= took * 2


def test_the_smallest_effect_shown_shrinks_with_blocks_and_needs_just_those_blocks() -> None:
    noise = list(np.random.default_rng(6).normal(0.0, 0.02, 60))
    effects = [stats.smallest_shown(n, noise, 1.01) for n in (8, 12, 24, 48, 192)]
    assert effects[-1] is not None
    assert effects[-1] > 1.01
    known = [e for e in effects if e is not None]
    assert known == sorted(known, reverse=True)
    needed = stats.blocks_to_show(math.log(effects[-1] / 1.01), noise)
    assert needed is not None
    assert needed <= 192
    assert stats.smallest_shown(7, noise, 1.01) is None
    assert stats.blocks_to_show(0.0, noise) is None
