"""Spaces are batched as Gymnasium batches them, and actions are accepted or refused before any lane moves."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from vec_common import equal, mk

from rollcart.errors import ConfigError

ACTIONS: list[tuple[Any, Any]] = [
    ("discrete", spaces.Discrete(36)),
    ("multi_discrete", spaces.MultiDiscrete([3, 3, 4])),
    ("filtered", spaces.MultiBinary(9)),
    ("all", spaces.MultiBinary(9)),
    ("right_only", spaces.Discrete(5)),
    ("simple", spaces.Discrete(7)),
    ("complex", spaces.Discrete(12)),
    ([0, 0x80, ["right", "A"]], spaces.Discrete(3)),
]


@pytest.mark.parametrize(("actions", "single"), ACTIONS, ids=str)
@pytest.mark.parametrize("players", [1, 2])
def test_rg1_rg2_u44_every_action_mode_has_batched_spaces_and_takes_their_samples(
    actions: Any, single: Any, players: int
) -> None:
    env = mk(3, actions=actions, players=players)
    if players == 1:
        assert env.single_action_space == single
    assert env.action_space == batch_space(env.single_action_space, 3)
    assert env.observation_space == batch_space(env.single_observation_space, 3)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    env.action_space.seed(0)
    for _ in range(5):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert (reward.shape, reward.dtype) == ((3,), np.float64)
        assert [(a.shape, a.dtype) for a in (terminated, truncated)] == [((3,), np.bool_)] * 2


@pytest.mark.parametrize("obs", ["image", "ram", "dict"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_rg3_observations_are_in_their_space_through_autoresets(obs: str, mode: str) -> None:
    env = mk(2, mode, limit=3, obs=obs)
    assert env.observation_space.contains(env.reset(seed=0)[0])
    for _ in range(9):
        assert env.observation_space.contains(env.step([1, 2])[0])


def test_rg1_the_environment_is_a_vector_env_with_its_attributes() -> None:
    env = mk(2)
    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert (env.num_envs, env.render_mode, env.spec, env.closed) == (2, None, None, False)
    assert env.metadata["render_modes"] == ["rgb_array"] and 60 < env.metadata["render_fps"] < 60.2


def test_rr26_numbers_of_discrete_press_what_they_press_in_stable_retro() -> None:
    # What get_action_meaning of stable-retro 1.0.1 says.
    buttons = mk(1).action_buttons
    assert buttons is not None
    meant = {0: 0, 1: 16, 2: 32, 3: 64, 4: 80, 6: 128, 9: 2, 15: 130, 18: 1, 24: 129, 27: 3, 35: 32 | 128 | 3}
    assert {number: buttons[number][0] for number in meant} == meant


@pytest.mark.parametrize(
    "form",
    [
        lambda a: a.astype(np.int32),
        lambda a: a.astype(np.int64),
        lambda a: a.astype(np.uint8),
        lambda a: a.tolist(),
        lambda a: tuple(a.tolist()),
        lambda a: np.repeat(a, 2)[::2],
        lambda a: (a.setflags(write=False), a)[1],
        lambda a: a.astype(">i4"),
    ],
)
def test_rg4_actions_come_in_any_form_of_integers(form: Any) -> None:
    plain, other = mk(3), mk(3)
    actions = np.array([6, 9, 35])
    plain.reset(seed=0)
    other.reset(seed=0)
    equal(plain.step(actions), other.step(form(actions.copy())))


@pytest.mark.parametrize(
    "actions",
    [
        [0, 36],
        [-1, 0],
        [0],
        [0, 0, 0],
        [[0, 0]],
        0,
        [0.0, 1.0],
        [float("nan"), 0],
        [True, False],
        ["A", "B"],
        [None, None],
        None,
        [[0], [0, 1]],
        np.array([2**40, 0]),
        np.array([2**64 - 1, 0], np.uint64),
    ],
    ids=str,
)
def test_rg4_a_bad_action_is_refused_before_any_lane_moves(actions: Any) -> None:
    env, other = mk(2), mk(2)
    env.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(ValueError, match=r"action"):
        env.step(actions)
    equal(env.snapshot(), other.snapshot())
    equal(env.step([6, 9]), other.step([6, 9]))


@pytest.mark.parametrize("mode", ["all", "filtered"])
def test_rg4_u22_one_number_for_flags_is_answered_with_the_shape_and_the_way_to_discrete(mode: str) -> None:
    env = mk(2, actions=mode)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"\(2, 9\).*discrete"):
        env.step(3)
    with pytest.raises(ValueError, match=r"out of range"):
        env.step(np.full((2, 9), 2))


@pytest.mark.parametrize("mode", ["all", "filtered"])
def test_rg4_flags_may_be_truth_values(mode: str) -> None:
    env, other = mk(2, actions=mode), mk(2, actions=mode)
    env.reset(seed=0)
    other.reset(seed=0)
    pressed = np.zeros((2, 9), bool)
    pressed[0, 7] = pressed[1, 8] = True
    equal(env.step(pressed), other.step(pressed.astype(np.int8)))
    assert env.step(pressed)[4]["xpos"][0] > env.step(pressed)[4]["xpos"][1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"frame_skip": 0}, "frame_skip"),
        ({"frame_stack": 0}, "frame_stack"),
        ({"obs": "pixels"}, "image.*ram.*dict"),
        ({"crop": (224, 0, 0, 0)}, "crop"),
        ({"crop": (-1, 0, 0, 0)}, "crop"),
        ({"crop_mode": "blur"}, "mask.*cut"),
        ({"resize": (0, 84)}, "resize"),
        ({"resize": 84}, "resize"),
        ({"resize": {84}}, "resize: expected finite numbers.*found"),
        ({"crop": np.str_}, "crop: expected finite numbers.*found"),
        ({"resize_algorithm": "cubic"}, "area.*nearest.*bilinear"),
        ({"layout": "nchw"}, "chw.*hwc"),
        ({"actions": "fast"}, "discrete.*complex"),
        ({"actions": []}, "actions"),
        ({"actions": [["JUMP"]]}, "JUMP"),
        ({"actions": [256]}, "255"),
        ({"players": 3}, "players"),
        ({"players": 0}, "players"),
        ({"game": 3}, "game"),
        ({"max_episode_steps": 0}, "max_episode_steps"),
        ({"noop_reset_max": -1}, "noop_reset_max"),
        ({"sticky_action_prob": 1.5}, "sticky_action_prob"),
        ({"sticky_action_prob": float("nan")}, "sticky_action_prob: expected finite numbers.*nan"),
        ({"info_keys": ["lifes"]}, "lives"),
        ({"num_threads": 0}, "num_threads"),
        ({"engine": "reference"}, "reference"),
        ({"engine": "slow"}, "fast"),
        ({"engine_options": {"turbo": True}}, "turbo"),
        ({"autoreset_mode": "Later"}, "NextStep"),
        ({"render_mode": "human"}, "HumanRendering"),
        ({"state": 7}, "state"),
        ({"state_catalog": "Level1"}, "state_catalog"),
        ({"state_catalog": []}, "state_catalog"),
        ({"state_catalog": {"Level1"}}, "state_catalog: expected a list.*found"),
    ],
    ids=str,
)
def test_a_bad_option_is_one_clear_config_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mk(
            **{
                "n": 2,
                **{
                    (
                        "n"
                        if k == "num_envs"
                        else "mode"
                        if k == "autoreset_mode"
                        else "limit"
                        if k == "max_episode_steps"
                        else k
                    ): v
                    for k, v in options.items()
                },
            }
        )


def test_options_may_be_arrays_and_numbers_of_numpy() -> None:
    plain = mk(2, crop=(40, 0, 8, 0), resize=(12, 10), limit=[3, 4], frame_skip=2)
    other = mk(
        2,
        crop=np.array([40, 0, 8, 0], np.int16),
        resize=np.array([12, 10]),
        limit=np.array([3, 4]),
        frame_skip=np.uint8(2),
    )
    assert other.single_observation_space == plain.single_observation_space
    equal(other.reset(seed=1), plain.reset(seed=1))
    for _ in range(4):
        equal(other.step([1, 1]), plain.step([1, 1]))


def test_rg4_a_number_beyond_64_bits_is_not_told_as_another_one() -> None:
    env = mk(2)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action \d{19} of lane 0 is out of range"):
        env.step(np.array([2**63, 0], np.uint64))
