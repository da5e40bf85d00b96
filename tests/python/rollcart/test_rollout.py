"""Rollout workers and RLlib's creator without Ray; under it: tests/adapters."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_common import RIGHT, SMALL, equal, mk

import rollcart
from rollcart.envs import rllib
from rollcart.envs._rollout import Rollout


def policy(weights: Any, obs: Any, rng: np.random.Generator) -> Any:
    actions = rng.integers(weights["most"], size=len(obs))
    return actions, {"value": obs.reshape(len(obs), -1).mean(axis=1)}


WEIGHTS = {"most": np.int64(36)}


def worker(**options: Any) -> Rollout:
    return Rollout(policy, **{"num_envs": 3, **SMALL, "max_episode_steps": 5, "noop_reset_max": 9, **options})


def test_a_fragment_has_what_was_seen_done_and_got() -> None:
    sampled = worker(seed=4).sample(WEIGHTS, 12)
    assert {name: (value.shape, value.dtype.name) for name, value in sampled.items()} == {
        "obs": ((12, 3, 2, 12, 10), "uint8"),
        "actions": ((12, 3), "int64"),
        "rewards": ((12, 3), "float32"),
        "terminated": ((12, 3), "bool"),
        "truncated": ((12, 3), "bool"),
        "value": ((12, 3), "float64"),
        "last_obs": ((3, 2, 12, 10), "uint8"),
        "ended": ((6, 2), "int64"),
        "ended_obs": ((6, 2, 12, 10), "uint8"),
        "episode_return": ((6,), "float64"),
        "episode_length": ((6,), "int64"),
    }
    native = mk(3, "SameStep", limit=5, noop_reset_max=9)
    obs, _ = native.reset(seed=4)
    for step, actions in enumerate(sampled["actions"]):
        equal(sampled["obs"][step], obs)
        obs, rewards, _, truncated, infos = native.step(actions)
        assert sampled["rewards"][step].tolist() == rewards.tolist()
        assert sampled["truncated"][step].tolist() == truncated.tolist()
        for lane in np.flatnonzero(truncated):
            (at,) = np.flatnonzero((sampled["ended"] == (step, lane)).all(axis=1))
            equal(sampled["ended_obs"][at], infos["final_obs"][lane])
            assert sampled["episode_return"][at] == infos["final_info"]["episode_return"][lane]
    equal(sampled["last_obs"], obs)
    assert set(sampled["episode_length"].tolist()) == {5}


def test_fragments_depend_on_seed_and_index_alone_and_follow_on() -> None:
    one, two = worker(seed=1, worker_index=2, num_threads=1), worker(seed=1, worker_index=2, num_threads=2)
    whole = two.sample(WEIGHTS, 9)
    first, second = one.sample(WEIGHTS, 4), one.sample(WEIGHTS, 5)
    for name in ("obs", "actions", "rewards", "terminated", "value"):
        equal(np.concatenate([first[name], second[name]]), whole[name])
    equal(first["last_obs"], second["obs"][0])
    other = worker(seed=1, worker_index=3).sample(WEIGHTS, 9)
    assert not np.array_equal(other["actions"], whole["actions"])
    assert not np.array_equal(other["obs"][0], whole["obs"][0])


def test_a_rollout_goes_on_in_another_worker() -> None:
    one = worker(seed=1)
    one.sample(WEIGHTS, 7)
    other = worker(seed=1)
    other.load(one.save())
    equal(one.sample(WEIGHTS, 6), other.sample(WEIGHTS, 6))


@pytest.mark.parametrize("obs", ["dict", "ram"])
def test_other_observations_and_plain_actions(obs: str) -> None:
    rollout = Rollout(lambda *_: [RIGHT, 0], num_envs=2, obs=obs, **SMALL)
    sampled = rollout.sample(None, 3)
    part = sampled["obs"]["ram"] if obs == "dict" else sampled["obs"]
    assert part.shape[:2] == (3, 2) and sampled["actions"].tolist() == [[RIGHT, 0]] * 3
    assert sampled["ended"].shape == (0, 2) and sampled["episode_return"].shape == (0,)
    none = sampled["ended_obs"]["ram"] if obs == "dict" else sampled["ended_obs"]
    assert none.shape == (0, *part.shape[2:])
    rollout.close()
    rollout.close()


def test_read_only_weights_and_actions_pass() -> None:
    actions = np.array([RIGHT, 0])
    actions.flags.writeable = False
    sampled = Rollout(lambda weights, *_: weights, num_envs=2, **SMALL).sample(actions, 2)
    assert sampled["actions"].flags.writeable


def test_what_is_missing_on_a_node_is_told_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRO_DATA_PATH", "/nowhere")
    with pytest.raises(
        rollcart.errors.ConfigError, match=f"on node {platform.node()}: .*no folder Absent-Nes-v0"
    ):
        Rollout(policy, "Absent-Nes-v0")
    with pytest.raises(FileNotFoundError, match="on node"):
        Rollout(policy, rom_path=Path("/nowhere/rom.nes"))
    with pytest.raises(rollcart.errors.ConfigError, match="autoreset_mode"):
        Rollout(policy, autoreset_mode="NextStep")
    with pytest.raises(rollcart.errors.ConfigError, match="0 or more"):
        Rollout(policy, worker_index=-1)
    with pytest.raises(ValueError, match="1 or more"):
        worker().sample(WEIGHTS, 0)


def test_rllibs_creator_makes_lanes_or_one_console() -> None:
    lanes = rllib.creator({"num_envs": 3, "frame_stack": 2, "scale": False})
    assert isinstance(lanes, rollcart.NesVectorEnv) and lanes.num_envs == 3
    assert lanes.single_observation_space.shape == (84, 84, 2)
    one = rllib.creator({"layout": "chw", "max_episode_steps": 2, "scale": False})
    assert isinstance(one, rollcart.NesEnv) and one.observation_space.shape == (4, 84, 84)
    with pytest.raises(rollcart.errors.ConfigError, match="NextStep"):
        rllib.creator({"num_envs": 2, "autoreset_mode": "SameStep"})


@pytest.mark.parametrize("obs", ["image", "ram", "dict"])
def test_rllib_gets_observations_from_zero_to_one(obs: str) -> None:
    lanes: Any = rllib.creator({"num_envs": 2, "obs": obs, **SMALL})
    bytes_: Any = rllib.creator({"num_envs": 2, "obs": obs, "scale": False, **SMALL})
    one: Any = rllib.creator({"obs": obs, **SMALL})
    first, alone = lanes.reset(seed=0)[0], one.reset(seed=0)[0]
    raw = bytes_.reset(seed=0)[0]
    assert lanes.observation_space.contains(first) and one.observation_space.contains(alone)
    parts = [(first[key], raw[key], alone[key]) for key in raw] if obs == "dict" else [(first, raw, alone)]
    for scaled, whole, single in parts:
        assert scaled.dtype == np.float32 and np.array_equal(np.rint(scaled * 255), whole)
        assert np.array_equal(single, scaled[0])
    assert lanes.observation_space.contains(lanes.step([RIGHT, 0])[0])


def test_without_ray_the_errors_say_what_to_install() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from rollcart.envs import rllib\n"
        "for use in (rllib.register, lambda: __import__('rollcart.envs.ray')):\n"
        "    try:\n        use()\n"
        "    except ImportError as error:\n        print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.count("pip install 'rollcart[ray]'") == 2, run.stderr
