"""LC: a campaign's experiments, verdicts and generations."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_campaign
from small_campaign import rate
from small_experiment import git

from cartlab.loops import manifest


@pytest.fixture(autouse=True)
def stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_lc3_lc16_lc29_a_generation_keeps_its_best_and_leaves_the_checkout_alone(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    before = manifest.digest(manifest.scan(one.made.repo))
    head = git(one.made.repo, "rev-parse", "HEAD")
    campaign = one.run([[rate(0.2, 0.19), rate(0.5, 0.1), rate(0.3)], [rate(0.4)]], generations=2)
    assert one.statuses() == ["discard", "keep", "discard", "discard"]
    assert [name for name, _ in campaign.champions] == ["2"]
    best = campaign.experiment("2").decision
    assert (best["value"], best["delta"], best["verified"]) == (0.5, 0.49, "yes")
    assert "Mechanism refuted because the delta is 4.9 times" in best["audit"]
    # LC3: a branch a generation, the champion's one commit on it, and a commit for every experiment.
    assert git(one.made.repo, "log", "--format=%s", f"{head}..autoresearch/slope-gen0").splitlines() == [
        "autoresearch: experiment 2, rate=0.5 (rate 0.5)"
    ]
    assert git(one.made.repo, "rev-parse", "autoresearch/slope-gen1") == campaign.goal.accepted
    assert len(git(one.made.repo, "for-each-ref", "refs/ar/attempts").splitlines()) == 4
    assert manifest.digest(manifest.scan(one.made.repo)) == before
    assert git(one.made.repo, "rev-parse", "HEAD") == head
    assert not list((one.made.root / "tmp/loops").glob("*/"))
    assert one.made.cartlab("verify") == 0
