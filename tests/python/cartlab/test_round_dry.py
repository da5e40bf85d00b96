"""A dry run of `round` refuses exactly what the real one would, with the same words, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from quick_desk import Desk, make_desk, open_round, to_stacked


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    yield make_desk(tmp_path, monkeypatch, capsys)


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def refused_alike(desk: Desk, *words: str) -> str:
    """The refusal of the dry run, once it was seen to be that of the real one; for what ends in one."""
    before = bytes_of(desk.root)
    dry = desk.run(*words, "--dry-run", "--json")
    assert bytes_of(desk.root) == before
    real = desk.run(*words, "--json")
    assert (dry.code, dry.json["status"], dry.json["reasons"]) == (
        real.code,
        real.json["status"],
        real.json["reasons"],
    )
    assert dry.code in (2, 20, 23, 25)
    return str(dry.json["reasons"][0])


def allowed(desk: Desk, words: Sequence[str]) -> None:
    before = bytes_of(desk.root)
    dry = desk.run(*words, "--dry-run", "--json")
    assert (dry.code, dry.json["status"]) == (0, "planned")
    assert bytes_of(desk.root) == before


def test_open_is_refused_by_a_dry_run_as_by_the_real_one(desk: Desk) -> None:
    assert "calibrated first" in refused_alike(desk, "round", "open")
    assert desk.run("calibrate", "HEAD").code == 0
    assert "--target" in refused_alike(desk, "round", "open", "--target", "1.05")
    assert "workload" in refused_alike(desk, "round", "open", "--workload", "other")
    allowed(desk, ("round", "open"))
    desk.commit("another", work=90)
    assert "calibrated first" in refused_alike(desk, "round", "open")
    desk.project.git("reset", "-q", "--hard", "HEAD~1")
    real = desk.lab
    desk.lab = replace(real, host_class=lambda: "another host")
    assert "this host" in refused_alike(desk, "round", "open")
    desk.lab = real
    assert desk.run("round", "open").code == 0
    assert "one round at a time" in refused_alike(desk, "round", "open")


def test_open_without_any_root_says_what_is_missing_and_makes_no_folder(desk: Desk) -> None:
    dry = desk.run("round", "open", "--dry-run")
    assert dry.code == 23 and "calibrated first" in dry.err
    assert not desk.root.exists()
    assert desk.run("round", "confirm", "--dry-run").code == 23 and not desk.root.exists()


def test_resume_and_abandon_are_refused_alike_too(desk: Desk) -> None:
    assert desk.run("init").code == 0
    for verb in ("resume", "abandon"):
        assert "no round is open" in refused_alike(desk, "round", verb, "--reason", "why")
    open_round(desk)
    assert "not paused" in refused_alike(desk, "round", "resume", "--reason", "why")
    assert "reason" in refused_alike(desk, "round", "abandon")
    allowed(desk, ("round", "abandon", "--reason", "over"))


def test_confirm_is_refused_alike(desk: Desk) -> None:
    assert "no round is open" in refused_alike(desk, "round", "confirm")
    base, _ = to_stacked(desk)
    assert "may not be confirmed" in refused_alike(desk, "round", "confirm", base)
    assert "must name a commit" in refused_alike(desk, "round", "confirm", "nothing")
    allowed(desk, ("round", "confirm"))
