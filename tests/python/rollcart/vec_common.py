"""What the tests of `NesVectorEnv` share: making one, equality of what calls give, games with other rules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_model import GAME

import rollcart

MODES = ("NextStep", "SameStep", "Disabled")
LEVELS = ("Level1", "Level2", "Level3", "Level4")
# Small images keep the tests quick where the picture is not what is tested.
SMALL = {"resize": (12, 10), "frame_stack": 2}


def mk(n: int = 2, mode: str = "NextStep", limit: Any = None, **options: Any) -> rollcart.NesVectorEnv:
    return rollcart.NesVectorEnv(
        num_envs=n, autoreset_mode=mode, max_episode_steps=limit, **{**SMALL, **options}
    )


def equal(a: Any, b: Any, where: str = "") -> None:
    """Fails, naming the place, unless two observations, infos or whole results are the same."""
    assert type(a) is type(b), f"{where}: {type(a)} and {type(b)}"
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            equal(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for index, pair in enumerate(zip(a, b, strict=True)):
            equal(*pair, f"{where}[{index}]")
    elif isinstance(a, np.ndarray) and a.dtype == object:
        equal(a.tolist(), b.tolist(), where)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape, where
        assert np.array_equal(a, b), f"{where}: differ at {np.argwhere(a != b)[:5].tolist()}"
    else:
        assert a == b, f"{where}: {a!r} and {b!r}"


def random_actions(env: rollcart.NesVectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """(steps, lanes) of Discrete actions: random, but each held for a while, so that lanes get somewhere."""
    rng = np.random.default_rng(seed)
    n = env.single_action_space.n  # type: ignore[attr-defined]
    held = rng.integers(n, size=(steps // 8 + 1, env.num_envs))
    return np.repeat(held, 8, axis=0)[:steps]


def game_with(folder: Path, monkeypatch: pytest.MonkeyPatch, scenario: dict[str, Any]) -> str:
    """A copy of the bundled game with another scenario.json, found through RETRO_DATA_PATH."""
    place = folder / "stable" / "Other-Nes-v0"
    shutil.copytree(GAME, place)
    (place / "scenario.json").write_text(json.dumps(scenario))
    monkeypatch.setenv("RETRO_DATA_PATH", str(folder))
    return "Other-Nes-v0"


RIGHT = 6


def quick_end(x: int = 60) -> dict[str, Any]:
    """Episodes end when the runner has got to x: a few steps of RIGHT."""
    return {
        "reward": {"variables": {"xpos": {"reward": 1.0, "penalty": 0.5}}},
        "done": {"variables": {"xpos": {"op": "greater-or-equal", "reference": x}}},
    }
