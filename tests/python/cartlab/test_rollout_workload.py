"""The rollout workload: exact sums, drawn actions, equal work, and the policy that it says it plays."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cartlab import config, host, measure
from cartlab.model import Build, Plan, Ref
from cartlab.sources import stamps
from rollcart.ppo import gae

REPO = Path(__file__).resolve().parents[3]
FOLDER = REPO / "scripts" / "workloads"
WORKLOAD = config.load(REPO).workload("ppo-rollout")
ROM = REPO / "python/rollcart/data/stable/CartRunner-Nes-v0/rom.nes"


@pytest.fixture(scope="module")
def adapter() -> Iterator[ModuleType]:
    before = {name: sys.modules.get(name) for name in ("nes_batch", "ppo_rollout", "ppo_rollout_freeze")}
    spec = importlib.util.spec_from_file_location("ppo_rollout", FOLDER / "ppo_rollout.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ppo_rollout"] = module
    spec.loader.exec_module(module)
    yield module
    for name, old in before.items():
        sys.modules.pop(name, None)
        if old is not None:
            sys.modules[name] = old


def opened(adapter: ModuleType, seed: int = 5, **changes: Any) -> Any:
    params = {**WORKLOAD.params, "num_threads": 1, "num_envs": 4, "max_episode_steps": 40, **changes}
    return adapter.open({"params": params}, seed, None)


def test_it_joins_the_accept_tiers_with_the_canonical_environment() -> None:
    canonical = config.load(REPO).workload("nes-batch").params
    assert WORKLOAD.guards and WORKLOAD.kind == "slices" and dict(WORKLOAD.params) == dict(canonical)
    named = {path.name for path in measure.harness_files(REPO, WORKLOAD)}
    assert {"ppo_rollout.py", "ppo_rollout_policy.npz", "nes_batch.py"} <= named


def test_the_workload_needs_nothing_but_numpy_and_the_build(adapter: ModuleType) -> None:
    imported = {
        line.split()[1].split(".")[0]
        for line in (FOLDER / "ppo_rollout.py").read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported - sys.stdlib_module_names - {"__future__"} == {"numpy"}


def test_the_policy_is_the_trained_one_in_whole_numbers(
    adapter: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    import ppo_rollout_freeze

    made = ppo_rollout_freeze.freeze()
    with np.load(adapter.POLICY) as kept:
        assert set(kept.files) == set(made)
        for name in kept.files:
            np.testing.assert_array_equal(kept[name], made[name], err_msg=name)


def test_its_actions_are_nearly_those_of_the_policy_that_it_was_made_from(adapter: ModuleType) -> None:
    from rollcart.cli.rollout import TRAINED
    from rollcart.ppo import checkpoint, network

    saved, whole = checkpoint.load(TRAINED), adapter.load_network()
    session = opened(adapter, num_envs=8, states=["Level1"], max_episode_steps=400)
    try:
        session.prepare(60)
        session.run()
        ram = session._rows["ram"].reshape(480, -1)
    finally:
        session.close()
    logits, _ = network.forward(saved.params, saved.see(ram))
    wanted = np.exp(logits - np.logaddexp.reduce(np.asarray(logits), 1)[:, None])
    weights = whole.weights(whole(ram)[0])
    found = weights / weights.sum(1, keepdims=True)
    assert np.abs(found - wanted).sum(1).mean() / 2 < 0.1


def test_sums_are_whole_numbers_that_do_not_depend_on_their_order(adapter: ModuleType) -> None:
    network = adapter.load_network()
    ram = np.random.default_rng(0).integers(0, 256, (64, 10_240), np.uint8)
    logits, values = network(ram)
    assert np.array_equal(logits, np.rint(logits))
    alone = [network(row[None]) for row in ram]
    np.testing.assert_array_equal(logits, np.concatenate([one for one, _ in alone]))
    np.testing.assert_array_equal(values, np.concatenate([one for _, one in alone]))


def test_sums_that_float32_cannot_hold_are_refused(adapter: ModuleType) -> None:
    with np.load(adapter.POLICY) as file:
        tables = dict(file)
    tables["policy0.b"] = tables["policy0.b"] + 2**24
    with pytest.raises(adapter.nes_batch.BadWorkload, match="policy0 can pass"):
        adapter.Network(tables)


def test_actions_are_drawn_by_their_weights(adapter: ModuleType) -> None:
    network = adapter.load_network()
    scale = adapter.STEPS_A_NAT / network._to_steps
    logits = np.tile(np.float32([0, -scale, -20 * scale]), (40_000, 1))
    numbers = np.linspace(0, 2**31 - 1, len(logits)).astype(np.int64)
    drawn = network.draw(logits, numbers)
    shares = np.bincount(drawn, minlength=3) / len(logits)
    np.testing.assert_allclose(shares[:2], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)], atol=1e-3)
    assert network.draw(logits[:2], np.array([0, 2**31 - 1])).tolist() == [0, 1]


def test_a_slice_stores_its_transitions_and_their_advantages(adapter: ModuleType) -> None:
    session = opened(adapter)
    try:
        session.prepare(60)
        session.run()
        rows = session._rows
        assert len(session.results()) == 60 and session.observation(59)["image"].shape == (4, 4, 84, 84)
        assert np.array_equal(session.observation(3)["image"], rows["image"][4])
        ended = rows["terminated"] | rows["truncated"]
        assert ended.any() and np.array_equal(rows["is_reset"][1:], ended[:-1])
        wanted = gae.estimate(
            rows["rewards"] * adapter.REWARD_SCALE,
            rows["values"],
            rows["terminated"],
            rows["truncated"],
            rows["is_reset"],
            float(adapter.GAMMA),
            float(adapter.GAE_LAMBDA),
        )
        np.testing.assert_allclose(rows["advantages"], wanted.advantages, atol=1e-4)
        assert len(np.unique(rows["actions"])) > 1
        session.forget()
        assert session.results() == []
    finally:
        session.close()


def test_two_sessions_do_equal_work_and_a_held_out_draw_other_work(adapter: ModuleType) -> None:
    sessions = [opened(adapter), opened(adapter)]
    held_out = opened(adapter, rom_path=str(ROM), held_out="some draw")
    try:
        first, second, other = ([repr(v) for v in s.verify(24)] for s in (*sessions, held_out))
    finally:
        for session in (*sessions, held_out):
            session.close()
    assert first == second and len(first) == len(other) and first != other
    assert any("later rollout 11: outcome" in line for line in first)


def test_real_workers_verify_and_measure_it_as_they_would_for_a_win(tmp_path: Path) -> None:
    """The guard's part of an accept on this tree's own package, with few lanes and slices: no stand-in.

    What a guard does to a verdict is test_beside.py's; here its workers, equality and a block are real.
    """
    package = tmp_path / "build"
    shutil.copytree(
        REPO / "python" / "rollcart", package / "rollcart", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / stamps.STAMP).write_text(json.dumps({"files": stamps.manifest(package)}))
    (artifact,) = (package / "rollcart").glob("_native*.so")
    build = Build(
        ref=Ref("HEAD", "0" * 40, "1" * 40),
        build_id="here",
        path=str(package),
        artifact=str(artifact),
        artifact_sha256=hashlib.sha256(artifact.read_bytes()).hexdigest(),
        seconds=0.0,
        cached=True,
    )
    small = {"num_envs": 2, "num_threads": 1, "max_episode_steps": 16, "noop_reset_max": 4}
    workload = dataclasses.replace(WORKLOAD, params={**WORKLOAD.params, **small}, verify_steps=24)
    plan = Plan(
        attempt_id="guard",
        command="accept",
        tier="accept",
        benchmark_tier="local_acceptance",
        base=build.ref,
        cand=build.ref,
        workload=workload,
        policy="anytime",
        unit="block",
        design="betting",
        max_blocks=6,
        max_seconds=None,
        policy_hash="0" * 64,
        host_class=host.host_class(),
        harness_hash=measure.harness_hash(REPO, workload),
        slices=4,
        slice_ms=10.0,
    )
    equal = measure.verify_equal(plan, build, build, repo=REPO)
    assert equal.equal and equal.items > 24
    block = measure.run_block(plan, 0, 0, build, build, repo=REPO)
    assert block.digests["base"] == block.digests["cand"]
    assert len(block.base_ns) == len(block.cand_ns) == 4
