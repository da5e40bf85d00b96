"""What RAM means beyond single variables: signals, and Super Mario Bros.' on RAM images."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_model import GAME

import rollcart
from rollcart import GameRules, games
from rollcart.errors import ConfigError

MARIO = Path(rollcart.__file__).parent / "data/signals/SuperMarioBros-Nes-v0.json"


def read(**at: int) -> dict[str, int]:
    """The signals of a RAM image whose bytes are 0 but for `_ADDRESS=value`, addresses in hexadecimal."""
    ram = np.zeros(2048, np.uint8)
    for name, value in at.items():
        ram[int(name[1:], 16)] = value
    return GameRules('{"info": {}}', "{}", signals=MARIO.read_text()).signals(ram)


@pytest.mark.parametrize(
    ("ram", "signals"),
    [
        (
            {"_6d": 3, "_86": 200, "_71a": 3, "_71c": 88},
            {"player_x": 968, "screen_x": 856, "player_screen_x": 112},
        ),
        # U32: the player's low byte is below the screen's, being a page further.
        ({"_6d": 1, "_86": 4, "_71a": 0, "_71c": 250}, {"player_x": 260, "player_screen_x": 10}),
        ({"_b5": 1, "_ce": 176}, {"player_y": 176, "player_dying": 0}),
        ({"_b5": 0, "_ce": 250}, {"player_y": -6}),
        ({"_b5": 2, "_ce": 10}, {"player_y": 266, "player_dying": 1}),
        ({"_57": 0xD8, "_9f": 4}, {"player_x_speed": -40, "player_y_speed": 4}),
        ({"_e": 11}, {"player_dying": 1, "player_state": 11, "flag": 0}),
        ({"_e": 6, "_b5": 2}, {"player_dying": 1}),
        ({"_e": 8}, {"player_dying": 0, "flag": 0}),
        ({"_e": 4}, {"flag": 1}),
        ({"_e": 5}, {"flag": 1}),
        # U30: a vine is climbed, and is no flag.
        ({"_e": 1, "_1d": 3}, {"player_climbing": 1, "flag": 0, "player_airborne": 0}),
        ({"_1d": 1}, {"player_airborne": 1, "player_climbing": 0}),
        ({"_1d": 2}, {"player_airborne": 1}),
        ({"_33": 2, "_714": 4}, {"player_faces_left": 1, "player_crouching": 1}),
        ({"_756": 2, "_79f": 30, "_79e": 8}, {"power": 2, "star_timer": 30, "hurt_timer": 8}),
        ({"_75f": 7, "_75c": 3, "_760": 4, "_74e": 3}, {"world": 8, "stage": 4, "area": 5, "area_type": 3}),
        ({"_770": 2}, {"castle_end": 1, "game_over": 0}),
        ({"_770": 3}, {"castle_end": 0, "game_over": 1}),
        (
            {"_f": 1, "_13": 1, "_16": 6, "_1a": 0x2D, "_6e": 1, "_87": 9, "_cf": 184, "_b6": 1},
            {
                "enemies": 2, "enemy_1_present": 1, "enemy_2_present": 0, "enemy_5_present": 1,
                "enemy_1_type": 6, "enemy_5_type": 0x2D, "enemy_1_x": 265, "enemy_1_y": 184,
            },
        ),
        (
            {"_14": 1, "_39": 1, "_73": 2, "_8c": 3, "_bb": 1, "_d4": 100},
            {"powerup_present": 1, "powerup_type": 1, "powerup_x": 515, "powerup_y": 100},
        ),
        ({"_723": 1}, {"scroll_locked": 1}),
    ],
)  # fmt: skip
def test_super_mario_bros_signals_are_what_its_ram_says(ram: dict[str, int], signals: dict[str, int]) -> None:
    found = read(**ram)
    assert {name: found[name] for name in signals} == signals


def test_the_signals_of_any_ram_are_in_their_range() -> None:
    rules = GameRules('{"info": {}}', "{}", signals=MARIO.read_text())
    rng = np.random.default_rng(2)
    for _ in range(200):
        found = rules.signals(rng.integers(256, size=2048, dtype=np.uint8))
        assert all(-(2**17) < value < 2**17 for value in found.values())
        flags = [name for name in found if name.endswith("_present") or name in ("flag", "game_over")]
        assert {found[name] for name in flags} <= {0, 1} and 0 <= found["enemies"] <= 5


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes environments of the bundled game under another name, with or without signals of its own."""

    def make(name: str, own: dict[str, Any] | None = None, **options: Any) -> Any:
        folder = tmp_path / "stable" / name
        shutil.copytree(GAME, folder, dirs_exist_ok=True)
        if own is not None:
            (folder / "signals.json").write_text(json.dumps({"signals": own}))
        monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
        return rollcart.NesVectorEnv(name, **options)

    return make


def test_signals_are_infos_of_one_type_in_every_step(environment: Any) -> None:
    env = environment("SuperMarioBros-Nes-v0", num_envs=3, signals=True)
    rules = GameRules('{"info": {}}', "{}", signals=MARIO.read_text())
    infos = env.reset(seed=0)[1]
    for _ in range(4):
        for lane, ram in enumerate(env.ram()):
            for name, value in rules.signals(ram).items():
                assert (
                    infos[name][lane] == value and infos[name].dtype == np.int64 and infos[f"_{name}"][lane]
                )
        infos = env.step([3, 6, 18])[4]
    states, (_, _, _, _, infos) = env.snapshot(), env.step([6, 6, 6])
    env.restore(states)
    again = env.step([6, 6, 6])[4]
    assert again["player_x"].tolist() == infos["player_x"].tolist()
    assert "player_x" not in environment("SuperMarioBros-Nes-v0").reset()[1]


def test_a_games_own_signals_come_first_and_hide_no_variable(environment: Any) -> None:
    address = json.loads((GAME / "data.json").read_text())["info"]["xpos"]["address"]
    term = {"sum": [{"address": address, "type": "|u1"}], "plus": 1000}
    env = environment("Mine-Nes-v0", {"low": term, "xpos": term}, signals=True)
    infos = env.reset()[1]
    assert infos["low"][0] == 1000 + int(env.ram()[0][address]) and infos["xpos"][0] < 1000
    few = environment("Mine-Nes-v0", signals=True, info_keys=["low"])
    assert set(few.reset()[1]) == {"low", "_low"}


def test_a_game_without_signals_is_told_so() -> None:
    with pytest.raises(ConfigError, match=r"no signals\.json for CartRunner-Nes-v0"):
        rollcart.NesVectorEnv(signals=True)
    with pytest.raises(ConfigError, match="signals"):
        GameRules('{"info": {}}', "{}", signals='{"signals": {"x": {}}}')


def test_the_signals_file_names_the_rom_that_stable_retro_has_too() -> None:
    digests = json.loads(MARIO.read_text())["rom_sha"]
    places = games.discovery.folders("SuperMarioBros-Nes-v0", "stable")
    for place in places:
        assert (place / "rom.sha").read_text().split() == digests
