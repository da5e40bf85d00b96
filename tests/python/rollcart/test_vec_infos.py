"""Infos: every key with its mask, one dtype, always there, never touched again; and owned arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vec_common import RIGHT, equal, mk, random_actions

import rollcart


def arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [a for v in value.values() for a in arrays(v)]
    if isinstance(value, tuple):
        return [a for v in value for a in arrays(v)]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [a for v in value if v is not None for a in arrays(v)]
    return [value]


def test_rg16_rg17_every_key_has_its_mask_and_keeps_its_dtype() -> None:
    env = mk(3, limit=7)
    _, first = env.reset(seed=0)
    kinds = {key: value.dtype for key, value in first.items()}
    assert kinds["xpos"] == kinds["elapsed_steps"] == np.int64 and kinds["episode_return"] == np.float64
    for actions in random_actions(env, 20):
        infos = env.step(actions)[4]
        assert {key: value.dtype for key, value in infos.items()} == kinds
        for key, value in infos.items():
            assert value.shape == (3,)
            assert key.startswith("_") or (infos[f"_{key}"].dtype == np.bool_ and infos[f"_{key}"].all())
            assert value.dtype != object


def test_re4_lanes_count_their_episodes_themselves() -> None:
    env = mk(2, limit=6, reward_clip=True)
    env.reset(seed=0)
    total = np.zeros(2)
    for step in range(1, 7):
        _, reward, _, _, infos = env.step([RIGHT, 0])
        total += infos["raw_reward"]
        assert (infos["elapsed_steps"] == step).all()
        assert np.array_equal(infos["episode_return"], total)
        assert np.array_equal(reward, np.sign(infos["raw_reward"]))
    assert total[0] > 1
    infos = env.step([RIGHT, 0])[4]
    assert not infos["elapsed_steps"].any() and not infos["raw_reward"].any()


def test_re4_the_keys_can_be_chosen() -> None:
    env = mk(2, info_keys=["lives", "episode_return"])
    assert list(env.reset(seed=0)[1]) == ["lives", "_lives", "episode_return", "_episode_return"]
    assert env.step([0, 0])[4].keys() == {"lives", "episode_return", "_lives", "_episode_return"}
    numbers = mk(2, info_keys="numbers").reset(seed=0)[1]
    assert numbers.keys() == mk(2).reset(seed=0)[1].keys() - {"state", "_state"}
    assert all(value.dtype.kind in "ifb" for value in numbers.values())
    assert mk(2, info_keys=[]).reset(seed=0)[1] == {}
    assert list(mk(2, info_keys=["state"]).reset(seed=0)[1]) == ["state", "_state"]


@pytest.mark.parametrize("obs", ["image", "ram", "dict"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_rg18_what_was_handed_out_never_changes(obs: str, mode: str) -> None:
    env = mk(2, mode, limit=4, obs=obs)
    kept = [env.reset(seed=0)]
    copies = [[a.copy() for a in arrays(kept[0])]]
    for actions in random_actions(env, 24):
        kept.append(env.step(actions))
        copies.append([a.copy() for a in arrays(kept[-1])])
    for result, copy in zip(kept, copies, strict=True):
        for now, then in zip(arrays(result), copy, strict=True):
            equal(now, then)
    held = [a for result in kept for a in arrays(result)]
    own = {id(a) for a in held}
    assert len(own) == len(held)


def test_rg18_a_view_keeps_its_observation_alive() -> None:
    env = mk(2)
    row = env.reset(seed=0)[0][1, -1]
    then = row.copy()
    for actions in random_actions(env, 12):
        env.step(actions)
    assert np.array_equal(row, then)


def test_changing_what_was_handed_out_changes_no_later_observation() -> None:
    env, other = mk(2), mk(2)
    for e in (env, other):
        e.reset(seed=0)
    for actions in random_actions(env, 10):
        result = env.step(actions)
        equal(result, other.step(actions))
        for array in arrays(result):
            array.fill(0) if array.dtype.kind != "U" else None


def test_rg18_without_copies_an_observation_lives_until_the_second_call_after() -> None:
    env, owned = mk(2, copy=False), mk(2)
    previous = env.reset(seed=0)[0]
    wanted = owned.reset(seed=0)[0]
    for actions in random_actions(env, 12):
        observation = env.step(actions)[0]
        assert np.array_equal(previous, wanted), "the one before must still be readable"
        wanted = owned.step(actions)[0]
        assert np.array_equal(observation, wanted)
        assert not np.shares_memory(observation, previous)
        previous = observation


def test_memory_of_observations_is_used_again() -> None:
    env = rollcart.NesVectorEnv(num_envs=2)
    env.reset(seed=0)
    places = {env.step([0, 0])[0].ctypes.data for _ in range(50)}
    assert len(places) <= 4


@pytest.mark.parametrize("obs", ["image", "ram", "dict"])
def test_re3_observations_are_written_into_the_callers_arrays(obs: str) -> None:
    env, other = mk(2, obs=obs, limit=4), mk(2, obs=obs, limit=4)
    rollout = {
        key: np.zeros((8, 2, *space.shape), np.uint8)
        for key, space in (
            env.single_observation_space.items() if obs == "dict" else [("o", env.single_observation_space)]
        )
    }

    def place(step: int) -> Any:
        own = {key: array[step] for key, array in rollout.items()}
        return own if obs == "dict" else own["o"]

    equal(env.reset(seed=0, out=place(0))[0], other.reset(seed=0)[0])
    for step, actions in enumerate(random_actions(env, 7), start=1):
        given, wanted = env.step(actions, out=place(step))[0], other.step(actions)[0]
        equal(given, wanted)
        equal(place(step), wanted)
        for a, b in zip(arrays(given), arrays(place(step)), strict=True):
            assert np.shares_memory(a, b)


def test_re3_an_array_that_cannot_be_written_is_refused_before_any_lane_moves() -> None:
    env = mk(2)
    env.reset(seed=0)
    before = env.snapshot()
    shape = env.observation_space.shape
    assert shape is not None
    locked = np.zeros(shape, np.uint8)
    locked.setflags(write=False)
    bad: list[Any] = [
        np.zeros(shape, np.float32),
        np.zeros(shape[1:], np.uint8),
        np.zeros((*shape[:-1], 2 * shape[-1]), np.uint8)[..., ::2],
        locked,
        [0],
    ]
    for out in bad:
        with pytest.raises((TypeError, ValueError), match="out: expected"):
            env.step([0, 0], out=out)
    with pytest.raises(TypeError, match="image and ram"):
        mk(2, obs="dict").reset(out=np.zeros(shape, np.uint8))
    assert env.snapshot() == before
