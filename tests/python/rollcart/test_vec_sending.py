"""Send and receive: lanes step while the caller thinks, in batches smaller than all of them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError, ResetNeeded
from vec_common import LEVELS, MODES, equal, game_with, mk, random_actions

from rollcart.errors import ConfigError

RANDOM = {"noop_reset_max": 12, "sticky_action_prob": 0.25}


def test_re1_u16_after_async_reset_two_batches_hold_every_lane_once() -> None:
    env = mk(16, batch_size=8)
    env.async_reset(seed=0)
    first, second = env.recv(), env.recv()
    ids = [*first[4]["env_id"], *second[4]["env_id"]]
    assert sorted(ids) == list(range(16))
    whole, _ = mk(16).reset(seed=0)
    assert np.array_equal(np.concatenate([first[0], second[0]]), whole[ids])
    assert not first[1].any() and not first[2].any() and not first[3].any()


def test_u16_no_lane_starves() -> None:
    env = mk(6, batch_size=2, obs="ram", frame_skip=1)
    env.async_reset(seed=0)
    counts: Counter[int] = Counter()
    for _ in range(1000):
        ids = env.recv()[4]["env_id"]
        counts.update(ids.tolist())
        env.send(np.zeros(2, np.int64), ids)
    assert max(counts.values()) - min(counts.values()) <= 1 and len(counts) == 6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("obs", ["image", "dict"])
def test_re1_lanes_that_were_sent_are_those_of_whole_steps(mode: str, obs: str) -> None:
    """Whatever the batches, each lane's rows are those of an environment that steps all lanes at once."""
    options: dict[str, Any] = {"limit": 5, "obs": obs, "state_catalog": LEVELS, **RANDOM}
    env, whole = mk(5, mode, batch_size=2, num_threads=2, **options), mk(5, mode, **options)
    steps = 14
    tape = random_actions(whole, steps, seed=8)
    wanted: list[list[Any]] = [[] for _ in range(5)]
    result: Any = whole.reset(seed=3)
    result = (result[0], np.zeros(5), np.zeros(5, bool), np.zeros(5, bool), result[1])
    for step in range(steps + 1):
        for lane in range(5):
            wanted[lane].append(row(result, lane))
        done = result[2] | result[3]
        if mode == "Disabled" and done.any():
            observation, infos = whole.reset(options={"reset_mask": done})
            for lane in np.flatnonzero(done):
                nothing = (np.zeros(5), np.zeros(5, bool), np.zeros(5, bool))
                wanted[lane].append(row((observation, *nothing, infos), int(lane)))
        if step < steps:
            result = whole.step(tape[step])
    env.async_reset(seed=3)
    taken, seen = [0] * 5, [0] * 5
    while min(seen) < steps:
        got = env.recv()
        ids = got[4]["env_id"]
        for place, lane in enumerate(ids):
            equal(row(got, place), wanted[lane][seen[lane]], f"lane {lane}, row {seen[lane]}")
            seen[lane] += 1
        again = (got[2] | got[3]) if mode == "Disabled" else np.zeros(2, bool)
        if again.any():
            mask = np.zeros(5, bool)
            mask[ids[again]] = True
            env.async_reset(options={"reset_mask": mask})
        if not again.all():
            going = ids[~again]
            env.send([tape[min(taken[lane], steps - 1)][lane] for lane in going], going)
            for lane in going:
                taken[lane] += 1


def row(result: Any, place: int) -> dict[str, Any]:
    """One lane's part of a result, without what only one way of asking has."""
    observation, reward, terminated, truncated, infos = result
    of: dict[str, Any] = (
        {"obs": {k: v[place] for k, v in observation.items()}}
        if isinstance(observation, dict)
        else {"obs": observation[place]}
    )
    of |= {"reward": float(reward[place]), "ends": (bool(terminated[place]), bool(truncated[place]))}
    of |= {key: infos[key][place].item() for key in ("xpos", "elapsed_steps", "episode_return", "state")}
    if "_final_obs" in infos and infos["_final_obs"][place]:
        of["final_obs"] = infos["final_obs"][place]
        of["final"] = infos["final_info"]["elapsed_steps"][place].item()
    return of


