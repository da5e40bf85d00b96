"""Further workloads beside the default one: when they are measured, and what they do to a win."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_project import CONFIG
from quick_desk import Desk, make_desk, open_round

from cartlab.verify import verify_root

FURTHER = """
[workload.rollout]
kind = "slices"
command = "harness/workload.py"
metric = "env_steps_per_sec"
verify = 20
guards = true
params = { lanes = 2, work = 2000 }

[workload.small]
kind = "slices"
command = "harness/workload.py"
metric = "env_steps_per_sec"
verify = 20
params = { lanes = 1, work = 2000 }

[checks]"""
GAINS = {"fake": 0.3, "rollout": 0.2, "small": 0.1}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    made = make_desk(tmp_path, monkeypatch, capsys, CONFIG.replace("\n[checks]", FURTHER))
    made.gain = lambda plan: 0.0 if plan.base == plan.cand else GAINS[plan.workload.name]
    return made


def measured(desk: Desk, tier: str = "accept") -> list[tuple[str, bool]]:
    """(workload, is it part of another run) of the attempts of a tier, in order."""
    bodies = [e["body"] for e in desk.events("attempt_started") if e["body"]["tier"] == tier]
    return [(body["workload"]["name"], body["part_of"] is not None) for body in bodies]


def test_a_win_is_shown_on_the_guards_too_and_full_measures_every_workload(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    answer = desk.run("accept", base, "HEAD", "--json")
    assert (answer.json["status"], answer.json["ratio"] > 1.3) == ("keep", True)
    assert measured(desk) == [("fake", False), ("rollout", True)]
    assert desk.run("accept", base, "HEAD", "--json").json["details"]["remembered"] is True
    full = desk.run("accept", base, "HEAD", "--full")
    assert full.code == 0 and "workload small: keep" in full.out and "workload rollout: keep" in full.out
    assert measured(desk)[2:] == [("fake", False), ("rollout", True), ("small", True)]
    done = desk.run("round", "confirm", "--json")
    assert done.json["details"]["round"]["state"] == "complete"
    assert verify_root(desk.root).holds


@pytest.mark.parametrize("tier", ["accept", "accept-stack"])
def test_a_win_that_a_guard_does_not_share_is_benchmark_only_and_completes_no_round(
    desk: Desk, tier: str
) -> None:
    desk.gain = lambda plan: 0.3 if plan.workload.name == "fake" and plan.base != plan.cand else -0.01
    base = open_round(desk)
    cand = desk.commit("half", work=50)
    answer = desk.run(tier, base, "HEAD")
    assert answer.code == 0 and "[benchmark-only]" in answer.out
    (decision,) = [
        e["body"]
        for e in desk.events("decision")
        if e["body"]["tier"] == tier and "benchmark-only" in e["body"]["marks"]
    ]
    assert decision["evidence"]["hl"] > 1.3
    refused = desk.run("round", "confirm", cand)
    assert refused.code == 23 and "benchmark-only" in refused.err + refused.out
    assert desk.state() == "stacked"
    assert "round confirm" not in desk.run("next").out
    assert verify_root(desk.root).holds


def test_a_verdict_that_hides_what_a_guard_says_does_not_verify(desk: Desk) -> None:
    from ledger_runs import forge

    desk.gain = lambda plan: 0.3 if plan.workload.name == "fake" and plan.base != plan.cand else -0.01
    base = open_round(desk)
    desk.commit("half", work=50)
    assert desk.run("accept", base, "HEAD").code == 0

    def hide(events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["type"] == "decision":
                event["body"]["marks"] = []

    forge(desk.root, hide)
    assert any("guard workload" in one.what for one in verify_root(desk.root).findings)


def test_what_loses_is_not_measured_on_the_guards_and_a_guard_is_no_candidate_of_the_round(
    desk: Desk,
) -> None:
    base = open_round(desk)
    desk.gain = lambda plan: -0.05
    cand = desk.commit("slower", work=120)
    assert desk.run("accept", base, cand).code == 10
    assert measured(desk) == [("fake", False)]
    desk.gain = lambda plan: {"fake": 0.0, "rollout": 0.3, "small": 0.3}[plan.workload.name]
    other = desk.commit("elsewhere", work=119)
    assert desk.run("accept", base, other, "--full").code in (10, 11)
    assert measured(desk)[1:] == [("fake", False), ("rollout", True), ("small", True)]
    shown = desk.run("round", "show", "--json").json["details"]
    assert (shown["kept"], shown["best_estimate"]) == ([], None)
    assert desk.run("status", "--json").json["details"]["latest_accepted"] is None


def test_other_work_on_a_further_workload_is_changed_behaviour(desk: Desk) -> None:
    desk.equal = lambda plan: plan.workload.name != "rollout"
    base = open_round(desk)
    desk.commit("half", work=50)
    answer = desk.run("accept", base, "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (12, "behaviour_changed")
    assert "on workload rollout" in answer.json["reasons"][0]


def test_interrupted_on_a_further_workload_the_run_goes_on_later(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)

    def stop(plan: Any, block: Any) -> Any:
        if plan.workload.name == "rollout":
            raise KeyboardInterrupt
        return block

    desk.change = stop
    assert desk.run("accept", base, "HEAD").code == 130
    desk.change = lambda plan, block: block
    answer = desk.run("accept", base, "HEAD", "--json")
    assert answer.json["status"] == "keep" and answer.json["blocks"]["pooled"] > 0
    assert verify_root(desk.root).holds
