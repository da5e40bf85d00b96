"""Start states by name, path and bytes: what was asked for is what is played, whatever files are called."""

from __future__ import annotations

import enum
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_common import mk
from vec_model import GAME

import rollcart
from rollcart import games
from rollcart._starts import KEPT
from rollcart.errors import ConfigError, RomError


def played(state: Any, **options: Any) -> list[int]:
    """The level that each of two lanes begins in."""
    return mk(2, state=state, **options).reset()[1]["level"].tolist()


def file(folder: Path, name: str, level: int) -> Path:
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(GAME / f"Level{level}.state", folder / f"{name}.state"))


def test_u12_two_files_of_one_name_are_two_states(tmp_path: Path) -> None:
    a, b = file(tmp_path / "a", "x", 1), file(tmp_path / "b", "x", 2)
    assert played([a, b]) == [1, 2]
    assert played(None, state_catalog=[a, b]) == [1, 2]
    env = mk(2)
    for states, levels in (([a, b], [1, 2]), ([b, a], [2, 1]), (b, [2, 2]), ([str(a), None], [1, 2])):
        _, infos = env.reset(options={"state": states})
        assert infos["level"].tolist() == levels
        assert len(set(infos["state"])) == len(set(levels))


def test_u12_a_file_that_was_written_anew_is_played_as_it_is_now(tmp_path: Path) -> None:
    path = file(tmp_path, "mine", 1)
    env = mk(2)
    for level in (1, 3, 2):
        file(tmp_path, "mine", level)
        assert env.reset(options={"state": path})[1]["level"].tolist() == [level] * 2


def test_u12_a_file_that_is_called_as_one_of_the_games_hides_it_nowhere(tmp_path: Path) -> None:
    mine = file(tmp_path, "Level1", 3)
    assert played(mine) == [3, 3]
    for begun in (None, mine):
        env = mk(2, state=begun)
        assert env.reset(options={"state": [mine, "Level1"]})[1]["level"].tolist() == [3, 1]
        assert env.reset(options={"state": ["Level1", mine]})[1]["level"].tolist() == [1, 3]
    # A catalog's own names come first.
    named = mk(2, state_catalog={"Level1": "Level4", "b": mine})
    assert named.reset()[1]["level"].tolist() == [4, 3]
    assert named.reset(options={"state": ["b", "Level1"]})[1]["level"].tolist() == [3, 4]


def test_u12_a_name_that_infos_told_is_a_state(tmp_path: Path) -> None:
    env = mk(2)
    _, infos = env.reset(options={"state": [(GAME / "Level2.state").read_bytes(), file(tmp_path, "x", 4)]})
    told = infos["state"].tolist()
    env.reset(options={"state": "Level1"})
    assert env.reset(options={"state": told})[1]["level"].tolist() == [2, 4]
    assert env.reset(options={"state": np.array(told)})[1]["level"].tolist() == [2, 4]


def test_a_lane_of_which_nothing_is_said_begins_where_the_game_does() -> None:
    assert played([None, "Level2"]) == [1, 2]
    assert played(["Level2", None]) == [2, 1]
    assert played(np.array(["Level2", "Level3"])) == [2, 3]
    assert played([None, "Level2"], state_catalog=["Level4"]) == [4, 2]
    with pytest.raises(ConfigError, match="2 of them, one a lane; found 0"):
        played([])


def test_stable_retros_enumerations_are_understood() -> None:
    class State(enum.Enum):
        DEFAULT = -1
        NONE = 0

    class Actions(enum.Enum):
        MULTI_DISCRETE = 3

    class Observations(enum.Enum):
        RAM = 1

    assert played(State.DEFAULT) == [1, 1]
    assert mk(1, state=State.NONE).start_states == ("NONE",)
    env = mk(1, actions=Actions.MULTI_DISCRETE, obs=Observations.RAM)
    assert env.single_observation_space.shape == (10240,)
    assert env.single_action_space == mk(1, actions="multi_discrete").single_action_space


def test_any_object_of_bytes_is_a_rom_and_a_state() -> None:
    rom, state = ((GAME / name).read_bytes() for name in ("rom.nes", "Level2.state"))
    for form in (bytes, bytearray, memoryview):
        assert played(form(state), rom_path=form(rom)) == [2, 2]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""], ids=["marked as UTF-8", "plain"])
