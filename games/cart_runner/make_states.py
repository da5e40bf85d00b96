#!/usr/bin/env python3
"""Make the start states of the bundled game with stable-retro from the committed ROM.

Each state is the moment at which a level hands the cart to the player: the title's level select (UP)
chooses the level, START begins it, and the state is taken after the first frame whose `game_mode` is 3.
The files are gzip'd FCEUmm states, without a time stamp, so the same core gives the same bytes. Needs
the `peers` extra.

    .venv/bin/python games/cart_runner/make_states.py
"""

import gzip
from pathlib import Path

import numpy as np
from stable_retro._retro import RetroEmulator
from stable_retro.data import GameData

FOLDER = Path(__file__).resolve().parents[2] / "python/rollcart/data/stable/CartRunner-Nes-v0"
LEVELS = 4
GAME_MODE, MODE_TITLE, MODE_PLAY, LEVEL = 0x20, 0, 3, 0x24
TITLE_FRAMES = 60  # drawing the title takes about 20
TRY_FRAMES = 600
BUTTONS = {"": [], "START": [3], "UP": [4]}  # positions in stable-retro's row of nine


class Machine:
    """One power-on of the game under stable-retro."""

    def __init__(self) -> None:
        self.emulator = RetroEmulator(str(FOLDER / "rom.nes"))
        self.data = GameData()
        self.emulator.configure_data(self.data)
        self.emulator.step()

    def step(self, button: str = "", frames: int = 1) -> None:
        mask = np.zeros(9, np.uint8)
        mask[BUTTONS[button]] = 1
        for _ in range(frames):
            self.emulator.set_button_mask(mask, 0)
            self.emulator.step()

    def peek(self, address: int) -> int:
        return self.data.memory.blocks[0][address]


def level_state(machine: Machine, level: int) -> bytes:
    """The state at the start of `level`, reached from power-on."""
    machine.step("", TITLE_FRAMES)
    for _ in range(level - 1):
        machine.step("UP", 2)
        machine.step("", 2)
    machine.step("START", 2)
    for _ in range(TRY_FRAMES):
        machine.step()
        if machine.peek(GAME_MODE) == MODE_PLAY:
            break
    found = machine.peek(GAME_MODE), machine.peek(LEVEL)
    if found != (MODE_PLAY, level):
        raise SystemExit(
            f"make_states.py: wanted mode {MODE_PLAY}, level {level}; after {TRY_FRAMES} frames the "
            f"game is in mode, level {found}: rebuild the ROM with `make game`"
        )
    return bytes(machine.emulator.get_state())


def main() -> None:
    machine = Machine()
    power_on = machine.emulator.get_state()
    for level in range(1, LEVELS + 1):
        machine.emulator.set_state(power_on)
        path = FOLDER / f"Level{level}.state"
        path.write_bytes(gzip.compress(level_state(machine, level), 9, mtime=0))
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
