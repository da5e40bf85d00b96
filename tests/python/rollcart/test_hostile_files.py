"""Files that lie or have no end: nothing is believed that was not checked, and nothing is read for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from vec_model import GAME

import rollcart
from rollcart.errors import RomError

ROM = (GAME / "rom.nes").read_bytes()


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file that is longer than any ROM. It has holes: nothing of it is on the disk."""
    path = tmp_path / "endless.nes"
    with path.open("wb") as file:
        file.write(ROM)
        os.truncate(path, 64 << 30)
    return path


def test_what_a_console_saves_it_loads_whatever_ram_its_header_claims() -> None:
    for shifts in range(0, 256, 5):
        header = ROM[:5] + bytes([0, ROM[6], 8, 0, 0, shifts, shifts, 0, 0, 0, 0])
        console = rollcart.Console(header + ROM[16:])
        console.step(frames=3)
        saved = console.save()
        again = rollcart.Console(header + ROM[16:])
        again.load(saved)
        assert again.save() == saved


def test_a_file_without_end_is_no_rom(endless: Path) -> None:
    with pytest.raises(RomError, match=r"endless\.nes has more than \d+ bytes, expected"):
        rollcart.Console(endless)
    with pytest.raises(RomError, match="more than"):
        rollcart.Console("/dev/zero")
