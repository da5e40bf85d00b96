"""docs/migrating.md is true: every block of code in it runs, but those that show how it was before."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

import pytest
import smb_stand_in
from vec_model import GAME

PAGE = Path(__file__).resolve().parents[3] / "docs" / "migrating.md"


def blocks() -> list[tuple[str, str]]:
    """(section, code) of the blocks whose last line of text before them does not begin with Before."""
    text, section, last, found = iter(PAGE.read_text().splitlines()), "", "", []
    for line in text:
        if line.startswith("## "):
            section = line[3:]
        if line.startswith("```python"):
            code = []
            for inner in text:
                if inner.startswith("```"):
                    break
                code.append(inner)
            if not last.startswith("Before"):
                found.append((section, "\n".join(code)))
        elif line.strip():
            last = line
    return found


@pytest.mark.parametrize(("section", "code"), blocks())
def test_what_the_page_says_to_write_runs(
    section: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "smb.nes"
    stand_in.write_bytes(smb_stand_in.rom())
    shutil.copytree(GAME, tmp_path / "data" / "stable" / "SuperMarioBros-Nes-v0")
    monkeypatch.setenv("ROLLCART_SMB_ROM", str(stand_in))
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, f"{PAGE.name}: {section}", "exec"), {"__name__": "__main__"})


def test_the_page_has_a_section_with_code_for_each_package() -> None:
    sections = {section for section, _ in blocks()}
    assert {"From gym-super-mario-bros", "From EnvPool"} <= sections
    assert all(re.match(r"From \S+", section) for section in sections)
