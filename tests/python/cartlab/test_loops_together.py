"""Several loops in one root: each is told from the others, and none is taken for a cheat's work."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_experiment
from ledger_runs import forge
from small_experiment import Experiment, git

from cartlab.ledger import Ledger
from cartlab.loops import commands, goals, isolation, supervise
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.verify import verify_root


class Silent:
    """Says nothing."""

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def progress(self, line: str) -> None: ...


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The bare experiment `slope`, and the same again as `deep/slope` and as `hill`."""
    one = small_experiment.make_bare(tmp_path, rounds=2)
    for name in ("deep/slope", "hill"):
        shutil.copytree(one.folder, one.repo / name)
    git(one.repo, "add", "-A")
    git(one.repo, "commit", "-q", "-m", "three of them")
    monkeypatch.chdir(one.repo)
    monkeypatch.setenv("AUTORESEARCH_RUNS_DIR", str(tmp_path / "runs"))
    return one


def of(one: Experiment) -> dict[str, Goal]:
    """The goals by their experiment's folder."""
    found = goals.fold(Ledger.open(one.root, mend=False).events()).values()
    return {str(goal.body["top"]): goal for goal in found}


def test_an_experiment_is_not_taken_for_another_one_whose_folder_has_its_name(
    experiment: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment.supervise("config(rate=0.5)") == 0
    before = Ledger.open(experiment.root).tip
    words = ("supervise", "deep/slope", "--researcher", "true")
    for more in ((), ("--dry-run",)):
        assert experiment.cartlab(*words, *more) == 23
    assert "belongs to slope-" in capsys.readouterr().err and Ledger.open(experiment.root).tip == before
    # Where the first one's worktree is gone its place is free.
    git(experiment.repo, "worktree", "remove", "--force", str(experiment.worktree))
    assert experiment.cartlab("attempt", "start", "deep/slope") == 0
    assert set(of(experiment)) == {"slope", "deep/slope"}


def test_a_campaign_of_the_experiment_s_name_has_a_worktree_of_its_own(experiment: Experiment) -> None:
    assert experiment.cartlab("attempt", "start", "slope") == 0
    assert experiment.cartlab("campaign", "init", "slope", "--protocol", "slope") == 0
    assert experiment.cartlab("campaign", "init", "hill", "--protocol", "hill") == 0
    places = [goal.body["worktree"] for goal in goals.fold(Ledger.open(experiment.root).events()).values()]
    assert [Path(place).name for place in places] == [
        "autoresearch-slope",
        "autoresearch-slope-campaign",
        "autoresearch-hill",
    ]


def test_an_attempt_is_handed_in_to_the_loop_that_it_belongs_to(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("slope", "hill"):
        assert experiment.cartlab("attempt", "start", name) == 0
    first = of(experiment)["slope"].last
    assert first is not None
    # By its name, by the folder, and without either the newest one that waits.
    assert experiment.cartlab("attempt", "close", first.id, "--reason", "another idea") == 0
    assert experiment.cartlab("attempt", "start", "slope") == 0
    monkeypatch.chdir(experiment.repo / "slope")
    assert experiment.cartlab("protocol", "set", "max_rounds", "7") == 0
    assert experiment.cartlab("attempt", "close", "--reason", "another idea") == 0
    monkeypatch.chdir(experiment.repo)
    assert experiment.cartlab("attempt", "close", "--reason", "another idea") == 0
    found = of(experiment)
    assert [len(found[name].tries) for name in ("slope", "hill")] == [2, 1]
    assert all(one.status == "interrupted" for goal in found.values() for one in goal.tries)
    assert [goal.body["protocol"]["max_rounds"] for goal in found.values()] == [7, 2]


def test_stop_reaches_every_loop_that_a_process_works_on(
    experiment: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("slope", "hill"):
        assert experiment.cartlab("attempt", "start", name) == 0
    found = of(experiment)
    assert experiment.cartlab("note", "to the newest") == 0
    ledger = Ledger.open(experiment.root)
    with Desk(experiment.repo, experiment.root, ledger, found["slope"].id, Silent()).alone():
        assert experiment.cartlab("stop", "--dry-run") == 0
        assert experiment.cartlab("stop", "--reason", "enough") == 0
    told = capsys.readouterr().out
    assert all(told.count(f"the loop {goal.id} ends") == 2 for goal in found.values())
    found = of(experiment)
    assert [goal.stop_asked for goal in found.values()] == ["enough", "enough"]
    assert [one.notes for goal in found.values() for one in goal.tries] == [[], ["to the newest"]]


def test_what_another_command_records_meanwhile_is_no_cheat_of_a_confined_researcher(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Callable[..., Any] = commands.run

    def beside(*words: Any, name: str, **how: Any) -> Any:
        if name == "researcher":
            body = {"goal": "another", "role": "eval", "value": 1.0}
            Ledger.open(experiment.root).append("measurement", "another-r1", body)
        return whole(*words, name=name, **how)

    monkeypatch.setattr(commands, "run", beside)
    assert experiment.supervise("config(rate=0.5 + round / 10)") == 0
    wanted = "keep" if isolation.available() == "landlock" else "tampered"
    assert small_experiment.words(experiment) == [wanted] * 2
    monkeypatch.undo()
    monkeypatch.chdir(experiment.repo)
    monkeypatch.setattr(commands, "run", beside)
    assert experiment.supervise("config(rate=0.9)", "--extend", "1", "--isolation", "process") == 0
    assert small_experiment.words(experiment)[-1] == "tampered"


def test_what_was_cut_short_is_no_try_of_a_round() -> None:
    def tried(name: str, status: str) -> Try:
        return Try(name, 1, "closed", decision={"status": status, "retried": True})

    cut, failed, now = tried("r1", "interrupted"), tried("r1.2", "crashed"), Try("r1.3", 1, "measuring")
    goal = Goal("g", "supervise", {}, "2026-01-01T00:00:00.000Z", tries=[cut, now])
    assert supervise.retries(goal, now) == 0
    goal.tries.insert(1, failed)
    assert supervise.retries(goal, now) == 1
    assert supervise.retries(goal, Try("r2", 2)) == 0


def test_two_goals_of_one_second_have_two_ids() -> None:
    body = {"op": "opened", "loop": "journal", "baseline_commit": "c", "describes": {}}
    now, events = "2026-01-02T03:04:05.678Z", list[dict[str, Any]]()
    for _ in range(3):
        name = goals.new_id(events, "size", now)
        events.append({"type": "goal", "attempt": None, "time": now, "body": {**body, "goal": name}})
    names = ["size-20260102-030405", "size-20260102-030405-2", "size-20260102-030405-2-2"]
    assert list(goals.fold(events)) == names


@pytest.mark.parametrize("name", ["autoresearch-protocol.md", "experiences.md"])
def test_a_file_that_is_no_utf_8_is_named(
    experiment: Experiment, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (experiment.folder / name).write_bytes(b"status: caf\xe9\n")
    assert experiment.cartlab("supervise", "slope", "--researcher", "true") == 25
    assert f"{name} must be UTF-8 text; found 0xe9 at byte 11" in capsys.readouterr().err


def test_ignore_rules_of_another_encoding_keep_their_bytes(experiment: Experiment) -> None:
    (experiment.folder / ".gitignore").write_bytes(b"caf\xe9\n")
    git(experiment.repo, "add", "-A")
    git(experiment.repo, "commit", "-q", "-m", "old names")
    assert experiment.cartlab("attempt", "start", "slope") == 0
    assert (experiment.worktree / "slope/.gitignore").read_bytes().startswith(b"caf\xe9\noutputs/\n")


@pytest.mark.parametrize("body", [{"op": "opened", "describes": None, "loop": "supervise"}, [], 3])
def test_verify_names_an_event_that_makes_no_sense(experiment: Experiment, body: Any) -> None:
    assert experiment.cartlab("attempt", "start", "slope") == 0

    def bend(events: list[Any]) -> None:
        events[0]["body"] = {**body, "goal": "g"} if isinstance(body, dict) else body

    forge(experiment.root, bend)
    found = verify_root(experiment.root).findings
    assert found[0].line == 1 and "cannot be read" in found[0].what
