"""Observations, rewards and ends are those of the slow model, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_common import RIGHT, game_with, quick_end, random_actions
from vec_model import BUTTONS, GAME, Lane, Options

import rollcart

STATE = (GAME / "Level1.state").read_bytes()

CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"grayscale": False, "resize": (30, 40)},
    {"crop": (40, 8, 16, 24), "crop_mode": "cut", "resize": (21, 37)},
    {"crop": (1, 2, 3, 5), "crop_mode": "mask", "resize": (20, 20), "layout": "hwc", "frame_stack": 3},
    {"grayscale": False, "layout": "hwc", "resize": (17, 33), "frame_stack": 2, "crop": (0, 0, 0, 0)},
    {"resize_algorithm": "nearest", "resize": (50, 61)},
    {"resize_algorithm": "bilinear", "resize": (50, 61)},
    {"resize_algorithm": "bilinear", "resize": (30, 300), "crop": (100, 0, 100, 0), "crop_mode": "cut"},
    {"resize": (250, 30), "frame_stack": 1},
    {"resize": None, "frame_stack": 2},
    {"resize": None, "grayscale": False, "crop_mode": "cut", "frame_stack": 1, "layout": "hwc"},
    {"maxpool": True, "resize": (28, 30)},
    {"maxpool": True, "grayscale": False, "resize": (14, 15), "frame_skip": 2},
    {"maxpool": True, "frame_skip": 1, "resize": (14, 15)},
    {"maxpool": True, "noop_reset_max": 9, "resize": (14, 15)},
    {"frame_skip": 1, "resize": (14, 15)},
    {"frame_skip": 7, "reward_clip": True, "resize": (14, 15)},
    {"sticky_action_prob": 0.3, "noop_reset_max": 30, "resize": (14, 15)},
]


@pytest.mark.parametrize("options", CONFIGURATIONS, ids=str)
def test_lanes_equal_the_slow_model_to_the_byte(options: dict[str, Any]) -> None:
    env = rollcart.NesVectorEnv(num_envs=2, state_catalog=["Level1", "Level3"], **options)
    lanes = [Lane(Options(**options), (GAME / f"{s}.state").read_bytes()) for s in ("Level1", "Level3")]
    first, _ = env.reset(seed=11)
    for index, lane in enumerate(lanes):
        assert np.array_equal(first[index], lane.reset(seed=11 + index)), f"reset of lane {index}"
    for at, actions in enumerate(random_actions(env, 12, seed=5)):
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for index, lane in enumerate(lanes):
            wanted, reward, done, cut = lane.step(BUTTONS[actions[index]])
            assert np.array_equal(observations[index], wanted), f"step {at}, lane {index}"
            assert (rewards[index], terminated[index], truncated[index]) == (reward, done, cut)
            assert {name: infos[name][index] for name in lane.values} == lane.values
        if terminated.any():
            break


@pytest.mark.parametrize("maxpool", [False, True])
@pytest.mark.parametrize("skip", [1, 4, 5])
def test_u39_an_end_inside_the_skip_stops_it_and_shows_that_frame(
    skip: int, maxpool: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = set()
    for x in range(56, 64):
        folder = tmp_path / str(x)
        game = game_with(folder, monkeypatch, quick_end(x))
        options: dict[str, Any] = {"frame_skip": skip, "maxpool": maxpool, "resize": (14, 15)}
        env = rollcart.NesVectorEnv(game, autoreset_mode="Disabled", **options)
        lane = Lane(Options(**options), STATE, folder / "stable" / game)
        env.reset(seed=0)
        lane.reset(seed=0)
        done = False
        while not done:
            observation, reward, terminated, _, _ = env.step([RIGHT])
            wanted, total, done, _ = lane.step(BUTTONS[RIGHT])
            assert np.array_equal(observation[0], wanted)
            assert (reward[0], terminated[0]) == (total, done)
        ends.add(len(lane.pictures))
        assert env.profile()["frames_redrawn"] == (len(lane.pictures) if len(lane.pictures) < skip else 0)
        assert np.array_equal(env.render_lane(0), lane.pictures[-1])
    assert skip == 1 or len(ends) > 1, "ends in different places of the skip were meant"


def test_u39_skipping_frames_sums_the_rewards_of_single_frames() -> None:
    skipping = rollcart.NesVectorEnv(frame_skip=4, frame_stack=1)
    single = rollcart.NesVectorEnv(frame_skip=1, frame_stack=1)
    assert np.array_equal(skipping.reset(seed=0)[0], single.reset(seed=0)[0])
    for actions in random_actions(skipping, 30):
        observation, reward, terminated, _, _ = skipping.step(actions)
        total, done = 0.0, False
        for _ in range(4):
            one, part, done, _, _ = single.step(actions)
            total += part[0]
            if done:
                break
        assert np.array_equal(observation, one) and reward[0] == total and terminated[0] == done
        if done:
            break


def test_u21_u38_the_first_observation_is_not_blank_and_fills_the_stack() -> None:
    env = rollcart.NesVectorEnv(num_envs=3, state_catalog=["Level1", "Level2"], render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    assert all(len(np.unique(lane)) > 3 for lane in observation)
    assert (observation == observation[:, :1]).all()
    pictures = env.render()
    assert pictures is not None and [p.shape for p in pictures] == [(224, 240, 3)] * 3
    for state, picture in zip(env.start_states, pictures, strict=True):
        lane = Lane(Options(), (GAME / f"{state}.state").read_bytes())
        lane.reset()
        assert np.array_equal(picture, lane.pictures[-1])


def test_ram_observations_are_the_consoles_memory() -> None:
    env = rollcart.NesVectorEnv(num_envs=2, obs="ram")
    assert env.single_observation_space.shape == (10240,)
    observation, _ = env.reset(seed=0)
    lane = Lane(Options(), STATE)
    lane.reset()
    for _ in range(5):
        assert np.array_equal(observation[1], np.concatenate([lane.console.ram, lane.console.work_ram]))
        assert np.array_equal(env.ram()[0], lane.console.ram)
        observation = env.step([RIGHT, RIGHT])[0]
        lane.step(BUTTONS[RIGHT])


def test_dict_observations_hold_the_image_and_ram() -> None:
    both = rollcart.NesVectorEnv(num_envs=2, obs="dict")
    image = rollcart.NesVectorEnv(num_envs=2, obs="image")
    ram = rollcart.NesVectorEnv(num_envs=2, obs="ram")
    observation = both.reset(seed=0)[0]
    for _ in range(3):
        assert both.observation_space.contains(observation)
        expected = [env.reset(seed=0)[0] if _ == 0 else env.step([RIGHT, 0])[0] for env in (image, ram)]
        assert np.array_equal(observation["image"], expected[0])
        assert np.array_equal(observation["ram"], expected[1])
        observation = both.step([RIGHT, 0])[0]


def test_rg19_u37_rendering_shows_ram_lanes_too_and_changes_nothing() -> None:
    quiet = rollcart.NesVectorEnv(obs="ram", sticky_action_prob=0.3)
    shown = rollcart.NesVectorEnv(obs="ram", sticky_action_prob=0.3, render_mode="rgb_array")
    drawn = rollcart.NesVectorEnv(obs="image", sticky_action_prob=0.3)
    for env in (quiet, shown, drawn):
        env.reset(seed=3)
    for actions in random_actions(quiet, 20):
        results = [env.step(actions) for env in (quiet, shown, drawn)]
        assert np.array_equal(results[0][0], results[1][0])
        assert np.array_equal(shown.render_lane(0), drawn.render_lane(0))
