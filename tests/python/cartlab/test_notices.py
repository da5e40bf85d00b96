"""`notify`: the user's command is told of ends and rounds, each once, and can do no harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_project import CONFIG
from quick_desk import Desk, make_desk, open_round, to_stacked

from cartlab.pipeline import notices
from cartlab.verify import verify_root


@pytest.fixture
def notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Desk]:
    """A desk whose repository has this command."""

    def made(command: str) -> Desk:
        return make_desk(tmp_path, monkeypatch, capsys, f"notify = '''{command}'''\n{CONFIG}")

    return made


def writing(path: Path) -> str:
    """A shell line that appends its two words, each in brackets, to a file."""
    path.with_suffix(".sh").write_text(f"printf '<%s>' \"$@\" >> {path}; echo >> {path}\n")
    return f"sh {path.with_suffix('.sh')}"


def notes(desk: Desk) -> list[str]:
    return [e["body"]["text"] for e in desk.events("note") if e["body"]["kind"] == notices.KIND]


def test_each_end_and_each_change_of_the_round_is_told_once(
    notified: Callable[[str], Desk], tmp_path: Path
) -> None:
    told = tmp_path / "told"
    desk = notified(writing(told))
    base, cand = to_stacked(desk)
    lines = told.read_text().splitlines()
    assert lines == [
        "<baseline><calibrate HEAD against HEAD>",
        lines[1],
        f"<triage_promote><screen {cand} against {base}>",
        f"<keep_stack><accept-stack {cand} against {base}>",
    ]
    assert lines[1].startswith("<round_open><round-1-") and lines[1].endswith(": half the time>")
    # What was decided before, a dry run, what is not recorded and who only looks tell nobody.
    for words in (("accept-stack", base, cand), ("screen", base, cand, "--dry-run"), ("next",), ("status",)):
        assert desk.run(*words).code == 0
    assert desk.run("screen", base, cand, "--no-record", "--again").code == 0
    assert told.read_text().splitlines() == lines
    assert desk.run("round", "confirm").code == 0
    events = [line[1:].partition(">")[0] for line in told.read_text().splitlines()[4:]]
    assert events == ["round_confirm", "keep", "round_complete"]
    assert notes(desk) == [] and verify_root(desk.root).holds


def test_an_end_in_an_error_is_told_too(notified: Callable[[str], Desk], tmp_path: Path) -> None:
    told = tmp_path / "told"
    desk = notified(writing(told))
    base = open_round(desk)
    cand = desk.commit("other", work=50)
    desk.equal = lambda plan: False
    assert desk.run("screen", base, cand).code == 12
    assert told.read_text().splitlines()[-1] == f"<behaviour_changed><screen {cand} against {base}>"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("false", "exit code 1; it said: nothing"),
        ("echo no network >&2; exit 7;", "exit code 7; it said: no network"),
        ("/nowhere/at/all", "exit code 127"),
        ("sleep 60;", "killed after 0.2 s"),
    ],
)
def test_a_command_that_fails_is_said_and_noted_and_changes_nothing(
    notified: Callable[[str], Desk], monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    monkeypatch.setattr(notices, "LIMIT_S", 0.2 if "killed" in why else 60.0)
    desk = notified(command)
    answer = desk.run("calibrate", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (0, "baseline")
    assert f"notify: the command {'was' if 'killed' in why else 'ended with'} {why}" in answer.err
    assert len(notes(desk)) == 1 and notes(desk)[0].startswith("baseline: ") and why in notes(desk)[0]
    assert desk.run("next").code == 0 and verify_root(desk.root).holds


def test_a_message_is_one_word_whatever_is_in_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    nasty = "screen 'a b'; touch $(x) `y` \"z\" \\ \u00e9"
    assert notices.call(writing(told), tmp_path, "keep", nasty) is None
    assert told.read_text() == f"<keep><{nasty}>\n"


def test_without_the_key_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = make_desk(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(notices, "call", lambda *_: pytest.fail("called"))
    assert desk.run("calibrate", "HEAD").code == 0
