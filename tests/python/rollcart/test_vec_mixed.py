"""Different ROMs in one batch: each lane is that of an environment of its own game."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from vec_common import MODES, equal, mk, random_actions
from vec_model import GAME

import rollcart
from rollcart.envs._sb3_lanes import Sb3Lanes
from rollcart.errors import ConfigError, StateError

HOME, OTHER = "CartRunner-Nes-v0", "Second-Nes-v0"
GAMES = [HOME, OTHER, OTHER, HOME]
RANDOM = {"noop_reset_max": 12, "sticky_action_prob": 0.25}


@pytest.fixture
def games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second game beside the bundled one: other ROM bytes, other infos, other rewards."""
    place = tmp_path / "stable" / OTHER
    shutil.copytree(GAME, place)
    rom = bytearray((place / "rom.nes").read_bytes())
    rom[-1] ^= 1  # the last byte of the pictures
    (place / "rom.nes").write_bytes(rom)
    (place / "rom.sha").unlink(missing_ok=True)
    data = json.loads((place / "data.json").read_text())
    data["info"] = {"xpos": data["info"]["xpos"], "second": data["info"]["lives"]}
    (place / "data.json").write_text(json.dumps(data))
    scenario = {"reward": {"variables": {"xpos": {"reward": 2.0}}}}
    (place / "scenario.json").write_text(json.dumps(scenario))
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("obs", ["image", "dict"])
def test_each_lane_is_that_of_its_own_game(games: Path, mode: str, obs: str) -> None:
    options: dict[str, Any] = {"limit": 5, "obs": obs, **RANDOM}
    env = mk(4, mode, game=GAMES, **options)
    assert isinstance(env, rollcart.NesVectorEnv) and env.num_envs == 4 and env.games == tuple(GAMES)  # type: ignore[attr-defined]
    apart = [mk(1, mode, game=game, **options) for game in GAMES]
    results: Any = env.reset(seed=20)
    single: list[Any] = [one.reset(seed=20 + lane) for lane, one in enumerate(apart)]
    tape = random_actions(env, 14, seed=3)
    for step in range(14):
        assert env.observation_space.contains(results[0])
        for lane, alone in enumerate(single):
            same_lane(results, alone, lane)
        if mode == "Disabled" and len(results) == 5 and results[3].any():
            mask = results[3]
            results = env.reset(options={"reset_mask": mask})
            single = [one.reset() for one in apart]
            continue
        results = env.step(tape[step])
        single = [one.step(tape[step][lane : lane + 1]) for lane, one in enumerate(apart)]


def same_lane(results: Any, alone: Any, lane: int) -> None:
    def cut(value: Any) -> Any:
        return (
            {k: v[lane : lane + 1] for k, v in value.items()}
            if isinstance(value, dict)
            else value[lane : lane + 1]
        )

    equal(cut(results[0]), alone[0])
    equal([part[lane] for part in results[1:-1]], [part[0] for part in alone[1:-1]])
    infos = alone[-1]
    for key in (key for key in infos if not key.startswith("_") and key != "final_info"):
        assert results[-1][f"_{key}"][lane] == infos[f"_{key}"][0]
        equal(results[-1][key][lane], infos[key][0], key)
    for key in (key for key in results[-1] if key.startswith("_") and key not in infos):
        assert not results[-1][key][lane]


def test_infos_are_the_union_of_keys_with_masks(games: Path) -> None:
    env = mk(4, game=GAMES)
    _, infos = env.reset(seed=0)
    assert infos["_second"].tolist() == [False, True, True, False]
    assert infos["_lives"].tolist() == [True, False, False, True]
    assert infos["_xpos"].all() and infos["second"].dtype == infos["lives"].dtype == np.int64
    assert env.step([0] * 4)[4].keys() == infos.keys()


def test_a_mask_resets_lanes_of_any_game(games: Path) -> None:
    env = mk(4, game=GAMES, **RANDOM)
    env.reset(seed=0)
    observation = env.step([6, 6, 6, 6])[0]
    before = env.snapshot()
    mask = np.array([False, True, False, False])
    now, infos = env.reset(seed=9, options={"reset_mask": mask, "state": ["Level2", "Level3", None, None]})
    assert [a == b for a, b in zip(before, env.snapshot(), strict=True)] == [True, False, True, True]
    assert np.array_equal(now[~mask], observation[~mask])
    assert env.start_states == ("Level1", "Level3", "Level1", "Level1")
    assert infos["_xpos"].tolist() == mask.tolist() and not infos["_lives"].any()


