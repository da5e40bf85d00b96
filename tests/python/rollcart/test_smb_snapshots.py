"""gym-super-mario-bros' interface: copies, old calls and specs, over the cartridge that stands in."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
import smb_stand_in
from gymnasium.utils.env_checker import check_env

from rollcart.compat import gym_super_mario_bros as smb
from rollcart.compat.gym_super_mario_bros.actions import RIGHT_ONLY
from rollcart.errors import StateError

ROM = smb_stand_in.rom()
RIGHT, DEATH = 128, 2


def made(name: str = "SuperMarioBros-1-1-v0", **options: Any) -> Any:
    return smb.make(name, rom_path=ROM, **options)


def go(env: Any) -> list[Any]:
    return [env.step(action)[1:] for action in (RIGHT, RIGHT, 0, DEATH)] + [env.reset(seed=1)[1]]


def test_u33_an_environment_points_at_its_snapshots() -> None:
    env = made().unwrapped
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"snapshot\(\) and restore\(\)"):
            use(env)


@pytest.mark.parametrize("name", ["SuperMarioBros-1-1-v0", "SuperMarioBros-v0"])
def test_u33_a_snapshot_goes_on_as_its_environment_did(name: str) -> None:
    env, other = made(name).unwrapped, made(name).unwrapped
    env.reset(seed=0)
    env.step(RIGHT)
    state, picture = env.snapshot(), env.step(RIGHT)[0]
    went = go(env)
    for again in (env, other):
        again.restore(state)
        assert np.array_equal(again.step(RIGHT)[0], picture)
        assert go(again) == went


def test_u33_a_snapshot_before_an_episode_or_of_another_one_is_what_it_was() -> None:
    env = made().unwrapped
    before = env.snapshot()
    env.reset(seed=0)
    env.restore(before)
    with pytest.raises(ValueError, match=r"call reset\(\)"):
        env.step(0)
    stages = made("SuperMarioBrosRandomStages-v0", stages=["1-1", "1-2"]).unwrapped
    stages.reset(seed=0)
    env.reset(seed=0)
    stages.restore(env.snapshot())
    assert stages.step(0)[4]["stage"] == 1
    for bad in (b"", b"RCSM", made("SuperMarioBros-1-2-v0").unwrapped.snapshot(), before[:40]):
        with pytest.raises(StateError):
            env.restore(bad)
    assert env.step(RIGHT)[1] == 2.0


def test_u29_old_loops_seed_and_ask_for_pictures_as_they_did() -> None:
    env = smb.JoypadSpace(made(old_api=True, render_mode="rgb_array"), RIGHT_ONLY)
    assert env.seed(3) == [3]
    env.reset()
    assert env.unwrapped.np_random_seed == 3
    assert env.render(mode="rgb_array").shape == env.render().shape == (240, 256, 3)
    silent = smb.JoypadSpace(made(old_api=True), RIGHT_ONLY)
    silent.reset()
    with pytest.warns(UserWarning, match=r"render: there is no picture.*render_mode='human'"):
        assert silent.render() is None


def test_rm3_a_spec_makes_the_wrapped_environment_again() -> None:
    env = smb.JoypadSpace(made(), RIGHT_ONLY)
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    assert isinstance(again, smb.JoypadSpace) and again.action_space == env.action_space
    again.reset(seed=0)
    assert again.step(1)[1] == 2.0
    assert pickle.loads(pickle.dumps(env.spec)) == env.spec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a wrapper may change what is checked
        check_env(env, skip_render_check=True)


def test_options_of_a_reset_that_are_no_dict_are_refused_here_too() -> None:
    with pytest.raises(TypeError, match="options: expected a dict or None, found 5"):
        made().reset(options=5)
