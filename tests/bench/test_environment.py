"""Micro-benchmarks of the environment on the bundled game: step, observe, snapshot. `make bench` runs them.

They show where to look after a change and prove nothing: evidence comes from `scripts/autoresearch.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rollcart
from rollcart import games

STEPS = 64


@pytest.fixture(params=[1, 16], ids=["1 lane", "16 lanes"])
def env(request: pytest.FixtureRequest) -> Iterator[Any]:
    env = rollcart.NesVectorEnv(num_envs=request.param, noop_reset_max=30)
    env.reset(seed=0)
    yield env
    env.close()


def actions_for(env: Any) -> np.ndarray:
    high = int(env.single_action_space.n)
    return np.random.default_rng(0).integers(0, high, (STEPS, env.num_envs))


def test_step(benchmark: Any, env: Any) -> None:
    actions = iter(np.tile(actions_for(env), (10_000, 1)))
    benchmark(lambda: env.step(next(actions)))


def test_step_with_ram_observations(benchmark: Any) -> None:
    env = rollcart.NesVectorEnv(num_envs=16, obs="ram", noop_reset_max=30)
    env.reset(seed=0)
    actions = iter(np.tile(actions_for(env), (10_000, 1)))
    benchmark(lambda: env.step(next(actions)))
    env.close()


def test_observe_is_a_masked_reset_of_one_lane(benchmark: Any, env: Any) -> None:
    mask = np.zeros(env.num_envs, np.bool_)
    mask[0] = True
    benchmark(lambda: env.reset(options={"reset_mask": mask}))


def test_snapshot_of_all_lanes(benchmark: Any, env: Any) -> None:
    benchmark(env.snapshot)


def test_snapshot_and_restore_of_all_lanes(benchmark: Any, env: Any) -> None:
    benchmark(lambda: env.restore(env.snapshot()))


def test_keep_and_recall_of_all_lanes(benchmark: Any, env: Any) -> None:
    benchmark(lambda: env.restore(env.snapshot(portable=False)))


def test_fork_of_one_lane_into_all(benchmark: Any, env: Any) -> None:
    everyone = np.ones(env.num_envs, np.bool_)
    benchmark(lambda: env.fork(0, everyone))


@pytest.mark.parametrize("threads", [1, 2])
def test_step_of_64_lanes(benchmark: Any, threads: int) -> None:
    env = rollcart.NesVectorEnv(num_envs=64, num_threads=threads, noop_reset_max=30)
    env.reset(seed=0)
    actions = iter(np.tile(actions_for(env), (10_000, 1)))
    benchmark(lambda: env.step(next(actions)))
    env.close()


def test_step_of_1024_lanes(benchmark: Any) -> None:
    env = rollcart.NesVectorEnv(num_envs=1024, num_threads=1, noop_reset_max=30)
    env.reset(seed=0)
    actions = iter(np.tile(actions_for(env), (1000, 1)))
    benchmark.pedantic(lambda: env.step(next(actions)), rounds=10, warmup_rounds=2)
    env.close()


def test_construct_and_first_reset_of_16_lanes(benchmark: Any) -> None:
    def begin() -> None:
        env = rollcart.NesVectorEnv(num_envs=16)
        env.reset(seed=0)
        env.close()

    benchmark(begin)


def test_console_frame_with_its_picture(benchmark: Any) -> None:
    console = rollcart.Console(games.find(games.BUNDLED, None).rom)
    console.step(frames=120)

    def frame() -> np.ndarray:
        console.step()
        return console.frame()

    benchmark(frame)
