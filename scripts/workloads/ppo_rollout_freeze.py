#!/usr/bin/env python3
"""Makes ppo_rollout_policy.npz: the trained policy of `rollcart rollout` in whole numbers.

The same file each time.
Weights become int8, each layer's largest 127. Activations become 8 bits by a shift that a short play of the
policy itself chooses, so that its largest activation just fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import ppo_rollout

from rollcart import NesVectorEnv
from rollcart.cli.rollout import TRAINED
from rollcart.ppo import checkpoint

_LANES, _STEPS = 8, 300


def freeze() -> dict[str, Any]:
    """The network's tables."""
    saved = checkpoint.load(TRAINED)
    ram = _played(saved)
    params = saved.params
    tables: dict[str, Any] = {"addresses": saved.see.addresses}
    bits = np.unpackbits(ram[:, saved.see.addresses], axis=1).astype(np.float64)

    def layer(name: str, x: Any, scale: float) -> tuple[Any, float]:
        total, scale = last(name, x, scale)
        shift = max(0, int(np.ceil(np.log2(max(total.max(), 1) / 255))))
        tables[f"{name}.shift"] = np.int64(shift)
        return np.floor(np.clip(total, 0, None) / 2**shift).clip(0, 255), scale / 2**shift

    def last(name: str, x: Any, scale: float) -> tuple[Any, float]:
        step = 127 / np.abs(params[f"{name}.w"]).max()
        tables[f"{name}.w"] = np.rint(params[f"{name}.w"] * step).astype(np.int8)
        tables[f"{name}.b"] = np.rint(params[f"{name}.b"] * step * scale).astype(np.int64)
        return x @ tables[f"{name}.w"].astype(np.float64) + tables[f"{name}.b"], step * scale

    x, scale = layer("dense", bits, 1.0)
    _, tables["logits.scale"] = last("policy", *layer("policy0", x, scale))
    _, tables["value.scale"] = last("value", *layer("value0", x, scale))
    return {name: np.asarray(value) for name, value in tables.items()}


def _played(saved: checkpoint.Checkpoint) -> Any:
    """RAM uint8[rows, bytes] of a play of the float policy's likeliest actions, one in ten at random."""
    options = {**saved.settings.env_options(), "num_envs": _LANES, "num_threads": 1}
    env = NesVectorEnv(saved.settings.game, **options)
    rng = np.random.default_rng(0)
    obs, _ = env.reset(seed=0)
    kept, p = [], saved.params
    for _ in range(_STEPS):
        kept.append(obs)
        x = np.maximum(saved.see(obs) @ p["dense.w"] + p["dense.b"], 0)
        x = np.maximum(x @ p["policy0.w"] + p["policy0.b"], 0) @ p["policy.w"] + p["policy.b"]
        chance = rng.integers(0, x.shape[1], _LANES)
        obs = env.step(np.where(rng.random(_LANES) < 0.1, chance, x.argmax(1)))[0]
    env.close()
    return np.concatenate(kept)


if __name__ == "__main__":
    np.savez_compressed(ppo_rollout.POLICY, **freeze())
    print(f"{ppo_rollout.POLICY}: {ppo_rollout.POLICY.stat().st_size:,} bytes")
