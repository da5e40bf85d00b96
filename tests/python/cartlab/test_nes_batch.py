"""The canonical workload: frozen actions, lanes that differ, and everything that two builds must share."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cartlab import config, sources

REPO = Path(__file__).resolve().parents[3]
PARAMS = config.load(REPO).workload().params


@pytest.fixture(scope="module")
def adapter() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "nes_batch", REPO / "scripts" / "workloads" / "nes_batch.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def opened(adapter: ModuleType, seed: int = 5, **changes: Any) -> Any:
    return adapter.open({"params": {**PARAMS, "num_threads": 1, **changes}}, seed, None)


def test_the_workload_is_the_one_that_claims_are_about() -> None:
    wanted = {
        "num_envs": 16, "frame_skip": 4, "frame_stack": 4, "grayscale": True, "resize": [84, 84],
        "resize_algorithm": "area", "crop": [32, 0, 0, 0], "crop_mode": "mask", "noop_reset_max": 30,
    }  # fmt: skip
    assert {key: PARAMS[key] for key in wanted} == wanted
    assert len(PARAMS["states"]) == 4
    assert PARAMS["max_episode_steps"] > 0
    assert "info_keys" not in PARAMS


def test_what_measures_checks_or_gates_is_protected() -> None:
    protected = config.load(REPO).protected
    for path in (
        "autoresearch.toml", "scripts/workloads/nes_batch.py", "scripts/workloads/nes_batch_policy.json",
        "python/cartlab/slice_server.py", "python/cartlab/decide.py", "tests/python/rollcart/test_console.py",
        "conftest.py", "python/rollcart/data/stable/CartRunner-Nes-v0/rom.nes", ".ci/run",
    ):  # fmt: skip
        assert sources.matches(path, protected), path
    assert not sources.matches("src/emulator/fast.rs", protected)
    assert not sources.matches("python/rollcart/vector_env.py", protected)


def test_the_frozen_policy_is_a_distribution_in_every_row_and_neither_uniform_nor_idle(
    adapter: ModuleType,
) -> None:
    policy = adapter.Policy(16, 1)
    drawn = policy.draw(4000)
    shares = np.bincount(drawn.ravel(), minlength=len(policy.actions)) / drawn.size
    assert (shares > 0).all()
    idle = shares[policy.actions.index([])]
    assert idle < 0.5
    assert shares.max() > 2 / len(policy.actions)
    assert all(len(set(column)) > 1 for column in drawn[:500].T)


def test_the_actions_of_a_seed_are_frozen(adapter: ModuleType) -> None:
    drawn = adapter.Policy(16, 12345).draw(64)
    again = adapter.Policy(16, 12345)
    parts = np.concatenate([again.draw(10), again.draw(54)])
    assert np.array_equal(drawn, parts)
    assert not np.array_equal(drawn, adapter.Policy(16, 12346).draw(64))
    assert hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest()[:16] == "5d58b4bb0d69bca6"


def test_a_slice_keeps_every_step_and_the_lanes_differ(adapter: ModuleType) -> None:
    session = opened(adapter)
    try:
        session.prepare(3)
        session.run()
        assert len(session.results()) == 3
        assert session.observation(2).shape == (16, 4, 84, 84)
        assert len({row.tobytes() for row in session.env.ram()}) == 16
        rewards, terminations, truncations, infos = session.results()[0]
        assert rewards.shape == terminations.shape == truncations.shape == (16,)
        assert {"xpos", "lives", "elapsed_steps"} <= set(infos)
        session.forget()
        assert session.results() == []
    finally:
        session.close()


def test_lanes_that_stay_equal_are_no_workload(adapter: ModuleType) -> None:
    session = opened(adapter, states=["Level1"], num_envs=2, noop_reset_max=0)
    session._policy.draw = lambda steps: np.zeros((steps, 2), np.int64)
    session.env.ram = lambda: np.zeros((2, 2048), np.uint8)
    try:
        with pytest.raises(adapter.BadWorkload, match="all 2 lanes must be in different states"):
            session.prepare(1)
    finally:
        session.close()


def test_verify_covers_the_whole_list_and_two_sessions_agree(adapter: ModuleType) -> None:
    spec = importlib.util.spec_from_file_location("slice_server", REPO / "python/cartlab/slice_server.py")
    assert spec is not None and spec.loader is not None
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)

    def digests() -> list[tuple[str, str]]:
        session = opened(adapter, num_envs=4)
        try:
            return [(label, server.digest_of(value)) for label, value in session.verify(16)]
        finally:
            session.close()

    first = digests()
    labels = [label for label, _ in first]
    for wanted in (
        "surface: NesVectorEnv.step", "surface: observation_space", "surface: names of rollcart",
        "reset: observation", "reset: infos", "step 0: observation", "step 0: rewards",
        "step 0: terminations",
        "step 0: truncations", "step 0: infos", "masked reset: observation", "masked reset: infos",
        "restored: observation", "after restoring 0: observation", "lane 0 alone, step 0",
        "lane 0 alone equals the same lane in the batch", "early step 0: observation",
            "step: RAM after 4",
    ):  # fmt: skip
        assert wanted in labels, wanted
    assert len(set(labels)) == len(labels)
    found = dict(first)
    assert found["lane 0 alone equals the same lane in the batch"] == server.digest_of(True)
    assert found["lane 3 alone equals the same lane in the batch"] == server.digest_of(True)
    for label in labels:
        if label.startswith("after saving"):
            assert found[label] == found[label.replace("after saving", "after restoring")]
    assert digests() == first


def test_a_rom_that_is_not_the_recorded_one_is_refused(adapter: ModuleType) -> None:
    rom = REPO / PARAMS["games_dir"] / PARAMS["game"] / "rom.nes"
    with pytest.raises(adapter.BadWorkload, match="must have sha256"):
        adapter.use_controllers_game({"rom_path": str(rom), "rom_sha256": "0" * 64})


def held_out(adapter: ModuleType, draw: str, **changes: Any) -> Any:
    rom = REPO / PARAMS["games_dir"] / PARAMS["game"] / "rom.nes"
    return opened(adapter, num_envs=4, rom_path=str(rom), held_out=draw, **changes)


def test_a_held_out_draw_starts_elsewhere_and_acts_otherwise_and_is_the_same_twice(
    adapter: ModuleType,
) -> None:
    found = {}
    for label, draw in (("one", "a1"), ("again", "a1"), ("other", "b2")):
        session = held_out(adapter, draw, noop_reset_max=0)
        try:
            found[label] = (session.env.start_states, session.env.ram().tobytes(), session._policy.draw(50))
        finally:
            session.close()
    public = opened(adapter, num_envs=4, noop_reset_max=0)
    try:
        at_start, acts = public.env.ram(), public._policy.draw(50)
    finally:
        public.close()
    assert found["one"][:2] == found["again"][:2]
    assert np.array_equal(found["one"][2], found["again"][2])
    assert found["one"][1] != found["other"][1] != at_start.tobytes() != found["one"][1]
    assert not np.array_equal(found["one"][2], found["other"][2])
    assert not np.array_equal(found["one"][2], acts)
    for name, public_name in zip(found["one"][0], PARAMS["states"], strict=True):
        steps = int(name.rpartition("+")[2])
        assert name.startswith(f"held-out {public_name} +")
        assert 1 <= steps <= adapter.ROLL_IN_STEPS[1]


def test_a_held_out_start_state_is_where_the_environment_would_be(adapter: ModuleType) -> None:
    import rollcart

    rom = REPO / PARAMS["games_dir"] / PARAMS["game"] / "rom.nes"
    params = {**PARAMS, "rom_path": str(rom)}
    for name, state in adapter.held_out_states(rollcart, params, "c3").items():
        stem, _, steps = name.removeprefix("held-out ").partition(" +")
        lane = rollcart.NesVectorEnv(
            PARAMS["game"], 1, rom_path=rom, state_catalog=[(rom.parent / f"{stem}.state").read_bytes()],
            actions=adapter.Policy(1, 0).actions,
        )  # fmt: skip
        moves = adapter.Policy(1, adapter.drawn_number("c3", f"moves {stem}")).draw(int(steps))
        lane.reset(seed=0)
        ends = [bool(lane.step(row)[2][0]) for row in moves]
        console = rollcart.Console(rom)
        console.load(state)
        assert not any(ends)
        assert console.ram.tobytes() == lane.ram()[0].tobytes()
        lane.close()


def test_verify_compares_the_same_list_on_a_held_out_draw(adapter: ModuleType) -> None:
    session = held_out(adapter, "d4")
    try:
        found = dict(session.verify(8))
    finally:
        session.close()
    assert found["lane 0 alone equals the same lane in the batch"] is True
    assert found["lane 3 alone equals the same lane in the batch"] is True


def test_a_held_out_draw_says_which_state_it_misses(adapter: ModuleType) -> None:
    with pytest.raises(adapter.BadWorkload, match=r"missing: Level9\.state"):
        held_out(adapter, "e5", states=["Level9"])
