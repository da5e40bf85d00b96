"""Where a game's files are found, and what is said when they are not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from vec_model import GAME

import rollcart
from rollcart import games
from rollcart.errors import ConfigError, RomError, StateError

COLOURS = Path(__file__).resolve().parents[2] / "roms/colours.nes"


def place(root: Path, category: str = "stable", game: str = "Mine-Nes-v0") -> Path:
    folder = root / category / game
    shutil.copytree(GAME, folder)
    return folder


@pytest.mark.parametrize("category", ["stable", "contrib", "experimental", "."])
def test_retro_data_path_is_searched_first_with_its_categories(
    category: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, category)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    assert Path(games.find("Mine-Nes-v0").rom_source).is_relative_to(tmp_path)
    place(tmp_path, "stable", games.BUNDLED)
    assert Path(games.find(games.BUNDLED).rom_source).is_relative_to(tmp_path)


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path / "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RETRO_DATA_PATH", "~/data")
    assert games.find("Mine-Nes-v0").name == "Mine-Nes-v0"


def test_a_path_that_is_not_there_does_not_hide_the_bundled_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRO_DATA_PATH", "/nowhere")
    assert games.find(games.BUNDLED).default_state(1) == "Level1"


def test_rr4_metadata_may_name_the_rom_file_and_states_by_player(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place(tmp_path)
    (folder / "rom.nes").rename(folder / "Mine.nes")
    (folder / "metadata.json").write_text(
        json.dumps({"original_rom_name": "Mine.nes", "default_player_state": ["Level2", "Level3"]})
    )
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    assert rollcart.NesVectorEnv("Mine-Nes-v0").start_states == ("Level2",)
    assert rollcart.NesVectorEnv("Mine-Nes-v0", players=2).start_states == ("Level3",)


def test_a_rom_comes_as_path_or_bytes_beside_the_games_files(tmp_path: Path) -> None:
    rom = GAME / "rom.nes"
    for given in (rom, str(rom), rom.read_bytes()):
        assert rollcart.NesVectorEnv(rom_path=given).start_states == ("Level1",)
    header = bytearray(rom.read_bytes())
    header[12] ^= 0
    (tmp_path / "renamed.nes").write_bytes(header)
    assert rollcart.NesVectorEnv(rom_path=tmp_path / "renamed.nes").start_states == ("Level1",)


def test_another_rom_is_refused_for_a_named_game_with_both_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    expected = (GAME / "rom.sha").read_text().strip()
    with pytest.raises(RomError, match=expected):
        rollcart.NesVectorEnv("Mine-Nes-v0", rom_path=COLOURS)


def test_a_rom_without_files_plays_without_rewards_and_says_so() -> None:
    with pytest.warns(UserWarning, match="rewards are 0"):
        env = rollcart.NesVectorEnv(rom_path=COLOURS, num_envs=2)
    env.reset(seed=0)
    _, reward, terminated, _, infos = env.step([0, 0])
    assert not reward.any() and not terminated.any() and env.start_states == ("NONE", "NONE")
    assert set(infos) == {k for n in ("elapsed_steps", "episode_return", "state") for k in (n, f"_{n}")}


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="RETRO_DATA_PATH"):
        games.find("NoSuch-Nes-v0")
    for name in ("", "../x", "a/b"):
        with pytest.raises(ConfigError, match="name of a game"):
            games.find(name)
    folder = place(tmp_path)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    (folder / "rom.nes").unlink()
    (folder / "metadata.json").unlink()
    with pytest.raises(RomError, match=r"rom\.nes"):
        games.find("Mine-Nes-v0")
    with pytest.raises(FileNotFoundError, match="missing"):
        games.find(games.BUNDLED, tmp_path / "missing.nes")


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("data.json", "{", r"data\.json is not valid JSON"),
        ("data.json", "{}", "info"),
        ("data.json", '{"info": {"x": {"address": 1}}}', "type"),
        ("scenario.json", '{"done": {"variables": {"hp": {}}}}', "hp.*xpos"),
        ("scenario.json", '{"reward": {"script": "lua:f"}}', "lua:FUNCTION"),
        ("metadata.json", "[]", "object"),
        ("metadata.json", "{", "JSON"),
    ],
)
def test_broken_files_are_config_errors(
    file: str, text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place(tmp_path) / file).write_text(text)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=words):
        rollcart.NesVectorEnv("Mine-Nes-v0")


def test_a_time_penalty_warns_that_it_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place(tmp_path) / "scenario.json").write_text('{"reward": {"time": {"penalty": 1}}}')
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    with pytest.warns(UserWarning, match="penalty"):
        rollcart.NesVectorEnv("Mine-Nes-v0")


def test_a_state_of_another_game_is_refused() -> None:
    console = rollcart.Console(COLOURS)
    console.step()
    with pytest.raises(StateError, match="ROM"):
        rollcart.NesVectorEnv(state=console.save())
    mine = rollcart.Console(GAME / "rom.nes")
    mine.step(frames=30)
    env = rollcart.NesVectorEnv(state=mine.save(), obs="ram")
    mine.step()
    assert (env.reset()[0][0, :2048] == mine.ram).all()
    assert env.start_states[0].startswith("state-")
