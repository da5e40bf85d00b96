"""The bundled game plays as documented: levels can be won and lost, and a frame costs as much as it should.

Movies and their format: games/cart_runner/movies/README.md. RAM is read at the addresses of data.json.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import rollcart

ROOT = Path(__file__).resolve().parents[2]
MOVIES = ROOT / "games/cart_runner/movies"
DATA = ROOT / "python/rollcart/data/stable/CartRunner-Nes-v0"
ROM = (DATA / "rom.nes").read_bytes()
ADDRESS = {name: row["address"] for name, row in json.loads((DATA / "data.json").read_text())["info"].items()}
BITS = {"A": 1, "B": 2, "SELECT": 4, "START": 8, "UP": 16, "DOWN": 32, "LEFT": 64, "RIGHT": 128}
LEVELS = (1, 2, 3, 4)
MODE_PLAY, MODE_OVER, MODE_COMPLETE = 3, 6, 7
LONGEST_EPISODE = 4000 + 20  # the clock: 200 units of 20 frames
VISIBLE_PROGRESS = 100  # pixels


def at_start(level: int, rom: bytes = ROM) -> rollcart.Console:
    console = rollcart.Console(rom)
    console.load((DATA / f"Level{level}.state").read_bytes())
    return console


def value(console: rollcart.Console, name: str) -> int:
    return int(console.ram[ADDRESS[name]])


def x_position(console: rollcart.Console) -> int:
    return value(console, "xpos") | int(console.ram[ADDRESS["xpos"] + 1]) << 8


def movie(level: int) -> list[tuple[int, int]]:
    """Runs of (frames, button mask)."""
    lines = (MOVIES / f"level{level}.txt").read_text().splitlines()
    runs = [line.split() for line in lines if not line.startswith("#")]
    return [(int(n), sum(BITS[b] for b in names.split("+") if b != "-")) for n, names in runs]


def test_rom_sha_is_of_everything_after_the_header():
    assert (DATA / "rom.sha").read_text() == hashlib.sha1(ROM[16:]).hexdigest() + "\n"


@pytest.mark.parametrize("level", LEVELS)
def test_a_state_is_the_moment_at_which_the_player_gets_control(level):
    console = at_start(level)
    assert value(console, "game_mode") == MODE_PLAY
    assert (value(console, "level"), value(console, "lives"), value(console, "dying")) == (level, 3, 0)
    before = x_position(console)
    console.step(BITS["RIGHT"], 30)
    assert x_position(console) > before


@pytest.mark.parametrize("level", LEVELS)
def test_the_movie_of_a_level_wins_it(level):
    console = at_start(level)
    for frames, buttons in movie(level):
        assert value(console, "cleared") == 0
        console.step(buttons, frames)
        assert value(console, "dying") == 0
    assert value(console, "cleared") == 1
    assert value(console, "lives") == 3


@pytest.mark.parametrize("level", LEVELS)
def test_a_movie_ends_the_same_with_the_state_saved_and_loaded_between_its_runs(level):
    straight, broken = at_start(level), at_start(level)
    for frames, buttons in movie(level):
        straight.step(buttons, frames)
        fresh = rollcart.Console(ROM)
        fresh.load(broken.save())
        broken = fresh
        broken.step(buttons, frames)
    assert np.array_equal(straight.ram, broken.ram)
    assert np.array_equal(straight.frame(), broken.frame())


def test_the_last_level_leads_to_the_end_screen_and_the_others_to_the_next_level():
    for level in LEVELS:
        console = at_start(level)
        for frames, buttons in movie(level):
            console.step(buttons, frames)
        console.step(0, 500)
        expected = (MODE_PLAY, level + 1) if level < LEVELS[-1] else (MODE_COMPLETE, level)
        assert (value(console, "game_mode"), value(console, "level")) == expected


@pytest.mark.parametrize("seed", (0, 1, 2))
@pytest.mark.parametrize("level", LEVELS)
def test_a_random_policy_loses_a_life_in_every_level(level, seed):
    console, draw = at_start(level), np.random.default_rng(seed)
    for _ in range(0, LONGEST_EPISODE, 4):
        if value(console, "dying"):
            break
        console.step(int(draw.integers(256)) & ~BITS["START"], 4)
    assert value(console, "dying") == 1
    assert value(console, "lives") == 2
    assert value(console, "cleared") == 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_policy_that_only_goes_right_makes_progress_and_then_loses(level):
    console = at_start(level)
    start, furthest = x_position(console), 0
    for _ in range(LONGEST_EPISODE):
        if value(console, "dying"):
            break
        console.step(BITS["RIGHT"])
        furthest = max(furthest, x_position(console))
    assert value(console, "dying") == 1
    assert furthest - start >= VISIBLE_PROGRESS


def test_the_third_lost_life_ends_the_game_and_leads_back_to_the_title():
    console = at_start(1)
    for _ in range(3 * LONGEST_EPISODE):
        if value(console, "game_mode") == MODE_OVER:
            break
        console.step(BITS["RIGHT"])
    assert (value(console, "game_mode"), value(console, "lives")) == (MODE_OVER, 0)
    console.step(0, 400)
    assert value(console, "game_mode") == 0


def test_the_clock_ends_an_idle_episode_for_a_cart_that_nothing_touches():
    console = at_start(1)
    for _ in range(LONGEST_EPISODE):
        if value(console, "dying"):
            break
        console.poke(ADDRESS["safe_timer"], 4)  # keeps the bats for dawdlers from ending it first
        console.step()
    assert value(console, "death_cause") == 4
    assert not console.ram[ADDRESS["time"] : ADDRESS["time"] + 3].any()


def test_walking_left_at_the_start_stops_at_the_edge_of_the_picture():
    console = at_start(1)
    console.step(BITS["LEFT"] | BITS["B"], 120)
    assert x_position(console) == 0


COUNTER = 0x07F0  # two bytes that the game does not use
COUNTED_LOOP = 9  # cycles of INC abs + BNE taken
COUNTER_CARRY = 8  # more on every 256th turn: BNE not taken, INC abs, JMP, less the taken branch
FRAME_CYCLES = 29780


def with_counted_idle_loop() -> bytes:
    """The ROM with its `jmp self` replaced by a jump to a loop that counts its turns; states stay valid."""
    console = rollcart.Console(ROM)
    console.step(0, 100)
    idle = console.cpu.pc
    offset = 16 + idle - 0x8000
    jump_to_self = bytes((0x4C, idle & 0xFF, idle >> 8))
    assert ROM[offset : offset + 3] == jump_to_self
    room = ROM.rindex(b"\xff" * 16, 0, 16 + 0x7FFA)
    target = 0x8000 + room - 16
    low, high = COUNTER & 0xFF, COUNTER >> 8
    loop = bytes((0xEE, low, high, 0xD0, 0xFB, 0xEE, low + 1, high, 0x4C, target & 0xFF, target >> 8))
    rom = bytearray(ROM)
    rom[room : room + len(loop)] = loop
    rom[offset + 1 : offset + 3] = target.to_bytes(2, "little")
    return bytes(rom)


def count(console: rollcart.Console) -> int:
    return int(console.ram[COUNTER]) | int(console.ram[COUNTER + 1]) << 8


@pytest.mark.parametrize("level", LEVELS)
def test_a_frame_of_play_works_between_8000_and_20000_cycles_outside_the_idle_loop(level):
    console = at_start(level, with_counted_idle_loop())
    work = []
    for frames, buttons in movie(level):
        for _ in range(frames):
            before = count(console)
            console.step(buttons)
            turns = (count(console) - before) & 0xFFFF
            work.append(FRAME_CYCLES - turns * COUNTED_LOOP - turns // 256 * COUNTER_CARRY)
            if value(console, "game_mode") != MODE_PLAY:
                break
    assert len(work) > 1000
    assert min(work) >= 8_000
    assert max(work) <= 20_000
