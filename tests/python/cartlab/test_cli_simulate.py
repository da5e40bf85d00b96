"""`simulate`: both tables as text and as one object, from a seed, without a repository or a root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cartlab.cli import main

SMALL = ["simulate", "--trials", "100", "--machine", "quiet"]


def test_the_command_prints_both_tables_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(SMALL) == 0
    shown = capsys.readouterr().out
    assert "legacy accept" in shown and "round complete at +12 %" in shown
    assert "workstation" not in shown.partition("phase:")[0]
    assert list(tmp_path.iterdir()) == []


def test_the_object_holds_every_row_and_the_seed_fixes_it(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for seed in ("7", "7", "8"):
        assert main([*SMALL, "--seed", seed, "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert said[0]["details"]["rates"] != said[2]["details"]["rates"]
    details = said[0]["details"]
    assert {row["machine"] for row in details["promises"]} == {"quiet"}
    assert {row["ratio"] for row in details["rates"]} >= {0.97, 1.0, 1.03, 1.07, 1.10, 1.12}
    assert all(row["holds"] for row in details["promises"])


@pytest.mark.parametrize(
    "words", [["--trials", "99"], ["--trials", "many"], ["--seed", "-1"], ["--machine", "fast"]]
)
def test_what_gives_no_rates_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *words]) == 2
    assert words[0] in capsys.readouterr().err


def test_a_dry_run_simulates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--dry-run"]) == 0
    assert "would simulate 100 trials" in capsys.readouterr().out
