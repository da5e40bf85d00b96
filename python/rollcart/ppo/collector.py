"""Plays rollouts: observation to the network, an action drawn from its policy, a step of the environment, and
all of it into buffers.

The environment is anything with NesVectorEnv's `step` in NextStep mode (its observations may be overwritten
by later steps). Actions are drawn on the host from a numpy generator: with equal networks, seeds and
environments two collectors do the same to the byte. What `is_reset` and the values'
extra row are for is in `gae`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from rollcart.ppo import network
from rollcart.ppo.features import Features
from rollcart.ppo.stopwatch import Stopwatch

LAST = 100
"""Episodes over which mean return and length are reported."""


class Rollout(NamedTuple):
    """T steps of N lanes: obs (network inputs) uint8[T, N, ...], values [T + 1, N], the others [T, N]."""

    obs: NDArray[np.uint8]
    actions: NDArray[np.int32]
    log_probs: NDArray[np.float32]
    rewards: NDArray[np.float32]
    values: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    is_reset: NDArray[np.bool_]


class Draw:
    """Draws from logits [lanes, actions] by the Gumbel-max rule: (actions, their log probabilities)."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, logits: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        log_probs = logits - logits.max(1, keepdims=True)
        log_probs -= np.log(np.exp(log_probs).sum(1, keepdims=True))
        noise = -np.log(self.rng.standard_exponential(logits.shape, np.float32))
        actions = (log_probs + noise).argmax(1)
        return actions, log_probs[np.arange(len(actions)), actions]


class Collector:
    """One environment, and the random numbers with which its actions are drawn.

    The buffers of a rollout are overwritten by the next one.
    """

    def __init__(
        self, env: Any, see: Features, horizon: int, seed: int, stopwatch: Stopwatch | None = None
    ) -> None:
        self.env = env
        self.see = see
        self.stopwatch = stopwatch or Stopwatch()
        self.draw = Draw(seed)
        lanes = env.num_envs
        self.obs: Any = env.reset(seed=seed)[0]
        self.is_reset = np.zeros(lanes, np.bool_)
        self.returns = np.zeros(lanes, np.float64)
        self.lengths = np.zeros(lanes, np.int64)
        self.episodes = 0
        self.last_returns: deque[float] = deque(maxlen=LAST)
        self.last_lengths: deque[int] = deque(maxlen=LAST)
        # (nanoseconds, lanes that the step reset) of each step of the environment, while it is a list
        self.latencies: list[tuple[int, int]] | None = None
        shape = (horizon, lanes)
        self._buffers = Rollout(
            np.empty((horizon, *see(self.obs).shape), np.uint8),
            np.empty(shape, np.int32),
            np.empty(shape, np.float32),
            np.empty(shape, np.float32),
            np.empty((horizon + 1, lanes), np.float32),
            np.empty(shape, np.bool_),
            np.empty(shape, np.bool_),
            np.empty(shape, np.bool_),
        )

    def collect(self, params: network.Params) -> Rollout:
        """Plays `horizon` steps a lane."""
        out, lap = self._buffers, self.stopwatch.lap
        horizon = len(out.rewards)
        for t in range(horizon):
            out.obs[t] = self.see(self.obs)
            lap("observe")
            logits, out.values[t] = self._forward(params, out.obs[t])
            actions, out.log_probs[t] = self.draw(logits)
            lap("sample")
            self.obs, rewards, terminated, truncated, _ = self.env.step(actions)
            passed = lap("env")
            if self.latencies is not None:
                self.latencies.append((passed, int(self.is_reset.sum())))
            out.actions[t], out.rewards[t] = actions, rewards
            out.terminated[t], out.truncated[t], out.is_reset[t] = terminated, truncated, self.is_reset
            lap("store")
            self._count(rewards, terminated | truncated)
            lap("bookkeeping")
        _, out.values[horizon] = self._forward(params, self.see(self.obs))
        lap("sample")
        return out

    def _forward(self, params: network.Params, obs: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        device = jax.device_put(obs)
        self.stopwatch.lap("transfer")
        results = network.forward(params, device)
        for result in results:
            result.block_until_ready()
        self.stopwatch.lap("forward")
        logits, values = jax.device_get(results)
        return logits, values

    def _count(self, rewards: NDArray[Any], ended: NDArray[np.bool_]) -> None:
        self.returns += rewards
        self.lengths += ~self.is_reset
        if ended.any():
            for lane in np.flatnonzero(ended):
                self.last_returns.append(float(self.returns[lane]))
                self.last_lengths.append(int(self.lengths[lane]))
            self.episodes += int(ended.sum())
            self.returns[ended] = 0.0
            self.lengths[ended] = 0
        self.is_reset = ended

    # ------------------------------------------------------------------------------------ saving

    def state(self) -> dict[str, Any]:
        """What a collector over a restored environment needs to go on: JSON's values."""
        return {
            "rng": self.draw.rng.bit_generator.state,
            "is_reset": self.is_reset.tolist(),
            "returns": self.returns.tolist(),
            "lengths": self.lengths.tolist(),
            "episodes": self.episodes,
            "last_returns": list(self.last_returns),
            "last_lengths": list(self.last_lengths),
        }

    def restore(self, snapshots: list[bytes], state: dict[str, Any]) -> None:
        """Goes on where another collector was: the lanes' snapshots and its `state`."""
        self.obs = self.env.restore(snapshots)
        self.draw.rng.bit_generator.state = state["rng"]
        self.is_reset = np.array(state["is_reset"], np.bool_)
        self.returns = np.array(state["returns"], np.float64)
        self.lengths = np.array(state["lengths"], np.int64)
        self.episodes = state["episodes"]
        self.last_returns = deque(state["last_returns"], LAST)
        self.last_lengths = deque(state["last_lengths"], LAST)
