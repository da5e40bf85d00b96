"""RLlib and plain Ray over native lanes (`make test-ray`). The logic alone: test_rollout.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from rollcart.envs import rllib
from rollcart.envs._rollout import Rollout
from rollcart.envs.ray import rollout_actors


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Workers cannot import what pytest imported.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    yield
    ray.shutdown()


def policy(weights: Any, obs: Any, rng: np.random.Generator) -> Any:
    assert not weights.flags.writeable
    return rng.integers(int(weights[0]), size=len(obs))


OPTIONS: dict[str, Any] = {"num_envs": 4, "resize": (20, 20), "max_episode_steps": 6, "noop_reset_max": 9}


def trained(config: PPOConfig) -> tuple[dict[str, Any], Any]:
    algorithm = config.build_algo()
    try:
        result = algorithm.train()
        runner = algorithm.env_runner
        return result["env_runners"], None if runner is None else runner.env
    finally:
        algorithm.stop()


def ppo(runners: int) -> PPOConfig:
    return (
        PPOConfig()
        .environment(rllib.register(), env_config={"resize": (20, 20), "max_episode_steps": 6})
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=4,
            gym_env_vectorize_mode="vector_entry_point",
            rollout_fragment_length=16,
        )
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .rl_module(model_config=DefaultModelConfig(conv_filters=[[8, 4, 4], [8, 3, 2]], fcnet_hiddens=[16]))
        .debugging(seed=0)
    )


@pytest.mark.parametrize("runners", [0, 1])
def test_one_iteration_of_ppo_over_the_registered_creator(runners: int) -> None:
    result, env = trained(ppo(runners))
    assert result["num_env_steps_sampled"] >= 64
    assert result["episode_len_mean"] == 6 and result["num_episodes"] > 0
    if env is not None:
        assert type(env.unwrapped).__name__ == "NesVectorEnv" and env.num_envs == 4


def test_actors_give_what_the_plain_class_gives() -> None:
    actors = rollout_actors(2, policy, seed=5, **OPTIONS)
    weights = ray.put(np.array([36]))
    fragments = ray.get([actor.sample.remote(weights, 10) for actor in actors])
    own = np.array([36])
    own.flags.writeable = False
    for index, fragment in enumerate(fragments):
        expected = Rollout(policy, seed=5, worker_index=index, **OPTIONS).sample(own, 10)
        assert fragment.keys() == expected.keys()
        assert all(np.array_equal(fragment[key], expected[key]) for key in expected)


def test_a_restarted_actor_begins_its_run_anew_or_goes_on() -> None:
    (actor,) = rollout_actors(1, policy, seed=5, **OPTIONS)
    weights = ray.put(np.array([36]))
    first = ray.get(actor.sample.remote(weights, 8))
    saved = ray.get(actor.save.remote())
    second = ray.get(actor.sample.remote(weights, 8))
    ray.kill(actor, no_restart=False)
    # Calls made while it restarts may be lost with it: until it answers.
    again = None
    while again is None:
        try:
            again = ray.get(actor.sample.remote(weights, 8))
        except ray.exceptions.RayActorError:
            continue
    assert np.array_equal(again["obs"], first["obs"])
    ray.get(actor.load.remote(saved))
    assert np.array_equal(ray.get(actor.sample.remote(weights, 8))["obs"], second["obs"])


def test_a_missing_game_names_the_node() -> None:
    (actor,) = rollout_actors(1, policy, game="Absent-Nes-v0")
    with pytest.raises(ray.exceptions.RayActorError, match=f"on node {os.uname().nodename}: .*Absent-Nes-v0"):
        ray.get(actor.sample.remote(np.array([36]), 1))


def test_an_actor_has_as_many_threads_as_processors() -> None:
    @ray.remote(num_cpus=1)
    def threads() -> int:
        return Rollout(policy, num_envs=2).env.num_threads

    assert ray.get(threads.remote()) == 1


def test_rollouts_in_actors_are_those_of_this_process() -> None:
    """`rollcart rollout --engine ray`, with a policy of two numbers in place of JAX's network."""
    from rollcart.ppo import actors
    from rollcart.ppo.features import Features
    from rollcart.ppo.settings import Settings

    class Uniform(actors.GumbelPolicy):
        def __call__(self, weights: Any, obs: Any, rng: np.random.Generator) -> Any:
            return rng.integers(5, size=len(obs)), {"values": self.see(obs)[:, 0].astype(np.float32)}

    settings = Settings(lanes=2, threads=1, horizon=12, minibatches=1, max_episode_steps=5)
    weights, see = {"w": np.arange(4.0)}, Features(np.arange(8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(actors, "GumbelPolicy", Uniform)
        rows = [
            actors.measure(engine, settings, weights, see, count, 2)
            for engine, count in ((actors.Local(), 2), (actors.Ray(), 2), (actors.Ray(), 1))
        ]
        with pytest.raises(ValueError, match="processors, and Ray has 2"):
            actors.measure(actors.Ray(), settings, weights, see, 3, 1)
    assert rows[0]["checksum"] == rows[1]["checksum"] != rows[2]["checksum"]
    assert rows[1]["episodes"] == rows[0]["episodes"] > 0
    assert actors.with_efficiency(rows)[2]["efficiency"] == 1
