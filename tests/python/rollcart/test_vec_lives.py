"""Lost lives as ends of episodes, and what stands in a stack before an episode's first observation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from vec_common import MODES, RIGHT, equal, game_with, mk, quick_end
from vec_model import GAME, Lane, Options

import rollcart
from rollcart.errors import ConfigError

LEFT = 3
START = 48  # xpos in Level1
# The game plays on over deaths; what counts as a life in most tests is the speed, which LEFT takes away.
ON = {"reward": {"variables": {"xpos": {"reward": 1.0, "penalty": 1.0}}}}


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return game_with(tmp_path, monkeypatch, ON)


def until_lost(env: rollcart.NesVectorEnv) -> tuple[Any, ...]:
    """Runs right, then brakes: the step in which the speed gets less."""
    for _ in range(4):
        assert not env.step([RIGHT] * env.num_envs)[2].any()
    return env.step([LEFT] * env.num_envs)


def test_re1_a_lost_life_ends_the_episode_as_a_termination(game: str) -> None:
    env = mk(1, "Disabled", game=game, episodic_life="xspeed")
    _, before = env.reset(seed=0)
    _, _, terminated, truncated, infos = until_lost(env)
    assert terminated.all() and not truncated.any()
    assert infos["xspeed"][0] > before["xspeed"][0], "the frame that ends it is the last one"
    with pytest.raises(ResetNeeded):
        env.step([RIGHT])
    other = mk(1, "Disabled", game=game)
    other.reset(seed=0)
    assert not until_lost(other)[2].any(), "only who asks for it"


@pytest.mark.parametrize("mode", MODES)
def test_re1_after_a_lost_life_the_game_goes_on_and_after_its_end_it_begins(mode: str, game: str) -> None:
    env = mk(1, mode, limit=9, game=game, episodic_life="xspeed")
    env.reset(seed=0)
    result = until_lost(env)
    at = (result[4]["final_info"] if mode == "SameStep" else result[4])["xpos"][0]
    assert at > START
    if mode == "NextStep":
        observation, reward, _, _, infos = env.step([0])
        assert reward[0] == 0
    elif mode == "Disabled":
        observation, infos = env.reset(options={"reset_mask": np.array([True])})
    else:
        observation, infos = result[0], result[4]
    assert infos["xpos"][0] >= at and infos["elapsed_steps"][0] == 0
    assert (observation[:, :1] == observation).all(), "nothing of the old episode is in the stack"
    # The limit counts steps of this life, and after a truncation the lane begins at its start.
    lengths = [bool(env.step([RIGHT])[3][0]) for _ in range(9)]
    assert lengths == [False] * 8 + [True]
    _, infos = env.reset()
    assert infos["xpos"][0] == START


def test_u10_the_limit_still_triggers_with_episodic_life(game: str) -> None:
    env = mk(2, "SameStep", limit=[3, 6], game=game, episodic_life=True)
    env.reset(seed=0)
    cut = [env.step([RIGHT, RIGHT])[3].tolist() for _ in range(6)]
    assert cut == [[False] * 2, [False] * 2, [True, False]] * 1 + [[False] * 2, [False] * 2, [True, True]]


def test_a_seed_or_a_state_begins_at_the_start_whatever_was_lost(game: str) -> None:
    env, fresh = (mk(1, "Disabled", game=game, episodic_life="xspeed") for _ in range(2))
    for arguments in ({"seed": 5}, {"seed": [5]}, {"options": {"state": "Level1"}}):
        env.reset(seed=0)
        until_lost(env)
        fresh.reset(seed=0)
        equal(env.reset(**arguments), fresh.reset(**arguments))


def test_where_the_game_ends_in_the_wait_after_a_lost_life_it_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner brakes just before the end and slides over it while nobody plays."""
    ends = 0
    for x in range(74, 80):
        folder = tmp_path / str(x)
        name = game_with(folder, monkeypatch, {**ON, "done": quick_end(x)["done"]})
        options: dict[str, Any] = {
            "frame_skip": 2,
            "frame_stack": 1,
            "resize": (12, 10),
            "noop_reset_max": 30,
            "episodic_life": "xspeed",
        }
        env = mk(1, "Disabled", game=name, **options)
        start = (GAME / "Level1.state").read_bytes()
        lane = Lane(Options(**options), start, folder / "stable" / name)
        env.reset(seed=x)
        lane.reset(x)
        for action, buttons in [(RIGHT, 128)] * 14 + [(LEFT, 64)] * 3:
            observation, _, terminated, _, _ = env.step([action])
            _, _, done, _ = lane.step(buttons)
            assert terminated[0] == done
            if done:
                break
        if not lane.life_lost:
            continue
        observation, infos = env.reset()
        assert np.array_equal(observation[0], lane.reset())
        ends += infos["xpos"][0] == START
        assert infos["xpos"][0] == lane.values["xpos"]
    assert ends, "no end was met in a wait: another x"


