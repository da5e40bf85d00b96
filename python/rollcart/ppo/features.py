"""What a network gets of an observation: an image as it is, of RAM the bits of the bytes that change in play.

Most of RAM never changes, and a network of a few layers reads a position's low byte far better from its
bits than from its value. Programs for the 6502 keep what they use most at the lowest addresses, so where more
bytes change than are wanted, the first ones are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEPS = 64


class Features:
    """Turns observations uint8[lanes, ...] into the network's inputs, uint8[lanes, ...].

    addresses: which bytes of a RAM observation are read, each giving 8 inputs of 0 or 1 (highest bit first);
    None for images.
    """

    def __init__(self, addresses: NDArray[np.int64] | None) -> None:
        self.addresses = addresses

    def __call__(self, obs: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """An array that does not change when the observation's does."""
        if self.addresses is None:
            return np.array(obs)
        return np.unpackbits(obs[:, self.addresses], axis=1)


def changing(env: Any, limit: int, seed: int) -> NDArray[np.int64]:
    """The first `limit` addresses whose bytes change or differ in a random play. Resets `env`."""
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    first = np.array(obs[0])
    changed = np.zeros(first.shape, np.bool_)
    for _ in range(_STEPS):
        obs = env.step(rng.integers(0, int(env.single_action_space.n), env.num_envs))[0]
        changed |= (obs != first).any(0)
    return np.flatnonzero(changed)[:limit]
