"""Null runs: what the loops' policies keep where there is nothing to keep."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cartlab.cli import main
from cartlab.loops import nullruns


@pytest.mark.parametrize("noise", nullruns.NOISES)
def test_la11_paired_and_verified_keep_no_more_than_they_claim(noise: str) -> None:
    rows = {row.policy: row for row in nullruns.table(200, 3, attempts=5, noises=[noise])}
    paired, verified, greedy = rows["paired"], rows["verified"], rows["greedy"]
    assert paired.holds and paired.decision <= 0.01
    assert verified.holds is (None if noise == "drift" else True)
    # The document's rule keeps luck in most sessions, which is why nothing is claimed for it.
    assert greedy.holds is None and greedy.any > 0.5 > paired.any
    assert verified.keeps < greedy.keeps


def test_the_means_are_those_of_records() -> None:
    assert nullruns.greedy_keeps(1) == Fraction(1, 2)
    assert nullruns.greedy_keeps(3) == Fraction(1, 2) + Fraction(1, 3) + Fraction(1, 4)
    assert nullruns.verified_keeps(1) == Fraction(1, 3)
    # Two attempts by hand: q^2 (1 + q^2/3) + (1 - q^2) q^2 = 2 q^2 - 2/3 q^4, averaged over q.
    assert nullruns.verified_keeps(2) == Fraction(2, 3) - Fraction(2, 15)
    rng = np.random.default_rng(5)
    for policy, mean in (("greedy", nullruns.greedy_keeps), ("verified", nullruns.verified_keeps)):
        kept = [sum(nullruns.session(policy, "normal", rng, 10, 3)[0]) for _ in range(4000)]
        assert abs(np.mean(kept) - float(mean(10))) < 4 * np.std(kept) / len(kept) ** 0.5


def test_the_policies_of_the_table_are_the_loops_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that keeps everything is seen as such: the table judges what the loops would do."""
    from cartlab.loops import policies

    monkeypatch.setattr(policies, "verified", lambda *_: policies.Decided("keep", "", {}))
    rows = {row.policy: row for row in nullruns.table(100, 1, attempts=2, noises=["normal"])}
    assert rows["verified"].holds is False and rows["verified"].decision == 1.0


@pytest.mark.parametrize("gain", [0.0, 0.02, -0.02])
def test_the_short_way_of_paired_is_the_long_way(gain: float) -> None:
    from cartlab.loops import policies

    effects = list(np.random.default_rng(7).normal(gain, 0.02, policies.PAIRS))
    at = 0
    while (found := policies.paired(effects[: (at := at + 1)])).status is None:
        continue
    assert nullruns.decided(effects) == (found.status, at)


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--loops", "--trials", "100", "--attempts", "2", "--json"]
    assert main([*words, "--autoresearch-root", str(tmp_path / "root")], repository=Path.cwd()) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["details"]["rows"]) == 12 and told["reasons"] == []
    assert {row["policy"] for row in told["details"]["rows"]} == {"greedy", "repeat-k", "paired", "verified"}
    assert main(["simulate", "--loops", "--machine", "quiet"], repository=Path.cwd()) == 2