def test_a_bad_call_moves_no_lane_of_any_game(games: Path) -> None:
    env = mk(4, "Disabled", game=GAMES, limit=[9, 9, 2, 9])
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.step([0] * 4)
    env.reset(seed=0)
    before = env.snapshot()
    for bad in ([0, 0, 36, 0], [0, 0, 0], [0.0] * 4):
        with pytest.raises(ValueError, match="action"):
            env.step(bad)
    with pytest.raises(StateError, match="Level9"):
        env.reset(options={"state": ["Level2", "Level9", None, None]})
    assert env.snapshot() == before and env.start_states == ("Level1",) * 4
    env.step([0] * 4)
    env.step([0] * 4)
    before = env.snapshot()
    with pytest.raises(ResetNeeded, match="lane 2"):
        env.step([0] * 4)
    assert env.snapshot() == before


def test_a_lane_that_cannot_be_stepped_stops_all_games_whatever_left_it_so(games: Path) -> None:
    """Ended lanes come by steps, by snapshots and by forks."""
    env = mk(4, "Disabled", game=GAMES, limit=[9, 9, 2, 9])
    early, _ = env.reset(seed=0), env.step([0] * 4)
    env.step([6] * 4)
    ended = env.snapshot()

    def refuses(lane: int) -> None:
        before = env.snapshot()
        with pytest.raises(ResetNeeded, match=f"lane {lane}"):
            env.step([6] * 4)
        assert env.snapshot() == before, "no lane of any game has moved"

    refuses(2)
    env.reset(seed=0)
    env.restore(ended)
    refuses(2)
    env.reset(seed=0)
    env.fork(0, np.array([False, False, False, True]))
    env.step([0] * 4)
    env.restore([None, ended[2], None, None])
    refuses(1)
    env.fork(1, np.array([False, True, True, False]))
    refuses(1)
    env.reset(seed=0)
    equal(env.step([0] * 4)[0].shape, early[0].shape)


def test_a_call_that_broke_off_in_one_game_keeps_the_others_where_they_are(games: Path) -> None:
    """A script that fails breaks a step off after the first game has moved: the next step moves none."""
    place = games / "stable" / OTHER
    script = "n = 0\nfunction r()\n  n = n + 1\n  if n > 4 then error('meant') end\n  return 0\nend"
    (place / "script.lua").write_text(script)
    scenario = {"scripts": ["script.lua"], "reward": {"script": "lua:r"}}
    (place / "scenario.json").write_text(json.dumps(scenario))
    env = mk(4, game=GAMES)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="meant"):
        env.step([6] * 4)
    before = env.ram()
    with pytest.raises(ResetNeeded, match=r"lane 1 .*broken off"):
        env.step([6] * 4)
    assert np.array_equal(env.ram(), before)
    env.reset(seed=0)


def test_snapshots_fit_lanes_of_their_own_rom_alone(games: Path) -> None:
    env = mk(4, game=GAMES, **RANDOM)
    env.reset(seed=0)
    saved = env.snapshot()
    observation = env.step([6, 9, 6, 9])[0]
    after = env.snapshot()
    with pytest.raises(StateError, match=OTHER):
        env.restore([saved[0], saved[0], None, None])
    assert env.snapshot() == after, "nothing changes unless all of them fit"
    env.restore([saved[3], saved[2], None, None])
    assert env.snapshot() == [saved[3], saved[2], after[2], after[3]]
    env.restore(after)
    assert np.array_equal(env.fork(1, np.array([False, False, True, False]))[2], observation[1])
    with pytest.raises(StateError, match=r"lanes \[0\] play other games"):
        env.fork(1, np.array([True, False, False, False]))
    with pytest.raises(StateError, match=HOME):
        mk(1).restore([saved[1]]) if saved[1] is None else mk(4, game=GAMES).restore(
            [saved[1], None, None, None]
        )


def test_memory_pictures_and_counts_come_from_every_game(games: Path) -> None:
    env = mk(4, game=GAMES, render_mode="rgb_array")
    env.reset(seed=0)
    env.step([6] * 4)
    assert env.ram().shape == (4, 2048) and env.profile()["steps"] == 4
    pictures = env.render()
    assert pictures is not None and len(pictures) == 4
    equal(pictures[2], env.render_lane(2))
    out = np.empty(env.observation_space.shape, np.uint8)  # type: ignore[arg-type]
    assert env.step([6] * 4, out=out)[0] is not None and out.any()
    saved = env.snapshot()
    env.close()
    calls: list[Any] = [
        env.reset,
        lambda: env.step([0] * 4),
        env.ram,
        env.snapshot,
        lambda: env.restore(saved),
        lambda: env.restore([None] * 4),
        lambda: env.fork(0, np.array([True, False, False, True])),
        lambda: env.render_lane(0),
        env.profile,
    ]
    for call in calls:
        with pytest.raises(ClosedEnvironmentError):
            call()


