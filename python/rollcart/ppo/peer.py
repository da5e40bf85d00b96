"""Stable-retro in the rollout benchmark: the same game, states, actions, limits and pictures.

It is `bench.retro_peer`'s environment in its fastest arrangement of processes. Needs the extra `peers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from rollcart import _extras, games
from rollcart.bench.retro_peer import Arrangement, RetroVec, Workload, fastest
from rollcart.buttons import BITS
from rollcart.errors import ConfigError
from rollcart.ppo.settings import Settings
from rollcart.ppo.trainer import make_env


class Peer:
    """What a collector needs of an environment. Observations are one block of shared memory, written anew by
    every step; there are no infos and no snapshots.
    """

    def __init__(self, work: Workload, arrangement: Arrangement) -> None:
        self.num_envs = work.lanes
        self.single_action_space = Discrete(len(work.actions))
        self._vec = RetroVec(work, arrangement)

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """The first call of all: a worker's first step loads the lanes' states. seed: the workload has it."""
        return self._vec.step(np.zeros(self.num_envs, np.int64)).obs, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        out = self._vec.step(actions)
        return out.obs, out.rewards.copy(), out.terminated.copy(), out.truncated.copy(), {}

    def close(self) -> None:
        self._vec.close()


def make(settings: Settings, seconds: float) -> tuple[Peer, str]:
    """The peer, and which arrangement was fastest in `seconds` of trying each."""
    for module in ("stable_retro", "cv2"):
        _extras.need(module, "peers", "the comparison with stable-retro")
    if settings.obs != "image":
        raise ConfigError(f"the comparison with stable-retro is over images; found obs {settings.obs!r}")
    work = workload(settings)
    actions = np.random.default_rng(settings.seed).integers(0, len(work.actions), (64, work.lanes))
    best, rates = fastest(work, seconds, actions)
    tried = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    return Peer(work, best), f"{best} (steps/s tried: {tried})"


def workload(settings: Settings) -> Workload:
    """The settings in the peer's terms."""
    game = games.find(settings.game)
    env = make_env(settings)
    masks = [first for first, _ in env.action_buttons or []]
    env.close()
    return Workload(
        data_dir=str(game.folders[0].parent),
        game=game.name,
        states=(settings.state or game.default_state(1),),
        actions=tuple(tuple(n for n, bit in BITS.items() if mask & bit) for mask in masks),
        lanes=settings.lanes,
        frame_skip=settings.frame_skip,
        max_episode_steps=settings.max_episode_steps,
        noop_max=settings.noop_reset_max,
        seed=settings.seed,
    )
