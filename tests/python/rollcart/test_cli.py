"""The frame of the command `rollcart`: its table, its help, its answers and its exit codes."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rollcart import cli
from rollcart.cli import answer
from rollcart.cli.table import ROWS, Row
from rollcart.errors import ConfigError, NotInstalled, RomError

Run = Any


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls `rollcart try` with a command whose work is the given function."""

    def call(work: Any, *words: str) -> int:
        def declare(parser: argparse.ArgumentParser) -> None:
            parser.add_argument("files", nargs="*")
            parser.add_argument("--count", type=int)

        row = Row("try", "try_", "tries something", ("try a",))
        monkeypatch.setitem(cli.BY_NAME, "try", row)
        monkeypatch.setattr(cli, "load", lambda _: SimpleNamespace(declare=declare, run=work))
        return cli.main(["try", *words])

    return call


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_command_has_a_module_and_a_help_that_shows_its_examples(row: Row, capsys: Any) -> None:
    assert cli.main([row.name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert row.summary in " ".join(shown.split()) and "--json" in shown and "exit codes" in shown
    assert row.examples and all(f"rollcart {line}" in shown for line in row.examples)
    assert all(line.split()[0] == row.name for line in row.examples)


def test_help_lists_the_commands_and_no_command_is_help(capsys: Any) -> None:
    assert cli.main([]) == 0
    first = capsys.readouterr().out
    assert cli.main(["--help"]) == 0 and capsys.readouterr().out == first
    assert all(row.name in first and row.summary in first for row in ROWS)


def test_the_installed_command_and_the_module_are_one() -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="rollcart")
    assert entry.load() is cli.main
    ran = subprocess.run([sys.executable, "-m", "rollcart", "--version"], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.strip() == importlib.metadata.version("rollcart")


def test_an_unknown_command_suggests_the_nearest(capsys: Any) -> None:
    assert cli.main(["imprt"]) == answer.USAGE
    assert "did you mean import?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--count", "many"], ["--no-such"]])
def test_a_wrong_argument_names_the_help(words: list[str], command: Run, capsys: Any) -> None:
    assert command(lambda *_: answer.Answer(), *words) == answer.USAGE
    assert "rollcart try --help" in capsys.readouterr().err


def test_an_answer_is_text_or_one_object(command: Run, capsys: Any) -> None:
    def work(options: argparse.Namespace, talk: Any) -> answer.Answer:
        talk.say(f"{len(options.files)} files")
        talk.note("by the way")
        return answer.Answer({"files": options.files}, answer.NO)

    assert command(work, "a", "b") == answer.NO
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("2 files\n", "by the way\n")
    assert command(work, "--json", "a") == answer.NO
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"command": "try", "exit_code": 1, "files": ["a"]}
    assert shown.err == "by the way\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RomError("cut short"), answer.INPUT),
        (ConfigError("lanes: expected 1"), answer.INPUT),
        (FileNotFoundError("a.nes"), answer.INPUT),
        (NotInstalled("no Pillow"), answer.MISSING),
        (answer.CommandError("no display", answer.MISSING), answer.MISSING),
        (KeyboardInterrupt(), answer.INTERRUPTED),
        (ZeroDivisionError("oops"), answer.INTERNAL),
    ],
)
def test_an_error_has_its_exit_code_and_its_text_in_both_forms(
    error: BaseException, code: int, command: Run, capsys: Any
) -> None:
    def work(*_: Any) -> answer.Answer:
        raise error

    text = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
    assert command(work) == code
    shown = capsys.readouterr()
    assert text in shown.err and not shown.out
    assert ("Traceback" in shown.err) == (code == answer.INTERNAL)
    assert command(work, "--json") == code
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == code and text in document["error"]


def test_what_is_not_installed_is_named_with_its_extra() -> None:
    assert answer.needs("json", "play") is json
    with pytest.raises(answer.CommandError, match=r"rollcart\[play\]") as raised:
        answer.needs("no_such_module", "play")
    assert raised.value.exit_code == answer.MISSING
