"""What went wrong for users of comparable environments: the reports that no other test file has.

docs/vector-env.md names the test of each report.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from vec_common import MODES, SMALL, equal, mk, random_actions
from vec_model import GAME

import rollcart
from rollcart.errors import RomError, UnsupportedBoard

ROM = (GAME / "rom.nes").read_bytes()
HEADER, PAYLOAD = ROM[:16], ROM[16:]


def header(**at: int) -> bytes:
    """The bundled game's header with some bytes replaced: b6=0x04."""
    changed = bytearray(HEADER)
    for place, value in at.items():
        changed[int(place[1:])] = value
    return bytes(changed)


def run_of(rom: bytes) -> str:
    console = rollcart.Console(rom)
    console.step(frames=30)
    console.step(8, 30)
    return hashlib.sha1(console.ram.tobytes() + console.frame().tobytes()).hexdigest()


@pytest.mark.parametrize(
    "rom",
    [
        header(b7=0x08) + PAYLOAD,
        HEADER[:7] + b"DiskDude!" + PAYLOAD,
        HEADER[:8] + b"\xff\x13\x77junk!" + PAYLOAD,
        header(b6=HEADER[6] | 4) + bytes(512) + PAYLOAD,
    ],
    ids=["NES 2.0", "DiskDude!", "junk in bytes 8-15", "trainer"],
)
def test_u26_one_game_plays_the_same_under_every_header_it_is_seen_with(rom: bytes) -> None:
    assert len(HEADER[:7] + b"DiskDude!") == len(HEADER[:8] + b"\xff\x13\x77junk!") == 16
    assert run_of(rom) == run_of(ROM)


@pytest.mark.parametrize(
    ("rom", "error", "words"),
    [
        (PAYLOAD, RomError, "header|NES"),
        (b"", RomError, "header|NES|empty"),
        (ROM[:10], RomError, "header|short|NES"),
        (ROM[:-1], RomError, "short|bytes|expected"),
        (HEADER, RomError, "short|bytes|expected"),
        (header(b4=0) + PAYLOAD, RomError, "PRG"),
        (header(b6=0xF0, b7=0xE0) + PAYLOAD, UnsupportedBoard, "239"),
    ],
    ids=["no header", "empty", "half a header", "truncated", "header alone", "no PRG", "mapper 239"],
)
def test_u26_a_file_that_cannot_be_played_is_one_clear_error(
    rom: bytes, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        rollcart.Console(rom)
    # No warning that speaks of it as of a game comes first.
    with warnings.catch_warnings(), pytest.raises(error, match=words):
        warnings.simplefilter("error")
        rollcart.NesVectorEnv(rom_path=rom, num_envs=2)


def test_u26_no_header_makes_the_parser_panic() -> None:
    rng = np.random.default_rng(0)
    for _ in range(400):
        rom = bytearray(ROM)
        for place in rng.integers(4, 16, size=rng.integers(1, 6)):
            rom[place] = rng.integers(256)
        try:
            rollcart.Console(bytes(rom)).step(frames=1)
        except RomError as error:
            assert str(error)


class Joypad(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An action wrapper as the tutorials write them: hands its arguments on."""

    def reset(self, **kwargs: Any) -> Any:
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        return self.env.step([0, 6][int(action)])


def test_u28_seed_and_options_pass_through_make_and_wrappers() -> None:
    plain = gymnasium.make("rollcart:CartRunner-Nes-v0", **SMALL)
    wrapped = Joypad(gymnasium.make("rollcart:CartRunner-Nes-v0", **SMALL))
    a, b = plain.reset(seed=3, options={}), wrapped.reset(seed=3, options={})
    equal(a, b)
    assert plain.unwrapped.np_random_seed == 3
    equal(plain.step(6), wrapped.step(1))


def test_u31_a_state_shows_the_same_first_picture_in_a_fresh_process(tmp_path: Path) -> None:
    env = mk(1, frame_stack=1, resize=None, grayscale=False)
    env.reset(seed=0)
    for actions in random_actions(env, 40, seed=6):
        env.step(actions)
    (state,) = env.snapshot()
    assert state is not None
    (tmp_path / "lane").write_bytes(state)
    code = (
        "import sys, pathlib, hashlib, rollcart\n"
        "e = rollcart.NesVectorEnv(frame_stack=1, resize=None, grayscale=False)\n"
        "o = e.restore([pathlib.Path(sys.argv[1]).read_bytes()])\n"
        "print(hashlib.sha1(o.tobytes() + e.render_lane(0).tobytes() + e.step([9])[0].tobytes()).hexdigest())"
    )
    there = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "lane")], capture_output=True, text=True, check=True
    )
    observation = env.restore([state])
    assert np.ptp(observation) > 50, "a blank picture would hide what is tested"
    parts = observation.tobytes() + env.render_lane(0).tobytes() + env.step([9])[0].tobytes()
    assert there.stdout.strip() == hashlib.sha1(parts).hexdigest()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no limit on a user's threads")
def test_u36_threads_that_cannot_be_had_are_one_clear_error() -> None:
    """Address space is what is limited here: a limit on processes does not bind every user."""
    code = (
        "import resource, rollcart, rollcart.vector_env\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20),) * 2)\n"
        "try: rollcart.NesVectorEnv(num_envs=600, num_threads=600, obs='ram')\n"
        "except rollcart.errors.ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "num_threads" in done.stdout and "600" in done.stdout, done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_u38_a_stack_never_mixes_two_episodes(mode: str) -> None:
    env = mk(2, mode, limit=3, frame_stack=4, state_catalog=["Level1", "Level3"])
    first, _ = env.reset(seed=0)
    assert (first == first[:, :1]).all(), "the first observation fills the stack"
    old = first
    for _ in range(3):
        result = env.step([6, 9])
        if mode != "SameStep" or not result[3].any():
            assert np.array_equal(result[0][:, :-1], old[:, 1:])
        elif mode == "SameStep":
            assert all(np.array_equal(result[4]["final_obs"][k][:-1], old[k, 1:]) for k in range(2))
        old = result[0]
    assert result[3].all()
    if mode == "Disabled":
        old = env.reset(options={"reset_mask": result[3]})[0]
    elif mode == "NextStep":
        old = env.step([6, 9])[0]
    assert np.array_equal(old, first)
