"""RR1, RR5, RR12: where a game's files are looked for, and which of them is taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_model import GAME

import rollcart
from rollcart import discovery, games
from rollcart.discovery import Integrations
from rollcart.errors import ConfigError

MINE = "Mine-Nes-v0"
CATEGORIES = ("contrib", "experimental", "custom", "stable")


@pytest.fixture
def everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A game that is in every category, each time with another data.json."""
    for category in CATEGORIES:
        folder = tmp_path / "data" / category / MINE
        shutil.copytree(GAME, folder)
        (folder / "data.json").write_text(json.dumps({"info": {category: {"address": 1, "type": "|u1"}}}))
        (folder / "scenario.json").write_text("{}")
    (tmp_path / "data/custom").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path / "data"))
    discovery.add_custom_path(tmp_path / "elsewhere")
    yield tmp_path
    discovery.clear_custom_paths()


@pytest.mark.parametrize(
    ("integrations", "order"),
    [
        (None, ["custom", "stable", "contrib", "experimental"]),
        (Integrations.STABLE, ["stable"]),
        ("stable", ["stable"]),
        (Integrations.CONTRIB, ["contrib", "stable"]),
        ("experimental", ["experimental", "stable"]),
        ("contrib_only", ["contrib"]),
        (Integrations.CUSTOM, ["custom", "stable"]),
        (8, ["custom"]),
        ("contrib_only|custom_only", ["contrib", "custom"]),
        ("all", list(CATEGORIES)),
        (15, list(CATEGORIES)),
    ],
)
def test_rr1_a_flag_chooses_the_folders_and_their_order(
    integrations: Any, order: list[str], everywhere: Path
) -> None:
    names = [
        "custom" if folder.parent.name == "elsewhere" else folder.parent.name
        for folder in discovery.folders(MINE, integrations)
    ]
    assert names == order
    # The first folder that has the file counts, file by file.
    assert order[0] in games.find(MINE, integrations=integrations).data
    env = rollcart.NesVectorEnv(MINE, integrations=integrations)
    assert order[0] in env.reset()[1]


def test_rr1_files_are_taken_one_by_one(everywhere: Path) -> None:
    (everywhere / "data/contrib" / MINE / "data.json").unlink()
    (everywhere / "data/contrib" / MINE / "rom.nes").unlink()
    found = games.find(MINE, integrations="contrib")
    assert "stable" in found.data and Path(found.rom_source).parent.parent.name == "stable"


def test_rr1_the_flags_are_stable_retros() -> None:
    retro = pytest.importorskip("stable_retro.data", reason="the extra `peers` has the oracle")
    for name, flag in Integrations.__members__.items():
        assert getattr(retro.Integrations, name).value == flag
        assert discovery.chosen(getattr(retro.Integrations, name)) == flag


@pytest.mark.parametrize("wrong", ["", "stabel", 0, 16, -1, True, 1.5, ["stable"]])
def test_rr1_another_flag_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="integrations: expected None or one of stable"):
        discovery.chosen(wrong)


def test_rr5_games_states_and_scenarios_are_listed_as_stable_retro_does(everywhere: Path) -> None:
    folder = everywhere / "data/stable" / MINE
    (folder / "_Hidden.state").write_bytes(b"")
    (folder / "race.json").write_text('{"rewards": []}')
    (folder / "notes.json").write_text('{"text": 1}')
    (folder / "broken.json").write_text("{")
    assert MINE in discovery.list_games() and games.BUNDLED in discovery.list_games("stable")
    (folder / "rom.sha").unlink()
    assert MINE not in discovery.list_games("stable") and MINE in discovery.list_games("contrib")
    assert discovery.list_states(MINE, "stable") == ["Level1", "Level2", "Level3", "Level4"]
    (folder / "scenario.json").write_text('{"done": {}}')
    assert discovery.list_scenarios(MINE, "stable") == ["race", "scenario"]


def test_rr5_the_lists_of_an_installed_stable_retro_are_equal_to_its_own(tmp_path: Path) -> None:
    pytest.importorskip("stable_retro.data", reason="the extra `peers` has the oracle")
    # In a process of its own: stable-retro keeps the data path that it saw first.
    program = """
from stable_retro import data as retro
from rollcart import discovery
everything = retro.Integrations.ALL
theirs = [game for game in retro.list_games(everything) if "-Nes" in game]
assert len(theirs) >= 298 and set(theirs) <= set(discovery.list_games("all"))
for game in theirs[::20]:
    assert discovery.list_states(game, "all") == retro.list_states(game, everything), game
    assert discovery.list_scenarios(game, "all") == retro.list_scenarios(game, everything), game
"""
    environment = {key: value for key, value in os.environ.items() if key != "RETRO_DATA_PATH"}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr


def test_rr12_another_scenario_and_other_variables_are_taken_by_name_or_path(everywhere: Path) -> None:
    folder = everywhere / "data/stable" / MINE
    (folder / "steps.json").write_text('{"reward": {"time": {"reward": 0.5}}}')
    (everywhere / "ends.json").write_text('{"done": {"condition": "all"}}')
    (everywhere / "few.json").write_text('{"info": {"lonely": {"address": 9, "type": "|u1"}}}')
    env = rollcart.NesVectorEnv(MINE, integrations="stable", scenario="steps", frame_skip=3)
    env.reset()
    assert env.step([0])[1][0] == 1.5
    with pytest.warns(UserWarning, match="every frame ends"):
        env = rollcart.NesVectorEnv(
            MINE, scenario=everywhere / "ends.json", info=str(everywhere / "few.json")
        )
    _, infos = env.reset()
    assert env.step([0])[2][0] and "lonely" in infos
    for option in ("scenario", "info"):
        for wrong in ("race", "nowhere/race.json", 7):
            with pytest.raises(ConfigError, match=f"{option}: expected"):
                rollcart.NesVectorEnv(MINE, **{option: wrong})


def test_rr17_the_scenarios_crop_can_be_asked_for(everywhere: Path) -> None:
    (everywhere / "crop.json").write_text('{"crop": [8, 16, 200, 0]}')
    options: dict[str, Any] = {
        "integrations": "stable", "scenario": everywhere / "crop.json", "grayscale": False, "frame_stack": 1,
        "resize": None, "layout": "hwc", "crop_mode": "cut",
    }  # fmt: skip
    cut = rollcart.NesVectorEnv(MINE, crop="scenario", **options)
    whole = rollcart.NesVectorEnv(MINE, crop=(0, 0, 0, 0), **options)
    assert cut.single_observation_space.shape == (208, 200, 3)
    assert np.array_equal(cut.reset()[0], whole.reset()[0][:, 16:, 8:208])
    with pytest.raises(ConfigError, match="crop"):
        rollcart.NesVectorEnv(crop="middle")


def test_rr17_each_player_has_a_reward_where_two_play(everywhere: Path) -> None:
    time = {"time": {"reward": 1}}
    (everywhere / "two.json").write_text(json.dumps({"rewards": [time, {"time": {"reward": -0.25}}]}))
    env = rollcart.NesVectorEnv(MINE, scenario=everywhere / "two.json", players=2, reward_clip=True)
    env.reset()
    _, reward, _, _, infos = env.step([0])
    assert reward[0] == 1 and infos["reward_player_1"][0] == 4 and infos["reward_player_2"][0] == -1
    assert "reward_player_2" not in rollcart.NesVectorEnv(MINE).reset()[1]
