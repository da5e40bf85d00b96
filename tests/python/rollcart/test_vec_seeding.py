"""What a lane depends on: its seed, its start and its actions, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from vec_common import LEVELS, equal, mk, random_actions

import rollcart
from rollcart.errors import ConfigError, StateError

RANDOM = {"noop_reset_max": 30, "sticky_action_prob": 0.25}


def play(env: Any, steps: int = 40, seed: int = 1) -> list[Any]:
    return [env.step(actions) for actions in random_actions(env, steps, seed)]


def test_rg13_a_seed_replays_the_whole_run_through_autoresets() -> None:
    env = mk(3, limit=15, **RANDOM)
    first = [env.reset(seed=5), *play(env)]
    equal(first, [env.reset(seed=5), *play(env)])
    other = mk(3, limit=15, **RANDOM)
    equal(first, [other.reset(seed=np.int64(5)), *play(other)])


def test_u11_lanes_differ_and_so_do_episodes_when_something_is_random() -> None:
    env = mk(6, noop_reset_max=30)
    env.reset(seed=0)
    first = env.ram()
    assert len({ram.tobytes() for ram in first}) > 2
    env.reset()
    # Memory, not snapshots: these hold the random numbers and always differ.
    second = env.ram()
    assert (first != second).any(1).sum() > 2
    env.reset(seed=0)
    assert np.array_equal(env.ram(), first)
    env.reset()
    assert np.array_equal(env.ram(), second), "the whole run replays"
    stuck = mk(6, sticky_action_prob=0.5)
    stuck.reset(seed=0)
    for actions in random_actions(mk(1), 30):
        stuck.step(np.repeat(actions, 6))
    assert len({ram.tobytes() for ram in stuck.ram()}) > 1


def test_u11_lanes_are_equal_when_nothing_is_random() -> None:
    env = mk(4)
    env.reset(seed=0)
    for actions in random_actions(mk(1), 20):
        observation = env.step(np.repeat(actions, 4))[0]
        assert (observation == observation[:1]).all()


def test_u11_processes_differ_without_a_seed() -> None:
    code = (
        "import rollcart, hashlib; e = rollcart.NesVectorEnv(num_envs=4, noop_reset_max=10000); e.reset();"
        "print(e.np_random_seed, hashlib.sha1(e.ram().tobytes()).hexdigest())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 2


def test_rg14_the_random_seed_that_was_drawn_replays_the_run() -> None:
    env, other = mk(3, **RANDOM), mk(3, **RANDOM)
    first = env.reset()
    seed = env.np_random_seed
    assert seed is not None
    equal([first, *play(env)], [other.reset(seed=[(seed + i) & (2**64 - 1) for i in range(3)]), *play(other)])


def test_rg13_rg14_integer_seeds_count_up_and_lists_are_the_lanes_own() -> None:
    a, b = mk(3, **RANDOM), mk(3, **RANDOM)
    equal(a.reset(seed=7), b.reset(seed=[7, 8, 9]))
    equal(play(a), play(b))
    assert a.np_random_seed == 7


def test_rg13_none_in_a_list_goes_on_with_the_lanes_random_numbers() -> None:
    a, b = mk(2, **RANDOM), mk(2, **RANDOM)
    for env in (a, b):
        env.reset(seed=3)
    a.reset(seed=[50, None])
    b.reset()
    assert a.snapshot()[1] == b.snapshot()[1] and a.snapshot()[0] != b.snapshot()[0]


@pytest.mark.parametrize("seed", [-1, [1], [1, 2, 3], [1, -2], np.int64(-5)], ids=str)
def test_rg13_a_bad_seed_is_refused(seed: Any) -> None:
    env = mk(2)
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=seed)


@pytest.mark.parametrize("seed", [1.5, [1.5, None], "12"], ids=str)
def test_a_seed_that_is_no_integer_is_refused(seed: Any) -> None:
    with pytest.raises(TypeError):
        mk(2).reset(seed=seed)


def test_seeds_may_be_as_large_as_gymnasium_draws_them() -> None:
    env = mk(2, **RANDOM)
    equal(env.reset(seed=2**128 - 1)[0], env.reset(seed=[2**64 - 1, 0])[0])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rg15_a_lane_is_the_same_alone_in_a_batch_and_on_any_threads(threads: int) -> None:
    env = mk(5, limit=12, num_threads=threads, state_catalog=LEVELS, **RANDOM)
    assert env.num_threads == threads
    env.reset(seed=30)
    tape = random_actions(env, 60, seed=3)
    alone = mk(1, limit=12, num_threads=1, state=env.start_states[3], **RANDOM)
    alone.reset(seed=33)
    for actions in tape:
        batch, one = env.step(actions), alone.step(actions[3:4])
        equal([part[3:4] for part in batch[:4]], list(one[:4]))
        equal({key: value[3:4] for key, value in batch[4].items()}, one[4])


def test_rg11_rg12_a_mask_resets_its_lanes_and_leaves_the_others_as_they_are() -> None:
    env = mk(4, limit=50, **RANDOM)
    env.reset(seed=0)
    play(env, 10)
    before, observed = env.snapshot(), env.step([1, 2, 3, 4])[0]
    before = env.snapshot()
    mask = np.array([True, False, True, False])
    options = {"reset_mask": mask, "x": 1}
    observation, infos = env.reset(seed=[100, 101, 102, 103], options=options)
    assert options == {"reset_mask": mask, "x": 1}
    after = env.snapshot()
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, False, True]
    assert np.array_equal(observation[~mask], observed[~mask])
    assert all((infos[key] == mask).all() for key in infos if key.startswith("_"))
    whole = mk(4, limit=50, **RANDOM)
    equal(whole.reset(seed=100)[0][mask], observation[mask])


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False], TypeError),
        (None, TypeError),
        (np.array([1, 0]), TypeError),
        (np.array([True]), ValueError),
        (np.array([[True, False]]), ValueError),
        (np.array([False, False]), ValueError),
    ],
    ids=str,
)
def test_rg11_a_bad_mask_is_refused(mask: Any, error: type[Exception]) -> None:
    env = mk(2)
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(error, match="reset_mask"):
        env.reset(options={"reset_mask": mask})
    assert env.snapshot() == before


def test_u12_start_states_are_chosen_by_catalog_by_lane_and_at_a_reset() -> None:
    catalog = mk(6, state_catalog=LEVELS)
    assert catalog.start_states == (*LEVELS, "Level1", "Level2")
    assert catalog.reset()[1]["level"].tolist() == [1, 2, 3, 4, 1, 2]
    assert mk(2, state=["Level4", "Level2"]).start_states == ("Level4", "Level2")
    assert mk(2, state="Level3").reset()[1]["state"].tolist() == ["Level3", "Level3"]
    assert mk(2).start_states == ("Level1", "Level1")
    env = mk(2)
    _, infos = env.reset(options={"state": ["Level2", None]})
    assert infos["state"].tolist() == ["Level2", "Level1"] and infos["level"].tolist() == [2, 1]
    mask = np.array([False, True])
    _, infos = env.reset(options={"state": "Level4", "reset_mask": mask})
    assert infos["level"].tolist() == [2, 4] and env.start_states == ("Level2", "Level4")


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_u12_a_chosen_state_stays_chosen_at_autoresets(mode: str) -> None:
    env = mk(2, mode, limit=3)
    env.reset(seed=0, options={"state": ["Level3", "Level2"]})
    for _ in range(12):
        infos = env.step([0, 0])[4]
        assert infos["level"].tolist() == [3, 2] and infos["state"].tolist() == ["Level3", "Level2"]
    env.reset()
    assert env.start_states == ("Level3", "Level2")


def test_power_on_is_a_start_and_really_switches_on() -> None:
    env = mk(2, state="NONE")
    first = env.reset(seed=1)
    play(env, 20)
    equal(first, env.reset(seed=1))
    assert env.start_states == ("NONE", "NONE")


def test_an_unknown_state_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(StateError, match=r"Level1.*Level4"):
        mk(2, state="Level9")
    env = mk(2)
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(StateError, match="Level9"):
        env.reset(options={"state": "Level9"})
    with pytest.raises(ConfigError, match="2 of them"):
        env.reset(options={"state": ["Level1"]})
    with pytest.raises(StateError):
        env.reset(options={"state": b"no state"})
    assert env.snapshot() == before


def test_rg14_a_generator_that_the_caller_sets_decides_where_no_seed_is_given() -> None:
    def begun(seed: int, make: Any = mk) -> Any:
        env = make(**RANDOM)
        env.np_random = np.random.default_rng(seed)
        env.reset()
        return env.snapshot()

    for make in (mk, rollcart.NesEnv):
        assert begun(1, make) == begun(1, make) != begun(2, make)


def test_rg14_the_seed_that_one_console_drew_replays_its_run() -> None:
    env, other = rollcart.NesEnv(**RANDOM), rollcart.NesEnv(**RANDOM)
    first = [env.reset(), *(env.step(6) for _ in range(20))]
    equal(first, [other.reset(seed=env.np_random_seed), *(other.step(6) for _ in range(20))])
    unseeded = [env.reset(), *(env.step(6) for _ in range(20))]
    equal(unseeded, [other.reset(), *(other.step(6) for _ in range(20))])


@pytest.mark.parametrize("seed", [(4, 5), np.array([4, 5]), range(4, 6), np.array(4), np.uint8(4)], ids=repr)
def test_rg13_seeds_come_as_any_integer_or_row_of_them(seed: Any) -> None:
    env = mk(2, **RANDOM)
    equal(env.reset(seed=4), env.reset(seed=seed))


@pytest.mark.parametrize("seed", [{4, 5}, {4: 1, 5: 2}, b"45", np.array(4.5)], ids=repr)
def test_rg13_what_has_no_order_or_is_no_number_is_no_seed(seed: Any) -> None:
    with pytest.raises(TypeError, match="seed: expected an integer or one a lane, found"):
        mk(2).reset(seed=seed)