def test_roms_may_be_given_one_a_lane(games: Path) -> None:
    roms = [(games / "stable" / OTHER / "rom.nes"), GAME / "rom.nes"]
    env = mk(2, game=[OTHER, HOME], rom_path=roms)
    equal(env.reset(seed=0)[0], mk(2, game=[OTHER, HOME]).reset(seed=0)[0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"actions": [[[], ["A"]], [[], ["START"]]]}, "actions of CartRunner.*table of actions"),
        ({"crop": [0, 0, 100, 100]}, "observations of CartRunner.*resize"),
    ],
    ids=["actions", "observations"],
)
def test_games_of_unequal_spaces_are_refused_with_what_differs(
    games: Path, changed: dict[str, Any], words: str
) -> None:
    (games / "stable" / OTHER / "scenario.json").write_text(json.dumps(changed))
    with pytest.raises(ConfigError, match=f"equal spaces: {words}"):
        mk(4, game=GAMES, resize=None, crop="scenario", crop_mode="cut")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 3, "game": GAMES}, "3 entries.*found 4"),
        ({"n": 4, "game": GAMES, "state": ["Level1"]}, "state: expected 4"),
        ({"n": 4, "game": GAMES, "limit": [1, 2]}, "max_episode_steps: expected 4"),
        ({"n": 4, "game": GAMES, "state_catalog": ["Level1"]}, "state="),
        ({"n": 4, "game": GAMES, "batch_size": 2}, "one game"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_one_clear_error(games: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mk(**options)
    with pytest.raises(ConfigError, match="one game"):
        mk(4, game=GAMES).recv()


def test_rows_are_those_of_their_lanes(games: Path) -> None:
    """Memory and pictures of four lanes at four places, beside an environment for each."""
    states = ["Level1", "Level2", "Level3", "Level4"]
    env = mk(4, game=GAMES, state=states)
    env.reset(seed=0)
    memory, pictures = env.ram(), [env.render_lane(lane) for lane in range(4)]
    assert env.start_states == tuple(states)
    for lane, (game, state) in enumerate(zip(GAMES, states, strict=True)):
        alone = mk(1, game=game, state=state)
        alone.reset(seed=0)
        assert np.array_equal(memory[lane], alone.ram()[0]), lane
        assert np.array_equal(pictures[lane], alone.render_lane(0)), lane


def test_limits_and_states_may_be_arrays_with_one_entry_a_lane(games: Path) -> None:
    env = mk(4, game=GAMES, limit=np.array([1, 2, 3, 4]), state=np.array(["Level1", "Level2"] * 2))
    env.reset(seed=0)
    assert env.start_states == ("Level1", "Level2") * 2
    assert [env.step([0] * 4)[3].tolist() for _ in range(2)] == [
        [True, False, False, False],
        [False, True, False, False],
    ]


def test_what_a_whole_batch_refuses_a_mixed_one_refuses_too(games: Path) -> None:
    env = mk(4, game=GAMES)
    with pytest.raises(ResetNeeded, match="lane 1 was never reset"):
        env.reset(options={"reset_mask": np.array([True, False, True, True])})
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(ValueError, match=r"snapshots: expected 4.*found 2"):
        env.restore(before[:2])
    for bad in (["Level1"], ["Level1"] * 5):
        with pytest.raises(ConfigError, match="one state, or 4 of them"):
            env.reset(options={"state": bad})
    with pytest.raises(ValueError, match="lane 4"):
        env.render_lane(4)
    assert env.snapshot() == before


@pytest.mark.parametrize("mode", MODES)
def test_libraries_find_what_they_ask_of_lanes_of_one_game(games: Path, mode: str) -> None:
    env = mk(4, mode, game=GAMES, limit=2)
    assert (env.copy, env.frame_stack) == (True, 2)
    lanes = Sb3Lanes(env)
    assert lanes.get_attr("game") == GAMES
    lanes.reset()
    lanes.step(np.zeros(4, np.int64))
    _, _, dones, infos = lanes.step(np.zeros(4, np.int64))
    assert dones.all() and all(info["terminal_observation"].shape == (2, 12, 10) for info in infos)


def test_the_largest_lane_is_told_and_not_all_games_together(games: Path) -> None:
    env, alone = mk(4, game=GAMES), mk(2)
    for one in (env, alone):
        one.reset(seed=0)
    assert env.profile()["memory_per_lane"] < 1.5 * alone.profile()["memory_per_lane"]


def test_a_list_of_no_games_is_refused() -> None:
    for empty in ({"game": []}, {"rom_path": ()}):
        with pytest.raises(ConfigError, match="empty list"):
            mk(1, **empty)
