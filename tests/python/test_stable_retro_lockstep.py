"""Ordinary games run as on stable-retro: the same random buttons, each frame's memories and picture compared.

From a state that stable-retro saved everything is equal from its first frame on. From power-on RAM and the
pictures are, at one constant offset a game (FCEUmm boots with dead PPU frames in which no vblank comes), but
for the stack below S, where interrupts leave the address at which they met a waiting loop. `Game` says what
is looser for one game, and why; docs/accuracy.md says more about it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rollcart
from rom_folder import bundled_rom, test_rom
from stable_retro_oracle import HIDDEN_FRAMES, OracleFrame, lively_buttons, play

FRAMES = 3000
# Frames before a state is saved: every game is past its title by then.
FRAMES_BEFORE_SAVING = 420
MOST_OFFSET = 3


@dataclass(frozen=True)
class Game:
    rom: str
    # Frames by which stable-retro is behind us from power-on. The test finds them again.
    offset: int = 1
    # Leave START alone from this frame on.
    start_until: int | None = None
    # An interrupt's return address shows in the stack below S, and the game's waiting loop has several.
    # FCEUmm's OAM DMA always takes 513 cycles (the console's 513 or 514) and its NMI comes about two cycles
    # later, so they may meet another instruction of the loop.
    returns_show: bool = False
    # Frames from power-on that may end in the midst of work (a level being unpacked, pads being read), where
    # those few cycles are an instruction, and the bytes that may then differ. Both consoles do the same work:
    # the bytes are equal again later, and the pictures always.
    frames_in_work: int = 0
    bytes_in_work: int = 0
    # Frames of a run in which the game switches rendering on or writes palette or OAM in mid-picture, as some
    # do when the screen changes: OAM and picture may differ, until the next frame.
    written_while_drawn: int = 0


GAMES = [
    Game("CartRunner-Nes-v0"),
    Game("homebrew/falling.nes", written_while_drawn=5),
    Game("homebrew/ralph4.nes"),
    Game("homebrew/robotfindskitten.nes", written_while_drawn=1),
    # Paused, it reads the pads round the clock, and every frame would end in the midst of that.
    Game("homebrew/jetpaco.nes", start_until=150, returns_show=True, frames_in_work=30, bytes_in_work=4),
]
every_game = pytest.mark.parametrize("game", GAMES, ids=lambda game: game.rom)

# Entries of palette memory that have no memory of their own: the core keeps entry 0 in 4, 8 and 12.
OWN_PALETTE_ENTRIES = np.array([entry for entry in range(32) if entry % 4 or entry == 0])
# Bits 4-2 of a sprite's attributes do not exist; the core stores what was written, the PPU zeros.
OAM_BITS = np.tile(np.array([0xFF, 0xFF, 0xE3, 0xFF], np.uint8), 64)


def rom_of(game: Game) -> Path:
    return bundled_rom() if game.rom == "CartRunner-Nes-v0" else test_rom(game.rom)


def window(console: rollcart.Console) -> np.ndarray:
    """Stable Retro's part of the picture."""
    return console.rgb()[8:232, 8:248]


def memories(console: rollcart.Console) -> dict[str, np.ndarray]:
    return {
        "ram": console.ram,
        "work_ram": console.work_ram,
        "vram": console.vram(),
        "palette_ram": console.palette_ram()[OWN_PALETTE_ENTRIES],
        "oam": console.oam() & OAM_BITS,
    }


def oracle_memories(frame: OracleFrame) -> dict[str, np.ndarray]:
    chunks = {key: np.frombuffer(value, np.uint8) for key, value in frame.chunks().items()}
    return {
        "ram": chunks[1, "RAM"],
        "work_ram": chunks[16, "WRAM"],
        "vram": chunks[3, "NTAR"],
        "palette_ram": chunks[3, "PRAM"][OWN_PALETTE_ENTRIES],
        "oam": chunks[3, "SPRA"] & OAM_BITS,
    }


def first_difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> str | None:
    if np.array_equal(ours, theirs):
        return None
    at = tuple(int(axis[0]) for axis in np.nonzero(ours != theirs))
    where = f"${at[0]:04X}" if len(at) == 1 else f"row {at[0]}, column {at[1]}, channel {at[2]}"
    count = int((ours != theirs).sum())
    return f"{name}[{where}] is ${ours[at]:02X}, stable-retro has ${theirs[at]:02X} ({count} bytes differ)"


def without_dead_stack(ram: np.ndarray, s: int) -> np.ndarray:
    ram = ram.copy()
    ram[0x100 : 0x101 + s] = 0
    return ram


