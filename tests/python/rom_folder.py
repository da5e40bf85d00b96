"""Where test ROMs and homebrew games lie: ROLLCART_TEST_ROMS, else ../shared/roms beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_rom(name: str) -> Path:
    """The ROM's path; without it the test is skipped, or fails under ROLLCART_REQUIRE_TEST_ROMS=1."""
    folder = Path(os.environ.get("ROLLCART_TEST_ROMS") or ROOT / "../shared/roms")
    rom = folder / name
    if not rom.is_file():
        missing = f"{name} is not in {folder}; set ROLLCART_TEST_ROMS to the folder of test ROMs"
        if os.environ.get("ROLLCART_REQUIRE_TEST_ROMS") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return rom


test_rom.__test__ = False  # a helper, though its name begins like a test's


def bundled_rom() -> Path:
    return ROOT / "python/rollcart/data/stable/CartRunner-Nes-v0/rom.nes"
