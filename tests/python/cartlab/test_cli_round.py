"""A whole round with the real commands: opened, screened, stacked, confirmed, complete; and what it refuses
on the way.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_bench import Bench, make_bench

from cartlab.verify import verify_root

WHY = ("--mechanism", "half the work", "--falsify", "no change in instructions")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


def opened(bench: Bench) -> str:
    assert bench.run("calibrate", "HEAD", "--max-blocks", "2").code == 0
    answer = bench.run("round", "open", "--goal", "half the time", "--json")
    assert answer.code == 0, answer.err
    return str(answer.json["details"]["baseline_commit"])


def test_a_round_runs_from_open_to_complete_and_verifies(bench: Bench) -> None:
    base = opened(bench)
    assert bench.run("next", "--json").json["details"]["round"] == "open"
    bench.project.commit("half", work=50)
    assert bench.run("screen", base, "HEAD", *WHY).code == 0
    assert bench.run("next", "--json").json["details"]["actions"][0]["action"] == "accept-stack"
    early = bench.run("round", "confirm", "--json")
    assert early.code == 23
    stacked = bench.run("accept-stack", base, "HEAD", *WHY, "--json")
    assert stacked.json["status"] == "keep_stack", stacked.json["reasons"]
    assert "round confirm" in stacked.json["report"]["next"]
    done = bench.run("round", "confirm", *WHY, "--json")
    assert (done.code, done.json["details"]["checks"]) == (0, "passed"), done.json["reasons"]
    current = json.loads((bench.root / "current.json").read_text())
    assert current["state"] == "complete" and current["best_estimate"] > 1.1
    assert "half the time" in (bench.root / "scratchpad.md").read_text()
    actions = bench.run("next", "--json").json["details"]["actions"]
    assert [one["action"] for one in actions] == ["stop", "calibrate"]
    assert bench.run("calibrate", "HEAD", "--max-blocks", "2").code == 0
    actions = bench.run("next", "--json").json["details"]["actions"]
    assert [one["action"] for one in actions] == ["stop", "round open"]
    report = verify_root(bench.root)
    assert report.holds, report.findings


def test_a_round_needs_a_calibrated_head_and_is_alone(bench: Bench) -> None:
    answer = bench.run("round", "open", "--json")
    assert answer.code == 23 and "calibrated" in answer.json["reasons"][0]
    opened(bench)
    assert bench.run("round", "open").code == 23
    assert bench.run("round", "abandon", "--json").code == 2
    assert bench.run("round", "abandon", "--reason", "other plans").code == 0
    assert bench.run("round", "open").code == 0


def test_an_open_round_refuses_another_baseline(bench: Bench) -> None:
    bench.project.commit("first", work=80)
    opened(bench)
    bench.project.commit("second", work=50)
    bench.project.commit("third", work=40)
    answer = bench.run("accept", "HEAD~1", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (23, "refused")
    assert not [event for event in bench.events() if event["attempt"] and "-accept-" in event["attempt"]]


def test_two_candidates_that_die_alike_pause_the_round_until_it_is_resumed(bench: Bench) -> None:
    base = opened(bench)
    for name in ("value ^ 1", "value ^ 2"):
        bench.project.commit(name, observe=name)
        assert bench.run("screen", base, "HEAD").code == 12
    assert bench.run("screen", base, "HEAD").code == 23
    assert bench.run("next").report["next"].endswith("round resume --reason TEXT")
    assert bench.run("round", "resume", "--reason", "understood").code == 0
    assert bench.run("next", "--json").json["details"]["round"] != "paused"
