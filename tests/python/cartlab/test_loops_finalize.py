"""LD19-LD23: a session's keeps as branches for review: planned, all or none, verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_journal
from small_experiment import git
from small_journal import Session

from cartlab.cli import main
from cartlab.loops import manifest

PROGRAM = """\
set -euo pipefail
x=$(sed -n 's/^X = //p' bench.py); y=$(sed -n 's/^Y = //p' other.py)
echo "METRIC cost=$((x + y))"
"""


def refs(one: Session) -> list[str]:
    return git(
        one.repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/autoresearch/finalize"
    ).split()


def finalize(one: Session, *words: str) -> int:
    return one.cartlab("journal", "finalize", *words)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Four keeps (bench.py, other.py, bench.py again, a new file with both) and a discard between them."""
    made = small_journal.make(tmp_path)
    monkeypatch.chdir(made.repo)
    script = tmp_path / "script.sh"
    script.write_text(PROGRAM)
    assert made.init() == 0
    made.x("8")
    assert made.log("shallower") == 0
    made.x("9")
    assert made.log("deeper") == 10
    (made.worktree / "other.py").write_text("Y = 0\n")
    assert made.log("no Y") == 0
    made.x("6")
    assert made.log("shallower still") == 0
    return made


def test_ld19_only_keeps_are_planned_and_those_that_share_a_file_are_one_group(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert finalize(journal, "plan", "--json") == 0
    found = json.loads(capsys.readouterr().out)["details"]["plan"]["groups"]
    assert [(one["name"], one["runs"], one["files"]) for one in found] == [
        ("shallower", [2, 5], ["bench.py"]),
        ("no-y", [4], ["other.py"]),
    ]
    # What another group's keep gained in between is not this one's.
    assert [one["steps"] for one in found] == [[[11.0, 9.0], [8.0, 6.0]], [[9.0, 8.0]]]
    assert finalize(journal, "plan", "--single") == 0
    assert "Experiments: #2, #4, #5" in capsys.readouterr().out
    assert refs(journal) == []


def test_ld19_groups_of_one_s_own_may_not_overlap_unless_they_are_collapsed(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    path = journal.root / "groups.json"
    rows = [{"name": "a", "experiments": [2]}, {"name": "b", "experiments": [4]}]
    path.write_text(json.dumps([*rows, {"name": "c", "experiments": [5]}]))
    assert finalize(journal, "plan", "--groups", str(path)) == 25
    assert "bench.py is in two groups, a and c" in capsys.readouterr().err
    assert finalize(journal, "plan", "--groups", str(path), "--collapse-overlap") == 0
    assert "Experiments: #2, #5" in capsys.readouterr().out


def test_ld20_ld21_ld23_branches_from_the_merge_base_in_the_document_s_words_and_verified(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session_tip = git(journal.worktree, "rev-parse", "HEAD")
    # Trunk moved on meanwhile; the branches start where the session did.
    (journal.repo / "README").write_text("new\n")
    git(journal.repo, "add", "-A")
    git(journal.repo, "commit", "-q", "-m", "trunk moves on")
    base = git(journal.repo, "rev-parse", "HEAD~1")
    assert finalize(journal, "create") == 2
    assert "a person's word" in capsys.readouterr().err
    assert finalize(journal, "create", "--approve", "looks good") == 0
    assert refs(journal) == ["autoresearch/finalize/no-y", "autoresearch/finalize/shallower"]
    for name in refs(journal):
        assert git(journal.repo, "rev-parse", f"{name}~1") == base
    assert git(journal.repo, "log", "-1", "--format=%B", "autoresearch/finalize/shallower") == (
        "shallower; shallower still\n\nAutoresearch results:\n- Metric: cost improved from 11 to 9 (-18.2%), "
        "from 8 to 6 (-25.0%)\n"
        "- Confidence: 5x noise floor\n- Experiments: 5 total, 4 kept"
    )
    assert git(journal.repo, "show", "autoresearch/finalize/shallower:bench.py").startswith(
        "# the program\nX = 6"
    )
    assert git(journal.repo, "show", "autoresearch/finalize/shallower:other.py") == "Y = 1"
    approvals = [event["body"]["reason"] for event in journal.events if event["type"] == "approval"]
    assert approvals == ["agreed", "looks good"]
    capsys.readouterr()
    assert finalize(journal, "verify") == 0
    said = capsys.readouterr().out
    assert "2 branches from 5 experiments" in said and "cost: 11 -> 7" in said and "cost: 11 -> 10" in said
    assert said.count("ready for review") == 2
    assert git(journal.worktree, "rev-parse", "HEAD") == session_tip
    assert journal.cartlab("verify") == 0


def test_ld21_what_does_not_hold_of_a_branch_is_named(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finalize(journal, "create", "--approve", "yes") == 0
    name = "autoresearch/finalize/no-y"
    place = journal.root.parent / "review"
    git(journal.repo, "worktree", "add", "-q", str(place), name)
    (place / "other.py").write_text("Y = 7\n")
    (place / "autoresearch.jsonl").write_text("{}\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "meddled with")
    (journal.repo / "bench.py").write_text("X = 1\n")
    git(journal.repo, "commit", "-q", "-am", "trunk conflicts")
    assert finalize(journal, "verify") == 19
    said = capsys.readouterr().out
    assert "the branch was moved since it was made" in said
    assert "it holds the session's autoresearch.jsonl" in said
    assert "alone it measures 17, not better than the baseline's 11" in said
    assert "it does not merge with main: bench.py" in said
    assert "wrong: other.py differs between the session and the branches together" in said
    git(journal.repo, "worktree", "remove", "--force", str(place))
    git(journal.repo, "branch", "-q", "-D", name)
    assert finalize(journal, "verify") == 19
    assert "the branch is gone" in capsys.readouterr().out


GROUPS: dict[str, tuple[str | None, str]] = {
    "no groups file": (None, "expected groups at"),
    "bad JSON": ("{", "must be JSON"),
    "no list": ('{"groups": 3}', "a list of groups"),
    "an empty list": ("[]", "a list of groups"),
    "an empty group": ('[{"name": "a", "experiments": []}]', "names its experiments by number"),
    "no numbers": ('[{"name": "a"}]', "names its experiments by number"),
    "a discard": ('[{"name": "a", "experiments": [2, 3, 4, 5]}]', "#3 of the group 'a' was not kept"),
    "twice": (
        '[{"name": "a", "experiments": [2, 4, 5]}, {"name": "b", "experiments": [4]}]',
        "in two groups",
    ),
    "one forgotten": ('[{"name": "a", "experiments": [2, 5]}]', "#4 was kept and is in no group"),
}


def test_ld22_bad_groups_change_nothing(journal: Session, capsys: pytest.CaptureFixture[str]) -> None:
    path = journal.root / "groups.json"
    for name, (text, wrong) in GROUPS.items():
        if text is not None:
            path.write_text(text)
        assert finalize(journal, "create", "--approve", "yes", "--groups", str(path)) == 25, name
        assert wrong in capsys.readouterr().err and refs(journal) == [], name


def test_ld22_what_stands_in_the_way_is_named_and_nothing_is_made(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    create = ("create", "--approve", "yes")
    # No words, or one that is none.
    assert finalize(journal) == 2 and finalize(journal, "publish") == 2
    # No such trunk, or one that lacks what the session started from.
    assert finalize(journal, *create, "--trunk", "master") == 25
    git(journal.repo, "checkout", "-q", "--orphan", "other")
    git(journal.repo, "commit", "-q", "-m", "unrelated")
    git(journal.repo, "checkout", "-q", "main")
    assert finalize(journal, *create, "--trunk", "other") == 23
    # A branch of that name.
    git(journal.repo, "branch", "autoresearch/finalize/no-y")
    capsys.readouterr()
    assert finalize(journal, *create) == 23
    assert "autoresearch/finalize/no-y is there already" in capsys.readouterr().err
    assert refs(journal) == ["autoresearch/finalize/no-y"]
    git(journal.repo, "branch", "-q", "-D", "autoresearch/finalize/no-y")
    # One that git cannot make, because a branch has the folder's name: then the other one is not made either.
    git(journal.repo, "branch", "autoresearch/finalize/no-y/deeper")
    assert finalize(journal, *create) == 25
    assert refs(journal) == ["autoresearch/finalize/no-y/deeper"]
    git(journal.repo, "branch", "-q", "-D", "autoresearch/finalize/no-y/deeper")
    # A session's branch that somebody moved.
    branch = str(journal.goal.body["branch"])
    tip = git(journal.repo, "rev-parse", branch)
    git(journal.repo, "update-ref", f"refs/heads/{branch}", f"{tip}~1")
    assert finalize(journal, *create) == 23 and refs(journal) == []
    git(journal.repo, "update-ref", f"refs/heads/{branch}", tip)
    assert finalize(journal, "verify") == 23
    assert finalize(journal, *create) == 0 and len(refs(journal)) == 2
    assert journal.cartlab("verify") == 0


def test_ld22_a_missing_commit_is_named(journal: Session, capsys: pytest.CaptureFixture[str]) -> None:
    middle = str(journal.goal.tries[1].steps["accepted"]["commit"])
    loose = journal.repo / ".git" / "objects" / middle[:2] / middle[2:]
    loose.unlink()
    assert finalize(journal, "create", "--approve", "yes") != 0
    assert refs(journal) == []


def test_ld22_the_user_s_checkout_stays_as_it_is_wherever_it_stands(journal: Session) -> None:
    (journal.repo / "bench.py").write_text("stashed\n")
    git(journal.repo, "stash", "-q")
    for place in (["main"], ["--detach"], ["-b", "topic"]):
        git(journal.repo, "checkout", "-q", *place)
        (journal.repo / "bench.py").write_text("dirty\n")
        (journal.repo / "other.py").write_text("staged\n")
        git(journal.repo, "add", "other.py")
        (journal.repo / "untracked").write_text("x")
        before, index = manifest.scan(journal.repo), (journal.repo / ".git/index").read_bytes()
        head, stash = (journal.repo / ".git/HEAD").read_text(), git(journal.repo, "stash", "list")
        assert finalize(journal, "create", "--approve", "yes") == 0 and finalize(journal, "verify") == 0
        assert manifest.scan(journal.repo) == before, place
        assert (journal.repo / ".git/index").read_bytes() == index
        assert (journal.repo / ".git/HEAD").read_text() == head
        assert git(journal.repo, "stash", "list") == stash
        git(journal.repo, "branch", "-q", "-D", *refs(journal))


def test_ld23_branches_for_another_trunk_are_verified_against_that_one(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    git(journal.repo, "branch", "-m", "main", "trunk")
    assert finalize(journal, "plan") == 25
    assert "found no 'main'" in capsys.readouterr().err
    assert finalize(journal, "plan", "--trunk", "trunk") == 0
    assert "journal finalize create --trunk trunk --approve REASON" in capsys.readouterr().out
    assert finalize(journal, "create", "--trunk", "trunk", "--approve", "yes") == 0
    assert finalize(journal, "verify") == 0
    git(journal.repo, "branch", "-m", "trunk", "renamed")
    capsys.readouterr()
    assert finalize(journal, "verify") == 19
    assert "whether it merges with trunk was not found out" in capsys.readouterr().out


def test_after_a_session_s_end_its_branches_are_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_journal.make(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.init("--max-experiments", "2") == 0
    one.x("7")
    assert one.log("smaller") == 0
    for word, *more in (("plan",), ("create", "--approve", "yes"), ("verify",)):
        capsys.readouterr()
        assert one.cartlab("next") == 0
        said = capsys.readouterr().out
        assert "journal run" not in said and ("finalize plan" in said) == (word != "verify")
        assert finalize(one, word, *more) == 0
    assert one.cartlab("next") == 0
    assert "journal finalize verify" in capsys.readouterr().out


def test_ld22_no_session_file_gets_into_a_branch_also_from_a_folder_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_journal.make(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.init("--commit") == 0
    (one.worktree / "deep").mkdir()
    (one.worktree / "deep" / "autoresearch.jsonl").write_text("{}\n")
    (one.worktree / "deep" / "more.py").write_text("z = 1\n")
    one.x("7")
    assert one.log("smaller") == 0
    assert finalize(one, "create", "--approve", "yes") == 0
    held = git(one.repo, "ls-tree", "-r", "--name-only", refs(one)[0]).splitlines()
    assert held == ["bench.py", "deep/more.py", "other.py"]
    assert finalize(one, "verify") == 0


def test_ld19_a_keep_of_which_nothing_is_left_makes_no_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_journal.make(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.init() == 0
    assert finalize(one, "plan") == 23
    (one.worktree / "helper.py").write_text("a = 1\n")
    one.x("9")
    assert one.log("with a helper") == 0
    (one.worktree / "extra.py").write_text("b = 1\n")
    one.x("8")
    assert one.log("with another") == 0
    (one.worktree / "helper.py").unlink()
    (one.worktree / "extra.py").unlink()
    one.x("7")
    assert one.log("without them") == 0
    capsys.readouterr()
    assert finalize(one, "create", "--approve", "yes") == 0
    assert refs(one) == ["autoresearch/finalize/with-a-helper"]
    assert git(one.repo, "diff", "--name-only", "main", refs(one)[0]) == "bench.py"


# --- the document's helper ----------------------------------------------------------------------------


def helper(*words: str) -> int:
    from cartlab.cli.helper import main as run

    return run(list(words))


def test_ruling_24_the_document_s_helper_measures_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_journal.make(tmp_path)
    monkeypatch.chdir(one.repo)
    monkeypatch.setenv("AUTORESEARCH_ROOT_PATH", str(one.root))
    (one.repo / "autoresearch.sh").write_text(small_journal.SCRIPT)
    file = ("--jsonl", "autoresearch.jsonl")
    assert helper("evaluate", *file, "--metric", "3") == 1
    assert helper("log", *file, "--metric", "3", "--status", "keep", "--description", "x") == 25
    assert helper("init", *file, "--name", "cost", "--metric-name", "cost", "--direction", "lower") == 0
    asi = ("--asi", '{"hypothesis": "baseline measurement"}')
    words = ("log", *file, "--commit", "abc1234", "--metric", "10", "--status", "keep")
    assert helper(*words, "--description", "baseline", *asi) == 0
    one.x("7", one.repo)
    before = manifest.scan(one.repo)
    assert (
        helper(*words, "--description", "smaller", "--asi", '{"hypothesis": "less"}', "--metrics", "{") == 0
    )
    said = capsys.readouterr()
    assert "typed 10, measured 7: difference -3" in said.out and "--metrics is no JSON" in said.err
    # The checkout is only read; the one file that changes is the one that was named.
    after = manifest.scan(one.repo)
    assert [c.path for c in manifest.changes(before, after)] == ["autoresearch.jsonl"]
    # Handing in the same files again is answered; a typed keep raises nothing.
    assert helper(*words, "--description", "again", *asi) == 0
    one.x("12", one.repo)
    assert helper(*words, "--description", "worse", *asi) == 0
    crash = ("log", *file, "--commit", "0000000", "--metric", "0", "--status", "crash", "--description", "x")
    assert helper(*crash, *asi) == 2
    assert [result.status for result in one.results()] == ["keep", "keep", "discard"]
    lines = (one.repo / "autoresearch.jsonl").read_text()
    assert lines == (one.files / "autoresearch.jsonl").read_text()
    capsys.readouterr()
    assert helper("status", *file) == 0
    assert json.loads(capsys.readouterr().out)["bestKept"] == 7.0
    assert helper("evaluate", *file, "--metric", "6", "--direction", "lower") == 0
    assert capsys.readouterr().out.startswith("decision: keep\ndelta: -4 (-40.00%)\ndirection: lower\n")
    assert helper("evaluate", *file, "--metric", "8") == 0 and helper("summary", *file) == 0
    assert "3 experiments, 1 discarded" in capsys.readouterr().out
    assert main(["verify", "--autoresearch-root", str(one.root)], repository=one.repo) == 0


def test_a_journal_that_another_tool_began_is_gone_on_with_and_its_lines_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = (Path(__file__).parent / "fixtures" / "autoresearch.jsonl").read_text(encoding="utf-8")
    one = small_journal.make(tmp_path, autoresearch__sh=small_journal.SCRIPT)
    monkeypatch.chdir(one.repo)
    monkeypatch.setenv("AUTORESEARCH_ROOT_PATH", str(one.root))
    (one.repo / "autoresearch.jsonl").write_text(fixture)
    file = ("--jsonl", "autoresearch.jsonl")
    assert helper("init", *file, "--name", "cost", "--metric-name", "cost") == 0
    one.x("7", one.repo)
    words = ("--metric", "7", "--status", "keep", "--description", "smaller", "--asi", '{"hypothesis": "x"}')
    assert helper("log", *file, *words) == 0
    text = (one.repo / "autoresearch.jsonl").read_text()
    old = [json.loads(line) for line in fixture.splitlines() if line]
    assert [json.loads(line) for line in text.splitlines()][: len(old)] == old
    assert [(result.run, result.segment) for result in one.results()[-2:]] == [(6, 1), (7, 1)]
    assert one.cartlab("verify") == 0
