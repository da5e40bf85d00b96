"""A lane's movie replays outside the batch, whatever its actions, no-ops and luck were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from vec_common import RIGHT, game_with, mk, quick_end, random_actions
from vec_model import GAME

from rollcart import movie
from rollcart.errors import ConfigError

ROM = (GAME / "rom.nes").read_bytes()


def replayed_ram(made: movie.Movie) -> np.ndarray:
    *_, last = movie.replay(made, ROM)
    return last.ram


@pytest.mark.parametrize("actions", ["filtered", "all", "discrete", "multi_discrete"])
def test_u42_a_movie_of_300_frames_with_start_and_select_replays(actions: str) -> None:
    env = mk(3, actions=actions, obs="ram", state="NONE")
    env.action_space.seed(4)
    env.reset(seed=1)
    env.log_inputs()
    pressed = 0
    for _ in range(75):
        env.step(env.action_space.sample())
    for lane in range(3):
        made = env.movie(lane)
        assert made.frames == 300
        assert np.array_equal(replayed_ram(made), env.ram()[lane])
        pressed |= np.bitwise_or.reduce([first for first, _ in made.inputs])
    # Filtered actions and combinations leave START and SELECT out, as in Stable Retro; flags keep them.
    assert bool(pressed & (4 | 8)) == (actions == "all")
    env.close()


def test_no_ops_and_sticky_frames_are_in_the_movie() -> None:
    env = mk(4, obs="ram", noop_reset_max=20, sticky_action_prob=0.5)
    env.log_inputs(np.array([True, True, False, True]))
    env.reset(seed=3)
    for action in random_actions(env, 40):
        env.step(action)
    for lane in (0, 1, 3):
        made = env.movie(lane)
        assert made.frames > 160
        assert np.array_equal(replayed_ram(made), env.ram()[lane])
    with pytest.raises(ConfigError, match=r"lane 2; call log_inputs\(\) first"):
        env.movie(2)
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_the_episode_that_an_autoreset_has_ended_is_kept(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = mk(1, mode, game=game_with(tmp_path, monkeypatch, quick_end()), obs="ram")
    env.log_inputs()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="no episode of it has ended"):
        env.movie(0, last_episode=True)
    frames = 1
    while True:
        _, _, terminated, _, infos = env.step(np.array([RIGHT]))
        if terminated[0]:
            break
        frames += 4
    if mode == "NextStep":
        ended = env.ram()[0]
        assert np.array_equal(replayed_ram(env.movie(0)), ended)
        env.step(np.array([RIGHT]))
    else:
        ended = infos["final_obs"][0][:2048]
    made = env.movie(0, last_episode=True)
    assert frames < made.frames <= frames + 4
    assert np.array_equal(replayed_ram(made), ended)
    assert env.movie(0).frames == 1, "the first frame of the next episode"
    env.close()


def test_after_a_restore_or_a_fork_the_movie_begins_there() -> None:
    env = mk(2, obs="ram")
    env.reset(seed=0)
    for action in random_actions(env, 20):
        env.step(action)
    kept = env.snapshot()
    env.log_inputs()
    env.step(np.array([RIGHT, 0]))
    env.restore([kept[1], None])
    env.fork(0, np.array([False, True]))
    env.step(np.array([RIGHT, RIGHT]))
    for lane in range(2):
        made = env.movie(lane)
        assert made.frames == 4
        assert np.array_equal(replayed_ram(made), env.ram()[lane])
    env.close()


def test_writing_down_inputs_changes_nothing_that_is_played() -> None:
    rams = []
    for logged in (False, True):
        env = mk(2, obs="ram", noop_reset_max=10, sticky_action_prob=0.25)
        if logged:
            env.log_inputs()
        env.reset(seed=5)
        for action in random_actions(env, 60):
            env.step(action)
        rams.append(env.ram())
        env.close()
    assert np.array_equal(*rams)


def test_a_movie_that_scripts_have_written_into_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buttons alone do not lead to where a script's writes led."""
    game = game_with(tmp_path, monkeypatch, {"scripts": ["script.lua"], "reward": {"script": "lua:r"}})
    script = tmp_path / "stable" / game / "script.lua"
    for text, refused in [("data.coins = 77 return 0", True), ("return data.coins", False)]:
        script.write_text(f"function r() {text} end")
        env = mk(2, "NextStep", limit=3, game=game, obs="ram")
        env.reset(seed=0)
        env.log_inputs()
        env.movie(0)
        for _ in range(3):
            env.step([RIGHT, RIGHT])
        if refused:
            with pytest.raises(ConfigError, match=r"scripts wrote into the memory of lane 1.*scenario="):
                env.movie(1)
            continue
        assert np.array_equal(replayed_ram(env.movie(1)), env.ram()[1])