def test_a_run_of_sends_replays() -> None:
    def play() -> list[Any]:
        env = mk(7, limit=6, batch_size=3, num_threads=2, **RANDOM)
        env.async_reset(seed=5)
        out = []
        for step in range(40):
            out.append(env.recv())
            env.send((out[-1][4]["env_id"] + step) % 36)
        return out

    equal(play(), play())


def test_received_rows_belong_to_the_caller() -> None:
    env = mk(4, batch_size=2)
    env.async_reset(seed=0)
    held = [env.recv()]
    copies = [held[0][0].copy()]
    for _ in range(10):
        env.send([6, 9])
        held.append(env.recv())
        copies.append(held[-1][0].copy())
    equal([one[0] for one in held], copies)


def test_re3_calls_out_of_turn_say_what_to_do() -> None:
    env = mk(4, batch_size=2)
    with pytest.raises(NoAsyncCallError, match="async_reset"):
        env.recv()
    with pytest.raises(ResetNeeded, match="async_reset"):
        env.send([0, 0], [0, 1])
    env.async_reset(seed=0)
    for call in (lambda: env.step([0] * 4), env.reset, env.snapshot, lambda: env.render_lane(0)):
        with pytest.raises(AlreadyPendingCallError, match="recv"):
            call()
    ids = env.recv()[4]["env_id"]
    (away,) = {*range(4)} - {*ids.tolist()} - {3}
    for lanes, actions, error, words in [
        ([away], [0], AlreadyPendingCallError, "on their way"),
        ([ids[0], ids[0]], [0, 0], ValueError, "once"),
        ([4], [0], ValueError, "0 to 3"),
        ([-1], [0], ValueError, "0 to 3"),
        ([[0]], [0], ValueError, "a row of lane numbers"),
        ([0.0], [0], ValueError, "a row of lane numbers"),
        ([], [], ValueError, "env_id"),
        (ids, [0], ValueError, "shape"),
        (ids, [0, 36], ValueError, "action 36"),
        (ids, [0.5, 0.5], ValueError, "dtype"),
    ]:
        with pytest.raises(error, match=words):
            env.send(actions, lanes)
    env.send([6, 6], ids)
    env.recv()
    env.recv()
    with pytest.raises(NoAsyncCallError, match="0 are on their way"):
        env.recv()
    assert env.step([0] * 4)[0].shape[0] == 4, "all lanes are back: whole steps work"
    for bad in (0, 5, 1.5, True):
        with pytest.raises(ConfigError, match="batch_size"):
            mk(4, batch_size=bad)
    mk(4, batch_size=np.int64(4)).async_reset()


def test_states_are_chosen_while_no_lane_is_on_its_way() -> None:
    env = mk(2, batch_size=1)
    env.async_reset(seed=0, options={"state": ["Level2", "Level3"]})
    first = env.recv()[4]
    with pytest.raises(AlreadyPendingCallError, match=r"recv\(\) all of them before states"):
        env.async_reset(options={"state": "Level1", "reset_mask": np.array([True, False])})
    env.async_reset(options={"reset_mask": np.array([lane in first["env_id"] for lane in range(2)])})
    told = [first, env.recv()[4], env.recv()[4]]
    assert [(one["env_id"][0], one["level"][0]) for one in told] == [(0, 2), (1, 3), (0, 2)]
    env.async_reset(options={"state": "Level1"})
    assert [env.recv()[4]["level"][0] for _ in range(2)] == [1, 1]


