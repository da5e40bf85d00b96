"""The training loop: a rollout, its advantages, an update, and again.

A run that was saved and resumed goes on exactly as one that was not interrupted: lanes, optimizer, episode
records and random numbers are in the checkpoint, and an update's key depends on seed and iteration alone.
"""

from __future__ import annotations

import os
import time
from typing import Any

import jax
import numpy as np

import rollcart
from rollcart.errors import ConfigError
from rollcart.ppo import checkpoint, features, gae, learner, network
from rollcart.ppo.collector import Collector, Rollout
from rollcart.ppo.settings import Settings
from rollcart.ppo.stopwatch import Stopwatch


def make_env(settings: Settings, rom_path: str | None = None) -> Any:
    """The environment of a run, its observations not copied: the collector does that."""
    return rollcart.NesVectorEnv(settings.game, rom_path=rom_path, copy=False, **settings.env_options())


class Trainer:
    """One run. `env` and `stopwatch` are for those who measure; the trainer closes the environment.

    Attributes:
        params: The network's weights.
        history: One dictionary an iteration; see `iterate`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        rom_path: str | None = None,
        env: Any = None,
        stopwatch: Stopwatch | None = None,
        params: network.Params | None = None,
        see: features.Features | None = None,
    ) -> None:
        self.settings = settings
        self.env = make_env(settings, rom_path) if env is None else env
        self.stopwatch = stopwatch or Stopwatch()
        if see is None:
            addresses = None
            if settings.obs == "ram":
                addresses = features.changing(self.env, settings.ram_bytes, settings.seed)
            see = features.Features(addresses)
        self.see = see
        self.collector = Collector(self.env, self.see, settings.horizon, settings.seed, self.stopwatch)
        self._key = jax.random.key(settings.seed)
        space = self.env.single_action_space
        if not hasattr(space, "n"):
            raise ConfigError(f"actions: PPO here needs one number a lane (Discrete), found {space}")
        shape = self.see(self.collector.obs).shape[1:]
        first = network.init(settings.seed, shape, int(space.n), settings.hidden)
        if params is not None:
            _check_fit(first, params)
            first = {name: jax.numpy.asarray(params[name]) for name in first}
        self.params = first
        self._opt = jax.jit(learner.optimizer(settings).init)(self.params)
        self._update = learner.make_update(settings)
        self.iteration = 0
        self.seconds = 0.0
        self.history: list[dict[str, float]] = []

    @property
    def steps(self) -> int:
        """Environment steps so far, over all lanes, resets included."""
        return self.iteration * self.settings.rollout_steps

    @property
    def is_done(self) -> bool:
        return self.iteration >= self.settings.iterations

    def iterate(self) -> dict[str, float]:
        """One rollout and its update; the new row of `history`.

        Keys: steps, episodes, mean_return and mean_length of the last 100 episodes (nan before the first),
        seconds since the run began, steps_per_second of this iteration, and the parts of the loss.
        """
        began = time.perf_counter()
        rollout = self.collector.collect(self.params)
        parts = self.learn(rollout)
        passed = time.perf_counter() - began
        self.seconds += passed
        self.iteration += 1
        recent = self.collector
        row = {
            "steps": float(self.steps),
            "episodes": float(recent.episodes),
            "mean_return": float(np.mean(recent.last_returns)) if recent.last_returns else float("nan"),
            "mean_length": float(np.mean(recent.last_lengths)) if recent.last_lengths else float("nan"),
            "seconds": self.seconds,
            "steps_per_second": self.settings.rollout_steps / passed,
            **parts,
        }
        self.history.append(row)
        self.stopwatch.lap("bookkeeping")
        return row

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Updates the network from a rollout; the parts of the loss."""
        batch = self.batch(rollout)
        self.stopwatch.lap("gae")
        key = jax.random.fold_in(self._key, self.iteration)
        self.params, self._opt, parts = self._update(self.params, self._opt, batch, key)
        # Waits for the whole update: its results are ready together.
        found = {name: float(value) for name, value in jax.device_get(parts).items()}
        self.stopwatch.lap("optimise")
        return found

    def batch(self, rollout: Rollout) -> learner.Batch:
        """The rollout's rows with their advantages."""
        s = self.settings
        found = gae.estimate(
            rollout.rewards * np.float32(s.reward_scale),
            rollout.values,
            rollout.terminated,
            rollout.truncated,
            rollout.is_reset,
            s.gamma,
            s.gae_lambda,
        )
        rows = (rollout.obs, rollout.actions, rollout.log_probs, found.advantages, found.returns, found.mask)
        # Copied: on a CPU the device may share memory that the next rollout overwrites.
        return learner.Batch(*(jax.numpy.array(x.reshape(s.rollout_steps, *x.shape[2:])) for x in rows))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint from which `resumed` goes on."""
        meta = {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "history": self.history,
            "collector": self.collector.state(),
        }
        leaves = jax.device_get(jax.tree.leaves(self._opt))
        checkpoint.save(
            path, self.settings, jax.device_get(self.params), self.see, meta, leaves, self.env.snapshot()
        )

    @classmethod
    def resumed(
        cls, path: str | os.PathLike[str], *, rom_path: str | None = None, env: Any = None
    ) -> Trainer:
        """A trainer that goes on where a checkpoint was saved."""
        saved = checkpoint.load(path)
        if not saved.is_resumable:
            raise ConfigError(f"{path} is a policy without the state of a run: nothing to resume")
        self = cls(saved.settings, rom_path=rom_path, env=env, params=saved.params, see=saved.see)
        kind = jax.tree.structure(self._opt)
        self._opt = jax.tree.unflatten(kind, [jax.numpy.asarray(leaf) for leaf in saved.opt])
        self.iteration, self.seconds = saved.meta["iteration"], saved.meta["seconds"]
        self.history = saved.meta["history"]
        self.collector.restore(saved.lanes, saved.meta["collector"])
        return self

    def close(self) -> None:
        self.env.close()


def _check_fit(first: network.Params, params: network.Params) -> None:
    wanted = {name: tuple(value.shape) for name, value in first.items()}
    found = {name: tuple(value.shape) for name, value in params.items()}
    if wanted != found:
        differing = sorted(n for n in {*wanted, *found} if wanted.get(n) != found.get(n))
        name = differing[0]
        raise ConfigError(
            f"the policy does not fit these settings: {name} should be {wanted.get(name)}, is "
            f"{found.get(name)}; take obs, actions and hidden from the settings that it was trained with"
        )
