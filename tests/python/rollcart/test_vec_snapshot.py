"""Snapshots: a lane's whole state as bytes, into any lane, environment or process."""

from __future__ import annotations

import copy
import hashlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_common import LEVELS, MODES, equal, mk, random_actions

from rollcart import NesVectorEnv
from rollcart.errors import StateError

RANDOM = {"noop_reset_max": 20, "sticky_action_prob": 0.25}


def go(env: NesVectorEnv, tape: np.ndarray) -> list[Any]:
    """Results of every call: steps, and resets of ended lanes where the caller has to."""
    results: list[Any] = []
    for actions in tape:
        results.append(env.step(actions))
        done = results[-1][2] | results[-1][3]
        if env.metadata["autoreset_mode"].value == "Disabled" and done.any():
            results.append(env.reset(options={"reset_mask": done}))
    return results


@pytest.mark.parametrize("mode", MODES)
def test_a_restored_run_goes_on_exactly_as_before(mode: str) -> None:
    env, other = (mk(3, mode, limit=25, state_catalog=catalog, **RANDOM) for catalog in (LEVELS, None))
    env.reset(seed=1)
    observation = go(env, random_actions(env, 20, seed=2))[-1][0]
    saved = env.snapshot()
    tape = random_actions(env, 40, seed=3)
    first = go(env, tape)
    pictures = [env.render_lane(lane) for lane in range(3)]
    assert np.array_equal(env.restore(saved), observation)
    equal(first, go(env, tape))
    equal(pictures, [env.render_lane(lane) for lane in range(3)])
    assert np.array_equal(other.restore(saved), observation)
    equal(first, go(other, tape))
    assert other.start_states == env.start_states


def test_saving_after_every_step_changes_nothing() -> None:
    env, quiet = mk(2, limit=20, **RANDOM), mk(2, limit=20, **RANDOM)
    env.reset(seed=1)
    quiet.reset(seed=1)
    for actions in random_actions(env, 60, seed=2):
        equal(env.step(actions), quiet.step(actions))
        env.restore(env.snapshot())


def test_u31_the_picture_of_a_restored_lane_is_the_one_it_had() -> None:
    env = mk(2, maxpool=True)
    env.reset(seed=0)
    for actions in random_actions(env, 9):
        env.step(actions)
    picture, saved = env.render_lane(1), env.snapshot()
    env.step([9, 9])
    env.restore(saved)
    assert np.array_equal(env.render_lane(1), picture)


def test_lanes_outside_the_mask_and_none_stay() -> None:
    env = mk(3, **RANDOM)
    env.reset(seed=0)
    early = env.snapshot()
    for actions in random_actions(env, 6):
        env.step(actions)
    late = env.snapshot()
    some = env.snapshot(np.array([True, False, True]))
    assert some == [late[0], None, late[2]]
    env.restore([early[0], None, early[2]], mask=np.array([True, True, False]))
    assert env.snapshot() == [early[0], late[1], late[2]]


@pytest.mark.parametrize("options", [{}, {"state_copies": False}], ids=["copied", "exported"])
def test_what_is_kept_in_the_process_is_what_the_bytes_say(options: dict[str, bool]) -> None:
    env, other = (mk(3, limit=25, engine_options=options, **RANDOM) for _ in range(2))
    env.reset(seed=1)
    go(env, random_actions(env, 20, seed=2))
    saved, kept = env.snapshot(), env.snapshot(portable=False)
    assert [bytes(lane) for lane in kept if lane] == saved
    tape = random_actions(env, 30, seed=3)
    first = go(env, tape)
    assert [bytes(lane) for lane in kept if lane] == saved  # stepping on has not changed them
    for target in (env, other):
        target.restore([kept[0], saved[1], kept[2]])
        assert target.snapshot() == saved
        equal(first, go(target, tape))
    one = env.snapshot(np.array([False, True, False]), portable=False)
    assert one[0] is None and one[1] is not None
    with pytest.raises(StateError, match=r"lane 1.*image options"):
        mk(3, frame_stack=3).restore([None, kept[1], None])


def test_fork_copies_one_lane_into_many() -> None:
    env = mk(4, **RANDOM)
    env.reset(seed=0)
    for actions in random_actions(env, 6):
        env.step(actions)
    before = env.snapshot()
    observation = env.fork(2, np.array([True, False, True, True]))
    assert env.snapshot() == [before[2], before[1], before[2], before[2]]
    assert np.array_equal(observation[0], observation[2]) and np.array_equal(observation[3], observation[2])
    result = env.step([9, 9, 9, 9])
    assert np.array_equal(result[0][0], result[0][2]) and result[1][0] == result[1][2]
    with pytest.raises(ValueError, match="lane 4"):
        env.fork(4, np.ones(4, bool))


