"""Colours: stable-retro's picture of a program that shows each colour under each setting of PPUMASK."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import rollcart
from stable_retro_oracle import play

ROMS = Path(__file__).resolve().parents[1] / "roms"
COLOURS = ROMS / "colours.nes"
COMBINATIONS = 40 * 64
# Frames until the program shows its first combination, generously.
START_UP = 20


def combination(ram: np.ndarray) -> int | None:
    """The number of the frame shown, None before the program is ready."""
    return int(ram[0x13]) + 256 * int(ram[0x14]) if ram[0x17] == 1 else None


@pytest.fixture(scope="module")
def oracle_pictures() -> dict[int, np.ndarray]:
    pictures = {}
    for frame in play(COLOURS, [0] * (COMBINATIONS + START_UP)):
        number = combination(np.frombuffer(frame.chunks()[1, "RAM"], np.uint8))
        if number is not None:
            pictures[number] = frame.picture
    return pictures


@pytest.fixture(scope="module")
def our_pictures() -> dict[int, np.ndarray]:
    console = rollcart.Console(COLOURS)
    pictures = {}
    for _ in range(COMBINATIONS + START_UP):
        console.step()
        number = combination(console.ram)
        if number is not None:
            pictures[number] = console.rgb()[8:232, 8:248]
    return pictures


def test_every_colour_and_emphasis_looks_as_in_stable_retro(
    oracle_pictures: dict[int, np.ndarray], our_pictures: dict[int, np.ndarray]
) -> None:
    compared = 0
    for number in range(COMBINATIONS):
        setting = number // 64
        if setting < 16 and setting % 2 == 1:
            continue  # grey without rendering: the next test
        ours, theirs = our_pictures[number], oracle_pictures[number]
        assert np.array_equal(ours, theirs), f"setting {setting}, colour ${number % 64:02X}"
        compared += 1
    assert compared == 32 * 64


def test_grey_needs_no_rendering_here_and_does_in_stable_retro(
    oracle_pictures: dict[int, np.ndarray], our_pictures: dict[int, np.ndarray]
) -> None:
    for emphasis in range(8):
        grey, plain, rendered = (
            64 * setting for setting in (2 * emphasis + 1, 2 * emphasis, 2 * emphasis + 17)
        )
        for colour in range(64):
            assert np.array_equal(our_pictures[grey + colour], our_pictures[rendered + colour])
            assert np.array_equal(oracle_pictures[grey + colour], oracle_pictures[plain + colour])


@pytest.mark.skipif(not shutil.which("cl65"), reason="cc65 is not installed")
def test_the_committed_program_is_what_its_source_builds(tmp_path: Path) -> None:
    for name in ("colours.s", "colours.cfg"):
        shutil.copy(ROMS / name, tmp_path)
    command = ["cl65", "-t", "none", "-C", "colours.cfg", "-o", "built.nes", "colours.s"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "built.nes").read_bytes() == COLOURS.read_bytes()