@pytest.mark.parametrize("line", [b"\r\n", b"\n"], ids=["CRLF", "LF"])
def test_a_games_texts_may_come_from_any_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: bytes, line: bytes
) -> None:
    place = tmp_path / "a folder \u00e9" / "stable" / "Mine-Nes-v0"
    shutil.copytree(GAME, place)
    for name in ("data.json", "scenario.json", "metadata.json", "rom.sha"):
        (place / name).write_bytes(mark + (place / name).read_bytes().replace(b"\n", line))
    monkeypatch.setenv("RETRO_DATA_PATH", str(place.parent.parent))
    assert mk(1, game="Mine-Nes-v0", rom_path=GAME / "rom.nes").reset()[1]["xpos"] > 0
    for name in ("data.json", "scenario.json", "metadata.json"):
        before = (place / name).read_bytes()
        (place / name).write_text(before.decode("utf-8-sig"), encoding="utf-16")
        with pytest.raises(ConfigError, match=rf"{name}: expected text in UTF-8"):
            games.find("Mine-Nes-v0")
        (place / name).write_bytes(before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"default_state": 5}', "default_state: expected the name of a state, found 5"),
        ('{"default_player_state": "Level1"}', 'default_player_state: expected a list.*found "Level1"'),
        ('{"default_player_state": [1]}', "default_player_state: expected a list"),
        ('{"original_rom_name": ["a"]}', "original_rom_name: expected a name"),
        ("[" * 100_000, "is nested too deeply"),
    ],
    ids=["state", "text for a list", "player", "rom", "deep"],
)
def test_rr4_metadata_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    place = tmp_path / "stable" / "Mine-Nes-v0"
    shutil.copytree(GAME, place)
    (place / "metadata.json").write_text(text)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=rf"metadata\.json:? {message}"):
        mk(1, game="Mine-Nes-v0")


def test_a_name_that_leads_out_of_its_folder_is_no_game() -> None:
    for name in ("..", ".", "../stable", ""):
        with pytest.raises(ConfigError, match="game: expected the name of a game"):
            rollcart.NesVectorEnv(name)


def test_a_zipped_rom_says_what_to_do(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "rom"), "zip", GAME, "rom.nes")
    for make in (rollcart.Console, lambda path: mk(1, rom_path=path)):
        with pytest.raises(RomError, match="zip archive; unpack it"):
            make(tmp_path / "rom.zip")


def test_u20_states_that_came_as_bytes_are_forgotten_once_nothing_begins_there() -> None:
    console = rollcart.Console(GAME / "rom.nes")
    env = mk(2, state_catalog={"mine": "Level2"})
    first = mk(2).reset(options={"state": "Level1"})[0]
    states = []
    for _ in range(3 * KEPT):
        console.step()
        states.append(console.save())
    kept = [env.reset(options={"state": [states[0], state]}) and env.start_states for state in states]
    assert len(env._open().start_names) <= KEPT + 4
    # The lane that begins at the oldest still does, and what was forgotten can be given again.
    assert len({names[0] for names in kept}) == 1
    for state in (states[1], states[-1], states[KEPT]):
        env.reset(options={"state": state})
        assert len(set(env.start_states)) == 1
        alone = mk(2, state=state)
        alone.reset()
        assert np.array_equal(env.ram(), alone.ram())
    assert env.reset(options={"state": "mine"})[1]["level"].tolist() == [2, 2]
    assert np.array_equal(env.reset(options={"state": "Level1"})[0], first)


def test_more_lanes_than_states_are_kept_begin_each_at_its_own() -> None:
    console = rollcart.Console(GAME / "rom.nes")
    console.step(frames=200)
    states = []
    for _ in range(KEPT + 20):
        console.step(8)
        states.append(console.save())
    env = mk(len(states), obs="ram")
    env.reset(options={"state": states})
    for lanes in (states[::-1], states):
        observed = env.reset(options={"state": lanes})[0]
        one = mk(1, obs="ram")
        for lane in (0, 10, len(states) - 1):
            assert np.array_equal(observed[lane], one.reset(options={"state": lanes[lane]})[0][0])