def test_any_object_of_bytes_is_a_snapshot_and_nothing_else_is() -> None:
    env = mk(2)
    env.reset(seed=0)
    saved = env.snapshot()
    env.step([9, 6])
    env.restore([bytearray(saved[0] or b""), memoryview(saved[1] or b"")])  # type: ignore[list-item]
    assert env.snapshot() == saved
    with pytest.raises(TypeError):
        env.restore([7, None])  # type: ignore[list-item]


def test_a_lane_beyond_the_limit_of_its_new_environment_ends_with_its_next_step() -> None:
    env, limited = mk(1), mk(1, limit=5)
    env.reset(seed=0)
    for _ in range(8):
        env.step([0])
    limited.restore(env.snapshot())
    assert limited.step([0])[3].tolist() == [True]


@pytest.mark.parametrize("lane", [-1, 2, 1 << 70])
def test_a_lane_that_is_not_there_is_named(lane: int) -> None:
    env = mk(2)
    env.reset(seed=0)
    calls: list[Any] = [lambda: env.fork(lane, np.array([True, True])), lambda: env.render_lane(lane)]
    for call in calls:
        with pytest.raises(ValueError, match=f"lane {lane}"):
            call()


def test_a_snapshot_travels_to_another_process(tmp_path: Path) -> None:
    env = mk(1, **RANDOM)
    env.reset(seed=0)
    for actions in random_actions(env, 10):
        env.step(actions)
    (state,) = env.snapshot()
    assert state is not None
    (tmp_path / "lane").write_bytes(state)
    code = (
        "import sys, pathlib, hashlib, rollcart; e = rollcart.NesVectorEnv(resize=(12, 10), frame_stack=2,"
        "noop_reset_max=20, sticky_action_prob=0.25); e.restore([pathlib.Path(sys.argv[1]).read_bytes()]);"
        "print(hashlib.sha1(b''.join(e.step([a])[0].tobytes() for a in (9, 6, 18, 0, 9, 9))).hexdigest())"
    )
    here = hashlib.sha1(b"".join(env.step([a])[0].tobytes() for a in (9, 6, 18, 0, 9, 9))).hexdigest()
    there = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "lane")], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == here


def test_bad_snapshots_are_refused_by_name_and_change_nothing() -> None:
    env = mk(2)
    env.reset(seed=0)
    good = env.snapshot()
    env.step([9, 6])
    before = env.snapshot()
    state = good[0]
    assert state is not None
    rom = bytearray(state)
    rom[10] ^= 1
    version = bytearray(state)
    version[4] = 99
    for bad, words in [
        (b"", "RCLN"),
        (b"RCST" + state[4:], "RCLN"),
        (bytes(version), "version"),
        (bytes(rom), "ROM"),
        (state + b"x", "follow"),
        (state[:-1], "cut short"),
    ]:
        with pytest.raises(StateError, match=f"lane 1.*{words}"):
            env.restore([good[0], bad])
        assert env.snapshot() == before
    with pytest.raises(StateError, match="image options"):
        mk(2, frame_stack=3).restore(good)
    with pytest.raises(ValueError, match="expected 2"):
        env.restore(good[:1])


def test_every_cut_and_many_flips_of_a_snapshot_are_refused_or_harmless() -> None:
    env = mk(1, frame_stack=1, resize=(2, 2))
    env.reset(seed=0)
    (state,) = env.snapshot()
    assert state is not None
    for length in range(0, len(state), 37):
        with pytest.raises(StateError):
            env.restore([state[:length]])
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(state)
        damaged[rng.integers(len(state))] ^= 1 << rng.integers(8)
        try:
            env.restore([bytes(damaged)])
        except StateError:
            continue
        env.step([9])


def test_u33_copying_and_pickling_point_at_snapshots() -> None:
    env = mk(1)
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="snapshot"):
            copying(env)


def test_u33_what_is_kept_in_the_process_is_its_own_copy_and_says_how_to_leave_it() -> None:
    env = mk(2)
    env.reset(seed=0)
    kept = env.snapshot(portable=False)
    archive = copy.deepcopy({"best": kept})
    env.step([6, 9])
    env.restore(archive["best"])
    assert env.snapshot() == [bytes(lane) for lane in kept]  # type: ignore[arg-type]
    assert copy.copy(kept[0]) is kept[0]
    with pytest.raises(TypeError, match=r"pickle bytes\(it\)"):
        pickle.dumps(kept)
