"""Fragments of experience from native lanes under a policy: what a rollout worker does, without Ray."""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollcart.envs._same_step import SameStep
from rollcart.errors import ConfigError
from rollcart.games import BUNDLED
from rollcart.vector_env import NesVectorEnv

# (weights, observations, random numbers) -> actions, or actions and further arrays [lanes, ...] to record.
Policy = Callable[[Any, Any, np.random.Generator], Any]


class Rollout:
    """One `NesVectorEnv` and a policy, which `sample` lets play.

    policy: a function of the weights, all lanes' observations and a generator, that gives actions, or a pair
    of actions and a dict of arrays to record beside them (log-probabilities, values). All that is sampled
    depends on policy, weights, seed, worker_index and options alone, and not on threads or time.

    Args:
        policy: As said.
        game: Name of a game. Each node of a cluster looks for its files by itself.
        num_envs: Lanes.
        seed: Of the whole run; lanes have seed + worker_index * num_envs + lane.
        worker_index: Which of the run's workers this is, from 0.
        num_threads: Threads, the caller's included. By default OMP_NUM_THREADS, which Ray sets to an actor's
            num_cpus, else the processors that this process may use.
        options: The other options of `NesVectorEnv`.
    """

    def __init__(
        self,
        policy: Policy,
        game: str = BUNDLED,
        num_envs: int = 16,
        *,
        seed: int = 0,
        worker_index: int = 0,
        num_threads: int | None = None,
        **options: Any,
    ) -> None:
        if "autoreset_mode" in options:
            raise ConfigError(
                "autoreset_mode: a rollout begins finished lanes anew in the same step; omit it"
            )
        if seed < 0 or worker_index < 0:
            raise ConfigError(f"seed, worker_index: expected 0 or more, found {seed} and {worker_index}")
        try:
            env = NesVectorEnv(game, num_envs, autoreset_mode="SameStep", num_threads=num_threads, **options)
        except (OSError, ValueError) as error:
            error.args = (f"on node {platform.node()}: {error}",)
            raise
        self.env = env
        self._policy = policy
        self._steps = SameStep(env)
        self._rng = np.random.default_rng([seed, worker_index])
        self._obs, _ = self._steps.reset(seed=seed + worker_index * num_envs)

    def sample(self, weights: Any, steps: int) -> dict[str, Any]:
        """Plays steps actions in every lane; gives arrays that belong to the caller.

        obs [steps, lanes, ...] (a dict of them with obs="dict"), actions, rewards float32, terminated and
        truncated bool [steps, lanes]; what the policy added, by its names; last_obs [lanes, ...], to
        bootstrap from. For each episode that ended: ended int64[k, 2] (step, lane), ended_obs [k, ...] (its
        true last observation), and episode_return float64[k] and episode_length int64[k] if the lanes tell
        them.
        """
        if steps < 1:
            raise ValueError(f"steps: expected 1 or more, found {steps}")
        rows: list[dict[str, Any]] = []
        ended: list[tuple[int, int]] = []
        last: list[Any] = []
        told: dict[str, list[Any]] = {"episode_return": [], "elapsed_steps": []}
        for at in range(steps):
            given = self._policy(weights, self._obs, self._rng)
            actions, more = given if isinstance(given, tuple) else (given, {})
            step = self._steps.step(actions)
            rows.append(
                {
                    "obs": self._obs,
                    "actions": np.array(actions),
                    "rewards": step.reward.astype(np.float32),
                    "terminated": step.terminated,
                    "truncated": step.truncated,
                    **{name: np.array(value) for name, value in more.items()},
                }
            )
            for lane, observation in step.last.items():
                ended.append((at, lane))
                last.append(observation)
                for name, values in told.items():
                    if name in step.infos:
                        values.append(step.infos[name][lane])
            self._obs = step.obs
        sampled = {name: _stacked([row[name] for row in rows]) for name in rows[0]}
        sampled["last_obs"] = _copied(self._obs)
        sampled["ended"] = np.array(ended, np.int64).reshape(-1, 2)
        sampled["ended_obs"] = _stacked(last) if last else _none(self._obs)
        for name, known, dtype in (
            ("episode_return", told["episode_return"], np.float64),
            ("episode_length", told["elapsed_steps"], np.int64),
        ):
            if len(known) == len(ended):
                sampled[name] = np.array(known, dtype)
        return sampled

    def have(self, weights: Any) -> None:
        """Does nothing: who waits for it knows that the weights have come."""

    def save(self) -> bytes:
        """Where the rollout stands: lanes and random numbers, for `load` in a worker of equal arguments."""
        return pickle.dumps((self.env.snapshot(), self._rng.bit_generator.state))

    def load(self, saved: bytes) -> None:
        """Goes on exactly where another worker saved. Only load what you trust: it is a pickle."""
        lanes, random = pickle.loads(saved)
        self._obs = self.env.restore(lanes)
        self._rng.bit_generator.state = random

    def close(self) -> None:
        """Lets lanes and threads go; may be called again."""
        self.env.close()


def _stacked(parts: list[Any]) -> Any:
    if isinstance(parts[0], dict):
        return {key: np.stack([part[key] for part in parts]) for key in parts[0]}
    return np.stack(parts)


def _copied(obs: Any) -> Any:
    return {key: value.copy() for key, value in obs.items()} if isinstance(obs, dict) else obs.copy()


def _none(obs: Any) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """No observations at all, in the shape of some."""
    return {key: value[:0].copy() for key, value in obs.items()} if isinstance(obs, dict) else obs[:0].copy()
