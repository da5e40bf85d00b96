"""LD: a journal session from the command line: init, log, run, its ends, its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import small_journal
from small_experiment import git
from small_journal import Session, lines

from cartlab.loops import dispatch, journal_file, manifest, stall
from cartlab.loops.journal import document, session


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    made = small_journal.make(tmp_path)
    monkeypatch.chdir(made.repo)
    return made


def test_ld4_ld8_init_makes_the_branch_in_a_worktree_of_ours_and_measures_the_baseline(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    before, head = manifest.scan(journal.repo), git(journal.repo, "rev-parse", "HEAD")
    assert journal.init(approve="") == 23
    assert "needs a person's word" in capsys.readouterr().err
    assert journal.init() == 0
    assert "uncommitted" not in capsys.readouterr().err
    goal = journal.goal
    branch = str(goal.body["branch"])
    assert (
        branch.startswith("autoresearch/cost-")
        and git(journal.worktree, "branch", "--show-current") == branch
    )
    assert [event["body"]["reason"] for event in journal.events if event["type"] == "approval"] == ["agreed"]
    (first,) = lines(journal)[1:]
    assert (first["run"], first["status"], first["metric"]) == (1, "keep", 10.0)
    assert first["asi"] == {"hypothesis": "baseline measurement"} and first["commit"] == head[:7]
    # The user's checkout is as it was.
    assert manifest.scan(journal.repo) == before and git(journal.repo, "branch", "--show-current") == "main"
    assert git(journal.repo, "status", "--porcelain") == ""
    assert journal.cartlab("verify") == 0


def test_ld4_a_branch_that_is_there_is_taken_up(journal: Session) -> None:
    from cartlab.ledger.store import utc_now

    branch = f"autoresearch/cost-{utc_now()[:10]}"
    git(journal.repo, "checkout", "-q", "-b", branch)
    journal.x("6", journal.repo)
    git(journal.repo, "commit", "-q", "-am", "earlier work")
    git(journal.repo, "checkout", "-q", "main")
    assert journal.init(approve="") == 0
    assert journal.results()[0].metric == 6.0 and journal.goal.body["branch"] == branch


def test_ld9_ld14_a_better_value_is_a_commit_and_an_equal_or_worse_one_is_taken_back(
    journal: Session,
) -> None:
    assert journal.init() == 0
    journal.x("7")
    assert journal.log("smaller X") == 0
    tip = git(journal.worktree, "rev-parse", "HEAD")
    assert git(journal.worktree, "log", "-1", "--format=%B") == (
        'smaller X\n\nResult: {"status": "keep", "cost": 7.0}'
    )
    # The entry names its own commit, not the one before it.
    assert journal.results()[-1].commit == tip[:7]
    assert git(journal.worktree, "status", "--porcelain") == ""
    for value in ("7.0", "9"):
        journal.x(value)
        assert journal.log(f"X is {value}") == 10
        assert "X = 7\n" in (journal.worktree / "bench.py").read_text()
    assert [one.status for one in journal.results()] == ["keep", "keep", "discard", "discard"]
    assert git(journal.worktree, "rev-parse", "HEAD") == tip and journal.cartlab("verify") == 0


def test_ld2_ld13_an_entry_needs_a_hypothesis_and_a_typed_discard_its_reason(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    journal.x("7")
    assert journal.cartlab("journal", "log", "--description", "smaller") == 2
    assert "asi.hypothesis" in capsys.readouterr().err
    assert journal.log("smaller", "--status", "discard") == 2
    assert "asi.rollback_reason" in capsys.readouterr().err
    assert journal.log("smaller", "--asi", "{") == 2
    assert journal.decisions() == ["baseline"]
    assert journal.log("smaller", "--status", "discard", "--rollback-reason", "too ugly") == 10
    entry = lines(journal)[-1]
    assert set(entry) == set(journal_file._RESULT)
    assert entry["asi"] == {"hypothesis": "smaller helps", "rollback_reason": "too ugly"}
    assert entry["commit"] == "0000000" and entry["metric"] == 7.0
    # A verdict may be lowered, with a reason; `verify` knows the rule.
    assert journal.goal.tries[-1].decision["inputs"]["lowered"] == "too ugly"  # type: ignore[index]
    assert "next_action_hint is missing" in capsys.readouterr().out and journal.cartlab("verify") == 0


def test_ld15_a_discard_is_on_disk_before_anything_is_taken_back_and_no_session_file_is_lost(
    journal: Session,
) -> None:
    """The document's own recipe loses the log, the entry and the user's new files to `git clean`."""
    assert journal.init("--commit") == 0
    place = journal.worktree
    (place / "autoresearch.ideas.md").write_text("# Ideas\n\n- one of mine\n")
    about = place / "autoresearch.md"
    about.write_text(about.read_text().replace("## Contraintes\naucun", "## Contraintes\nno new packages"))
    (place / "made.py").write_text("z = 1\n")
    (place / "folder").mkdir()
    (place / "folder" / "deep.txt").write_text("x")
    (place / "other.py").unlink()
    journal.x("12")
    assert journal.log("worse") == 10
    assert not (place / "made.py").exists() and not (place / "folder").exists()
    assert (place / "other.py").read_text() == "Y = 1\n" and "X = 10\n" in (place / "bench.py").read_text()
    assert [one.description for one in journal.results()] == ["baseline", "worse"]
    assert "- one of mine" in (place / "autoresearch.ideas.md").read_text()
    text = about.read_text()
    assert "no new packages" in text and "worse: 12 (discard" in text
    names = [event["type"] + "/" + str(event["body"].get("state")) for event in journal.events[-3:]]
    assert names[:2] == ["decision/None", "proposal/rolled_back"]


def test_ld6_a_script_that_fails_or_does_not_end_is_a_crash(journal: Session) -> None:
    script = journal.repo.parent / "script.sh"
    script.write_text(small_journal.SCRIPT + "grep -q slow bench.py && sleep 60 || true\n")
    assert journal.init("--limit", "2", "--checks-limit", "2") == 0
    journal.x("7  # slow")
    assert journal.log("slow") == 15
    (journal.worktree / "bench.py").write_text("nothing\n")
    assert journal.log("broken") == 15
    assert [one.status for one in journal.results()] == ["keep", "crash", "crash"]
    assert journal.decisions() == ["baseline", "timeout", "crashed"]
    assert lines(journal)[-1]["metric"] == 0 and "no X" in lines(journal)[-1]["asi"]["rollback_reason"]
    assert journal.cartlab("verify") == 0


def test_ld6_checks_run_after_a_passing_benchmark_and_fail_a_better_value(journal: Session) -> None:
    checks = journal.repo.parent / "checks.sh"
    checks.write_text(
        "grep -q helper bench.py && ! grep -q hang bench.py || { test -f go || sleep 60; exit 1; }\n"
    )
    (journal.repo / "go").write_text("")
    git(journal.repo, "add", "-A")
    git(journal.repo, "commit", "-q", "-m", "go")
    assert journal.init("--checks-script", str(checks), "--checks-limit", "2") == 0
    (journal.worktree / "bench.py").write_text("X = 5\n")
    assert journal.log("without helper") == 17
    journal.x("4  # hang")
    (journal.worktree / "go").unlink()
    assert journal.log("hangs") == 17
    assert [one.status for one in journal.results()] == ["keep", "checks_failed", "checks_failed"]
    assert [one.metric for one in journal.results()] == [10.0, 5.0, 4.0]
    # No check ran for what did not even give a number.
    (journal.worktree / "bench.py").write_text("nothing\n")
    assert journal.log("broken") == 15
    assert "checks" not in [body["role"] for _, body in journal.goal.tries[-1].measurements]
    # LA1: the same tree is answered from the ledger, and `verify` follows.
    assert journal.cartlab("verify") == 0


def test_ld7_a_script_without_the_primary_metric_is_no_result(journal: Session) -> None:
    assert journal.init() == 0
    (journal.worktree / "extra.txt").write_text("METRIC cost=1\n")
    journal.x("7")
    assert journal.log("prints it twice", "--force") == 19
    assert journal.decisions()[-1] == "metric_error" and journal.results()[-1].status == "crash"


def test_ld17_a_session_ends_by_count_target_wall_time_or_when_it_is_stopped(journal: Session) -> None:
    assert journal.init("--max-experiments", "2") == 0
    journal.x("8")
    assert journal.log() == 0
    assert (journal.goal.state, journal.goal.reason) == ("completed", "count: 2 of 2 experiments")
    journal.x("7")
    assert journal.log() == 23 and "X = 7\n" in (journal.worktree / "bench.py").read_text()
    assert journal.init("--target", "7") == 0
    assert journal.log() == 0
    assert (journal.goal.state, journal.goal.segment) == ("target_reached", 1)
    assert journal.init("--max-seconds", "0.001") == 0
    assert journal.goal.state == "budget_exhausted" and journal.goal.reason.startswith("wall time: ")
    assert journal.init() == 0
    assert journal.goal.state == "running" and journal.cartlab("stop", "--reason", "lunch") == 0
    journal.x("5")
    assert journal.log() == 0
    assert (journal.goal.state, journal.goal.reason) == ("stopped_by_user", "lunch")
    journal.x("4")
    assert journal.log() == 0 and journal.goal.state == "running"


def test_ld1_a_second_init_is_a_new_segment_with_its_own_baseline(journal: Session) -> None:
    assert journal.init("--no-baseline") == 0
    assert journal.init("--no-baseline") == 0
    assert [line["type"] for line in lines(journal)] == ["config", "config"] and journal.goal.segment == 0
    journal.x("8")
    assert journal.log() == 0
    assert journal.init("--direction", "higher", "--metric-unit", "s") == 0
    journal.x("7")
    assert journal.log() == 10
    journal.x("9")
    assert journal.log() == 0
    read = journal_file.parse((journal.files / "autoresearch.jsonl").read_text())
    assert [one.segment for one in read.results] == [0, 0, 1, 1, 1] and read.segment == 1
    assert [one.run for one in read.results] == [1, 2, 3, 4, 5]
    assert read.config == journal_file.Config("cost", "cost", "s", "higher")
    assert [one.status for one in read.current()] == ["keep", "discard", "keep"]
    assert journal_file.parse(journal_file.render(read)) == read and journal.cartlab("verify") == 0


def test_ld5_the_document_has_its_eight_headings_in_both_languages(journal: Session) -> None:
    assert (
        journal.init("--scope", "bench.py", "--max-experiments", "9", "--constraint", "no new packages") == 0
    )
    french = (journal.files / "autoresearch.md").read_text()
    assert journal.init("--locale", "en", "--scope", "bench.py", name="another") == 0
    english = (journal.files / "autoresearch.md").read_text()
    assert "## Essais précédents" in french and "## What's Been Tried" in english
    for text in (french, english):
        assert set(document.sections(text)) == set(document.HEADINGS["en"])
        assert document.sections(text)["scope"] == "- bench.py"
    assert document.sections(french)["termination"] == "9 expériences"
    assert document.sections(french)["constraints"] == "- no new packages"
    # What is out of scope may not change.
    (journal.worktree / "other.py").write_text("Y = 2\n")
    assert journal.log("elsewhere") == 18


def test_status_says_in_its_own_language_how_a_session_ends(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init("--no-baseline") == 0
    about = journal.files / "autoresearch.md"
    assert "jusqu'à interruption" in about.read_text()
    capsys.readouterr()
    assert journal.cartlab("journal", "status") == 0
    assert "ends: until interrupted" in capsys.readouterr().out
    about.write_text(about.read_text().replace("jusqu'à interruption", "quand il fait nuit"))
    assert journal.cartlab("journal", "status") == 0
    assert "ends: quand il fait nuit" in capsys.readouterr().out
    assert journal.init("--no-baseline", "--max-experiments", "1", name="once") == 0
    about = journal.files / "autoresearch.md"
    assert document.sections(about.read_text())["termination"] == "1 expérience"
    capsys.readouterr()
    assert journal.cartlab("journal", "status") == 0
    assert "ends: 1 experiment\n" in capsys.readouterr().out


def test_ld26_the_block_of_the_document_is_written_again_and_the_rest_is_left(journal: Session) -> None:
    assert journal.init() == 0
    about = journal.files / "autoresearch.md"
    mine = about.read_text().replace("## Essais précédents\n", "## Essais précédents\nMy own words.\n\n")
    about.write_text(mine + "\n## Notes\nMore of mine.\n")
    for value in ("12", "13"):
        journal.x(value)
        assert journal.log("Bigger X", "--next-hint", "smaller") == 10
    journal.x("7")
    assert journal.log("smaller X") == 0
    text = about.read_text()
    head, _, rest = text.partition(document.BEGIN)
    block, _, tail = rest.partition(document.END)
    assert head == mine.partition(document.BEGIN)[0] and tail == "\n\n## Notes\nMore of mine.\n"
    assert "Best: cost = 7, experiment #4." in block and "Next: smaller" in block
    assert "- bigger x (2 times)" in block
    # Where somebody removed the marks, the block finds its section again.
    about.write_text(head + tail)
    journal.x("6")
    assert journal.log("smaller still") == 0
    again = about.read_text()
    assert again.index("My own words.") < again.index("experiment #5") < again.index("## Notes")


def test_ld26_ideas_are_added_once_listed_and_pruned(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    path = journal.files / "autoresearch.ideas.md"
    for text in ("cache the rows", "tree shaking", "Cache the rows"):
        assert journal.cartlab("journal", "idea", "add", text) == 0
    path.write_text(path.read_text() + "\nSome words of mine.\n")
    capsys.readouterr()
    assert journal.cartlab("journal", "idea", "list") == 0
    assert capsys.readouterr().out.startswith("1. cache the rows\n2. tree shaking\nphase")
    assert journal.cartlab("journal", "idea", "prune", "3") == 25
    assert journal.cartlab("journal", "idea", "prune", "shaking") == 0
    assert path.read_text() == "# Ideas\n\n- cache the rows\n\nSome words of mine.\n"
    assert journal.cartlab("journal", "idea", "add") == 2


def test_ld27_the_skeletons_check_the_syntax_first_and_repeat_what_is_quick(journal: Session) -> None:
    (journal.repo / "run.sh").write_text("echo METRIC rss=3\nsed -n 's/^X = /cost: /p' bench.py\n")
    git(journal.repo, "add", "-A")
    git(journal.repo, "commit", "-q", "-m", "a command")
    words = ["journal", "init", "--name", "real", "--metric-name", "cost", "--approve", "agreed"]
    words += [
        "--command",
        "sh run.sh",
        "--scope",
        "bench.py",
        "--scope",
        "run.sh",
        "--checks-command",
        "! grep -q broken bench.py",
    ]
    assert journal.cartlab(*words) == 0
    script = (journal.files / "autoresearch.sh").read_text()
    assert script.startswith("#!/bin/bash\nset -euo pipefail\n") and "ast.parse" in script
    assert "bash -n run.sh" in script
    base = journal.goal.tries[0].decision
    assert base is not None and (base["value"], base["metrics"]) == (10.0, {"rss": 3.0})
    (journal.worktree / "bench.py").write_text("def (\n")
    assert journal.log("does not parse") == 15
    assert "SYNTAX ERROR" in str(journal.results()[-1].asi["rollback_reason"])
    journal.x("7  # broken")
    assert journal.log("fails its checks") == 17


def test_ld28_the_files_are_in_the_root_unless_they_are_asked_into_the_branch(journal: Session) -> None:
    assert journal.init() == 0
    assert not list(journal.worktree.glob("autoresearch*")) and (journal.files / "autoresearch.sh").exists()
    assert journal.init("--commit", name="committed") == 0
    log = git(journal.worktree, "log", "-1", "--format=%s")
    assert log == "autoresearch: initialize experiment session"
    journal.x("7")
    assert journal.log("smaller") == 0
    held = git(journal.worktree, "show", "HEAD:autoresearch.jsonl").splitlines()
    assert json.loads(held[-1])["description"] == "smaller"
    # The entry in the commit names the attempt's commit: its own id it cannot hold.
    assert git(journal.repo, "rev-parse", json.loads(held[-1])["commit"] + "^{tree}")
    assert journal.cartlab("verify") == 0


def test_ld24_everything_but_people_s_text_comes_back_from_the_ledger(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    journal.x("7")
    assert journal.log("smaller X") == 0
    jsonl = (journal.files / "autoresearch.jsonl").read_text()
    capsys.readouterr()
    assert journal.cartlab("journal", "status", "--json") == 0
    before = json.loads(capsys.readouterr().out)["details"]
    shutil.rmtree(journal.root / "journal")
    shutil.rmtree(journal.root / "tmp")
    (journal.root / "current.json").unlink(missing_ok=True)
    shutil.rmtree(journal.worktree)
    assert journal.cartlab("journal", "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["details"] == before
    assert before["bestKept"] == 7.0 and before["session"]["commits"][0].endswith("smaller X")
    # The next record makes worktree and files again.
    assert journal.log("nothing") == 19
    assert (journal.files / "autoresearch.jsonl").read_text().startswith(jsonl)


def test_ld25_after_fifteen_experiments_an_agent_is_told_to_hand_over(
    journal: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HAND_OVER", 3)
    assert journal.init() == 0
    for number in range(1, 7):
        journal.x(str(20 + number))
        assert journal.log("worse", "--agent", "a" if number < 4 else "b") == 10
        assert ("hand over" in capsys.readouterr().out) == (number in (3, 6)), number
    assert journal.goal.state == "running"


def test_journal_run_makes_experiments_with_a_researcher_until_the_session_ends(journal: Session) -> None:
    assert journal.init("--max-experiments", "5", "--off-limits", "other.py") == 0
    body = """
