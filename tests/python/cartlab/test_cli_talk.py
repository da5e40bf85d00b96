"""What people see while they wait."""

from __future__ import annotations

import time

import pytest

from cartlab.cli import talk


def test_one_long_call_is_named_once_its_time_is_due(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(talk, "QUIET_SECONDS", 0.2)
    with talk.Talk(as_json=True) as voice:
        voice.progress("building")
        assert capsys.readouterr().err == ""
        end = time.monotonic() + 20
        shown = ""
        while not shown and time.monotonic() < end:
            time.sleep(0.02)
            shown = capsys.readouterr().err
        assert shown == "... building\n"


def test_a_short_command_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with talk.Talk(as_json=False) as voice:
        voice.progress("building")
        voice.say("done")
    assert capsys.readouterr() == ("done\n", "")


def test_with_json_only_the_answer_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with talk.Talk(as_json=True) as voice:
        voice.say("rom: bundled")
        voice.warn("dirty")
    assert capsys.readouterr() == ("", "rom: bundled\ndirty\n")
