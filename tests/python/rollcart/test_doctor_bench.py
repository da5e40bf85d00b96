"""`rollcart doctor` and `rollcart bench`: what they find, what they say, what they refuse."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from vec_model import GAME

from rollcart import cli, doctor
from rollcart.bench import grid, sps
from rollcart.cli import answer


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    # Whether this checkout's module is fresh is nothing that a test may depend on.
    monkeypatch.setattr(sps, "stale_module", lambda *_: False)

    def call(*words: object) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = cli.main([*map(str, words), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return call


def by_name(said: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in said["findings"]}


def test_doctor_says_what_is_here_and_how_fast_it_is(ask: Any) -> None:
    code, said = ask("doctor", "--seconds", 0.02)
    found = by_name(said)
    assert code == 0 and not said["wrong"]
    assert "CartRunner-Nes-v0" in found["games"]["found"]
    assert found["extra test"]["level"] == "ok" and "pytest" in found["extra test"]["found"]
    assert found["extra lab"]["level"] == "ok", "a package of older Pythons is not missing here"
    rates = [row["env_steps_per_sec"] for row in said["speeds"]["rows"]]
    assert len(rates) == 2 and min(rates) > 0 and said["speeds"]["construct_and_reset_seconds"] > 0


def test_doctor_names_an_extra_that_is_missing_and_how_to_get_it(ask: Any, monkeypatch: Any) -> None:
    version = importlib.metadata.version

    def without_pygame(package: str) -> str:
        if package == "pygame-ce":
            raise importlib.metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(importlib.metadata, "version", without_pygame)
    code, said = ask("doctor", "--seconds", 0)
    found = by_name(said)["extra play"]
    assert (code, found["level"]) == (0, "missing")
    assert "pygame-ce" in found["found"] and "rollcart[play]" in found["advice"]
    assert said["speeds"] == {}


def test_doctor_finds_a_data_path_that_is_no_folder(ask: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path / "nowhere"))
    code, said = ask("doctor", "--seconds", 0)
    assert code == answer.NO and said["wrong"] == ["RETRO_DATA_PATH"]
    assert "nowhere" in by_name(said)["RETRO_DATA_PATH"]["found"]


def test_doctor_finds_a_module_that_is_older_than_its_sources(ask: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sps, "stale_module", lambda *_: True)
    code, said = ask("doctor", "--seconds", 0)
    assert code == answer.NO
    assert "maturin" in by_name(said)["native module"]["advice"]


@pytest.mark.parametrize(("variables", "level"), [({}, "missing"), ({"DISPLAY": ":0"}, "ok")])
def test_doctor_looks_for_a_display(variables: dict[str, str], level: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(doctor.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (found,) = doctor._display()
    assert found.level == level


QUICK = ("--seconds", 0.01, "--repeats", 2)


def test_bench_measures_each_cell_of_its_grid(ask: Any) -> None:
    code, said = ask("bench", "--lanes", "1,3", "--threads", "1,2", *QUICK)
    # One lane has no use for a second thread, so that cell is not measured twice.
    assert code == 0
    assert [(row["lanes"], row["threads"]) for row in said["rows"]] == [(1, 1), (3, 1), (3, 2)]
    for row in said["rows"]:
        assert 0 < row["lowest"] <= row["env_steps_per_sec"] <= row["highest"]
        assert row["frames_per_sec"] == pytest.approx(4 * row["env_steps_per_sec"])
    assert said["best"] == max(row["env_steps_per_sec"] for row in said["rows"])
    assert said["evidence"] == "learning"


def test_bench_plays_any_rom(ask: Any, tmp_path: Path) -> None:
    rom = bytearray((GAME / "rom.nes").read_bytes())
    rom[-100] ^= 0xFF
    (tmp_path / "mine.nes").write_bytes(rom)
    code, said = ask("bench", "--rom-path", tmp_path / "mine.nes", "--lanes", 2, "--threads", 1, *QUICK)
    assert code == 0 and said["game"] == "mine" and len(said["rows"]) == 1


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--lanes", "few"), answer.USAGE, "numbers with commas"),
        (("--lanes", "0"), answer.INPUT, "lanes: expected numbers from 1"),
        (("--seconds", "0"), answer.INPUT, "seconds: expected"),
        (("--repeats", "0"), answer.INPUT, "repeats: expected 1"),
        (("--rom-path", "nowhere.nes"), answer.INPUT, "nowhere.nes"),
    ],
)
def test_bench_refuses_what_it_cannot_measure(ask: Any, words: tuple[str, str], code: int, text: str) -> None:
    found, said = ask("bench", *words)
    assert found == code and text in said["error"]


def test_the_machines_load_is_told_with_the_rates(monkeypatch: Any) -> None:
    monkeypatch.setattr(grid.os, "getloadavg", lambda: (500.0, 0.0, 0.0))
    assert grid.busy()["busy"]
    monkeypatch.setattr(grid.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert not grid.busy()["busy"]
