"""What somebody meets who uses the loops for the first time: another repository, a mistyped agent, a round's
number in place of an id.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_campaign
import small_experiment
import small_journal
from small_experiment import Experiment

from cartlab.cli import main
from cartlab.ledger import Ledger
from cartlab.loops import goals

TWO_GAINS = 'config(rate=0.1 * round); say(f"rate {0.1 * round}")'


def goal_of(one: Experiment) -> goals.Goal:
    return list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]


@pytest.fixture
def abroad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Experiment, Path]:
    """An experiment in a repository without autoresearch.toml, and the script's own repository elsewhere; no
    root is named.
    """
    made = small_experiment.make_bare(tmp_path, rounds=2)
    script = tmp_path / "tools"
    small_experiment.git(tmp_path, "init", "-q", str(script))
    (script / "autoresearch.toml").write_text("schema = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("AUTORESEARCH_ROOT_PATH", raising=False)
    monkeypatch.chdir(made.repo)
    return made, script


def test_every_command_finds_the_loop_of_the_repository_around_it(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    agent = one.researcher(TWO_GAINS)
    assert main(["supervise", "slope", "--researcher", agent], repository=script) == 0
    for command in (["show"], ["status"]):
        capsys.readouterr()
        assert main([*command, "--json"], repository=script) == 0
        assert "slope-" in capsys.readouterr().out
    capsys.readouterr()
    assert main(["next"], repository=script) == 0
    said = capsys.readouterr().out
    assert "next: cartlab show" in said and "calibrate" not in said
    assert main(["show", "r2"], repository=script) == 0
    assert "+{" in capsys.readouterr().out  # the patch, from this repository's objects
    assert main(["protocol", "set", "max_rounds", "3"], repository=script) == 0


def test_a_goal_is_worked_on_in_its_own_repository_from_wherever_it_is_asked_for(
    abroad: tuple[Experiment, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    where = ["--autoresearch-root", str(one.root)]
    agent = one.researcher(TWO_GAINS)
    assert main(["supervise", "slope", "--researcher", agent, *where], repository=script) == 0
    monkeypatch.chdir(script)
    capsys.readouterr()
    assert main(["show", "R1", "--json", *where], repository=script) == 0
    assert "config.json" in json.loads(capsys.readouterr().out)["details"]["patch"]
    assert main(["audit", "1", "--runs", "1", *where], repository=script) == 0
    assert main(["protocol", "set", "max_rounds", "3", *where], repository=script) == 0


def test_a_researcher_that_is_not_there_spends_no_round(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    one_root = ["--autoresearch-root", str(one.root)]
    mistyped = ["supervise", "slope", "--researcher", "no-such-agent {prompt}", *one_root]
    assert main(mistyped, repository=script) == 23
    said = capsys.readouterr().err
    assert "no-such-agent" in said and "no round was spent" in said
    assert goal_of(one).closed_rounds() == []
    agent = one.researcher(TWO_GAINS)
    assert main(["supervise", "slope", "--researcher", agent, *one_root], repository=script) == 0
    assert [found.round for found in goal_of(one).closed_rounds() if found.kept] == [1, 2]


def test_a_round_without_a_number_says_why_when_it_happens(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    root = ["--autoresearch-root", str(one.root)]
    failing = one.researcher("sys.exit('the agent wants a key')")
    assert main(["supervise", "slope", "--researcher", failing, *root], repository=script) == 0
    assert "  Why: crash: the agent wants a key" in capsys.readouterr().out


def test_a_name_that_means_no_attempt_is_answered_with_names_that_do(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    root = ["--autoresearch-root", str(one.root)]
    assert (
        main(["supervise", "slope", "--researcher", one.researcher(TWO_GAINS), *root], repository=script) == 0
    )
    capsys.readouterr()
    assert main(["show", "r9", *root], repository=script) == 25
    assert goal_of(one).tries[-1].id in capsys.readouterr().err


def test_a_round_by_hand_is_told_in_the_words_of_its_policy_and_next_names_its_end(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    root = ["--autoresearch-root", str(one.root)]
    assert main(["attempt", "start", "slope", "--json", *root], repository=script) == 0
    work = Path(json.loads(capsys.readouterr().out)["details"]["work"])
    assert main(["next", *root], repository=script) == 0
    assert 'next: cartlab attempt submit --strategy "' in capsys.readouterr().out
    (work / "config.json").write_text('{"rate": 0.7}')
    assert main(["attempt", "submit", "--strategy", "more", *root], repository=script) == 0
    said = capsys.readouterr().out
    assert "improved (keep by the policy greedy)" in said and "faster" not in said
    assert f"next: cartlab attempt start {one.folder}" in said


def test_so_are_a_session_and_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_campaign.bare(tmp_path, ladder="off")
    one.run([[small_campaign.rate(0.3)]], generations=1)
    small_campaign.queue(one.desk, [[], [small_campaign.rate(0.6)]])
    where = ["--autoresearch-root", str(one.made.root)]
    other = tmp_path / "other"
    small_experiment.git(tmp_path, "init", "-q", str(other))
    monkeypatch.chdir(other)
    agent = one.made.researcher(small_campaign.RESEARCHER)
    measured = ["--metric-name", "m", "--command", "true", "--no-branch", *where]
    assert main(["journal", "init", "--name", "x", *measured]) == 25
    assert "must have a commit HEAD" in capsys.readouterr().err
    words = ["campaign", "run", "--researcher", agent, "--generations", "1", *where]
    assert main(words, repository=other) == 0
    assert one.statuses() == ["keep", "keep"]
    session = small_journal.make(tmp_path / "journal")
    monkeypatch.chdir(session.repo)
    assert session.init() == 0
    monkeypatch.chdir(other)
    where = ["--autoresearch-root", str(session.root)]
    capsys.readouterr()
    assert main(["journal", "status", *where], repository=other) == 0
    assert "Commits:" in capsys.readouterr().out


def test_a_dry_run_says_which_rounds_are_left(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    words = ["supervise", "slope", "--researcher", one.researcher(TWO_GAINS)]
    words += ["--autoresearch-root", str(one.root)]
    assert main([*words, "--dry-run"], repository=script) == 0
    said = capsys.readouterr().out
    assert "would run up to 2 rounds" in said and "R1 S6: Termination — 1/2" in said
    assert main(words, repository=script) == 0
    capsys.readouterr()
    assert main([*words, "--extend", "3", "--dry-run"], repository=script) == 0
    said = capsys.readouterr().out
    assert "would run up to 3 rounds" in said and "R3 S6: Termination — 3/5" in said
    assert "current best: 0.2" in said


def test_whoever_writes_the_rounds_goes_on_after_the_end_with_more_of_them(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    root = ["--autoresearch-root", str(one.root)]
    words = ["supervise", "slope", "--researcher", one.researcher(TWO_GAINS), *root]
    assert main(words, repository=script) == 0
    start = ["attempt", "start", "slope", "--json", *root]
    assert main(start, repository=script) == 23
    assert main(["protocol", "set", "max_rounds", "3", *root], repository=script) == 0
    capsys.readouterr()
    assert main(start, repository=script) == 0
    work = Path(json.loads(capsys.readouterr().out)["details"]["work"])
    (work / "config.json").write_text('{"rate": 0.7}')
    assert main(["attempt", "submit", "--strategy", "more", *root], repository=script) == 0
    assert [found.round for found in goal_of(one).closed_rounds() if found.kept] == [1, 2, 3]
    assert goal_of(one).state == "completed"
    assert main(start, repository=script) == 23
    assert main(["verify", *root], repository=script) == 0


def test_what_was_kept_under_an_earlier_protocol_is_still_named(
    abroad: tuple[Experiment, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, script = abroad
    root = ["--autoresearch-root", str(one.root)]
    words = ["supervise", "slope", *root, "--researcher"]
    assert main([*words, one.researcher(TWO_GAINS)], repository=script) == 0
    kept = goal_of(one).accepted
    assert main(["protocol", "set", "time_limit", "7 s", *root], repository=script) == 0
    capsys.readouterr()
    assert main([*words, "true", "--extend", "1"], repository=script) == 0
    said = capsys.readouterr().out
    assert "(Round 0)" in said and f"to take it over: git merge {kept[:12]}" in said
