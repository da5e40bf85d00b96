"""`report` as it is typed: where it writes, what stdout holds, what it refuses, what it keeps to itself."""

from __future__ import annotations

import contextlib
import getpass
import io
import json
import socket
from pathlib import Path

import pytest
from cli_bench import Answer, Bench, make_bench
from report_root import realistic_root

from cartlab import sources
from cartlab.cli import main
from cartlab.cli.export import COMMON_NAMES, own_names


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One screen that was really measured, for tests that leave the root as it is but for the report."""
    made = make_bench(tmp_path_factory.mktemp("measured"))
    made.project.commit("half", work=50)
    assert made.run("screen", "HEAD~1", "HEAD", "--mechanism", "half the work").code == 0
    return made


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


class Here:
    """The command line in this process, in a bench's repository: scipy is imported once for all tests."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch

    def __call__(self, bench: Bench, *words: str, prog: str = "scripts/autoresearch.py") -> Answer:
        self.patch.chdir(bench.project.path)
        for key, value in bench.environment().items():
            self.patch.setenv(key, value)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(words), prog=prog)
        found = json.loads(out.getvalue()) if "--json" in words else {}
        return Answer(code, out.getvalue(), err.getvalue(), found)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(monkeypatch)


def test_the_page_goes_into_the_root_and_its_path_is_told(here: Here, measured: Bench) -> None:
    answer = here(measured, "report", "--json")
    place = measured.root / "report.html"
    assert answer.code == 0 and answer.json["details"]["file"] == str(place)
    assert answer.json["report"]["outputs"] == "report.html" and answer.json["details"]["candidates"] == 1
    first = place.read_text()
    assert "half the work" in first and "triage_promote" in first
    told = here(measured, "report")
    assert told.code == 0 and f"written: {place}" in told.out and told.report["outputs"] == "report.html"


def test_it_proposes_what_next_proposes(here: Here, measured: Bench) -> None:
    actions = here(measured, "next", "--json").json["details"]["actions"]
    answer = here(measured, "report", "--format", "json", "--json")
    assert [one["command"] for one in answer.json["details"]["next"]] == [one["command"] for one in actions]
    assert answer.json["report"]["next"] == actions[0]["command"]


@pytest.mark.parametrize("session", [True, False])
def test_json_is_all_that_stdout_holds(here: Here, measured: Bench, session: bool) -> None:
    answer = here(measured, "report", *(["--session"] if session else []), "--format", "json")
    body = json.loads(answer.out)
    assert body["branch"] == "main"
    assert [line.partition(":")[0] for line in answer.err.splitlines()[-5:]] == [
        "phase",
        "inputs",
        "outputs",
        "decision",
        "next",
    ]
    same = here(measured, "report", *(["--session"] if session else []), "--format", "json", "--json")
    details = same.json["details"]
    assert details.keys() == body.keys()
    if session:
        assert details == body
    else:
        assert details["candidates"] == body["candidates"] and details["schema"] == "cartlab.report/1"


def test_markdown_is_for_people_and_closes_with_the_five_lines(here: Here, measured: Bench) -> None:
    answer = here(measured, "report", "--format", "md")
    assert answer.out.startswith("<!-- cartlab.report/1 -->\n# fake: speed report\n")
    assert "| half the work" not in answer.out and "half the work |" in answer.out
    assert answer.report["phase"] == "record"
    session = here(measured, "report", "--session")
    assert session.out.startswith("branch: main\n") and session.report["decision"] == "defer"


def test_only_an_earlier_report_is_written_over(here: Here, measured: Bench, tmp_path: Path) -> None:
    for form in ("html", "md", "json"):
        place = tmp_path / f"out.{form}"
        words = ("report", "--format", form, "--output", str(place))
        assert here(measured, *words).code == 0 and here(measured, *words).code == 0
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    for place in (mine, tmp_path, measured.root / "events.jsonl"):
        refused = here(measured, "report", "--output", str(place))
        assert refused.code == 25 and "name another file" in refused.err
    assert mine.read_text() == "mine"
    (measured.root / "report.html").unlink(missing_ok=True)
    (measured.root / "report.html").write_text("somebody's own")
    assert here(measured, "report").code == 25
    (measured.root / "report.html").unlink()


