"""Mistakes of the first hour: each is answered with what was expected, what was found, and what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollcart
from rollcart import cli, doctor, games, movie
from rollcart.bench import sps
from rollcart.errors import ConfigError, MovieError, RomError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("frameskip", "frame_skip"),
        ("stack_num", "frame_stack"),
        ("repeat_action_probability", "sticky_action_prob"),
        ("gray_scale", "grayscale"),
        ("seed", r"reset\(seed="),
    ],
)
def test_an_option_of_another_package_is_answered_with_ours(typed: str, meant: str) -> None:
    for make in (rollcart.NesVectorEnv, rollcart.NesEnv):
        with pytest.raises(TypeError, match=rf"no option '{typed}'; did you mean {meant}"):
            make(**{typed: 4})  # type: ignore[arg-type]


def test_an_option_like_none_of_ours_says_where_they_are_listed() -> None:
    with pytest.raises(TypeError, match="'zzzz'; help"):
        rollcart.NesVectorEnv(zzzz=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'zzzz'; help"):
        rollcart.NesVectorEnv(["CartRunner-Nes-v0"] * 2, zzzz=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("typed", ["CartRuner-Nes-v0", "CartRunner"])
def test_a_game_that_is_almost_there_is_named(typed: str) -> None:
    with pytest.raises(ConfigError, match="did you mean CartRunner-Nes-v0"):
        rollcart.NesVectorEnv(typed)


def test_a_game_without_its_rom_points_at_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "stable" / "Some-Nes-v0"
    folder.mkdir(parents=True)
    (folder / "data.json").write_text('{"info": {}}')
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    with pytest.raises(RomError, match="rollcart import FOLDER"):
        games.find("Some-Nes-v0")


def test_an_option_of_reset_that_is_none_resets_nothing() -> None:
    # gymnasium's name is reset_mask; taken silently, "mask" would have reset every lane.
    env = rollcart.NesVectorEnv(num_envs=2, autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(2, np.int64))
    before = env.ram().copy()
    with pytest.raises(ConfigError, match="expected 'reset_mask', found 'mask'"):
        env.reset(options={"mask": np.array([True, False]), "of another wrapper": 1})
    with pytest.raises(TypeError, match=r"seed: expected an integer or one a lane, found 'a'"):
        env.reset(seed="a")  # type: ignore[arg-type]
    assert np.array_equal(env.ram(), before)
    env.close()


def test_a_movie_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "no.rcm"
    with pytest.raises(MovieError, match=r"no\.rcm.*No such file"):
        movie.Movie.read(missing)
    assert cli.main(["record", str(missing), "--out", str(tmp_path / "a.gif")]) == 3
    assert "expected a movie" in capsys.readouterr().err


def test_play_does_not_play_where_nobody_sees_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pygame

    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    # Where SDL finds no display it takes its offscreen driver, and no error comes.
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "offscreen")
    monkeypatch.setattr(pygame.display, "init", lambda: None)
    assert cli.main(["play", "--frames", "1"]) == 3
    assert "SDL_VIDEODRIVER=dummy" in capsys.readouterr().err


def test_doctor_survives_a_module_that_is_not_of_these_sources(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConfigError('NesVectorEnv: there is no option "new"')

    monkeypatch.setattr(rollcart.vector_env._setup, "make", refuse)
    monkeypatch.setattr(sps, "stale_module", lambda *_: True)
    assert cli.main(["doctor", "--seconds", "0.01"]) == 1
    said = capsys.readouterr().out
    assert "native module" in said and sps.REBUILD in said and "environments" in said
    assert [one.level for one in doctor.examine(seconds=0.01)[0] if one.name == "environments"] == ["wrong"]


@pytest.mark.parametrize("options", [3, [], "state", ("state", "Level2")], ids=repr)
def test_options_of_a_reset_that_are_no_dict_are_refused(options: Any) -> None:
    env, mixed = rollcart.NesVectorEnv(num_envs=2), rollcart.NesVectorEnv(["CartRunner-Nes-v0"] * 2)
    for reset in (env.reset, env.async_reset, mixed.reset, rollcart.NesEnv().reset):
        with pytest.raises(TypeError, match="options: expected a dict or None, found"):
            reset(options=options)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"copy": "no"}, "copy: expected True or False, found 'no'"),
        ({"copy": None}, "copy: expected True or False, found None"),
        ({"info_keys": "xpos"}, "info_keys: expected a list of names"),
    ],
    ids=str,
)
def test_a_value_that_python_would_take_for_another_is_refused(option: Any, message: str) -> None:
    for game in ("CartRunner-Nes-v0", ["CartRunner-Nes-v0"] * 2):
        with pytest.raises(ConfigError, match=message):
            rollcart.NesVectorEnv(game, 2, **option)


def test_a_warning_points_at_the_line_that_called() -> None:
    rom = bytearray(games.find(games.BUNDLED).rom)
    rom[-1] ^= 1
    makers: list[Any] = [
        lambda: rollcart.NesVectorEnv(rom_path=bytes(rom)),
        lambda: rollcart.NesVectorEnv(rom_path=[bytes(rom)]),
        lambda: rollcart.NesEnv(rom_path=bytes(rom)),
        lambda: gymnasium.make("CartRunner-Nes-v0", rom_path=bytes(rom)),
        lambda: gymnasium.make_vec("CartRunner-Nes-v0", num_envs=1, rom_path=bytes(rom)),
    ]
    for make in makers:
        with pytest.warns(UserWarning, match="none of the games with data files") as told:
            make()
        assert {warning.filename for warning in told} == {__file__}
