"""CPU traces of whole frames: they change nothing and say what ran. tests/conformance has nestest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from vec_model import GAME

import rollcart
from rollcart import cli
from rollcart.cli import answer

LINE = re.compile(
    r"([0-9A-F]{4})  [0-9A-F ]{8} [ *].{32}A:.. X:.. Y:.. P:.. SP:.. PPU:[ \d]{3},[ \d]{3} CYC:(\d+)"
)


def at_level1() -> rollcart.Console:
    console = rollcart.Console(GAME / "rom.nes")
    console.load((GAME / "Level1.state").read_bytes())
    return console


def test_a_traced_frame_is_the_frame_that_would_have_run() -> None:
    traced, stepped = at_level1(), at_level1()
    for number in range(20):
        buttons = 129 if number > 10 else 128
        lines = traced.trace(buttons)
        stepped.step(buttons)
        assert traced.save() == stepped.save()
        assert np.array_equal(traced.frame(), stepped.frame())
        assert len(lines) > 5000


def test_lines_are_in_order_and_the_nmi_is_among_them_once() -> None:
    console = at_level1()
    before = console.cpu
    lines = console.trace()
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), next(line for line, match in zip(lines, matches, strict=True) if not match)
    cycles = [int(match[2]) for match in matches if match]
    assert cycles == sorted(set(cycles))
    assert (cycles[0], int(lines[0][:4], 16)) == (before.cycles, before.pc)
    nmi = [at for at, line in enumerate(lines) if "[NMI]" in line]
    assert len(nmi) == 1
    vector = console.peek(0xFFFA) | console.peek(0xFFFB) << 8
    assert int(lines[nmi[0] + 1][:4], 16) == vector
    assert "PPU:241" in lines[nmi[0]]


def test_a_frame_of_a_movie_is_traced_with_its_buttons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "inputs.txt").write_text("20 RIGHT\n10 RIGHT+A\n")
    movie = str(tmp_path / "a.rcm")
    assert cli.main(["record", str(tmp_path / "inputs.txt"), "--out", movie]) == 0
    assert cli.main(["trace", movie, "--first", "25", "--out", str(tmp_path / "a.log")]) == 0
    console = at_level1()
    console.step(128, 20)
    console.step(129, 4)
    assert (tmp_path / "a.log").read_text().splitlines() == console.trace(129)
    capsys.readouterr()
    assert cli.main(["trace", movie, "--first", "25", "--frames", "9", "--json"]) == answer.INPUT
    assert "the movie has 30" in json.loads(capsys.readouterr().out)["error"]


def test_a_game_is_traced_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "--first", "3", "--buttons", "RIGHT"]) == 0
    console = at_level1()
    console.step(128, 2)
    assert capsys.readouterr().out.splitlines() == console.trace(128)
    assert cli.main(["trace", "--first", "0"]) == answer.USAGE
