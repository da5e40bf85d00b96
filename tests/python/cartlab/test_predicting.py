"""`plan`: its forecasts against simulated runs, where its noise comes from, and the command."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_bench import Bench, make_bench
from ledger_runs import WORKLOAD, a_plan, record

from cartlab.ledger import Ledger
from cartlab.model import POLICY, PairKey, Validity
from cartlab.pipeline.predicting import noise_here
from cartlab.simulate import MACHINES, Noise, accept_twin, block_values, foresee
from cartlab.simulate.runs import reached
from cartlab.stats.planner import residuals_of

each_machine = pytest.mark.parametrize("noise", MACHINES, ids=lambda noise: noise.name)


@each_machine
@pytest.mark.parametrize("effect", [1.02, 1.03, 1.05])
def test_from_one_calibrations_blocks_the_forecast_is_within_a_factor_of_two(
    noise: Noise, effect: float
) -> None:
    runs, _ = block_values(noise, effect, 300, 192, np.random.default_rng(5))
    passed = reached(runs, POLICY.guard)
    proven = float(np.median(np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, math.inf)))
    stopped = float(np.median([end.blocks for end in accept_twin(runs[:, :48])]))
    for seed in range(2):
        same, _ = block_values(noise, 1.0, 1, 24, np.random.default_rng([9, seed]))
        rows = {row.tier: row for row in foresee(effect, residuals_of(list(same[0])))}
        found = rows["accept --full"].proven
        assert found is not None and proven / 2 <= found <= proven * 2
        assert stopped / 2 <= rows["accept"].blocks <= stopped * 2


@each_machine
def test_the_chances_are_those_of_simulated_runs(noise: Noise) -> None:
    many, _ = block_values(noise, 1.0, 1, 400, np.random.default_rng(6))
    noisy = residuals_of(list(many[0]))
    for effect in (1.0, 1.02, 1.03):
        runs, _ = block_values(noise, effect, 400, 48, np.random.default_rng(7))
        kept = np.mean([end.status.startswith("keep") for end in accept_twin(runs)])
        rows = {row.tier: row for row in foresee(effect, noisy)}
        assert rows["accept"].passes == pytest.approx(kept, abs=0.12)
    assert {row.tier: row for row in foresee(1.10, noisy)}["round confirm"].passes == pytest.approx(
        0.5, abs=0.12
    )


def test_a_floor_and_a_target_raise_what_is_asked() -> None:
    noisy = residuals_of(list(np.random.default_rng(2).normal(0.0, 0.003, 40)))
    free = {row.tier: row for row in foresee(1.02, noisy)}
    floored = {row.tier: row for row in foresee(1.02, noisy, floor=1.03)}
    assert (free["accept"].passes, floored["accept"].passes) == (1.0, 0.0)
    assert (floored["accept"].smallest or 0.0) > 1.03 > (free["accept"].smallest or 9.0)
    assert {row.tier: row for row in foresee(1.12, noisy)}["round confirm"].passes == 1.0
    assert {row.tier: row for row in foresee(1.12, noisy, target=1.2)}["round confirm"].passes == 0.0


def test_earlier_blocks_of_the_pair_are_continued() -> None:
    noisy = residuals_of(list(np.random.default_rng(2).normal(0.0, 0.02, 40)))
    afresh, after = (
        {row.tier: row for row in foresee(1.05, noisy, earlier=earlier)}["accept"]
        for earlier in ([], [0.05, 0.04, 0.06, 0.05, 0.045, 0.055])
    )
    assert 0 < after.blocks < afresh.blocks
    decided = {row.tier: row for row in foresee(1.05, noisy, earlier=[0.05] * 12)}["accept"]
    assert (decided.blocks, decided.proven, decided.passes) == (0.0, 0.0, 1.0)


def test_the_noise_is_the_calibrations_then_the_pairs_then_a_stated_default(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.init()
    pair = a_plan("x").pair

    def source(unit: str = "block", key: PairKey | None = pair) -> str:
        return noise_here(ledger.attempts().values(), "x86-2", WORKLOAD, unit, key).source

    assert "default" in source()
    record(ledger, a_plan("s1", "screen"), [0.01, 0.02, 0.0, 0.01, 0.03, 0.01], seconds={"blocks": 12.0})
    found = noise_here(ledger.attempts().values(), "x86-2", WORKLOAD, "block", pair)
    assert found.source == "6 blocks of the pair's own blocks" and found.seconds == 2.0
    assert "default" in source(unit="process") and "default" in source(key=None)
    values = list(np.random.default_rng(1).normal(0.0, 0.01, 24))
    for name, changes in (
        ("c1", {"host_class": "other"}),
        ("c2", {"workload": dataclasses.replace(WORKLOAD, metric="other")}),
        ("c3", {"recorded": False}),
        ("c4", {"policy": "legacy"}),
    ):
        record(ledger, a_plan(name, "calibrate", cand="main", **changes), values)
        assert "pair's own" in source()
    failed = Validity(problem="crashed", reason="it died")
    record(ledger, a_plan("c5", "calibrate", cand="main"), values[:6], failed)
    assert "pair's own" in source()
    record(ledger, a_plan("c6", "calibrate", cand="main"), values)
    assert source() == "24 blocks of calibration c6"
    assert found.sd != noise_here(ledger.attempts().values(), "x86-2", WORKLOAD, "block", pair).sd


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    made.project.commit("faster", work=50)
    return made


def test_the_command_plans_without_a_root_and_from_what_was_measured(bench: Bench) -> None:
    first = bench.run("plan", "--effect", "1.03", "--json")
    assert (first.code, first.json["details"]["floor"]) == (0, None), first.err
    assert "default" in first.json["details"]["noise"]["source"] and not bench.root.exists()
    tiers = [row["tier"] for row in first.json["details"]["forecasts"]]
    assert tiers == ["screen", "accept", "accept --full", "round confirm"]
    assert bench.run("screen", "HEAD~1", "HEAD").code == 0
    before = (bench.root / "events.jsonl").read_bytes()
    second = bench.run("plan", "HEAD~1", "HEAD", "--json")
    found = second.json["details"]
    assert "pair's own" in found["noise"]["source"] and found["earlier_blocks"] == 6
    # The pair's own estimate is taken for true: half the work.
    assert all(row["effect"] > 1.3 for row in found["forecasts"])
    assert found["forecasts"][1]["blocks"] < 8
    assert (bench.root / "events.jsonl").read_bytes() == before
    assert bench.run("calibrate", "HEAD", "--max-blocks", "4").code == 0
    third = bench.run("plan")
    assert "blocks of calibration" in third.out and "true ratio" in third.out
    assert third.report["decision"] == "defer"


@pytest.mark.parametrize("words", [["--effect", "3"], ["--effect", "nan"], ["HEAD"], ["--effect", "-1"]])
def test_what_is_no_ratio_or_no_pair_is_refused(bench: Bench, words: list[str]) -> None:
    answer = bench.run("plan", *words, "--json")
    assert (answer.code, answer.json["status"]) == (2, "refused")
    assert json.dumps(answer.json["reasons"]).count("expected")


def test_a_bad_ref_and_a_damaged_ledger_are_named(bench: Bench) -> None:
    assert bench.run("plan", "HEAD", "nowhere").code == 20
    bench.root.mkdir()
    (bench.root / "events.jsonl").write_text("no event\n")
    assert bench.run("plan").code == 22