if number == 2: x(7); say(description="smaller", hypothesis="less")
elif number == 3: (work / "other.py").write_text("Y = 9"); say(description="cheat", hypothesis="more")
elif number == 4: sys.exit(5)
else: x(6.5); say(description="smaller still", hypothesis="less", next_action_hint="stop")
"""
    assert journal.cartlab("journal", "run", "--researcher", journal.researcher(body)) == 0
    assert journal.decisions() == ["baseline", "keep", "compliance_failed", "crashed", "keep"]
    assert journal.goal.state == "completed" and "X = 6.5\n" in (journal.worktree / "bench.py").read_text()
    assert [one.description for one in journal.results()][1:3] == ["smaller", "cheat"]
    assert journal.cartlab("verify") == 0
    assert journal.cartlab("journal", "run", "--researcher", "rm -rf x") == 23


def test_journal_run_stops_where_its_researcher_never_starts(
    journal: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dispatch, "START_S", 3600.0)
    assert journal.init("--max-experiments", "8") == 0
    line = ["journal", "run", "--experiments", "4", "--researcher"]
    # One that changes something and then fails alike did start.
    assert journal.cartlab(*line[:3], "3", line[4], journal.researcher("x(7); sys.exit(2)")) == 0
    assert journal.decisions() == ["baseline", *["crashed"] * 3]
    capsys.readouterr()
    assert journal.cartlab(*line, "sh missing.sh; exit 2") == 23
    assert "3 attempts in a row ended alike" in " ".join(capsys.readouterr().err.split())
    assert journal.decisions() == ["baseline", *["crashed"] * 6] and journal.goal.state == "running"
    assert journal.cartlab("verify") == 0


def test_status_show_note_doctor_and_audit_know_a_journal(
    journal: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    journal.x("7")
    assert journal.log("smaller") == 0
    capsys.readouterr()
    assert journal.cartlab("status") == 0
    assert "best 7" in capsys.readouterr().out
    assert journal.cartlab("show") == 0
    assert "#2 keep 7: smaller" in capsys.readouterr().out
    name = journal.goal.tries[-1].id
    assert journal.cartlab("show", name) == 0
    assert "+X = 7" in capsys.readouterr().out
    assert journal.cartlab("audit", name, "--runs", "2") == 0
    assert "reproduced" in capsys.readouterr().out
    assert journal.cartlab("note", "mind the tail") == 0 and journal.cartlab("doctor") == 0
    assert f"{journal.goal.id} is running" in capsys.readouterr().out
    monkeypatch.setattr(stall, "HEARTBEAT_S", 0.0)
    assert journal.cartlab("doctor") == 0
    said = capsys.readouterr().out
    assert f"stalled: nobody works on {journal.goal.id}" in said and "go on with `journal log`" in said
    assert journal.cartlab("verify") == 0


def test_ld17_an_interruption_is_the_reason_and_the_next_run_goes_on(
    journal: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cartlab.loops import dispatch

    assert journal.init("--max-experiments", "2") == 0
    line = journal.researcher("x(7); say(description='smaller', hypothesis='less')")
    with monkeypatch.context() as patched:

        def pressed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(dispatch, "research", pressed)
        assert journal.cartlab("journal", "run", "--researcher", line) == 130
    assert (journal.goal.state, journal.goal.reason) == ("stopped_by_user", "interrupted")
    assert journal.cartlab("journal", "run", "--researcher", line) == 0
    assert journal.decisions() == ["baseline", "interrupted", "keep"] and journal.cartlab("verify") == 0


def test_ld24_the_document_and_the_ideas_of_an_earlier_session_are_gone_on_with(journal: Session) -> None:
    about = "# Autoresearch: cost\n\n## Objective\nA number of mine.\n\n## What's Been Tried\nTwo things.\n"
    (journal.repo / "autoresearch.md").write_text(about)
    (journal.repo / "autoresearch.ideas.md").write_text("- wait for it\n")
    git(journal.repo, "add", "-A")
    git(journal.repo, "commit", "-q", "-m", "an earlier session's files")
    assert journal.init() == 0
    text = (journal.files / "autoresearch.md").read_text()
    assert text.startswith(about) and "Best: cost = 10" in text
    assert (journal.files / "autoresearch.ideas.md").read_text() == "- wait for it\n"


def test_ld27_a_command_s_wall_time_can_be_the_metric(journal: Session) -> None:
    words = ("journal", "init", "--name", "time", "--metric-name", "seconds", "--measure", "time")
    more = ("--command", "grep -c X bench.py; echo METRIC lines=2", "--no-branch")
    assert journal.cartlab(*words, *more, "--dry-run") == 0 and not (journal.root / "events.jsonl").exists()
    assert journal.cartlab(*words, *more) == 0
    base = journal.goal.tries[0].decision
    assert base is not None and base["value"] >= 0 and base["metrics"] == {"lines": 2.0}
    assert git(journal.worktree, "branch", "--show-current") == ""
    (journal.worktree / "bench.py").write_text("nothing\n")
    assert journal.log("the command fails") == 15


@pytest.mark.parametrize("measure", ["output", "time"])
def test_la5_a_journal_s_nonce_admits_the_measuring_script_s_own_lines_alone(
    journal: Session, measure: str
) -> None:
    """The program forges lines with no mark, with a wrong one, and says whether it was told the right one."""
    forge = "echo METRIC cost=1; echo 'METRIC[00] cost=2'; echo METRIC fake=9\n"
    honest = {
        "output": "mark=$AR_NONCE; unset AR_NONCE; sh forge.sh; x=$(sed -n 's/^X = //p' bench.py)\n"
        'echo "METRIC[$mark] cost=$x"; echo "METRIC[$mark] rss=3"; sh forge.sh\n',
        "time": 'test -z "${AR_NONCE:-}"; sh forge.sh\n',
    }
    (journal.repo / "forge.sh").write_text(forge)
    (journal.repo / "run.sh").write_text(honest[measure])
    git(journal.repo, "add", "-A")
    git(journal.repo, "commit", "-q", "-m", "a command")
    words = ("journal", "init", "--name", "marked", "--metric-name", "cost", "--no-branch", "--nonce")
    assert journal.cartlab(*words, "--measure", measure, "--command", "sh run.sh") == 0
    base = journal.goal.tries[0].decision
    assert base is not None and base["metrics"] == ({"rss": 3.0} if measure == "output" else {})
    assert (base["value"] == 10.0) == (measure == "output")
    if measure == "output":
        journal.x("7")
        assert journal.log("smaller") == 0 and journal.results()[-1].metric == 7.0
    # A script of the user's own that does not write the mark gives no number.
    assert journal.init("--nonce", "--no-baseline", name="bare") == 0
    assert journal.log("no mark") != 0
    assert journal.cartlab("verify") == 0


def test_ld4_what_is_not_committed_is_left_alone_and_said(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.x("1", journal.repo)
    before = manifest.scan(journal.repo)
    assert journal.init("--no-branch", approve="") == 0
    assert "uncommitted changes (bench.py first) are left alone" in capsys.readouterr().err
    assert journal.results()[0].metric == 10.0 and manifest.scan(journal.repo) == before
