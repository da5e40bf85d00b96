"""The shared values: round trips, hashes, and the two tables against the contract."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest

from cartlab import errors, model, words


def a_workload(**changes: object) -> model.Workload:
    base = model.Workload(
        name="nes-batch",
        kind="slices",
        command="scripts/workloads/nes_batch.py",
        metric="env_steps_per_sec",
        direction="higher",
        unit="steps/s",
        verify_steps=64,
        params={"lanes": 16, "rom_sha256": "ab", "rom_path": "/here/a.nes", "steps": 10},
    )
    return dataclasses.replace(base, **changes)


def a_plan() -> model.Plan:
    ref = model.Ref("HEAD", "1" * 40, "2" * 40)
    return model.Plan(
        attempt_id="a1",
        command="accept",
        tier="accept",
        benchmark_tier="local_acceptance",
        base=ref,
        cand=dataclasses.replace(ref, name="x", tree="3" * 40),
        workload=a_workload(),
        policy="anytime",
        unit="block",
        design="betting",
        max_blocks=48,
        max_seconds=None,
        slices=50,
        slice_ms=20.0,
        harness_hash="h",
        policy_hash="p",
        host_class="x86-2",
        warnings=("no calibration",),
    )


def test_what_is_stored_comes_back_equal() -> None:
    plan = a_plan()
    block = model.Block(
        0, 1, "BCCB", (10, 11), (9, 10), 5, 0.1, None, {"cpu": 1.0}, {"base": "a", "cand": "a"}
    )
    evidence = model.Evidence(8, 1, 0, 1.02, 1.01, None, 120.0, 1.01, 1.0, 0.01, 8)
    verdict = model.Verdict("keep", "keep", 0, ("why",), evidence)
    for value in (
        plan,
        block,
        evidence,
        verdict,
        plan.pair,
        plan.workload,
        plan.base,
        model.Validity(marks=("a",)),
    ):
        text = model.canonical_json(value.to_json())
        assert type(value).from_json(json.loads(text)) == value


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ValueError, match="tree"):
        model.Ref.from_json({"name": "a", "commit": "b"})


def test_the_workload_hash_ignores_places_sizes_and_tiers_and_nothing_else() -> None:
    same = a_workload(
        params={"lanes": 16, "rom_sha256": "ab", "rom_path": "/there/b.nes", "steps": 99, "tier": "x"}
    )
    assert same.hash == a_workload().hash
    assert a_workload(verify_steps=1).hash == a_workload().hash
    assert a_workload(params={"lanes": 16, "rom_sha256": "ab", "file": "/abs"}).hash == a_workload().hash
    for changes in (
        {"name": "other"},
        {"metric": "m"},
        {"direction": "lower"},
        {"kind": "command"},
        {"params": {"lanes": 8, "rom_sha256": "ab"}},
        {"params": {"lanes": 16, "rom_sha256": "cd"}},
    ):
        assert a_workload(**changes).hash != a_workload().hash


def test_the_pair_key_is_trees_workload_harness_and_host_class() -> None:
    plan = a_plan()
    assert plan.pair == dataclasses.replace(plan, tier="screen", max_blocks=6, attempt_id="b").pair
    assert plan.pair != dataclasses.replace(plan, harness_hash="other").pair
    assert plan.pair != dataclasses.replace(plan, host_class="other").pair


def test_the_tier_table_is_the_contracts() -> None:
    rows = {t.name: (t.benchmark_tier, t.blocks, t.full_blocks, t.proves) for t in model.TIERS.values()}
    assert rows == {
        "screen": ("local_triage", 6, 6, False),
        "accept-stack": ("stack_acceptance", 48, 192, True),
        "accept": ("local_acceptance", 48, 192, True),
        "confirm": ("local_acceptance", 24, 48, True),
        "calibrate": ("local_diagnosis", 24, 96, False),
        "single": ("local_diagnosis", 24, 96, False),
    }


def test_the_status_table_is_the_contracts() -> None:
    by_code: dict[int, set[str]] = {}
    for row in model.STATUSES.values():
        assert row.decision in model.DECISIONS
        assert row.keeps == row.decision.startswith("keep")
        by_code.setdefault(row.exit_code, set()).add(row.name)
    assert by_code == {
        0: {"triage_promote", "keep", "keep_stack", "keep_small_gain", "baseline", "planned", "ok"},
        10: {"triage_discard", "discard", "discard_stack"},
        11: {"inconclusive"},
        12: {"behaviour_changed"},
        13: {"busy_invalid"},
        14: {"build_failed"},
        15: {"crashed", "timeout"},
        16: {"tampered"},
        17: {"checks_failed"},
        18: {"compliance_failed", "parity_violation"},
        19: {"metric_error", "no_change", "unverified"},
        23: {"refused"},
        130: {"interrupted"},
    }
    inconclusive = {row.name for row in model.STATUSES.values() if row.decision == "inconclusive"}
    assert inconclusive == {"inconclusive", "busy_invalid", "interrupted", "metric_error", "unverified"}


def test_each_error_has_its_code_and_a_known_status() -> None:
    codes = {}
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.CartlabError):
            error = kind("expected x, found y", "try z")
            assert str(error) == "expected x, found y (try z)"
            assert error.status in model.STATUSES
            if error.status != "refused":
                assert model.STATUSES[error.status].exit_code == error.exit_code
            codes[name] = error.exit_code
    # 13, busy_invalid, is a verdict over whole runs: no call ends in it.
    assert sorted(set(codes.values())) == [1, 2, 12, *range(14, 26), 130]


@pytest.mark.parametrize(
    ("number", "runs", "branches"),
    [(0, "0 runs", "0 branches"), (1, "1 run", "1 branch"), (2, "2 runs", "2 branches")],
)
def test_one_thing_is_counted_in_the_singular(number: int, runs: str, branches: str) -> None:
    assert words.counted(number, "run") == runs
    assert words.counted(number, "branch", "branches") == branches
