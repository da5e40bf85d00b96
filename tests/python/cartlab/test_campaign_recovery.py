"""LC25: a campaign that was killed between any two events goes on, and ends as if it had not been."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import small_experiment
from small_campaign import SmallCampaign, rate
from small_experiment import Experiment, git
from test_loops_recovery import DIED, DyingAfter

from cartlab import disk
from cartlab.ledger import Ledger
from cartlab.loops import manifest
from cartlab.loops.campaign import driver, records

IDEAS = [[rate(0.3), rate(0.2)], []]


def opened(made: Experiment) -> SmallCampaign:
    os.chdir(made.repo)
    return SmallCampaign(made)


def go_on(one: SmallCampaign) -> None:
    one.run(IDEAS, generations=2 - closed(one))


def closed(one: SmallCampaign) -> int:
    return len([gen for gen in one.campaign.generations if gen.closed])


def outcome(campaign: records.Campaign) -> tuple[object, ...]:
    return (
        [(one.exp_id, one.status, one.verified, one.value, one.delta) for one in campaign.experiments],
        campaign.champions,
        [(one.number, one.closed, one.champion) for one in campaign.generations],
        campaign.stagnation,
    )


def died(one: SmallCampaign, number: int) -> bool:
    """Run it in a child that ends once it has stored its n-th event; False where it ended by itself."""
    child = os.fork()
    if child == 0:
        disk.use(DyingAfter(number))
        one.ledger = one.desk.ledger = Ledger.open(one.made.root)
        go_on(one)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, DIED)
    return code == DIED


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the ledger's descriptor in /proc")
def test_lc25_a_campaign_killed_between_any_two_events_ends_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver, "BASELINE_RUNS", 1)
    whole = opened(small_experiment.make_bare(tmp_path / "whole"))
    start = len(whole.ledger.events())
    go_on(whole)
    expected = outcome(whole.campaign)
    events = len(whole.ledger.events()) - start
    assert events > 30
    for number in range(1, events + 1):
        place = tmp_path / str(number)
        one = opened(small_experiment.make_bare(place))
        before = manifest.scan(one.made.repo)
        assert died(one, number), f"the run wrote fewer than {number} events"
        assert not [e for e in one.campaign.experiments if e.status == "running" and e.decision]
        if closed(one) < 2:
            go_on(one)
        assert outcome(one.campaign) == expected, number
        tip = git(one.made.repo, "rev-parse", "autoresearch/slope-gen0")
        assert tip == one.campaign.goal.accepted
        assert git(one.made.repo.parent / "autoresearch-slope", "rev-parse", "HEAD") == tip
        assert one.made.cartlab("verify") == 0, number
        assert manifest.scan(one.made.repo) == before
        assert not list((one.made.root / "tmp/loops").glob("*/"))
        os.chdir(tmp_path)
        shutil.rmtree(place)
