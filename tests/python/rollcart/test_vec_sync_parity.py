"""The native lanes against Gymnasium's own `SyncVectorEnv` over single consoles, in random calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from vec_common import MODES, SMALL

import rollcart

OPTIONS: dict[str, Any] = {**SMALL, "noop_reset_max": 9, "sticky_action_prob": 0.25, "max_episode_steps": 7}
LANES = 3


def same(native: Any, sync: Any, where: str) -> None:
    """Equal wherever the masks say that there is something: elsewhere SyncVectorEnv has zeros."""
    if isinstance(native, dict):
        assert native.keys() == sync.keys(), where
        for key in native:
            told = native.get(f"_{key}", None)
            for own in (native[key], sync[key]):
                assert isinstance(own, dict) or told is None or len(own) == len(told), f"{where}.{key}"
            mine, theirs = native[key], sync[key]
            if told is not None and not isinstance(mine, dict):
                mine, theirs = mine[told], theirs[told]
            same(mine, theirs, f"{where}.{key}")
    elif native.dtype == object:
        for one, other in zip(native, sync, strict=True):
            assert np.array_equal(one, other), where
    else:
        assert np.array_equal(native, sync), where


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_rg6_rg7_rg8_rg11_rg13_lanes_are_those_of_sync_vector_env(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    native = rollcart.NesVectorEnv(num_envs=LANES, autoreset_mode=mode, **OPTIONS)
    sync = SyncVectorEnv([lambda: rollcart.NesEnv(**OPTIONS)] * LANES, autoreset_mode=AutoresetMode(mode))
    envs = (native, sync)
    seeds = rng.integers(1000, size=LANES).tolist()
    results: list[Any] = [env.reset(seed=seeds) for env in envs]
    done, ended = np.zeros(LANES, np.bool_), 0
    for call in range(90):
        for part, (mine, theirs) in enumerate(zip(*results, strict=True)):
            same(mine, theirs, f"call {call}, part {part}")
        must = mode == "Disabled" and done.any()
        if must or rng.random() < 0.1:
            mask = done | (rng.random(LANES) < 0.4)
            mask[0] |= not mask.any()
            given = [None if rng.random() < 0.3 else int(one) for one in rng.integers(1000, size=LANES)]
            seeds = None if rng.random() < 0.5 else given
            options = {"reset_mask": mask} if must or rng.random() < 0.5 else None
            results = [env.reset(seed=seeds, options=options and dict(options)) for env in envs]
            done = done & ~mask if options else np.zeros(LANES, np.bool_)
        else:
            actions = rng.integers(36, size=LANES)
            results = [env.step(actions) for env in envs]
            done = results[0][2] | results[0][3]
            ended += int(done.sum())
    assert ended > 10
