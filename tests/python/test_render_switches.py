"""Pictures and observations of real games are the same with every trick of drawing off and on, in all frames.

The native property tests do the same with random registers and memories.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollcart
from rom_folder import bundled_rom, test_rom

ROOT = Path(__file__).resolve().parents[2]
MOVIES = ROOT / "games/cart_runner/movies"
BITS = {"A": 1, "B": 2, "SELECT": 4, "START": 8, "UP": 16, "DOWN": 32, "LEFT": 64, "RIGHT": 128}
LEVELS = (1, 2, 3, 4)
HOMEBREW = ("falling", "jetpaco", "ralph4", "robotfindskitten")
HOMEBREW_FRAMES = 900
SWITCHES = ("line_log", "beam_jumps", "direct_bins", "tile_sums", "joined_sums", "simd")
# What each environment beside the plain one leaves on, so that a fault names its switch.
LEFT_ON = (
    ("line_log",),
    ("direct_bins",),
    ("line_log", "direct_bins"),
    ("line_log", "direct_bins", "tile_sums"),
    ("line_log", "direct_bins", "tile_sums", "joined_sums"),
    ("line_log", "beam_jumps"),
    SWITCHES,
)
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"crop": (0, 0, 0, 0)},
    {"crop": (5, 3, 30, 17), "crop_mode": "cut", "resize": (61, 47)},
)


def movie(level: int) -> list[int]:
    """One button mask a frame."""
    lines = (MOVIES / f"level{level}.txt").read_text().splitlines()
    runs = [line.split() for line in lines if not line.startswith("#")]
    return [sum(BITS[b] for b in names.split("+") if b != "-") for n, names in runs for _ in range(int(n))]


def environments(shape: dict[str, Any], **game: Any) -> list[rollcart.NesVectorEnv]:
    """The plain one first, then those of LEFT_ON."""
    options = {
        "frame_skip": 1,
        "frame_stack": 1,
        "actions": list(range(256)),
        "num_threads": 1,
        **shape,
        **game,
    }
    switched = [{name: name in on for name in SWITCHES} for on in ((), *LEFT_ON)]
    return [rollcart.NesVectorEnv(num_envs=1, engine_options=switches, **options) for switches in switched]


def test_lines_that_are_drawn_at_once_are_counted() -> None:
    plain, *_, quick = environments({"crop": (0, 0, 0, 0)})
    for env in (plain, quick):
        env.reset(seed=0)
        for _ in range(10):
            env.step(np.array([BITS["RIGHT"]]))
    # Every line of the reset's frame and of ten; the status bar's end alone.
    assert plain.profile()["lines_drawn_at_once"] == 11 * 240
    assert 11 <= quick.profile()["lines_drawn_at_once"] <= 11 * 4


def play(envs: list[rollcart.NesVectorEnv], buttons: list[int]) -> None:
    plain, *others = envs
    expected, _ = plain.reset(seed=0)
    for env, on in zip(others, LEFT_ON, strict=True):
        assert np.array_equal(expected, env.reset(seed=0)[0]), f"reset with {on}"
    for frame, pressed in enumerate(buttons):
        action = np.array([pressed])
        expected = plain.step(action)[0]
        for env, on in zip(others, LEFT_ON, strict=True):
            assert np.array_equal(expected, env.step(action)[0]), f"frame {frame} with {on}"


@pytest.mark.parametrize("level", LEVELS)
def test_every_frame_of_a_movie_is_observed_alike(level: int) -> None:
    play(environments(SHAPES[level % len(SHAPES)], state=f"Level{level}"), movie(level))


@pytest.mark.parametrize("name", HOMEBREW)
def test_every_frame_of_a_homebrew_game_is_drawn_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rom = test_rom(f"homebrew/{name}.nes").read_bytes()
    quick = rollcart.Console(rom)
    monkeypatch.setenv("ROLLCART_SWITCHED_OFF", "line_log")
    plain = rollcart.Console(rom)
    draw = np.random.default_rng(5)
    for frame in range(HOMEBREW_FRAMES):
        pressed = int(draw.integers(256)) if frame % 8 == 0 else 0
        quick.step(pressed)
        plain.step(pressed)
        assert np.array_equal(plain.rgb(), quick.rgb()), f"frame {frame}"


def test_an_unknown_switch_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLCART_SWITCHED_OFF", "line_log, turbo")
    for make in (lambda: rollcart.Console(bundled_rom()), rollcart.NesVectorEnv):
        with pytest.raises(rollcart.errors.ConfigError, match="turbo"):
            make()