class Comparison:
    """What one console and the oracle did in the frames so far; each method gives the first difference."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.frames_in_work = 0
        self.written_while_drawn = 0
        self.last_was_written = False

    def after_loading(self, console: rollcart.Console, frame: OracleFrame) -> str | None:
        ours, theirs = memories(console), oracle_memories(frame)
        found, _ = self.ram(console, frame, dead_stack=not self.game.returns_show)
        strict = (
            first_difference(name, ours[name], theirs[name]) for name in ("work_ram", "vram", "palette_ram")
        )
        found = found or next(filter(None, strict), None)
        drawn = first_difference("oam", ours["oam"], theirs["oam"]) or self.picture(console, frame)
        return found or self.unless_written(drawn)

    def from_power_on(self, console: rollcart.Console, frame: OracleFrame) -> str | None:
        found, count = self.ram(console, frame, dead_stack=False)
        if found and count <= self.game.bytes_in_work and self.frames_in_work < self.game.frames_in_work:
            self.frames_in_work += 1
            found = None
        return found or self.unless_written(self.picture(console, frame))

    def unless_written(self, drawn: str | None) -> str | None:
        """The difference, unless it is one of the game's few, and the frame before had none."""
        excused = (
            drawn and not self.last_was_written and self.written_while_drawn < self.game.written_while_drawn
        )
        self.written_while_drawn += bool(excused)
        self.last_was_written = drawn is not None
        return None if excused else drawn

    @staticmethod
    def ram(console: rollcart.Console, frame: OracleFrame, dead_stack: bool) -> tuple[str | None, int]:
        s = frame.chunks()[1, "S"][0]
        ours, theirs = console.ram, np.frombuffer(frame.chunks()[1, "RAM"], np.uint8)
        if not dead_stack:
            ours, theirs = (without_dead_stack(ram, max(s, console.cpu.s)) for ram in (ours, theirs))
        return first_difference("ram", ours, theirs), int((ours != theirs).sum())

    @staticmethod
    def picture(console: rollcart.Console, frame: OracleFrame) -> str | None:
        return first_difference("picture", window(console), frame.picture)


def numbered(frames: Iterator[OracleFrame]) -> Iterator[tuple[int, OracleFrame]]:
    """The oracle's frames, counted from its power-on."""
    return enumerate(frames, 1 + HIDDEN_FRAMES)


@every_game
def test_a_restored_state_goes_on_as_in_stable_retro_in_all_bytes(game: Game) -> None:
    rom = rom_of(game)
    buttons = lively_buttons(11, FRAMES_BEFORE_SAVING + FRAMES, game.start_until)
    console = rollcart.Console(rom)
    comparison = Comparison(game)
    pictures = set()
    for number, frame in enumerate(play(rom, buttons), 1 - FRAMES_BEFORE_SAVING):
        if number < 0:
            continue
        if number == 0:
            console.load(gzip.compress(frame.blob))
            continue
        console.step(buttons[number + FRAMES_BEFORE_SAVING - 1])
        found = comparison.after_loading(console, frame)
        assert found is None, f"{game.rom}, frame {number} after the state: {found}"
        pictures.add(frame.picture.tobytes())
    assert len(pictures) > 50, f"{game.rom} shows only {len(pictures)} pictures: it is not being played"


@every_game
def test_power_on_leads_to_the_same_game_at_a_constant_offset(game: Game) -> None:
    rom = rom_of(game)
    buttons = lively_buttons(12, FRAMES, game.start_until)
    # Ours run ahead: frame n of the oracle is frame n - offset here, and both see the buttons of frame n.
    candidates = {offset: rollcart.Console(rom) for offset in range(MOST_OFFSET + 1)}
    candidates[0].step(frames=HIDDEN_FRAMES)
    comparisons = {offset: Comparison(game) for offset in candidates}
    lost: dict[int, str] = {}
    for number, frame in numbered(play(rom, buttons)):
        for offset, console in list(candidates.items()):
            if number > offset:
                console.step(buttons[number - 1 - HIDDEN_FRAMES])
            if number <= MOST_OFFSET:
                continue
            found = comparisons[offset].from_power_on(console, frame)
            if found:
                lost[offset] = f"offset {offset}: frame {number}: {found}"
                del candidates[offset]
        assert candidates, f"{game.rom} from power-on: no constant offset; " + "; ".join(lost.values())
    assert sorted(candidates) == [game.offset], f"{game.rom}: other offsets fit than the recorded one"
