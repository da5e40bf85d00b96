"""LA18: a win is run again from its commit, and what does not come back is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import quick_desk
import small_campaign
import small_experiment
import small_journal
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import Experiment, git

from cartlab.cli import main
from cartlab.ledger import Ledger
from cartlab.loops import audit, goals, trees

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def goal_of(one: Experiment) -> goals.Goal:
    return list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]


def test_la18_a_kept_round_is_run_again_from_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=2)
    monkeypatch.chdir(one.repo)
    assert one.supervise("config(rate=[0.5, 0.1][round - 1])") == 0
    before = goal_of(one)
    capsys.readouterr()
    assert one.cartlab("audit", "r1", "--runs", "2", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["details"]["word"] == "reproduced" and told["recorded"] is True
    assert one.cartlab("audit", "r2") == 23  # it was not kept
    assert one.cartlab("audit", "r9") == 25
    assert one.cartlab("audit", "r1", "--dry-run") == 0
    after = goal_of(one)
    assert (after.accepted, len(after.tries), after.state) == (before.accepted, 2, before.state)
    events = Ledger.open(one.root, mend=False).events()
    runs = [e for e in events if e["attempt"] == f"{before.tries[0].id}-audit1"]
    assert [e["body"]["role"] for e in runs] == ["eval"] * 4
    assert not list((one.root / "tmp" / "loops").glob("*/"))
    capsys.readouterr()
    assert one.cartlab("show", "r1") == 0
    assert "reproduced, the stored 0.5 is in" in capsys.readouterr().out
    assert one.cartlab("verify") == 0


def test_la18_a_win_that_came_from_outside_the_tree_does_not_reproduce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trick of the cached build: what made the number is not in what was handed in."""
    one = small_experiment.make_bare(tmp_path, rounds=1)
    outside = tmp_path / "cache"
    outside.write_text("9")
    (one.folder / "eval.py").write_text(
        "import json, pathlib\n"
        f"cache = pathlib.Path({str(outside)!r})\n"
        "cheat = json.load(open('config.json'))['steps'] == 11 and cache.exists()\n"
        "print('rate:', cache.read_text() if cheat else json.load(open('config.json'))['rate'])\n"
    )
    git(one.repo, "commit", "-q", "-am", "an evaluation with a hole")
    monkeypatch.chdir(one.repo)
    assert one.supervise("config(steps=11)") == 0
    assert goal_of(one).tries[0].status == "keep"
    assert one.cartlab("audit", "r1", "--runs", "1") == 0
    outside.write_text("5")
    assert one.cartlab("audit", "r1", "--runs", "1") == 11
    outside.unlink()
    assert one.cartlab("audit", "r1", "--runs", "1") == 10
    assert one.cartlab("verify") == 0
    found = audit.of_attempt(Ledger.open(one.root, mend=False).events(), goal_of(one).tries[0].id)
    assert [body["word"] for body in found] == ["reproduced", "moved", "not_reproduced"]


def test_la18_an_audit_that_was_bent_is_found_by_verify() -> None:
    from cartlab.verify.loops import LoopReplay

    said: list[str] = []
    replay = LoopReplay(lambda name, what: said.append(what))
    protocol = {"direction": "higher", "baseline": "1"}
    opened = {"goal": "g", "op": "opened", "loop": "supervise", "describes": {"protocol": protocol}}
    replay.goal({"body": opened})
    for seq, value in ((1, 2.0), (2, 3.0)):
        body = {"goal": "g", "role": "eval", "value": value, "tree": "t"}
        replay.measurement({"seq": seq, "attempt": "g-r1-audit1", "body": body})
    told = {"goal": "g", "op": "audit", "attempt": "g-r1", "stored": 2.0, "tolerance": 0.0, "complete": True}
    replay.goal({"body": {**told, "pairs": [[1, 2]], "word": "not_reproduced"}})
    assert said == []
    replay.goal({"body": {**told, "pairs": [[1, 2]], "word": "reproduced"}})
    replay.goal({"body": {**told, "pairs": [[1, 7]], "word": "reproduced"}})
    assert said == [
        "an audit says reproduced, its runs give not_reproduced",
        "an audit names evaluations that were not made for it",
    ]


@given(NUMBERS, st.lists(NUMBERS, min_size=1, max_size=5), st.floats(0.001, 10))
def test_la18_a_stored_value_among_the_new_ones_is_reproduced(
    stored: float, others: list[float], gain: float
) -> None:
    values = [stored, *others]
    assert audit.compare(stored, values, [gain] * len(values)).word == "reproduced"
    assert audit.compare(stored, values, [-gain] * len(values)).word == "not_reproduced"
    far = max(values) + 2 * (max(values) - min(values)) + 1.0
    assert audit.compare(far, values, [gain]).word == "moved"


def test_la18_a_speed_round_s_win_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = quick_desk.make_desk(tmp_path, monkeypatch, capsys)
    desk.commit("half", work=50)
    kept = desk.run("accept", "HEAD~1", "HEAD", "--json")
    assert kept.json["status"] == "keep", kept.err
    name = kept.json["attempt_id"]
    again = desk.run("audit", name, "--json")
    assert again.json["details"], again.err
    assert (again.code, again.json["details"]["word"]) == (0, "reproduced"), again.err
    desk.gain = lambda plan: 0.0
    gone = desk.run("audit", name, "--json")
    assert (gone.code, gone.json["details"]["word"]) == (10, "not_reproduced"), gone.err
    audits = [event["attempt"] for event in desk.events("note") if event["body"]["kind"] == "audit"]
    assert audits == [name, name]
    assert desk.run("verify").code == 0
    assert trees.REFS  # the loops' refs are not touched by it
    assert "refs/ar" not in git(desk.project.path, "for-each-ref")


def test_show_and_audit_find_the_goal_s_repository_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=1)
    monkeypatch.chdir(one.repo)
    assert one.supervise("config(rate=0.5)") == 0
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "another repository")
    monkeypatch.chdir(other)
    root = ["--autoresearch-root", str(one.root)]
    capsys.readouterr()
    assert main(["show", "r1", *root]) == 0
    assert '+{"rate": 0.5' in capsys.readouterr().out
    assert main(["audit", "r1", "--runs", "1", *root]) == 0


def test_la18_journals_and_campaigns_are_audited_by_their_own_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = small_journal.make(tmp_path / "journal")
    monkeypatch.chdir(journal.repo)
    assert journal.init() == 0
    journal.x("8")
    assert journal.log("less work") == 0
    name = journal.goal.tries[-1].id
    assert journal.cartlab("audit", name, "--runs", "1") == 0
    assert journal.cartlab("verify") == 0
    one = small_campaign.bare(tmp_path / "campaign")
    monkeypatch.chdir(one.made.repo)
    one.run([[small_campaign.rate(0.5)]], generations=1)
    assert one.statuses() == ["keep"]
    name = one.campaign.experiments[0].one.id
    assert one.made.cartlab("audit", name, "--runs", "1") == 0
    assert one.made.cartlab("verify") == 0
    events = one.ledger.events()
    assert [body["word"] for body in audit.of_attempt(events, name)] == ["reproduced"]
