"""Files of games and movies that were damaged or made to do harm: one error of ours, in little memory."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import zipfile
from pathlib import Path

import pytest
from vec_model import GAME

import rollcart
from rollcart import buttons, games, importing, movie, reading
from rollcart.errors import ConfigError, MovieError, RomError, StateError

DEEP = "[" * 100_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "stable" / "Mine-Nes-v0"
    shutil.copytree(GAME, place)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    return place


@pytest.mark.parametrize("file", ["data.json", "scenario.json", "metadata.json", "rom.sha"])
def test_a_file_that_is_no_utf8_is_named_with_its_first_wrong_byte(file: str, folder: Path) -> None:
    (folder / file).write_bytes(b'{"info": {"\xff": 1}}')
    with pytest.raises(ConfigError, match=rf"{file}: expected text in UTF-8, found byte 0xff at offset 11"):
        rollcart.NesVectorEnv("Mine-Nes-v0", rom_path=GAME / "rom.nes")


@pytest.mark.parametrize("file", ["data.json", "scenario.json", "metadata.json"])
@pytest.mark.parametrize("text", [DEEP, '{"a":' * 100_000], ids=["lists", "objects"])
def test_a_file_that_is_nested_without_end_is_one_error(file: str, text: str, folder: Path) -> None:
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=rf"{file}.*(nested too deeply|recursion limit)"):
        rollcart.NesVectorEnv("Mine-Nes-v0")


def test_names_too_long_for_a_disk_are_names_of_nothing() -> None:
    name = "x" * 5000
    for options in ({"game": name}, {"scenario": name}, {"info": name}):
        with pytest.raises(ConfigError):
            rollcart.NesVectorEnv(**options)
    with pytest.raises(StateError, match="has no state of that name"):
        rollcart.NesVectorEnv(state=name)
    with pytest.raises(OSError, match="cannot read the ROM") as refused:
        rollcart.NesVectorEnv(rom_path=name)
    assert refused.value.errno in (None, errno.ENAMETOOLONG)


def test_a_device_is_no_game() -> None:
    with pytest.raises(RomError, match="/dev/zero has more than"):
        games.find(games.BUNDLED, "/dev/zero")
    with pytest.raises(StateError, match="/dev/zero has more than"):
        rollcart.NesVectorEnv(state="/dev/zero").reset()


def test_a_text_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_TEXT_BYTES", 100)
    path = tmp_path / "run.rcm"
    for size, wrong in ((100, "begins with"), (101, "has more than 100 bytes")):
        path.write_text("x" * size)
        with pytest.raises(MovieError, match=wrong):
            movie.Movie.read(path)


HEAD = '{"game": "g", "rom_sha1": "0", "start": "s", "frames": 1, "ram_fill": 255, "rerecords": 0}'
REST = "[inputs]\n1 A\n[checks]\n1 0123456789abcdef 0000\n"


@pytest.mark.parametrize(
    "head",
    [DEEP, HEAD.replace('"frames": 1', '"frames": 1e999'), HEAD.replace("255", "-1e999"), "5", "null", "[]"],
    ids=["deep", "endless frames", "endless fill", "number", "null", "list"],
)
def test_a_movies_head_of_another_form_is_damage(head: str) -> None:
    assert movie.Movie.parse(f"rollcart movie 1\n{HEAD}\n{REST}").frames == 1
    with pytest.raises(MovieError, match="damaged"):
        movie.Movie.parse(f"rollcart movie 1\n{head}\n{REST}")


@pytest.mark.parametrize("frames", ["10000001", "99999999999", "9" * 15])
def test_more_frames_than_memory_holds_are_refused_before_they_are_made(frames: str) -> None:
    with pytest.raises(ConfigError, match="line 2: expected at most 10000000 frames in all"):
        buttons.inputs(["1 A", f"{frames} RIGHT"], "run.txt")
    with pytest.raises(ConfigError, match="line 2: expected at most"):
        buttons.inputs(["1 A", "10000000 RIGHT"], "run.txt")


@pytest.mark.parametrize("line", ["9" * 5000 + " A", "x" * 100_000, "1 " + "y" * 100_000])
def test_a_line_without_end_is_shown_by_its_beginning(line: str) -> None:
    with pytest.raises(ConfigError, match="line 1") as refused:
        buttons.inputs([line], "run.txt")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_with_any_damaged_byte_is_looked_through_to_its_end(method: int, tmp_path: Path) -> None:
    path, rom = tmp_path / "roms.zip", (GAME / "rom.nes").read_bytes()
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.nes", rom[:600])
        archive.writestr("b.nes", rom[:500])
    whole = path.read_bytes()
    (tmp_path / "z.nes").write_bytes(rom[:100])
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        found = importing.run([path, tmp_path / "z.nes"], dry_run=True)
        assert found[-1].file.endswith("z.nes") and all(one.reason for one in found)


def test_what_is_unpacked_of_one_file_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MOST_UNPACKED", 100_000)
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(200):
            archive.writestr(f"{number}.nes", b"NES\x1a" + bytes(12))
    found = importing.run([path], dry_run=True)
    assert len(found) < 30
    assert "more than 100000 bytes unpacked" in str(found[-1].reason)


def test_a_pipe_among_the_files_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nes")
    (tmp_path / "z.nes").write_bytes(b"no rom")
    found: list[importing.Found] = []
    looking = threading.Thread(
        target=lambda: found.extend(importing.run([tmp_path], dry_run=True)), daemon=True
    )
    looking.start()
    looking.join(60)
    assert [Path(one.file).name for one in found] == ["z.nes"]


def test_a_damaged_list_of_digests_hides_no_other_game(folder: Path, tmp_path: Path) -> None:
    (folder / "rom.sha").write_bytes(b"\xff\xfe garbled")
    found = importing.run([GAME / "rom.nes"], dry_run=True, into=tmp_path)
    assert [one.game for one in found] == ["CartRunner-Nes-v0"]
