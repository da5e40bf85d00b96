"""RR17-RR19, RR25-RR28: an environment made as stable-retro makes its own does the same, frame by frame.

The bundled game is played in stable-retro's RetroEnv, in a process of its own since that holds one emulator,
and in `NesEnv`: observation, reward, end and infos are equal for each way of choosing actions.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_model import GAME

import rollcart
from rollcart.errors import StateError

FRAMES = 150
# Stable Retro's names of the ways to choose actions, and ours.
ACTIONS = {"ALL": "all", "FILTERED": "filtered", "DISCRETE": "discrete", "MULTI_DISCRETE": "multi_discrete"}
# What stable-retro shows and does: one frame a step, the whole picture in colour.
PARITY: dict[str, Any] = {
    "frame_skip": 1, "frame_stack": 1, "grayscale": False, "crop": "scenario", "crop_mode": "cut",
    "resize": None, "layout": "hwc",
}  # fmt: skip
SCENARIO = {
    "crop": [8, 16, 0, 200],
    "scripts": ["script.lua"],
    "reward": {"script": "lua:gain"},
    "done": {"variables": {"lives": {"op": "equal", "reference": 77}}},
}
SCRIPT = "best = 0 function gain() local d = data.xpos - best best = data.xpos data.best = best return d end"
THEIRS = """
import hashlib, json, sys
import numpy as np
import stable_retro as retro
mode, game, players, obs, actions = json.loads(sys.argv[1])
env = retro.make(game, use_restricted_actions=getattr(retro.Actions, mode), render_mode="rgb_array",
                 players=players, obs_type=getattr(retro.Observations, obs))
seen = lambda obs: [list(obs.shape), hashlib.sha1(np.ascontiguousarray(obs).tobytes()).hexdigest()]
for _ in range(2):
    print(json.dumps(seen(env.reset()[0])))
    for action in actions:
        obs, reward, done, truncated, info = env.step(action if isinstance(action, int) else np.array(action))
        info = {key: int(value) for key, value in info.items()}
        print(json.dumps([seen(obs), reward, done, truncated, info]))
print(json.dumps([repr(env.action_space), [env.get_action_meaning(action) for action in range(36)]
                  if mode == "DISCRETE" and players == 1 else []]))
"""


def seen(obs: np.ndarray) -> list[Any]:
    return [list(obs.shape), hashlib.sha1(np.ascontiguousarray(obs).tobytes()).hexdigest()]


@pytest.fixture
def data_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two games for both: the bundled one as it is, and under another scenario with a script and a crop."""
    shutil.copytree(GAME, tmp_path / "stable/Plain-Nes-v0")
    other = tmp_path / "stable/Scripted-Nes-v0"
    shutil.copytree(GAME, other)
    (other / "scenario.json").write_text(json.dumps(SCENARIO))
    (other / "script.lua").write_text(SCRIPT)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("mode", "game", "players", "observed"),
    [
        ("DISCRETE", "Plain-Nes-v0", 1, "IMAGE"),
        ("MULTI_DISCRETE", "Plain-Nes-v0", 1, "RAM"),
        ("FILTERED", "Scripted-Nes-v0", 1, "IMAGE"),
        ("ALL", "Plain-Nes-v0", 2, "RAM"),
        ("DISCRETE", "Scripted-Nes-v0", 2, "IMAGE"),
    ],
)
def test_rr17_to_rr27_an_episode_is_stable_retros(
    mode: str, game: str, players: int, observed: str, data_path: Path
) -> None:
    pytest.importorskip("stable_retro", reason="the extra `peers` has the oracle")
    obs = "ram" if observed == "RAM" else "image"
    env = rollcart.NesEnv(game, actions=ACTIONS[mode], players=players, obs=obs, **PARITY)
    env.action_space.seed(4)
    # Each action is held for some frames, so that something happens.
    chosen = [np.asarray(env.action_space.sample()).tolist() for _ in range(FRAMES // 10)]
    actions = [action for action in chosen for _ in range(10)]
    argument = json.dumps([mode, game, players, observed, actions])
    command = [sys.executable, "-c", THEIRS, argument]
    environment = {**os.environ, "RETRO_DATA_PATH": str(data_path)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line[:1] in "[{"]
    assert len(lines) == 2 * (FRAMES + 1) + 1
    own = {"elapsed_steps", "episode_return", "state", "reward_player_1", "reward_player_2"}
    at = iter(lines)
    for _ in range(2):
        assert seen(env.reset()[0]) == next(at)
        for frame, action in enumerate(actions):
            observation, reward, terminated, truncated, info = env.step(action)
            ours = {key: value for key, value in info.items() if key not in own}
            found = [seen(observation), reward, terminated, truncated, ours]
            assert found == next(at), f"frame {frame}"
            assert not terminated, "choose actions that keep the player alive"
    space, meanings = next(at)
    assert repr(env.action_space) == space
    if meanings:
        names = ["A", "B", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT"]
        buttons = env._lanes.action_buttons
        assert buttons is not None
        pressed = [{name for bit, name in enumerate(names) if mask >> bit & 1} for mask, _ in buttons]
        assert pressed == [set(meaning) for meaning in meanings]


@pytest.mark.parametrize(
    "state",
    [
        b"FCS\xff" + bytes(100),
        b"#RZIPv\x01#" + bytes(32),
        b"RASTATE\x01" + bytes(32),
        b"",
        b"\x1f\x8b broken",
        gzip.compress(b"another core's state"),
    ],
    ids=["raw", "RZIP", "RASTATE", "empty", "broken gzip", "other core"],
)
def test_rr24_a_state_that_cannot_be_read_is_refused(state: bytes, tmp_path: Path) -> None:
    path = tmp_path / "Mine.state"
    path.write_bytes(state)
    with pytest.raises(StateError, match="Mine"):
        rollcart.NesVectorEnv(state=path)


def test_rr20_without_a_state_a_reset_switches_the_console_on_anew() -> None:
    env = rollcart.NesVectorEnv(state="NONE", obs="ram")
    first = env.reset(seed=1)[0].copy()
    for _ in range(30):
        env.step([9])
    assert np.array_equal(env.reset(seed=1)[0], first)