def test_what_fails_on_the_way_is_raised_once_and_all_lanes_are_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = game_with(tmp_path, monkeypatch, {"scripts": ["script.lua"], "reward": {"script": "lua:r"}})
    script = "n = 0\nfunction r()\n  n = n + 1\n  if n > 9 then error('meant') end\n  return 0\nend"
    (tmp_path / "stable" / game / "script.lua").write_text(script)
    env = mk(4, game=game, batch_size=2)
    for _ in range(2):
        env.async_reset(seed=0)
        with pytest.raises(RuntimeError, match="meant"):
            for _ in range(9):
                env.send([0, 0], env.recv()[4]["env_id"])
        with pytest.raises(NoAsyncCallError, match="0 are on their way"):
            env.recv()
        with pytest.raises(ResetNeeded):
            env.step([0] * 4)
    env.reset(seed=0)
    assert env.step([0] * 4)[4]["elapsed_steps"].tolist() == [1] * 4


def test_a_forked_child_is_told_about_its_parents_lanes() -> None:
    code = (
        "import os, rollcart\n"
        "e = rollcart.NesVectorEnv(num_envs=2, batch_size=1); e.async_reset(); e.recv()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for call in (e.recv, lambda: e.send([0])):\n"
        "        try: call()\n"
        "        except RuntimeError as error: assert 'another process' in str(error)\n"
        "        else: os._exit(3)\n"
        "    e.close(); os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); e.recv()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0" and done.returncode == 0, done.stderr


def test_a_finished_lane_is_not_sent_in_the_disabled_mode() -> None:
    env = mk(2, "Disabled", limit=1, batch_size=1)
    env.async_reset(seed=0)
    env.recv()
    env.send([0])
    env.recv()
    assert env.recv()[3].all()
    with pytest.raises(ResetNeeded, match=r"lanes \[0\]"):
        env.send([0], [0])


def test_a_finished_lane_that_took_another_state_over_may_be_sent() -> None:
    env = mk(2, "Disabled", limit=2, batch_size=2)
    env.reset(seed=0)
    early = env.snapshot()
    for _ in range(2):
        env.send([0, 0], [0, 1])
        assert env.recv()[3].all() == bool(_)
    env.restore(early)
    env.send([0, 0], [0, 1])
    assert not env.recv()[3].any()


def test_a_lane_that_took_a_finished_episode_over_is_not_sent() -> None:
    env = mk(2, "Disabled", limit=2, batch_size=2)
    env.reset(seed=0)
    env.step([0, 0])
    env.step([0, 0])
    late = env.snapshot()
    env.reset(seed=0)
    env.restore([None, late[1]])
    with pytest.raises(ResetNeeded, match=r"lanes \[1\]"):
        env.send([0, 0], [0, 1])
    env.send([0], [0])


def test_closing_while_lanes_are_on_their_way_ends_the_thread() -> None:
    before = set(threading.enumerate())
    env = mk(4, batch_size=2)
    env.async_reset(seed=0)
    assert set(threading.enumerate()) - before
    env.close()
    assert not set(threading.enumerate()) - before
    with pytest.raises(ClosedEnvironmentError):
        env.recv()


@pytest.mark.parametrize("end", ["", "raise RuntimeError('meant')", "del e", "e.close()"])
def test_rg20_the_process_ends_with_lanes_on_their_way(end: str) -> None:
    code = (
        "import rollcart; e = rollcart.NesVectorEnv(num_envs=8, batch_size=2, num_threads=2)\n"
        f"e.async_reset(); e.recv(); e.send([0, 0])\n{end}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == ("meant" in end), done.stderr


def test_u34_a_forked_child_closes_lanes_whose_lock_its_parent_held() -> None:
    code = (
        "import os, rollcart\n"
        "e = rollcart.NesVectorEnv(num_envs=4, batch_size=2); e.async_reset(); e.recv()\n"
        "with e._traffic._changed:\n"
        "    child = os.fork()\n"
        "if child == 0:\n"
        "    for call in (e.recv, lambda: e.send([0, 0])):\n"
        "        try: call()\n"
        "        except RuntimeError as error: assert 'another process' in str(error)\n"
        "        else: os._exit(3)\n"
        "    e._traffic._changed = None\n"
        "    e.close(); os._exit(0)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "e.send([0, 0]); print(code, e.recv()[0].shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0 (2, 4, 84, 84)", done.stderr
