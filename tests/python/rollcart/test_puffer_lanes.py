"""PufferLib's contract (RE3), held without the library; under it: tests/adapters/test_puffer.py."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from vec_common import RIGHT, SMALL, equal, mk

import rollcart
from rollcart.envs import puffer
from rollcart.envs._puffer_lanes import Lanes
from rollcart.envs.puffer import APIUsageError, Batches, Buffers

OPTIONS: dict[str, Any] = {**SMALL, "max_episode_steps": 5, "noop_reset_max": 9}


def batches(n: int = 4, size: int | None = None, **options: Any) -> Batches:
    return Batches(num_envs=n, batch_size=size, **{**OPTIONS, **options})


def copies(received: tuple[Any, ...]) -> list[Any]:
    return [part.copy() for part in received]


def test_re3_a_batch_equals_same_step_lanes_of_its_seeds() -> None:
    lanes, native = batches(3), mk(3, "SameStep", limit=5, noop_reset_max=9)
    (own,) = np.random.SeedSequence(7).generate_state(1, np.uint64).tolist()
    seeds = np.random.SeedSequence(own).generate_state(3, np.uint64).tolist()
    obs, infos = lanes.reset(seed=7)
    equal(obs.copy(), native.reset(seed=seeds)[0])
    assert infos == []
    for step in range(1, 12):
        obs, rewards, terminals, truncations, infos = lanes.step([RIGHT, 9, 0])
        theirs = native.step([RIGHT, 9, 0])
        equal(obs.copy(), theirs[0])
        assert rewards.tolist() == theirs[1].tolist() and rewards.dtype == np.float32
        assert terminals.tolist() == theirs[2].tolist() and truncations.tolist() == theirs[3].tolist()
        if step % 5:
            assert infos == []
        else:
            final = theirs[4]["final_info"]
            assert [info["episode_return"] for info in infos] == final["episode_return"].tolist()
            assert [info["episode_length"] for info in infos] == [5, 5, 5]
            assert {type(value) for info in infos for value in info.values()} <= {int, float}


def test_re3_steps_go_into_the_callers_arrays() -> None:
    buf = {
        "observations": np.full((4, 2, 12, 10), 9, np.uint8),
        "rewards": np.full(4, 9, np.float32),
        "terminals": np.ones(4, np.bool_),
        "truncations": np.ones(4, np.bool_),
        "masks": np.zeros(4, np.bool_),
        "actions": np.full(4, 9, np.int32),
    }
    lanes, other = batches(4, 2, buf=buf), batches(4, 2)
    lanes.async_reset(3)
    other.async_reset(3)
    for turn in range(12):
        mine, theirs = lanes.recv(), other.recv()
        own = slice(0, 2) if turn % 2 == 0 else slice(2, 4)
        assert mine[0].base is not None and np.shares_memory(mine[0], buf["observations"][own])
        for part, name in zip(mine[:4], ("observations", "rewards", "terminals", "truncations"), strict=True):
            assert np.shares_memory(part, buf[name][own])
        equal(copies(mine[:4]), copies(theirs[:4]))
        assert mine[5].tolist() == ([0, 1] if turn % 2 == 0 else [2, 3]) and mine[6].all()
        lanes.send([RIGHT, turn])
        other.send(np.array([RIGHT, turn], np.int32))
        assert buf["actions"][own].tolist() == [RIGHT, turn]
    assert buf["masks"].all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": np.zeros(4)}, r"rewards to be a writeable, contiguous float32\[4\], found float64\[4\]"),
        (
            {"observations": np.zeros((4, 2, 10, 12), np.uint8)},
            r"uint8\[4, 2, 12, 10\], found uint8\[4, 2, 10, 12\]",
        ),
        (
            {"observations": np.zeros((4, 2, 10, 12), np.uint8).swapaxes(2, 3)},
            "observations to be .*contiguous",
        ),
        ({"masks": None}, "masks to be .* found None"),
        ({"actions": np.zeros(4, np.float32)}, "actions to be"),
        ({"terminals": np.broadcast_to(np.False_, 4)}, "terminals to be a writeable"),
    ],
)
def test_re3_arrays_that_do_not_fit_are_named(change: dict[str, Any], message: str) -> None:
    env = mk(1)
    buf = {**vars(Buffers.made(4, env.single_observation_space, env.single_action_space)), **change}
    with pytest.raises(rollcart.errors.ConfigError, match=message):
        batches(4, 2, buf=buf)


def test_re3_u16_every_lane_comes_once_a_round_and_none_starves() -> None:
    lanes = batches(16, 8)
    lanes.async_reset(0)
    seen = np.zeros(16, np.int64)
    first = lanes.recv()[5].tolist()
    lanes.send([0] * 8)
    assert sorted(first + lanes.recv()[5].tolist()) == list(range(16))
    lanes.send([0] * 8)
    for _ in range(100):
        seen[lanes.recv()[5]] += 1
        lanes.send([0] * 8)
    assert seen.tolist() == [50] * 16
    lanes.close()


def test_re3_one_batch_plays_while_the_caller_has_another() -> None:
    lanes = batches(4, 2)
    lanes.async_reset(0)
    lanes.recv()
    begun, go_on = threading.Event(), threading.Event()
    play = lanes._batches[0].step

    def held(actions: Any) -> Any:
        begun.set()
        assert go_on.wait(300)
        return play(actions)

    lanes._batches[0].step = held  # type: ignore[method-assign]
    lanes.send([RIGHT, RIGHT])
    assert begun.wait(300)
    # The first batch is in its step, and the second one is here.
    assert lanes.recv()[5].tolist() == [2, 3]
    go_on.set()
    lanes.send([0, 0])
    assert lanes.recv()[5].tolist() == [0, 1]


def test_re3_seeds_repeat_a_run_and_lanes_differ() -> None:
    def run(seed: int | None, lanes: Batches) -> list[Any]:
        lanes.async_reset(seed)
        got = []
        for _ in range(8):
            got += [copies(lanes.recv()[:2])]
            lanes.send([RIGHT, RIGHT])
        return got

    lanes = batches(4, 2)
    first, unseeded = run(5, lanes), run(None, lanes)
    again = batches(4, 2, num_threads=2)
    equal(run(5, again), first)
    equal(run(None, again), unseeded)
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(run(6, lanes), first, strict=True))
    starts = [first[batch][0][lane].tobytes() for batch in range(2) for lane in range(2)]
    assert len(set(starts)) > 1


def test_re3_a_reset_in_the_middle_waits_for_what_plays_and_begins_anew() -> None:
    lanes = batches(4, 2)
    lanes.async_reset(2)
    first = [copies(lanes.recv()[:4])]
    lanes.send([RIGHT, RIGHT])
    lanes.async_reset(2)
    again = lanes.recv()
    assert again[5].tolist() == [0, 1]
    equal(copies(again[:4]), first[0])
    lanes.send([RIGHT, RIGHT])
    assert lanes.recv()[5].tolist() == [2, 3]


def test_re3_calls_in_the_wrong_order_say_which_is_right() -> None:
    lanes = batches(4, 2)
    for call, message in (
        (lanes.recv, "async_reset first"),
        (lambda: lanes.send([0, 0]), "async_reset and recv"),
    ):
        with pytest.raises(APIUsageError, match=message):
            call()
    lanes.async_reset()
    with pytest.raises(APIUsageError, match="async_reset and recv"):
        lanes.send([0, 0])
    lanes.recv()
    with pytest.raises(APIUsageError, match="send first"):
        lanes.recv()
    for bad in ([0], [0, 36], [0, -1], [0.0, 1.0], [[0, 0]], 3):
        with pytest.raises(ValueError, match="actions"):
            lanes.send(bad)
    lanes.send([0, 0])
    for call in (lanes.reset, lambda: lanes.step([0, 0])):
        with pytest.raises(APIUsageError, match="2 batches"):
            call()
    lanes.close()
    lanes.close()
    with pytest.raises(APIUsageError, match="closed"):
        lanes.recv()
    for size in (3, 0, 8):
        with pytest.raises(rollcart.errors.ConfigError, match="divisor"):
            batches(4, size)
    for options in ({"copy": True}, {"autoreset_mode": "NextStep"}, {"obs": "dict"}):
        with pytest.raises(rollcart.errors.ConfigError, match=next(iter(options))):
            batches(2, **options)


@pytest.mark.parametrize("actions", ["filtered", "multi_discrete"])
def test_re3_other_spaces(actions: str) -> None:
    lanes = batches(4, 2, actions=actions, obs="ram")
    assert lanes.action_space.shape == (2, *lanes.single_action_space.shape)  # type: ignore[misc]
    lanes.async_reset(0)
    for _ in range(4):
        assert lanes.recv()[0].shape == (2, *lanes.single_observation_space.shape)  # type: ignore[misc]
        lanes.send(lanes.action_space.sample())
    with pytest.raises(ValueError, match="actions"):
        lanes.recv()
        lanes.send(np.full(lanes.action_space.shape, 9))  # type: ignore[arg-type]


def test_re3_the_librarys_class_writes_into_the_arrays_of_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    class Base:
        def __init__(self, buf: Any = None) -> None:
            made = Buffers.made(self.num_agents, self.single_observation_space, self.single_action_space)  # type: ignore[attr-defined]
            self.__dict__.update(buf or vars(made))

    monkeypatch.setitem(sys.modules, "pufferlib", SimpleNamespace(PufferEnv=Base))
    puffer._puffer_env.cache_clear()
    try:
        env, lanes = (
            puffer.PufferEnv(num_envs=3, seed=7, **OPTIONS),
            Lanes(None, "CartRunner-Nes-v0", 3, OPTIONS),
        )
    finally:
        puffer._puffer_env.cache_clear()
    lanes.reset(7)
    obs, infos = env.reset()
    assert obs is env.observations and infos == [] and np.array_equal(obs, lanes.buffers.observations)
    for _ in range(6):
        ended = lanes.step([RIGHT, 0, 9])
        obs, rewards, terminals, truncations, infos = env.step(np.array([RIGHT, 0, 9]))
        assert obs is env.observations and np.array_equal(obs, lanes.buffers.observations)
        assert rewards.tolist() == lanes.buffers.rewards.tolist() and infos == ended
        assert truncations.tolist() == lanes.buffers.truncations.tolist() and not terminals.any()
        assert env.actions.tolist() == [RIGHT, 0, 9]
    lanes.reset(7)
    assert np.array_equal(env.reset(seed=7)[0], lanes.buffers.observations)
    env.close()


def test_without_pufferlib_its_class_alone_is_missing() -> None:
    code = (
        "import sys; sys.modules['pufferlib'] = None\n"
        "from rollcart.envs import puffer\n"
        "try:\n    puffer.PufferEnv\n"
        "except ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "pip install 'rollcart[puffer]'" in run.stdout, run.stderr


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, ValueError), ("7", TypeError), ([1], TypeError), (1.5, TypeError)], ids=repr
)
def test_re3_a_bad_seed_begins_nothing(seed: Any, error: type[Exception]) -> None:
    lanes = batches(2)
    with pytest.raises(error, match="seed: expected"):
        lanes.async_reset(seed)
    with pytest.raises(APIUsageError, match="expected async_reset first"):
        lanes.recv()
    lanes.reset(seed=np.int64(1))
    first = lanes.buffers.observations.copy()
    with pytest.raises(error, match="seed: expected"):
        lanes.async_reset(seed)
    lanes.step([0, 0])
    lanes.reset(seed=1)
    equal(lanes.buffers.observations, first)


def test_re3_a_step_that_failed_is_told_once_and_asks_for_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_actions: Any) -> Any:
        raise RuntimeError("meant")

    lanes = batches(2)
    lanes.reset(seed=1)
    play = lanes._batches[0].step
    for told in (True, False):
        monkeypatch.setattr(lanes._batches[0], "step", fail)
        lanes.send([0, 0])
        if told:
            with pytest.raises(RuntimeError, match="meant"):
                lanes.recv()
            with pytest.raises(APIUsageError, match="expected async_reset, since the last step failed"):
                lanes.recv()
            monkeypatch.setattr(lanes._batches[0], "step", play)
            lanes.reset(seed=1)
            lanes.step([0, 0])
    # What nobody asked for any more keeps nothing open.
    lanes.close()
    assert lanes._batches[0].env.closed


def test_u34_a_forked_child_is_told_about_its_parents_lanes() -> None:
    code = (
        "import os\n"
        "from rollcart.envs.puffer import APIUsageError, Batches\n"
        "b = Batches(num_envs=4, batch_size=2); b.async_reset(0); b.recv()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for call in (b.recv, lambda: b.send([0, 0]), lambda: b.async_reset(0)):\n"
        "        try: call()\n"
        "        except APIUsageError as error: assert 'another process' in str(error)\n"
        "        else: os._exit(3)\n"
        "    b.close(); b.close()\n"
        "    new = Batches(num_envs=2); new.reset(0); new.step([0, 0]); new.close(); os._exit(0)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "b.send([0, 0]); print(code, b.recv()[0].shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0 (2, 4, 84, 84)", done.stderr
