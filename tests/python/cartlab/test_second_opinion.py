"""The BCa interval and the drift test against their definitions, and where they say nothing."""

from __future__ import annotations

import itertools
import sys
from statistics import NormalDist

import numpy as np
import pytest

from cartlab import stats
from cartlab.stats import second_opinion

pytest.importorskip("scipy.stats")


def efron(values: list[float], level: float) -> tuple[float, float]:
    """BCa as the paper writes it, with the same resamples as scipy draws."""
    rng = np.random.default_rng(second_opinion.SEED)
    n, normal = len(values), NormalDist()
    v = np.array(values)
    resampled: list[float] = []
    while len(resampled) < second_opinion.RESAMPLES:
        batch = min(100, second_opinion.RESAMPLES - len(resampled))
        resampled += [stats.hodges_lehmann(list(v[row])) for row in rng.integers(0, n, (batch, n))]
    centre = stats.hodges_lehmann(values)
    z0 = normal.inv_cdf((np.mean(np.array(resampled) < centre) + np.mean(np.array(resampled) <= centre)) / 2)
    left_out = np.array([stats.hodges_lehmann(values[:i] + values[i + 1 :]) for i in range(n)])
    d = left_out.mean() - left_out
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)

    def point(share: float) -> float:
        z = z0 + normal.inv_cdf(share)
        return float(np.quantile(resampled, normal.cdf(z0 + z / (1 - a * z))))

    return point((1 - level) / 2), point((1 + level) / 2)


@pytest.mark.parametrize("n", [8, 24])
def test_the_interval_is_the_papers(n: int) -> None:
    values = list(np.random.default_rng(n).standard_t(3, n) * 0.01 + 0.03)
    assert stats.bca_interval(values) == pytest.approx(efron(values, 0.95), abs=1e-9)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(150):
        found = stats.bca_interval(list(rng.normal(0.02, 0.01, 24)))
        assert found is not None
        hits += found[0] <= 0.02 <= found[1]
    assert 0.88 <= hits / 150 <= 0.99


def test_the_same_values_give_the_same_interval_and_shifted_ones_the_shifted() -> None:
    values = list(np.random.default_rng(1).normal(0.0, 0.01, 12))
    found = stats.bca_interval(values)
    assert found is not None and found == stats.bca_interval(values)
    assert stats.bca_interval([v + 0.5 for v in values]) == pytest.approx([x + 0.5 for x in found])


def test_drift_is_spearmans_rank_correlation_with_the_order() -> None:
    values = [0.01, 0.05, 0.02, 0.04, 0.03, 0.06, -0.01]
    ranks = [sorted(values).index(v) for v in values]
    n = len(values)
    plain = 1 - 6 * sum((i - r) ** 2 for i, r in enumerate(ranks)) / (n * (n**2 - 1))
    found = stats.drift(values)
    assert found is not None
    assert found.rho == pytest.approx(plain)
    assert stats.drift([float(i) for i in range(12)]) == pytest.approx((1.0, 0.0))


def test_drifts_p_is_near_the_share_of_all_orders_that_correlate_as_much() -> None:
    values = [0.1, 0.3, 0.2, 0.5, 0.4, 0.6, 0.8]
    found = stats.drift(values)
    assert found is not None
    rhos = [np.corrcoef(range(7), order)[0, 1] for order in itertools.permutations(range(7))]
    assert found.p == pytest.approx(np.mean(np.abs(rhos) >= abs(found.rho) - 1e-12), abs=0.01)


@pytest.mark.parametrize("values", [[], [0.1, 0.2, 0.3], [0.01] * 9], ids=["none", "few", "equal"])
def test_where_nothing_can_be_said_nothing_is_said(values: list[float]) -> None:
    assert stats.bca_interval(values) is None
    assert stats.drift(values) is None


def test_without_scipy_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert stats.bca_interval([0.1, 0.2, 0.4, 0.3]) is None
    assert stats.drift([0.1, 0.2, 0.4, 0.3]) is None


def test_importing_the_statistics_imports_no_scipy() -> None:
    import subprocess

    code = "import sys, cartlab.stats, cartlab.decide; assert 'scipy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
