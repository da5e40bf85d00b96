"""Gymnasium's own machinery runs over the environments: ids, the checker, wrappers, vectorisation."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import vector as wrappers
from vec_common import MODES, SMALL, equal, mk

import rollcart

ID = "rollcart:CartRunner-Nes-v0"


def test_rg21_make_vec_gives_the_native_environment_and_others_on_request() -> None:
    env = gymnasium.make_vec(ID, num_envs=16)
    assert isinstance(env, rollcart.NesVectorEnv) and env.num_envs == 16
    assert env.spec is not None and env.spec.id == "CartRunner-Nes-v0"
    obs, _ = env.reset(seed=0)
    assert obs.shape == (16, 4, 84, 84)
    native = gymnasium.make_vec(ID, num_envs=2, **SMALL)
    sync = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", **SMALL)
    assert native.observation_space == sync.observation_space and native.action_space == sync.action_space
    equal(native.reset(seed=3)[0], sync.reset(seed=3)[0])
    for _ in range(4):
        a, b = native.step(np.array([6, 9])), sync.step(np.array([6, 9]))
        equal(list(a[:4]), list(b[:4]))
        assert {k: v.dtype for k, v in b[4].items() if v.dtype != object}.items() <= {
            k: v.dtype for k, v in a[4].items()
        }.items()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_rg25_the_single_environment_runs_in_processes(context: str) -> None:
    env = gymnasium.make_vec(
        ID, num_envs=2, vectorization_mode="async", vector_kwargs={"context": context}, **SMALL
    )
    native = mk(2)
    try:
        equal(env.reset(seed=1)[0].copy(), native.reset(seed=1)[0])
        equal(env.step(np.array([6, 9]))[0].copy(), native.step([6, 9])[0])
    finally:
        env.close()


def test_rg21_make_passes_the_limit_of_steps() -> None:
    env = gymnasium.make_vec(ID, num_envs=2, max_episode_steps=3, **SMALL)
    env.reset(seed=0)
    assert [env.step([0, 0])[3].all() for _ in range(3)] == [False, False, True]
    single = gymnasium.make(ID, max_episode_steps=3, **SMALL)
    single.reset(seed=3, options={})
    assert [single.step(0)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
@pytest.mark.parametrize("obs", ["image", "ram", "dict"])
def test_rg24_the_checker_finds_nothing_to_say(obs: str, render_mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, obs=obs, render_mode=render_mode, **SMALL)
        check_env(env.unwrapped)
        env.close()
        env.close()


def test_rg24_the_single_environment_gives_python_values() -> None:
    env = gymnasium.make(ID, disable_env_checker=True, **SMALL).unwrapped
    observation, info = env.reset(seed=0)
    assert observation.shape == (2, 12, 10) and type(info["xpos"]) is int and info["state"] == "Level1"
    observation, reward, terminated, truncated, info = env.step(6)
    assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
    assert env.np_random_seed == 0
    state = env.snapshot()  # type: ignore[attr-defined]
    after = env.step(9)[0]
    env.restore(state)  # type: ignore[attr-defined]
    assert np.array_equal(env.step(9)[0], after)
    for bad in (36, -1, 1.0, [0, 1], None):
        with pytest.raises(ValueError, match="action"):
            env.step(bad)


def test_rg23_a_spec_survives_json_and_pickle() -> None:
    spec = gymnasium.make_vec(ID, num_envs=2, frame_stack=2).spec
    assert spec is not None
    assert EnvSpec.from_json(spec.to_json()).kwargs == spec.kwargs
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_rg22_no_rom_is_needed_until_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gymnasium.spec("SuperMarioBros-Nes-v0")
    monkeypatch.setenv("RETRO_DATA_PATH", "/nowhere")
    with (
        pytest.raises(rollcart.errors.RomError, match=r"rom_path|rom\.nes")
        if _retro()
        else pytest.raises(rollcart.errors.ConfigError, match="RETRO_DATA_PATH")
    ):
        gymnasium.make(spec)


def _retro() -> bool:
    from rollcart import discovery

    return bool(discovery.folders("SuperMarioBros-Nes-v0"))


def played(env: Any, steps: int = 12) -> None:
    env.reset(seed=0)
    for _ in range(steps):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("mode", MODES)
def test_episode_statistics_count_right_in_every_mode(mode: str) -> None:
    env = wrappers.RecordEpisodeStatistics(mk(2, mode, limit=4))
    env.reset(seed=0)
    for _ in range(4):
        _, _, terminated, truncated, infos = env.step(np.array([6, 0]))
    assert infos["episode"]["l"].tolist() == [4, 4]
    own = infos["final_info"] if mode == "SameStep" else infos
    assert infos["episode"]["r"].tolist() == own["episode_return"].tolist()
    if mode == "Disabled":
        env.reset(options={"reset_mask": terminated | truncated})
        for _ in range(4):
            infos = env.step(np.array([6, 0]))[4]
        assert infos["episode"]["l"].tolist() == [4, 4]


def test_rg12_the_wrapper_above_still_sees_which_lanes_were_reset() -> None:
    """It would clear all lanes if the environment took the mask out of the options."""
    env = wrappers.RecordEpisodeStatistics(mk(2, "Disabled", limit=[2, 5]))
    env.reset(seed=0)
    lengths = []
    for _ in range(5):
        _, _, terminated, truncated, infos = env.step(np.array([6, 0]))
        done = terminated | truncated
        if done.any():
            lengths += infos["episode"]["l"][done].tolist()
            env.reset(options={"reset_mask": done})
    assert lengths == [2, 2, 5]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: wrappers.ClipReward(env, -1, 1),
        wrappers.NormalizeReward,
        wrappers.NormalizeObservation,
        lambda env: wrappers.TransformObservation(env, lambda o: o / 255.0),
        wrappers.DictInfoToList,
    ],
)
def test_vector_wrappers_run_over_it(wrap: Any) -> None:
    played(wrap(mk(2, limit=5)))


def test_rg19_u37_a_video_of_lanes_is_recorded(tmp_path: Any) -> None:
    env = wrappers.RecordVideo(mk(2, render_mode="rgb_array"), str(tmp_path / "video"), video_length=5)
    played(env)
    env.close()
    assert list((tmp_path / "video").glob("*.mp4"))


def test_rg19_u37_a_window_shows_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = wrappers.HumanRendering(mk(2, render_mode="rgb_array"))
    played(env, 3)
    env.close()


def test_rg5_what_an_instance_tells_is_its_own() -> None:
    env = mk(2)
    env.metadata["render_modes"].append("mine")
    single = rollcart.NesEnv()
    single.metadata["render_modes"].append("mine")
    for other in (mk(2), rollcart.NesEnv()):
        assert other.metadata["render_modes"] == type(other).metadata["render_modes"] == ["rgb_array"]


def test_rg24_the_single_environment_speaks_of_one() -> None:
    env = rollcart.NesEnv(actions="all", max_episode_steps=1, **SMALL)
    env.reset(seed=np.int64(3))
    assert env.np_random_seed == 3
    with pytest.raises(ValueError, match=r"shape \(9,\), one MultiBinary\(9\) \(for one number make"):
        env.step(3)
    env.step(np.zeros(9, np.int8))
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\)"):
        env.step(np.zeros(9, np.int8))
    for many in ({"batch_size": 1}, {"game": ["CartRunner-Nes-v0"]}, {"rom_path": [b""]}):
        with pytest.raises(TypeError, match="NesEnv has one lane"):
            rollcart.NesEnv(**many)  # type: ignore[arg-type]


def test_wrappers_reach_what_actions_press() -> None:
    env = gymnasium.make(ID, actions=[[], ["RIGHT", "A"], 2], **SMALL)
    assert env.get_wrapper_attr("get_action_meanings")() == ["NOOP", "A+RIGHT", "B"]
    assert env.get_wrapper_attr("action_buttons") == [(0, 0), (129, 0), (2, 0)]
    assert env.get_wrapper_attr("game") == "CartRunner-Nes-v0"
    two = mk(1, players=2, actions="discrete").get_action_meanings()
    assert len(two) == 1296 and two[0] == "NOOP" and two[36] == "-, UP"
    with pytest.raises(rollcart.errors.ConfigError, match="MultiBinary"):
        mk(1, actions="all").get_action_meanings()
