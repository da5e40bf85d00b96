"""stdout and stderr as a command may find them: nobody reads on, closed, full, of an old encoding; and texts
that are no UTF-8.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_bench import SCRIPT, Bench, make_bench

from cartlab.cli import streams, talk
from cartlab.cli.table import ROWS
from cartlab.ledger import Ledger
from cartlab.model import canonical_json, utf8
from cartlab.verify import verify_root

OLD = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
REF_BENCHMARK = SCRIPT.with_name("run_git_ref_benchmark.py")
# A command line with stdout on a pipe whose reader is gone before anything is written.
UNREAD = """
import os, sys
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    assert made.run("init").code == 0
    return made


def unread(bench: Bench, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", UNREAD, str(script), *words],
        cwd=bench.project.path,
        env=bench.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "words",
    [("--help",), ("screen", "--help"), ("status",), ("status", "--json"), ("next",), ("note", "a text")],
)
def test_a_reader_that_goes_away_ends_nothing(bench: Bench, words: tuple[str, ...]) -> None:
    done = unread(bench, SCRIPT, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(bench.events()) == (words[0] == "note")


def test_the_verdict_is_the_exit_code_though_nobody_reads_it(bench: Bench) -> None:
    done = unread(bench, SCRIPT, "plan", "no-such-revision", "HEAD")
    assert done.returncode == 20 and "Traceback" not in done.stderr and "no-such-revision" in done.stderr


def test_the_module_is_the_command(bench: Bench) -> None:
    done = subprocess.run([sys.executable, "-m", "cartlab", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage: cartlab COMMAND")


def test_help_is_also_a_word(bench: Bench) -> None:
    assert bench.run("help").out == bench.run("--help").out
    assert bench.run("help", "screen").out == bench.run("screen", "--help").out


def test_help_of_the_second_script_may_be_cut_too(bench: Bench) -> None:
    done = unread(bench, REF_BENCHMARK, "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_help_fits_an_old_encoding(capsys: pytest.CaptureFixture[str]) -> None:
    from cartlab import cli

    for row in ROWS:
        assert cli.main([row.name, "--help"]) == 0
    assert capsys.readouterr().out.isascii()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize("words", [("--help",), ("screen", "--help"), ("status",), ("status", "--json")])
def test_an_answer_that_could_not_be_written_is_no_success(bench: Bench, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *words],
            cwd=bench.project.path,
            env=bench.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and "could not be written to <stdout>: No space left" in done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("status", 0), ("nonsense", 2), ("--help", 0), ("note text", 0)])
def test_closed_streams_change_no_exit_code(bench: Bench, closed: str, words: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" "$1" {words} {closed}', sys.executable, str(SCRIPT)],
        cwd=bench.project.path,
        env=bench.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code and "Traceback" not in done.stderr


def test_an_old_encoding_shows_escapes_and_the_ledger_holds_the_letters(bench: Bench) -> None:
    assert bench.run("note", "häß — x", env=OLD).code == 0
    shown = bench.run("status", env=OLD)
    assert shown.code == 0 and "h\\u00e4\\u00df \\u2014 x" in shown.out
    assert bench.events()[-1]["body"]["text"] == "häß — x"
    assert "häß — x" in (bench.root / "scratchpad.md").read_text(encoding="utf-8")
    assert verify_root(bench.root).findings == []


def test_bytes_that_are_no_utf8_are_recorded_as_replaced(bench: Bench) -> None:
    done = bench.run("note", os.fsdecode(b"a\xffb"), "--json")
    assert done.code == 0 and bench.events()[-1]["body"]["text"] == "a\ufffdb"
    assert "a\ufffdb" in (bench.root / "scratchpad.md").read_text(encoding="utf-8")


def test_a_text_of_any_size_and_any_bytes_stays_one_event(bench: Bench) -> None:
    text = "\x00\x1b[31m\r\n\t\u2028" * 20_000
    Ledger.open(bench.root).note("scratchpad.md", text)
    (event,) = Ledger.open(bench.root).events()
    assert event["body"]["text"] == text and verify_root(bench.root).findings == []
    shown = bench.run("status")
    assert shown.code == 0 and "\\u001b[31m" in shown.out and "\x1b" not in shown.out


def test_bytes_and_surrogates_of_texts() -> None:
    assert utf8("ä") == "ä".encode()
    assert utf8(
        os.fsdecode("ä".encode()).encode("utf-8", "surrogateescape").decode("ascii", "surrogateescape")
    ) == ("ä".encode())
    assert utf8("a\ud800b") == b"a?b"
    assert canonical_json({"a": "\udcc3\udca4"}) == '{"a":"ä"}'.encode()


def test_progress_fits_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    talk._PlainLine().update("x" * 50)
    assert capsys.readouterr().err == "\r\x1b[K" + "x" * 19


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert streams.on_terminal(Terminal())  # type: ignore[arg-type]
    monkeypatch.setenv("TERM", "dumb")
    assert not streams.on_terminal(Terminal())  # type: ignore[arg-type]
    assert not streams.on_terminal(None)


def test_json_is_whole_in_an_old_encoding(bench: Bench) -> None:
    assert bench.run("note", "größer \x7f \U0001f579").code == 0
    done = bench.run("status", "--json", env=OLD)
    assert "größer \x7f \U0001f579" in done.json["details"]["notes"] and done.out.isascii()


@pytest.mark.parametrize(("name", "words"), [("events.jsonl", "status"), ("scratchpad.md", "note text")])
def test_a_folder_in_a_files_place_is_a_bad_root_and_named(bench: Bench, name: str, words: str) -> None:
    (bench.root / name).unlink()
    (bench.root / name).mkdir()
    done = bench.run(*words.split())
    assert done.code == 21 and name in done.err and "move away" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("script", [SCRIPT, REF_BENCHMARK])
def test_ctrl_c_before_anything_is_loaded_is_an_exit_code_and_no_traceback(
    script: Path, tmp_path: Path
) -> None:
    package = tmp_path / "cartlab" / "cli"
    package.mkdir(parents=True)
    (tmp_path / "cartlab" / "__init__.py").touch()
    (package / "__init__.py").write_text("raise KeyboardInterrupt\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, str(script), "status"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["record", "import"])
def test_a_file_that_is_nested_too_deeply_is_bad_input(bench: Bench, tmp_path: Path, command: str) -> None:
    (tmp_path / "deep").write_text("[" * 100_000)
    done = bench.run(command, str(tmp_path / "deep"))
    assert done.code == 25 and "Traceback" not in done.err


def test_a_number_that_nothing_can_count_to_is_wrong_use(bench: Bench) -> None:
    done = bench.run("screen", "HEAD", "HEAD", "--max-wall-clock-minutes", "1e308")
    assert done.code == 2 and "expected a number of at most 1e+12" in done.err
