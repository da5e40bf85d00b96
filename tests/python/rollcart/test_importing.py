"""RR3: `rollcart import` finds ROMs wherever they are and says why a file is none of the games'."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from vec_model import GAME

import rollcart
from rollcart import cli, importing

ROM = (GAME / "rom.nes").read_bytes()
SHA = (GAME / "rom.sha").read_text().strip()
COLOURS = Path(__file__).resolve().parents[2] / "roms/colours.nes"


def data_folder(root: Path, category: str = "stable", game: str = "SkyMill-Nes-v0") -> Path:
    """A game's files without its ROM."""
    folder = root / category / game
    folder.mkdir(parents=True)
    for file in ("rom.sha", "data.json", "scenario.json"):
        (folder / file).write_bytes((GAME / file).read_bytes())
    return folder


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder whose one game has no ROM yet."""
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path / "data"))
    return data_folder(tmp_path / "data")


def zipped(*members: tuple[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            archive.writestr(name, body)
    return out.getvalue()


def nested(depth: int) -> bytes:
    return zipped(("x.zip", nested(depth - 1))) if depth else b"the end"


def headed(**at: int) -> bytes:
    rom = bytearray(ROM)
    for place, value in at.items():
        rom[int(place[1:])] = value
    return bytes(rom)


WHERE: dict[str, Callable[[Path], Any]] = {
    "file": lambda p: (p / "any name.NES").write_bytes(ROM),
    "folders": lambda p: ((p / "a/b").mkdir(parents=True), (p / "a/b/x.nes").write_bytes(ROM)),
    "zip": lambda p: (p / "x.zip").write_bytes(zipped(("readme.txt", b"hi"), ("in/x.nes", ROM))),
    "zip in zip": lambda p: (p / "x.ZIP").write_bytes(zipped(("y.zip", zipped(("x.nes", ROM))))),
    "no suffix": lambda p: (p / "x").write_bytes(ROM),
    "other header": lambda p: (p / "x.nes").write_bytes(headed(_12=68, _15=33)),
}


@pytest.mark.parametrize("where", WHERE)
def test_rr3_a_rom_is_found_and_put_beside_its_games_files(where: str, known: Path, tmp_path: Path) -> None:
    roms = tmp_path / "roms"
    roms.mkdir()
    WHERE[where](roms)
    (found,) = [one for one in importing.run([roms]) if one.sha1]
    assert (found.outcome, found.game, found.sha1) == ("imported", "SkyMill-Nes-v0", SHA)
    assert found.to == str(known / "rom.nes") and (known / "rom.nes").read_bytes()[16:] == ROM[16:]
    assert rollcart.NesVectorEnv("SkyMill-Nes-v0").game == "SkyMill-Nes-v0"
    assert [one.outcome for one in importing.run([roms]) if one.sha1] == ["already there"]


def test_rr3_a_data_path_that_holds_only_one_category_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path / "mine"))
    (tmp_path / "mine/stable").mkdir(parents=True)
    (found,) = importing.run([GAME / "rom.nes"])
    assert found.to == str(tmp_path / "mine/stable/CartRunner-Nes-v0/rom.nes") and Path(found.to).is_file()


def test_rr3_another_folder_can_be_chosen_and_a_dry_run_writes_nothing(known: Path, tmp_path: Path) -> None:
    rom = tmp_path / "x.nes"
    rom.write_bytes(ROM)
    (found,) = importing.run([rom], into=tmp_path / "new", dry_run=True)
    assert (
        found.outcome == "imported" and not (tmp_path / "new").exists() and not (known / "rom.nes").exists()
    )
    (found,) = importing.run([rom], into=tmp_path / "new")
    assert (tmp_path / "new/stable/SkyMill-Nes-v0/rom.nes").read_bytes() == ROM and not (
        known / "rom.nes"
    ).exists()


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("zzzz.nes", COLOURS.read_bytes(), "no game with data files"),
        ("Sky Mill (Japan).nes", COLOURS.read_bytes(), f"perhaps SkyMill-Nes-v0, whose files are for {SHA}"),
        ("x.nes", ROM[16:], "SkyMill-Nes-v0 without the 16-byte header"),
        ("x.bin", ROM[16:], "SkyMill-Nes-v0 without the 16-byte header"),
        ("x.nes", b"nes?" + ROM[4:], "SkyMill-Nes-v0 with a damaged header"),
        ("x.nes", ROM[:-5], "cut short"),
        ("x.nes", b"NES\x1a", "cut short"),
        ("x.nes", ROM + b"\0" * 7, "7 bytes too many at its end; without them it is SkyMill-Nes-v0"),
        ("x.nes", b"", "no NES ROM"),
        ("x.7z", b"7z\xbc\xaf'\x1c", "7-Zip"),
        ("x.zip", b"PK\x03\x04 broken", "zip"),
        ("x.zip", nested(5), "more than 4"),
    ],
)  # fmt: skip
def test_u25_rr3_a_file_without_a_match_is_named_with_its_digest_and_the_reason(
    name: str, body: bytes, words: str, known: Path, tmp_path: Path, capsys: Any
) -> None:
    roms = tmp_path / "roms"
    roms.mkdir()
    (roms / name).write_bytes(body)
    assert cli.main(["import", str(roms)]) == 1
    shown = capsys.readouterr().out
    assert words in shown and str(roms / name) in shown and "Imported 0 games" in shown
    assert "1 file could be a ROM, none has" in shown
    (found,) = importing.run([roms])
    assert (found.sha1 is None) == (found.outcome == "unreadable")
    assert found.sha1 is None or found.sha1 in shown
    assert not (known / "rom.nes").exists()


def test_u25_a_folder_without_any_rom_says_so(known: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert cli.main(["import", str(tmp_path / "notes.txt")]) == 1
    assert "No file there ends with .nes" in capsys.readouterr().out
    assert cli.main(["import", str(tmp_path / "missing")]) == 3
    assert "no such file or folder" in capsys.readouterr().err


def test_rr3_the_answer_is_the_same_as_an_object(known: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "x.nes").write_bytes(ROM)
    (tmp_path / "y.nes").write_bytes(COLOURS.read_bytes())
    assert cli.main(["import", str(tmp_path / "x.nes"), str(tmp_path / "y.nes"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["imported"] == 1 and [one["outcome"] for one in document["files"]] == [
        "imported",
        "no match",
    ]
    assert {"file", "sha1", "game", "to", "reason"} <= document["files"][0].keys()


def test_rr2_one_rom_sha_may_name_several_roms(known: Path, tmp_path: Path) -> None:
    (known / "rom.sha").write_text(f"{'0' * 40}\n{SHA}\n")
    (tmp_path / "x.nes").write_bytes(ROM)
    assert [one.outcome for one in importing.run([tmp_path / "x.nes"])] == ["imported"]


def test_rr3_a_place_that_cannot_be_written_is_named(known: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "x.nes").write_bytes(ROM)
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["import", str(tmp_path / "x.nes"), "--into", str(tmp_path / "file")]) == 3
    assert "--into" in capsys.readouterr().err
