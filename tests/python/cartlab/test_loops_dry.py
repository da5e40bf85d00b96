"""Every loop command with --dry-run and --json: one object, a code of its own, and no byte written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_experiment
from small_experiment import Experiment

from cartlab.cli.table import BY_NAME
from cartlab.cli.talk import Talk
from cartlab.ledger import Ledger
from cartlab.loops.desk import Desk

# A line each, and its code where no loop was opened and where a supervised one has a kept round.
LINES: dict[str, tuple[int, int]] = {
    "handoff slope/DESIGN.md --run-vp": (0, 0),
    "supervise slope --researcher true": (0, 23),
    "supervise slope --researcher true --extend 1": (0, 0),
    "supervise slope --researcher rm\u00a0-rf\u00a0x": (23, 23),
    "attempt start slope": (0, 23),
    "attempt submit": (23, 23),
    "attempt close --reason x": (23, 23),
    "journal init --name n --metric-name m --command true --no-branch": (0, 0),
    "journal log --description d --hypothesis h": (0, 0),
    "journal run --researcher true": (0, 0),
    "journal evaluate --metric 3": (25, 25),
    "journal status": (25, 25),
    "journal summary": (25, 25),
    "journal idea list": (23, 23),
    "journal idea add x": (23, 23),
    "journal finalize plan": (23, 23),
    "journal finalize create --approve x": (23, 23),
    "journal finalize verify": (23, 23),
    "campaign init slope --protocol slope": (0, 0),
    "campaign plan --researcher true": (23, 23),
    "campaign critique --researcher true": (23, 23),
    "campaign run --researcher true": (23, 23),
    "campaign ladder": (23, 23),
    "campaign done": (23, 23),
    "verify": (0, 0),
    "audit r1": (21, 0),
    "show": (21, 0),
    "show r1": (21, 0),
    "note x": (0, 0),
    "idea x": (0, 0),
    "stop": (0, 0),
    "protocol set max_rounds 3": (23, 0),
    "protocol set max_rounds many": (23, 2),
    "protocol set time_limit soon": (23, 25),
    "protocol set metric x": (23, 2),
    "serve --port 0": (21, 0),
    "holdout status": (23, 0),
    "holdout final": (23, 23),
    "holdout seal slope --files . --command true": (25, 25),
    "import nofile": (25, 25),
    "export out.jsonl": (21, 0),
    "export out.tsv --as leo": (21, 0),
}


def test_next_names_an_open_loop_where_speed_can_be_measured_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With an autoresearch.toml and no round: a supervised loop, a journal, and none once they have ended."""
    one = small_experiment.make_bare(tmp_path, rounds=2)
    (one.repo / "autoresearch.toml").write_text("")
    small_experiment.git(one.repo, "add", "-A")
    small_experiment.git(one.repo, "commit", "-q", "-m", "measurable")
    monkeypatch.chdir(one.repo)

    def lines() -> list[str]:
        capsys.readouterr()
        assert one.cartlab("next", "--json") == 0
        found = json.loads(capsys.readouterr().out)["details"]["actions"]
        return [str(action["command"]).partition(" ")[2] for action in found]

    assert lines() == ["init"]
    assert one.cartlab("attempt", "start", "slope") == 0
    assert lines()[0] == 'attempt submit --strategy "what was tried"' and "calibrate HEAD" in lines()
    assert one.cartlab("attempt", "close", "--reason", "lunch") == 0
    assert lines()[0] == f'supervise {one.folder} --researcher "CMD"'
    assert one.supervise("config(rate=0.5)") == 0
    assert lines()[0] == "calibrate HEAD" and not any("supervise" in line for line in lines())
    words = ["--name", "n", "--metric-name", "m", "--command", "echo METRIC m=1", "--no-branch"]
    assert one.cartlab("journal", "init", *words) == 0
    assert lines()[:2] == ["journal status", 'journal run --researcher "CMD"'] and len(lines()) > 2
    # What was recorded since is of no loop: the speed commands come first again.
    ledger = Ledger.open(one.root)
    ledger.append("note", None, {"file": "ideas.md", "kind": "idea", "text": "x"})
    ledger.project()
    assert lines()[0] == "calibrate HEAD" and lines()[-2] == "journal status"


@pytest.fixture(scope="module", params=["nothing yet", "a kept round"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Experiment]:
    top = tmp_path_factory.mktemp("dry")
    one = small_experiment.make_bare(top, rounds=1)
    if request.param == "nothing yet":
        return 0, one
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(one.repo)
        assert one.supervise("config(rate=0.5)") == 0
    return 1, one


def files(top: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("line", LINES)
def test_a_dry_run_answers_with_one_object_and_writes_nothing(
    place: tuple[int, Experiment],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at, one = place
    top = one.root.parent
    monkeypatch.chdir(one.repo)
    monkeypatch.setenv("HOME", str(top))
    monkeypatch.setenv("AUTORESEARCH_RUNS_DIR", str(top / "runs"))
    before = files(top)
    words = [word.replace("\u00a0", " ") for word in line.split(" ")]
    assert one.cartlab(*words, "--dry-run", "--json") == LINES[line][at]
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["command"] in BY_NAME and line.startswith(answer["command"])
    assert answer["exit_code"] == LINES[line][at] and bool(answer["exit_code"]) == ("error: " in said.err)
    assert files(top) == before


REFUSED = [
    "attempt start slope",
    "attempt submit",
    "attempt submit other",
    "attempt close --reason x",
    "protocol set max_rounds many",
    "protocol set diff_cap much",
    "protocol set metric x",
    "holdout final",
    "holdout seal slope --files . --command true",
    "supervise slope --researcher true",
]


@pytest.mark.parametrize("held", [False, True], ids=["free", "at work"])
def test_a_dry_run_is_refused_as_the_real_call_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], held: bool
) -> None:
    """In a root without a goal, with an open round, and with none left: code and words are the same."""
    one = small_experiment.make_bare(tmp_path, rounds=1)
    monkeypatch.chdir(one.repo)

    def same(lines: list[str]) -> list[int]:
        codes = []
        for line in lines:
            found = []
            for more in (["--dry-run"], []):
                capsys.readouterr()
                code = one.cartlab(*line.split(" "), *more)
                errors = [row for row in capsys.readouterr().err.splitlines() if row.startswith("error: ")]
                found.append((code, errors))
            assert found[0] == found[1] and found[0][1], line
            codes.append(found[0][0])
        return codes

    if held:
        assert one.cartlab("attempt", "start", "slope") == 0
        goal = small_experiment.goal_of(one)
        desk = Desk(one.repo, one.root, Ledger.open(one.root), goal.id, Talk(as_json=True))
        with desk.alone():
            assert same(["attempt submit", "attempt close --reason x"]) == [23, 23]
            assert one.cartlab("protocol", "set", "max_rounds", "3", "--dry-run") == 0
        assert one.cartlab("attempt", "submit", "--dry-run") == 0
        assert small_experiment.goal_of(one).tries[0].state == "dispatched"
        return
    # What these would open without a goal is no refusal.
    first = [line for line in REFUSED if "slope" not in line]
    assert same(first) == [23] * len(first)
    assert one.supervise("config(rate=0.5)") == 0
    assert same(REFUSED) == [23, 23, 23, 23, 2, 25, 2, 23, 25, 23]
