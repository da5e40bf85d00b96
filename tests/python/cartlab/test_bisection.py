"""The search of `bisect` alone: its halves, its skips, and how often its answers are wrong."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from cartlab import bisection
from cartlab.bisection import CHANGED, ERROR, UNCHANGED, Search, answer, halfway, more_blocks
from cartlab.model import Evidence
from cartlab.simulate import MACHINES, block_values, records
from cartlab.stats import evidence


def run(search: Search, culprit: int, silent: frozenset[int] = frozenset()) -> list[int]:
    """Ask a truthful oracle; returns what was asked."""
    asked = []
    while (at := search.next()) is not None:
        asked.append(at)
        if at in silent:
            search.skip(at, "does not build")
        else:
            search.learn(at, CHANGED if at >= culprit else UNCHANGED)
    return asked


@pytest.mark.parametrize("last", [1, 2, 3, 5, 8, 16, 33])
def test_every_culprit_is_found_in_as_many_questions_as_halving_takes(last: int) -> None:
    for culprit in range(1, last + 1):
        search = Search(last)
        most = search.questions
        asked = run(search, culprit)
        assert search.suspects == [culprit]
        assert len(asked) <= most == math.ceil(math.log2(last))


def test_commits_that_tell_nothing_leave_exactly_the_range_that_no_answer_can_narrow() -> None:
    for culprit in range(1, 8):
        for silent in combinations(range(1, 7), 2):
            search = Search(7)
            run(search, culprit, frozenset(silent))
            # Everything that agrees with the answers of all commits that do tell.
            heard = [at for at in range(8) if at not in silent]
            low = max(at for at in heard if at < culprit)
            high = min(at for at in heard if at >= culprit)
            assert search.suspects == list(range(low + 1, high + 1))


def test_the_error_that_is_spent_never_exceeds_what_was_granted() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        search = Search(int(rng.integers(1, 40)))
        spent = search.spend(beside=1)
        while (at := search.next()) is not None:
            share = search.spend()
            told = rng.choice([CHANGED, UNCHANGED, "skip", "silent"])
            if told in (CHANGED, UNCHANGED):
                search.learn(at, str(told))
            else:
                search.skip(at, "why")
                if told == "silent":
                    search.refund(share)
                    share = 0.0
            assert share >= 0.0
            spent += share
        assert spent <= ERROR * (1 + 1e-12)
        assert math.isclose(spent + search.error, ERROR)


def bounds(lcb: float | None, ucb: float | None) -> Evidence:
    return Evidence(8, 0, 0, 0.95, lcb, ucb, 1.0, 1.01, 1.0, 0.01, 0)


@pytest.mark.parametrize(
    ("lcb", "ucb", "slower", "faster"),
    [
        (None, None, None, None),
        (0.90, 0.94, CHANGED, UNCHANGED),
        (0.90, 0.95, CHANGED, UNCHANGED),
        (None, 0.94, CHANGED, UNCHANGED),
        (0.95, None, UNCHANGED, CHANGED),
        (0.96, 0.99, UNCHANGED, CHANGED),
        (0.90, 0.99, None, None),
        (0.97, 0.93, None, None),
    ],
)
def test_only_a_bound_beyond_the_threshold_answers(
    lcb: float | None, ucb: float | None, slower: str | None, faster: str | None
) -> None:
    assert answer(bounds(lcb, ucb), 0.95, faster=False) == slower
    assert answer(bounds(lcb, ucb), 0.95, faster=True) == faster
    assert answer(None, 0.95, faster=False) is None


def test_the_default_threshold_is_equally_far_from_nothing_and_from_the_whole() -> None:
    for ratio in (0.5, 0.9, 1.2):
        assert math.isclose(math.log(halfway(ratio)), math.log(ratio) / 2, abs_tol=1e-5)


def test_portions_follow_the_forecast_within_limits() -> None:
    assert more_blocks(0, None, 0.95, [], 0.01) == 8
    assert more_blocks(7, 0.9, 0.95, [], 0.01) == 2
    quiet = [0.001, -0.001, 0.0005, -0.0005]
    assert more_blocks(8, 0.90, 0.95, quiet, 0.001) <= 8
    assert more_blocks(8, 0.9499, 0.95, [0.05, -0.05], 0.01) == bisection.MOST


@pytest.mark.parametrize("machine", MACHINES[:2], ids=lambda noise: noise.name)
def test_sixteen_noisy_commits_give_the_culprit_as_often_as_promised(machine: object) -> None:
    """One of 16 is 10 % slower; every question stops by its bounds. The granted error is 5 %."""
    trials, wrong, undecided, blocks = 60, 0, 0, 0
    rng = np.random.default_rng(11)
    for trial in range(trials):
        culprit = 1 + trial % 16
        search = Search(16)
        threshold = halfway(0.9)
        search.spend(beside=1)
        while (at := search.next()) is not None:
            alpha = search.spend()
            y, coin = block_values(machine, 0.9 if at >= culprit else 1.0, 1, 48, rng)  # type: ignore[arg-type]
            measured = records(y[0], coin[0])
            for count in range(8, 49):
                told = answer(
                    evidence(measured[:count], alpha=alpha, thresholds=(threshold,)), threshold, False
                )
                if told:
                    break
            blocks += count
            if told:
                search.learn(at, told)
            else:
                search.skip(at, "undecided")
        wrong += culprit not in search.suspects
        undecided += len(search.suspects) > 1
    # Nothing is expected to go wrong at all: the bets are conservative.
    assert wrong <= ERROR * trials
    assert undecided <= trials // 10
    assert blocks / trials < 4 * 30
