"""LC33 through the library: a command with something dangerous in it runs only with a person's word, which is
recorded and holds for one run. The command line's own refusals are in the loops' tests.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_campaign
import small_experiment
import small_journal
from small_experiment import Experiment, git

from cartlab.cli.talk import Talk
from cartlab.errors import NotLegalNow, UsageError
from cartlab.ledger import Ledger
from cartlab.loops import opening, supervise
from cartlab.loops.campaign import critique, driver, experiment, planning
from cartlab.loops.desk import Desk, Options
from cartlab.loops.journal import branching, finalising, researching
from cartlab.pipeline import publishing

DELETES = "rm -rf out; true"


def words(ledger: Ledger) -> list[str]:
    return [str(event["body"]["reason"]) for event in ledger.events() if event["type"] == "approval"]


def approved(desk: Desk, reason: str) -> Desk:
    return replace(desk, options=replace(desk.options, approve=reason))


def supervised(one: Experiment) -> Desk:
    one.root.mkdir()
    ledger = Ledger.open(one.root)
    file = one.folder / "autoresearch-protocol.md"
    return opening.open_goal(one.repo, one.root, ledger, file, Talk(as_json=True), Options(), "greedy", 3)


def test_lc33_the_supervisor_itself_asks_for_the_word(tmp_path: Path) -> None:
    desk = supervised(small_experiment.make_bare(tmp_path, rounds=1))
    with pytest.raises(NotLegalNow, match="a recursive delete, which needs an approval"):
        supervise.run(desk, DELETES)
    # Nor is there a way in beside the loop.
    supervise.prepare(desk)
    with pytest.raises(NotLegalNow, match="needs an approval"):
        supervise.one_round(desk, DELETES, 1)
    assert words(desk.ledger) == []
    supervise.run(approved(desk, "a folder of its own copy"), DELETES)
    assert words(desk.ledger) == ["a folder of its own copy"]
    with pytest.raises(NotLegalNow, match="needs an approval"):
        supervise.run(desk, DELETES, extend=1)


def test_lc33_so_do_the_journal_and_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = small_journal.make(tmp_path / "journal")
    monkeypatch.chdir(session.repo)
    assert session.init() == 0
    desk = Desk(
        session.repo, session.root, Ledger.open(session.root), session.goal.id, Talk(as_json=True), Options()
    )
    with pytest.raises(NotLegalNow, match="needs an approval"):
        researching.run(desk, DELETES)
    one = small_campaign.bare(tmp_path / "campaign")
    calls: list[Any] = [
        lambda: driver.run(one.desk, experiment.Plan(DELETES), driver.Hands(lambda _: None)),
        lambda: planning.plan(one.desk, command=DELETES),
        lambda: critique.critique(one.desk, command=DELETES),
    ]
    for call in calls:
        with pytest.raises(NotLegalNow, match="needs an approval"):
            call()
    assert words(one.ledger) == [] and one.campaign.goal.state == "not_started"


def test_no_branch_is_made_or_moved_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = small_journal.make(tmp_path)
    monkeypatch.chdir(session.repo)
    assert session.init() == 0
    session.x("8")
    assert session.log("smaller") == 0
    ledger = Ledger.open(session.root)
    desk = Desk(session.repo, session.root, ledger, session.goal.id, Talk(as_json=True), Options())
    plan = finalising.plan(desk, session.goal, "main", None, collapse=False, single=False)
    before = git(session.repo, "for-each-ref")
    with pytest.raises(NotLegalNow, match="made with a person's word"):
        branching.create(desk, session.goal, plan, " ")
    assert git(session.repo, "for-each-ref") == before
    nothing: Any = None
    with pytest.raises(UsageError, match="needs a reason"):
        publishing.publish("HEAD", "", nothing, session.repo, session.root, nothing, dry_run=False)


def test_lc29_a_device_is_one_experiment_s_alone() -> None:
    for slots, devices, says in ((2, ("a", "a"), "twice"), (2, ("a",), "each of 2 slots")):
        with pytest.raises(UsageError, match=says):
            experiment.Plan("true", slots, devices)
    assert experiment.Plan("true", 2, ("a", "b")).devices == ("a", "b")


def test_a_loop_cannot_be_run_without_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=1)
    monkeypatch.chdir(one.repo)
    for line in (
        ["supervise", str(one.folder), "--researcher", "true"],
        ["attempt", "start", str(one.folder)],
        ["journal", "init", "--name", "n", "--metric-name", "m", "--command", "true", "--no-branch"],
        ["campaign", "init", "slope", "--protocol", str(one.folder)],
    ):
        assert one.cartlab(*line, "--no-record") == 2
        assert "a loop lives in its ledger" in capsys.readouterr().err
    assert not (one.root / "events.jsonl").exists()
