"""The adapter under the real Stable-Baselines3 (`make test-sb3`). The logic alone: test_sb3_lanes.py."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.wrappers.vector import NumpyToTorch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecTransposeImage,
    VecVideoRecorder,
    unwrap_vec_normalize,
)

import rollcart
from rollcart.envs.sb3 import NesVecEnv

RIGHT = 6
torch.set_num_threads(1)


def small(n: int = 2, **options: Any) -> NesVecEnv:
    return NesVecEnv(num_envs=n, **{"resize": (36, 36), "frame_stack": 2, **options})


def played(venv: Any, steps: int = 12) -> list[tuple[Any, ...]]:
    venv.reset()
    return [venv.step(np.array([RIGHT] * venv.num_envs)) for _ in range(steps)]


def test_rs1_it_is_a_vec_env_of_the_library() -> None:
    venv = small(3)
    assert isinstance(venv, VecEnv) and venv.unwrapped is venv and unwrap_vec_normalize(venv) is None
    obs = venv.reset()
    assert venv.observation_space.contains(obs[0]) and len(venv.reset_infos) == 3
    obs, rewards, dones, infos = venv.step(np.array([venv.action_space.sample() for _ in range(3)]))
    assert rewards.dtype == np.float32 and dones.dtype == np.bool_ and len(infos) == 3
    assert venv.metadata["frame_stack"] == 2


def test_rs2_truncation_is_bootstrapped_by_ppo() -> None:
    venv = small(2, max_episode_steps=5)
    model = PPO("CnnPolicy", venv, n_steps=16, batch_size=16, n_epochs=1, policy_kwargs=SMALL_NET, seed=0)
    asked: list[Any] = []
    predict_values = model.policy.predict_values

    def watched(obs: Any) -> Any:
        asked.append(obs)
        return predict_values(obs)

    model.policy.predict_values = watched
    model.learn(32)
    # Once a truncated episode (three in 16 steps, for each of two lanes), and once for the rollout's end.
    assert len(asked) == 7


def test_rs3_seed_and_options_are_taken_by_the_next_reset() -> None:
    venv = small(2, noop_reset_max=30)
    assert list(venv.seed(1)) == [1, 2]
    first = venv.reset()
    venv.seed(1)
    assert np.array_equal(venv.reset(), first)
    venv.set_options({"state": "Level2"})
    venv.reset()
    assert venv.reset_infos[1]["state"] == "Level2"


def test_rs4_attributes_through_wrappers() -> None:
    venv = VecMonitor(small(2))
    assert venv.get_attr("game", 1) == ["CartRunner-Nes-v0"] and venv.has_attr("frame_stack")
    assert not venv.has_attr("nothing") and venv.env_is_wrapped(VecMonitor) == [False, False]
    assert venv.get_attr("frame_stack") == [2, 2]
    venv.reset()
    assert venv.env_method("ram", indices=[0])[0].shape == (2048,)


def test_rs5_pictures_are_tiled() -> None:
    venv = small(4, render_mode="rgb_array")
    venv.reset()
    assert len(venv.get_images()) == 4
    assert venv.render("rgb_array").shape == (448, 480, 3)
    venv.close()
    venv.close()


def test_rs6_the_rollout_buffer_holds_the_observations_that_were_acted_on() -> None:
    venv = small(2, copy=False)
    model = PPO("CnnPolicy", venv, n_steps=8, batch_size=16, n_epochs=1, policy_kwargs=SMALL_NET, seed=0)
    model.learn(16)
    buffer = model.rollout_buffer
    seen, actions = buffer.observations.reshape(2, 8, 2, 36, 36), buffer.actions.reshape(2, 8)
    again = small(2)
    again.seed(0)
    obs = again.reset()
    for step in range(8):
        assert np.array_equal(obs, seen[:, step])
        obs = again.step(actions[:, step].astype(np.int64))[0]


def test_rs7_monitor_counts_as_by_hand_and_as_the_lanes_do() -> None:
    venv = VecMonitor(small(2, max_episode_steps=6))
    venv.reset()
    total, ends = np.zeros(2), 0
    for _ in range(20):
        _, rewards, dones, infos = venv.step(np.array([RIGHT, 0]))
        total += rewards
        for lane in np.flatnonzero(dones):
            episode = infos[lane]["episode"]
            assert episode["r"] == pytest.approx(total[lane]) and episode["l"] == 6
            assert infos[lane]["episode_return"] == total[lane] and infos[lane]["elapsed_steps"] == 6
            total[lane], ends = 0, ends + 1
    assert ends == 6


def test_rs7_wrappers_and_image_spaces() -> None:
    first = small(2).observation_space
    assert is_image_space(first) and is_image_space_channels_first(first)
    last = small(2, layout="hwc", frame_stack=1, grayscale=False)
    assert is_image_space(last.observation_space)
    assert not is_image_space_channels_first(last.observation_space)
    stacked = VecFrameStack(VecTransposeImage(last), 4)
    assert stacked.observation_space.shape == (12, 36, 36)
    ends = [
        infos for _, _, dones, infos in played(VecFrameStack(small(2, frame_stack=1, max_episode_steps=3), 2))
    ]
    assert ends[2][0]["terminal_observation"].shape == (2, 36, 36)
    inside = [infos for _, _, _, infos in played(small(2, max_episode_steps=3))]
    assert np.array_equal(ends[2][0]["terminal_observation"], inside[2][0]["terminal_observation"])


def test_rs7_a_video_is_recorded(tmp_path: Path) -> None:
    venv = VecVideoRecorder(
        small(2, render_mode="rgb_array"), str(tmp_path), lambda step: step == 0, video_length=6
    )
    played(venv, 8)
    venv.close()
    assert list(tmp_path.glob("*.mp4"))


SMALL_NET: dict[str, Any] = {"features_extractor_kwargs": {"features_dim": 32}}


def test_rs7_ppo_learns_two_rollouts_over_lanes_of_the_default_options() -> None:
    n_steps, n_envs = 16, 4
    venv = NesVecEnv(num_envs=n_envs, max_episode_steps=7)
    model = PPO("CnnPolicy", venv, n_steps=n_steps, batch_size=32, n_epochs=1, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(2 * n_steps * n_envs)
    assert model.num_timesteps == 2 * n_steps * n_envs
    # Without VecMonitor: the lanes count their episodes.
    assert len(model.ep_info_buffer) == 2 * n_steps // 7 * n_envs
    assert {episode["l"] for episode in model.ep_info_buffer} == {7}


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_u14_lanes_of_any_autoreset_mode_train(mode: str) -> None:
    env = rollcart.NesVectorEnv(num_envs=4, autoreset_mode=mode, max_episode_steps=9, resize=(36, 36))
    PPO("CnnPolicy", NesVecEnv(env), n_steps=16, batch_size=64, n_epochs=1, policy_kwargs=SMALL_NET).learn(
        256
    )


@pytest.mark.parametrize("actions", ["filtered", "multi_discrete", "right_only"])
@pytest.mark.parametrize("obs", ["image", "dict", "ram"])
def test_policies_over_other_spaces(actions: str, obs: str) -> None:
    policy = {"image": "CnnPolicy", "dict": "MultiInputPolicy", "ram": "MlpPolicy"}[obs]
    venv = small(2, actions=actions, obs=obs)
    net = SMALL_NET if obs == "image" else {}
    model = PPO(policy, venv, n_steps=8, batch_size=16, n_epochs=1, policy_kwargs=net)
    model.learn(16)


def test_a_policy_is_evaluated() -> None:
    venv = VecMonitor(small(2, max_episode_steps=8))
    model = PPO("CnnPolicy", venv, n_steps=8, batch_size=16, policy_kwargs=SMALL_NET, seed=0)
    rewards, lengths = evaluate_policy(model, venv, n_eval_episodes=4, return_episode_rewards=True)
    assert len(rewards) == 4 and set(lengths) == {8}


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_gymnasiums_wrapper_gives_torch_tensors_of_the_same_numbers(mode: str) -> None:
    """Not SB3's, but torch is here: Gymnasium's NumpyToTorch over native lanes, through ends of episodes.

    It takes arrays of numbers alone: neither text nor SameStep's final_obs, an array of objects.
    """
    options: dict[str, Any] = {"num_envs": 2, "resize": (20, 20), "max_episode_steps": 4}
    options |= {"autoreset_mode": mode, "info_keys": "numbers"}
    plain, wrapped = rollcart.NesVectorEnv(**options), NumpyToTorch(rollcart.NesVectorEnv(**options))
    wanted, got = plain.reset(seed=3), wrapped.reset(seed=3)
    for step in range(9):
        assert isinstance(got[0], torch.Tensor) and got[0].dtype == torch.uint8
        for tensor, array in zip(got[:-1], wanted[:-1], strict=True):
            assert isinstance(tensor, torch.Tensor) and np.array_equal(tensor.numpy(), array)
        for key, array in wanted[-1].items():
            assert np.array_equal(got[-1][key].numpy(), array), key
        if mode == "Disabled" and len(wanted) == 5 and wanted[3].any():
            wanted, got = (env.reset(options={"reset_mask": wanted[3]}) for env in (plain, wrapped))
            continue
        actions = np.array([RIGHT, step])
        wanted, got = plain.step(actions), wrapped.step(torch.as_tensor(actions))