def test_a_life_that_is_none_is_refused_with_those_that_there_are(game: str) -> None:
    with pytest.raises(ConfigError, match=r"episodic_life.*data\.json \(.*lives.*\).*hearts"):
        mk(1, game=game, episodic_life="hearts")
    with pytest.raises(ConfigError, match=r"episodic_life.*True, False"):
        mk(1, game=game, episodic_life=2)
    with pytest.raises(ConfigError, match=r"stack_start.*repeat.*zero.*empty"):
        mk(1, stack_start="empty")


def test_lives_are_watched_by_that_name(game: str) -> None:
    """Random play in the last level: each termination is a life less, and each life less a termination."""
    env = mk(2, "NextStep", game=game, episodic_life=True, state="Level4", frame_skip=8)
    _, infos = env.reset(seed=0)
    rng, lost = np.random.default_rng(3), 0
    lives, ended = infos["lives"], np.zeros(2, bool)
    for _ in range(260):
        _, _, terminated, _, infos = env.step(rng.choice([6, 6, 24], size=2))
        fewer = (infos["lives"] < lives) & ~ended
        assert (fewer == terminated).all()
        lost += int(terminated.sum())
        lives, ended = infos["lives"], terminated
    assert lost >= 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ["chw", "hwc"])
def test_u38_an_episodes_stack_may_begin_black(mode: str, layout: str) -> None:
    env = mk(2, mode, limit=2, frame_stack=4, stack_start="zero", layout=layout)

    def rows(observation: np.ndarray) -> np.ndarray:
        return observation if layout == "chw" else observation.transpose(0, 3, 1, 2)

    first = rows(env.reset(seed=0)[0])
    assert not first[:, :3].any() and first[:, 3].any()
    repeated, _ = mk(2, mode, frame_stack=4, layout=layout).reset(seed=0)
    assert np.array_equal(first[:, 3], rows(repeated)[:, 3])
    second = rows(env.step([RIGHT, RIGHT])[0])
    assert not second[:, :2].any() and np.array_equal(second[:, 2], first[:, 3])
    result = env.step([RIGHT, RIGHT])
    if mode == "Disabled":
        again = env.reset(options={"reset_mask": result[3]})[0]
    else:
        again = env.step([0, 0])[0] if mode == "NextStep" else result[0]
    assert np.array_equal(rows(again), first)
    if mode == "SameStep":
        last = rows(np.stack(list(result[4]["final_obs"])))
        assert np.array_equal(last[:, 1:3], second[:, 2:]) and not last[:, 0].any()


def test_a_lane_that_lost_a_life_is_kept_with_that(game: str) -> None:
    env = mk(1, "NextStep", game=game, episodic_life="xspeed")
    env.reset(seed=0)
    until_lost(env)
    for saved in (env.snapshot(), env.snapshot(portable=False)):
        other = mk(1, "NextStep", game=game, episodic_life="xspeed")
        other.restore(saved)
        x = other.step([0])[4]["xpos"][0]
        assert x > START, "the game goes on"


def test_after_a_call_that_broke_off_every_lane_begins_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the step in which one lane loses a life another one's script fails: what was lost counts no more."""
    game = game_with(tmp_path, monkeypatch, {"scripts": ["script.lua"], "reward": {"script": "lua:r"}})
    script = "function r()\n  if data.xpos > 60 then error('meant') end\n  return 0\nend"
    (tmp_path / "stable" / game / "script.lua").write_text(script)
    env = mk(2, "NextStep", game=game, episodic_life="xspeed")
    env.reset(seed=0)
    for _ in range(4):
        env.step([RIGHT, RIGHT])
    with pytest.raises(RuntimeError, match="lane 1"):
        env.step([LEFT, RIGHT])
    assert env.reset()[1]["xpos"].tolist() == [START, START]


def test_a_script_goes_on_with_the_game_after_a_lost_life_and_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reward counts the calls of the script: of every frame since the game began, lives or not."""
    game = game_with(tmp_path, monkeypatch, {"scripts": ["script.lua"], "reward": {"script": "lua:r"}})
    script = "local calls = 0\nfunction r()\n  calls = calls + 1\n  return calls\nend"
    (tmp_path / "stable" / game / "script.lua").write_text(script)
    env = mk(1, "Disabled", game=game, episodic_life="xspeed", frame_skip=1)
    env.reset(seed=0)
    first = env.step([RIGHT])[1][0]
    calls, lost = first, False
    while not lost:
        action = RIGHT if calls < first + 16 else LEFT
        _, reward, terminated, _, _ = env.step([action])
        assert reward[0] == calls + 1
        calls, lost = reward[0], bool(terminated[0])
    env.reset()
    assert env.step([RIGHT])[1][0] == calls + 2, "a frame of the reset, one of the step"
    env.reset(seed=0)
    assert env.step([RIGHT])[1][0] == first