def test_a_page_on_stdout_is_the_page_alone(here: Here, measured: Bench) -> None:
    answer = here(measured, "report", "--output", "-")
    assert answer.out.startswith("<!doctype html>") and answer.out.rstrip().endswith("</html>")


def test_the_installed_command_names_itself_in_the_page(here: Here, measured: Bench, tmp_path: Path) -> None:
    place = tmp_path / "own.html"
    assert here(measured, "report", "--output", str(place), prog="cartlab").code == 0
    assert "cartlab diagnose --quick" in place.read_text()
    assert "scripts/autoresearch.py" not in place.read_text()


def test_a_dry_run_and_a_refusal_write_nothing(here: Here, measured: Bench) -> None:
    before = sorted(measured.root.rglob("*"))
    planned = here(measured, "report", "--dry-run", "--json")
    assert planned.json["status"] == "planned"
    assert here(measured, "report", "--session", "--format", "html").code == 2
    assert sorted(measured.root.rglob("*")) == before


def test_a_root_before_and_after_init(here: Here, bench: Bench) -> None:
    missing = here(bench, "report")
    assert missing.code == 21 and "init" in missing.err
    bench.root.mkdir()
    empty = here(bench, "report", "--json")
    assert empty.code == 0 and empty.json["report"]["next"] == "scripts/autoresearch.py init"
    assert here(bench, "init").code == 0
    assert here(bench, "report").code == 0
    assert "No candidate was measured" in (bench.root / "report.html").read_text()


def test_a_torn_ledger_is_said_and_left_and_a_damaged_one_refused(
    here: Here, measured: Bench, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    good = (measured.root / "events.jsonl").read_bytes()
    torn = good + b'{"v":1,"seq":'
    (other / "events.jsonl").write_bytes(torn)
    answer = here(measured, "report", "--autoresearch-root", str(other))
    assert answer.code == 0 and "torn last line" in answer.err
    assert "torn last line" in (other / "report.html").read_text()
    assert (other / "events.jsonl").read_bytes() == torn
    (other / "events.jsonl").write_bytes(good[:50] + b"x" + good[51:])
    assert here(measured, "report", "--autoresearch-root", str(other)).code == 22


def test_a_round_whose_baseline_is_gone_still_has_its_report(here: Here, bench: Bench) -> None:
    realistic_root(bench.root)  # of a baseline that this repository does not have
    session = here(bench, "report", "--session", "--format", "json")
    assert json.loads(session.out)["round"]["state"] == "paused" and "round paused by" in session.err
    answer = here(bench, "report")
    assert answer.code == 0, answer.err
    text = (bench.root / "report.html").read_text()
    assert "paused by refs_missing" in text and "cheaper scanlines" in text


def test_the_page_names_neither_this_machine_nor_its_places(here: Here, bench: Bench) -> None:
    ledger = realistic_root(bench.root, sources.resolve(bench.project.path, "HEAD"))
    secret = f"checks failed in {bench.project.path}/src on {socket.gethostname()}"
    ledger.append("note", None, {"file": None, "kind": "checks", "text": secret, "checks": {}})
    ledger.project()
    assert here(bench, "report").code == 0
    text = (bench.root / "report.html").read_text()
    assert "&lt;hidden&gt;" in text and "checks failed in" in text
    for name in (str(bench.root.parent), str(bench.project.path), *own_names()):
        assert name not in text
    assert "http://" not in text and "https://" not in text


def test_a_user_without_a_name_has_none_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert own_names() == [name for name in [socket.gethostname()] if name not in COMMON_NAMES]
