"""Requests and their plans: budgets by the tier table, changed sizes marked, misfits refused."""

from __future__ import annotations

import dataclasses

import pytest

from cartlab.errors import UsageError
from cartlab.model import POLICY, TIERS, Plan, Ref, Workload
from cartlab.plan import Request, attempt_id, plan, refuse_legacy_flags

BASE = Ref("main", "a" * 40, "b" * 40)
CAND = Ref("topic", "c" * 40, "d" * 40)
WORKLOAD = Workload("w", "slices", "w.py", "ops", "higher", "ops/s", 10)


def ask(tier: str = "accept", **changes: object) -> Plan:
    request = Request("id", tier, BASE, CAND, WORKLOAD, "harness", "host")
    return plan(dataclasses.replace(request, **changes))


@pytest.mark.parametrize("tier", sorted(TIERS))
def test_each_tier_takes_its_budget_and_name_from_its_row(tier: str) -> None:
    made, row = ask(tier), TIERS[tier]
    assert (made.max_blocks, made.benchmark_tier, made.command) == (
        row.blocks,
        row.benchmark_tier,
        row.command,
    )
    assert (made.fresh_build, made.sizes_changed, made.max_seconds) == (row.fresh_build, False, None)
    assert (made.policy_hash, made.alpha) == (POLICY.hash, 0.01)
    if row.full_blocks != row.blocks:
        assert ask(tier, full=True).max_blocks == row.full_blocks


def test_a_plan_comes_back_from_its_json() -> None:
    made = ask(max_minutes=5.0, force_busy=True, approval="alone on it")
    assert made.max_seconds == 300.0
    assert made.forced
    assert Plan.from_json(made.to_json()) == made


@pytest.mark.parametrize("changes", [{"max_blocks": 12}, {"slices": 60}, {"slice_ms": 25.0}])
def test_changed_sizes_are_a_diagnosis(changes: dict[str, object]) -> None:
    made = ask(**changes)
    assert made.sizes_changed
    assert made.benchmark_tier == "local_diagnosis"
    assert made.tier == "accept"


def test_the_floor_is_one_with_a_warning_where_none_was_measured_and_never_below_one() -> None:
    assert (ask().floor, ask().floor_known) == (1.0, False)
    assert "relink floor" in ask().warnings[0]
    assert (ask(floor=1.02).floor, ask(floor=0.9).floor) == (1.02, 1.0)
    assert ask(floor=1.02).warnings == ()


def test_a_screen_without_mechanism_and_falsification_is_warned() -> None:
    assert any("falsification" in line for line in ask("screen").warnings)
    assert ask("screen", mechanism="fewer loads", falsify="no change in loads").warnings == ()


@pytest.mark.parametrize(
    ("tier", "changes", "word"),
    [
        ("nonsense", {}, "tier"),
        ("screen", {"full": True}, "--full"),
        ("accept", {"again": True}, "--again"),
        ("accept", {"equal_only": True}, "--equal-only"),
        ("accept", {"force_busy": True}, "reason"),
        ("accept", {"max_blocks": 0}, "--max-blocks"),
        ("accept", {"max_minutes": 0.0}, "minutes"),
        ("accept", {"unit": "slice"}, "--unit"),
        ("accept", {"design": "x"}, "--design"),
        ("accept", {"policy": "x"}, "--policy"),
        ("accept", {"slices": 0}, "slices"),
        ("accept", {"slices": 51}, "slices"),
        ("accept", {"slice_ms": 0.0}, "slices"),
    ],
)
def test_what_does_not_fit_together_is_refused(tier: str, changes: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        ask(tier, **changes)
    assert caught.value.exit_code == 2


def test_the_predecessors_size_flags_need_its_policy() -> None:
    refuse_legacy_flags(["--steps=5", "--max-load"], "legacy")
    refuse_legacy_flags(["--max-blocks"], "anytime")
    with pytest.raises(UsageError, match="--max-load, --steps"):
        refuse_legacy_flags(["--steps=5", "--max-load", "--rom-path"], "anytime")


def test_an_attempt_id_says_when_and_what() -> None:
    name = attempt_id("2026-01-02T03:04:05.678Z", "round confirm", "salt")
    assert name.startswith("20260102-030405-round-confirm-")
    assert name != attempt_id("2026-01-02T03:04:05.678Z", "round confirm", "other")
