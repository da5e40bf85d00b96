"""Stable-Baselines3's contract (RS), held without the library, whose base class `rollcart.envs.sb3` adds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers.vector import ClipReward
from vec_common import MODES, RIGHT, SMALL, equal, game_with, mk, quick_end, random_actions

import rollcart
from rollcart.envs._same_step import Step
from rollcart.envs._sb3_lanes import Sb3Lanes
from rollcart.errors import ConfigError


def lanes(n: int = 2, **options: Any) -> Sb3Lanes:
    return Sb3Lanes(num_envs=n, **{**SMALL, **options})


def test_rs1_reset_gives_observations_alone_and_a_step_four_things() -> None:
    venv = lanes(3)
    obs = venv.reset()
    assert obs.shape == (3, 2, 12, 10) and venv.observation_space.shape == (2, 12, 10)
    assert [type(info) for info in venv.reset_infos] == [dict] * 3
    assert venv.reset_infos[0]["state"] == "Level1" and type(venv.reset_infos[0]["xpos"]) is int
    venv.step_async(np.array([RIGHT, 0, 0]))
    obs, rewards, dones, infos = venv.step_wait()
    assert obs.shape == (3, 2, 12, 10)
    assert (rewards.dtype, rewards.shape) == (np.float32, (3,))
    assert (dones.dtype, dones.shape) == (np.bool_, (3,))
    assert isinstance(infos, list) and [type(info) for info in infos] == [dict] * 3
    with pytest.raises(RuntimeError, match="step_async"):
        venv.step_wait()
    with pytest.raises(ValueError, match="actions"):
        venv.step([0, 0])


@pytest.mark.parametrize("mode", MODES)
def test_rs2_the_step_that_ends_an_episode_begins_the_next_and_tells_of_the_last(mode: str) -> None:
    venv, native, alone = Sb3Lanes(mk(2, mode, limit=5)), mk(2, "SameStep", limit=5), mk(2, "Disabled")
    equal(venv.reset(), native.reset()[0])
    alone.reset()
    for step in range(1, 13):
        actions = [RIGHT, 9]
        obs, rewards, dones, infos = venv.step(actions)
        theirs = native.step(actions)
        last = alone.step(actions)[0]
        equal(obs, theirs[0])
        assert rewards.tolist() == theirs[1].tolist() and dones.tolist() == [step % 5 == 0] * 2
        for lane, info in enumerate(infos):
            assert info["TimeLimit.truncated"] is (step % 5 == 0)
            assert ("terminal_observation" in info) is (step % 5 == 0)
            assert info["elapsed_steps"] == (step - 1) % 5 + 1
            if step % 5 == 0:
                equal(info["terminal_observation"], theirs[4]["final_obs"][lane])
                equal(info["terminal_observation"], last[lane])
                assert info["xpos"] == theirs[4]["final_info"]["xpos"][lane]
                assert venv.reset_infos[lane]["elapsed_steps"] == 0
        if step % 5 == 0:
            alone.reset()


def test_rs2_an_end_that_is_no_time_limit_is_not_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = game_with(tmp_path, monkeypatch, quick_end())
    venv = Sb3Lanes(game, 2, **SMALL)
    venv.reset()
    ends = []
    for _ in range(40):
        _, _, dones, infos = venv.step([RIGHT, 0])
        assert all(info["TimeLimit.truncated"] is False for info in infos)
        ends += [lane for lane in range(2) if dones[lane]]
    assert ends and set(ends) == {0}
    # The limit in the very step that also ends the episode: it ended, and nothing is bootstrapped.
    steps = next(k for k in range(1, 40) if k == _steps_to_end(game))
    venv = Sb3Lanes(game, 1, max_episode_steps=steps, **SMALL)
    venv.reset()
    for _ in range(steps):
        _, _, dones, infos = venv.step([RIGHT])
    assert dones.tolist() == [True] and infos[0]["TimeLimit.truncated"] is False


def test_rs2_both_flags_at_once_are_an_end_and_no_time_limit() -> None:
    venv, both = lanes(2), np.array([True, False])
    obs = venv.reset()
    infos = venv._infos(Step(obs, np.zeros(2), both, both, {}, {0: obs[0]}))
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]
    infos = venv._infos(Step(obs, np.zeros(2), ~both, both, {}, {0: obs[0]}))
    assert [info["TimeLimit.truncated"] for info in infos] == [True, False]


def _steps_to_end(game: str) -> int:
    venv = Sb3Lanes(game, 1, **SMALL)
    venv.reset()
    for steps in range(1, 41):
        if venv.step([RIGHT])[2][0]:
            return steps
    raise AssertionError("no episode ended in 40 steps")


def test_rs3_u13_seed_waits_for_the_next_reset_and_is_used_once() -> None:
    venv = lanes(3, noop_reset_max=30)
    before = venv.reset().copy()
    assert venv.seed(1) == [1, 2, 3]
    equal(venv.env.restore(venv.env.snapshot()), before)
    native = mk(3, noop_reset_max=30)
    equal(venv.reset(), native.reset(seed=1)[0])
    # Used up: the lanes go on with their random numbers, as a reset without a seed does.
    equal(venv.reset(), native.reset()[0])
    assert venv.seed(np.int64(5)) == [5, 6, 7]
    np.random.seed(3)
    first = venv.seed()
    np.random.seed(3)
    assert venv.seed() == first and first[1] == first[0] + 1  # type: ignore[operator]


def test_rs3_options_choose_start_states_once_given_and_keep_them() -> None:
    venv = lanes(2, max_episode_steps=3)
    venv.set_options({"state": "Level2"})
    assert venv.get_attr("start_state") == ["Level1", "Level1"]
    venv.reset()
    assert [info["state"] for info in venv.reset_infos] == ["Level2", "Level2"]
    venv.set_options([{"state": "Level3"}, {}])
    venv.reset()
    for _ in range(4):
        infos = venv.step([0, 0])[3]
    assert [info["state"] for info in infos] == ["Level3", "Level2"]
    assert [info["state"] for info in venv.reset_infos] == ["Level3", "Level2"]
    venv.reset()
    assert venv.get_attr("start_state") == ["Level3", "Level2"]
    with pytest.raises(ValueError, match=r"found level"):
        venv.set_options({"level": 2})
    with pytest.raises(ValueError, match="one a lane"):
        venv.set_options([{}])


def test_rs4_attributes_and_methods_of_lanes() -> None:
    venv = lanes(3)
    venv.reset()
    assert venv.get_attr("render_mode") == [None] * 3
    assert venv.get_attr("game", 1) == ["CartRunner-Nes-v0"] and venv.get_attr("index", [2, 0]) == [2, 0]
    assert venv.get_attr("observation_space")[0] == venv.observation_space
    assert venv.get_attr("action_space", np.int64(0)) == [venv.action_space]
    venv.set_attr("goal", 7, indices=[0, 2])
    assert venv.get_attr("goal", [0, 2]) == [7, 7]
    assert venv.has_attr("index") and not venv.has_attr("goal") and not venv.has_attr("nothing")
    with pytest.raises(AttributeError, match="nothing"):
        venv.get_attr("nothing")
    for shared in ("num_threads", "action_space", "frame_stack"):
        with pytest.raises(AttributeError, match="fixed"):
            venv.set_attr(shared, 1)
    with pytest.raises(IndexError, match="no lane 3"):
        venv.get_attr("index", 3)
    assert venv.env_is_wrapped(object) == [False] * 3 and venv.env_is_wrapped(object, 1) == [False]
    (state,) = venv.env_method("snapshot", indices=1)
    after = venv.step([RIGHT] * 3)[0][1]
    for _ in range(3):
        venv.step([9] * 3)
    other = venv.env_method("ram", indices=0)[0]
    venv.env_method("restore", state, indices=1)
    assert np.array_equal(venv.env_method("ram", indices=0)[0], other)
    assert np.array_equal(venv.step([RIGHT] * 3)[0][1], after)
    with pytest.raises(AttributeError, match="step"):
        venv.env_method("step", 0)


def test_rs5_pictures_of_all_lanes_or_a_warning() -> None:
    venv = lanes(2, render_mode="rgb_array")
    venv.reset()
    images = venv.get_images()
    assert [(image.shape, image.dtype) for image in images if image is not None] == [
        ((224, 240, 3), np.uint8)
    ] * 2
    equal(images[1], venv.env.render_lane(1))
    dark = lanes(2)
    with pytest.warns(UserWarning, match="render_mode"):
        assert dark.get_images() == [None, None]
    venv.close()
    venv.close()


@pytest.mark.parametrize("copy", [True, False])
def test_rs6_the_last_observation_outlives_the_next_step_and_infos_are_new(copy: bool) -> None:
    venv, actions = lanes(2, copy=copy, max_episode_steps=3), None
    obs = venv.reset()
    actions = random_actions(venv.env, 12)
    seen: list[int] = []
    for row in actions:
        kept, held = obs.copy(), obs
        obs, _, _, infos = venv.step(row)
        assert np.array_equal(held, kept)
        infos[0]["episode"] = "the caller's own"
        seen += [id(info) for info in infos]
        assert infos[0].keys() >= {"xpos", "episode_return"}
    with pytest.raises(rollcart.errors.ConfigError, match="SameStep"):
        Sb3Lanes(mk(2, "NextStep", copy=False))


def test_rs7_episodes_returns_and_lengths_equal_a_hand_count() -> None:
    venv = lanes(2, max_episode_steps=7)
    venv.reset()
    returns, told = np.zeros(2), []
    for row in random_actions(venv.env, 30):
        _, rewards, dones, infos = venv.step(row)
        returns += rewards
        for lane in np.flatnonzero(dones):
            assert infos[lane]["episode"] == {"r": returns[lane], "l": 7}
            told.append(returns[lane])
            returns[lane] = 0
    assert len(told) == 8


def test_rs7_a_stack_inside_the_lanes_is_flagged() -> None:
    venv = lanes(1, frame_stack=3)
    assert venv.frame_stack == venv.metadata["frame_stack"] == 3 and venv.get_attr("frame_stack") == [3]
    assert lanes(1, frame_stack=1).frame_stack == 1


def test_dict_observations_and_sampled_flags_pass() -> None:
    venv = lanes(2, obs="dict", actions="filtered", max_episode_steps=2)
    assert venv.reset()["ram"].shape == (2, *venv.observation_space["ram"].shape)  # type: ignore[index]
    flags = np.zeros((2, 9), np.float32)
    flags[:, 7] = 1
    venv.step(flags)
    infos = venv.step(flags)[3]
    assert infos[1]["terminal_observation"]["ram"].shape == venv.observation_space["ram"].shape  # type: ignore[index]
    with pytest.raises(ValueError, match="actions"):
        venv.step(flags / 2)
    with pytest.raises(ValueError, match="actions"):
        lanes(2).step(np.array([0.0, 1.0]))


def test_chosen_infos_alone_are_given() -> None:
    venv = lanes(2, info_keys=["xpos"], max_episode_steps=1)
    venv.reset()
    infos = venv.step([0, 0])[3]
    assert infos[0].keys() == {"xpos", "TimeLimit.truncated", "terminal_observation"}
    venv = lanes(2, info_keys=[], max_episode_steps=1)
    venv.reset()
    assert venv.step([0, 0])[3][1].keys() == {"TimeLimit.truncated", "terminal_observation"}


def test_what_is_no_lanes_is_refused() -> None:
    with pytest.raises(TypeError, match="make_vec_env"):
        Sb3Lanes(rollcart.NesEnv(**SMALL))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="take no options, found frame_skip"):
        Sb3Lanes(mk(2), frame_skip=2)


def test_without_the_library_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "import rollcart.envs\n"
        "try:\n    import rollcart.envs.sb3\n"
        "except ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "pip install 'rollcart[sb3]'" in run.stdout, run.stderr


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("7", TypeError), (1.0, TypeError)], ids=repr)
def test_rs3_a_bad_seed_is_refused_when_it_is_given(seed: Any, error: type[Exception]) -> None:
    venv = lanes()
    with pytest.raises(error, match="seed: expected"):
        venv.seed(seed)
    assert venv.seed(np.int64(3)) == [3, 4]


@pytest.mark.parametrize("options", [3, "Level2", [{}, None], ["state", "state"]], ids=repr)
def test_rs3_options_that_are_no_dicts_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match="options: expected a dict, or a list of them"):
        lanes().set_options(options)


def test_what_is_no_native_environment_is_told_where_its_wrapper_belongs() -> None:
    wrapped = ClipReward(mk(2), -1, 1)
    with pytest.raises(TypeError, match="found ClipReward; wrap the NesVecEnv"):
        Sb3Lanes(wrapped)  # type: ignore[arg-type]
    for other in (None, rollcart.NesEnv(), 5):
        with pytest.raises(TypeError, match="expected a NesVectorEnv or the name of a game, found"):
            Sb3Lanes(other)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="game: expected the name of a game"):
        Sb3Lanes([lambda: rollcart.NesEnv()])  # type: ignore[list-item]


def test_several_games_are_lanes_too() -> None:
    venv = Sb3Lanes(["CartRunner-Nes-v0"] * 3, **SMALL)
    assert venv.num_envs == 3 and venv.reset().shape == (3, 2, 12, 10)
    assert venv.get_attr("game") == ["CartRunner-Nes-v0"] * 3
