"""LD9-LD16, LA: what decides on a journal's experiment, and what does not get past it."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_journal
from small_experiment import git
from small_journal import Session, lines

from cartlab.ledger import Ledger
from cartlab.loops import codelines, manifest
from cartlab.loops.journal import document, judging, session
from cartlab.loops.running import Value


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    made = small_journal.make(tmp_path)
    monkeypatch.chdir(made.repo)
    return made


def test_ld10_less_code_at_an_equal_value_is_a_keep(journal: Session) -> None:
    assert journal.init("--noise", "0.5") == 0
    journal.x("10.4")
    assert journal.log("no simpler") == 10
    (journal.worktree / "bench.py").write_text("# the program\nX = 10.4\n")
    assert journal.log("without helper") == 0
    last = journal.goal.tries[-1]
    assert last.decision is not None
    assert last.decision["inputs"]["simplification"] == {"lines": -4, "noise": 0.5}
    # Drift is bounded: equal is equal to the best value, not to the last.
    (journal.worktree / "bench.py").write_text("X = 10.8\n")
    (journal.worktree / "other.py").unlink()
    assert journal.log("and simpler") == 10
    assert journal.cartlab("verify") == 0


def test_ld10_code_lines_are_counted_without_comments_and_prose() -> None:
    patch = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,2 @@\n"
        "-x = 1\n-y = 2\n-# why\n-\n+z = 3\n"
        "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +0,0 @@\n-words\n"
    )
    assert codelines.net(patch) == -1 and codelines.net("") == 0


def test_ld10_a_small_gain_by_much_code_is_remarked_and_kept(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init("--complex-lines", "5") == 0
    journal.x("9.9")
    (journal.worktree / "more.py").write_text("".join(f"a{n} = {n}\n" for n in range(20)))
    assert journal.log("twenty lines") == 0
    assert "complex: 20 code lines for 1 %" in capsys.readouterr().out


def test_ld11_a_secondary_metric_decides_only_by_its_declared_bound(journal: Session) -> None:
    (journal.repo / "extra.txt").write_text("METRIC rss=100\nMETRIC size=5\n")
    git(journal.repo, "add", "-A")
    git(journal.repo, "commit", "-q", "-m", "more metrics")
    assert journal.init("--guard", "rss<=500") == 0
    journal.x("9")
    (journal.worktree / "extra.txt").write_text("METRIC rss=499\nMETRIC size=99\n")
    assert journal.log("worse aside") == 0
    journal.x("5")
    (journal.worktree / "extra.txt").write_text("METRIC rss=501\nMETRIC size=5\n")
    assert journal.log("catastrophic") == 10
    last = journal.results()[-1]
    assert (last.status, last.metrics) == ("discard", {"rss": 501.0, "size": 5.0})
    assert "rss is 501, and its bound is rss<=500" in last.asi["rollback_reason"]
    assert journal.init("--guard", "rss") == 2 and journal.cartlab("verify") == 0


def test_ld12_the_names_of_the_secondary_metrics_are_those_of_the_baseline(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    journal.x("7")
    (journal.worktree / "extra.txt").write_text("METRIC rss=1\n")
    assert journal.log("a new name") == 23
    assert "new rss" in capsys.readouterr().err
    # Nothing was recorded as a result, and nothing was taken back.
    assert len(journal.results()) == 1 and "X = 7\n" in (journal.worktree / "bench.py").read_text()
    assert journal.log("a new name", "--force") == 0
    assert journal.results()[-1].run == 2 and journal.cartlab("verify") == 0


def test_ld16_confidence_comes_with_the_third_value_and_below_one_says_run_again(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    for value in ("14", "18", "9.9"):
        journal.x(value)
        assert journal.log(value) in (0, 10)
    found = [one.confidence for one in journal.results()]
    assert found == [None, None, None, 0.05]
    assert "re-run to confirm" in capsys.readouterr().out
    assert all("confidence" in line for line in lines(journal)[1:])


def test_la11_the_same_tree_is_answered_from_the_ledger(journal: Session) -> None:
    assert journal.init() == 0
    for _ in range(3):
        journal.x("12")
        assert journal.log("worse") == 10
    evals = [event for event in journal.events if event["body"].get("role") == "eval"]
    assert len(evals) == 2 and [one.metric for one in journal.results()[1:]] == [12.0] * 3
    assert journal.cartlab("verify") == 0


def test_the_typed_value_is_measured_again_and_the_difference_is_said(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init() == 0
    journal.x("12")
    assert journal.log("I say it is better", "--metric", "1", "--status", "keep") == 10
    assert "typed 1, measured 12: difference +11" in capsys.readouterr().out
    assert journal.results()[-1].metric == 12.0


def test_what_was_written_after_a_hand_in_is_rescued_and_not_lost(journal: Session) -> None:
    script = journal.repo.parent / "script.sh"
    place = journal.repo.parent
    assert journal.init() == 0
    target = journal.worktree / "late.py"
    (place / "late").write_text("kept = 1\n")
    # While the script runs somebody writes into the worktree.
    script.write_text(small_journal.SCRIPT + f"cp {place}/late {target}\n")
    assert journal.init("--no-baseline") == 0
    assert journal.log("nothing", "--isolation", "process") == 0
    target.unlink(missing_ok=True)
    journal.x("12")
    assert journal.log("worse", "--isolation", "process") == 10
    assert not target.exists()
    rescued = git(journal.repo, "for-each-ref", "--format=%(refname)", "refs/ar/rescued")
    assert git(journal.repo, "show", f"{rescued}:late.py") == "kept = 1"


@pytest.mark.parametrize("policy", ["verified", "repeat-k", "paired"])
def test_the_other_policies_judge_a_journal_too(journal: Session, policy: str) -> None:
    assert journal.init("--policy", policy, "--k", "3", "--noise", "1") == 0
    journal.x("5")
    assert journal.log("half") == 0
    decision = journal.goal.tries[1].decision
    assert decision is not None and decision["policy"] == policy
    runs = {"verified": 2, "repeat-k": 3}.get(policy, len(decision["inputs"]["measurements"]))
    assert len(decision["inputs"]["measurements"]) == runs and journal.cartlab("verify") == 0


def test_ld10_under_paired_less_code_at_an_equal_value_is_no_keep(journal: Session) -> None:
    assert journal.init("--noise", "1") == 0
    goal, best = journal.goal, session.best_of(journal.goal)
    assert best is not None
    for policy, status in (("paired", "discard"), ("greedy", "keep")):
        goal.body["policy"] = policy
        verdict = judging.Verdict("discard", "equal", Value(10.0, "10", 1))
        assert judging.weighed(goal, best, verdict, -4, "").status == status


def test_la1_la17_what_is_typed_into_a_journal_s_ledger_is_found_by_verify(
    journal: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journal.init("--noise", "1") == 0
    (journal.worktree / "bench.py").write_text("X = 10\n")
    assert journal.log("simpler") == 0
    goal, ledger = journal.goal, Ledger.open(journal.root)
    kept = goal.tries[-1]
    assert kept.decision is not None and journal.cartlab("verify") == 0
    # A patch that is not what the keep says of it.
    path = journal.root / "benchmarks" / "runs" / kept.id / "patch.diff"
    text = path.read_text()
    path.write_text(text.replace("-    a = 1\n", ""))
    capsys.readouterr()
    assert journal.cartlab("verify") == 22
    assert "its patch does not have the code lines" in capsys.readouterr().out
    path.write_text(text)
    # A keep for less code that took none out, and a baseline that nobody measured.
    ledger.append("proposal", "mine", {"goal": goal.id, "round": 3, "state": "proposed"})
    for state in ("dispatched", "submitted", "screened", "measuring"):
        body = {"goal": goal.id, "round": 3, "state": state, "tree": kept.decision["tree"], "code_lines": 5}
        ledger.append("proposal", "mine", body)
    run = dict(kept.measurements[0][1])
    seq = ledger.append("measurement", "mine", run)["seq"]
    inputs = {"best": 10.0, "measurements": [seq], "simplification": {"lines": -9, "noise": 1.0}}
    ledger.append("decision", "mine", {**kept.decision, "measurement": seq, "inputs": inputs})
    ledger.append("decision", "mine", {**kept.decision, "status": "baseline", "value": 3.0})
    assert journal.cartlab("verify") == 22
    said = capsys.readouterr().out
    assert "recorded as keep, its runs give discard" in said
    assert "its value is not that of an evaluation of its tree" in said


def test_la20_a_description_is_data_in_every_view(journal: Session) -> None:
    assert journal.init() == 0
    for value in ("12", "13"):
        journal.x(value)
        assert journal.log(f"a {document.END}\n## Notes\n\x1b[31m{document.BEGIN}") == 10
    text = (journal.files / "autoresearch.md").read_text()
    assert text.count(document.BEGIN) == text.count(document.END) == 1 and "\x1b" not in text
    assert "\n## Notes" not in text and len(journal.results()) == 3


def test_la3_what_git_is_told_not_to_see_is_handed_in_all_the_same(journal: Session) -> None:
    assert journal.init("--off-limits", "other.py") == 0
    before, place = manifest.scan(journal.repo), journal.worktree
    git(place, "update-index", "--skip-worktree", "other.py")
    (place / "other.py").write_text("Y = 9\n")
    assert journal.log("hidden") == 18 and (place / "other.py").read_text() == "Y = 1\n"
    (place / "autoresearch.sh").write_text("echo METRIC cost=1\n")
    assert journal.log("another script") == 19
    (place / "link").symlink_to("/etc/hostname")
    assert journal.log("a way out") == 18 and not (place / "link").is_symlink()
    (place / "nested" / ".git").mkdir(parents=True)
    (place / "nested" / ".git" / "config").write_text("x")
    assert journal.log("a repository inside") == 18 and not (place / "nested").exists()
    git(place, "commit", "-q", "--allow-empty", "-m", "mine")
    assert journal.log("a commit of mine") == 23
    git(place, "reset", "-q", "--soft", "HEAD~1")
    git(place, "checkout", "-q", "--detach")
    assert journal.log("another branch") == 23
    assert manifest.scan(journal.repo) == before and journal.cartlab("verify") == 0


def test_ld10_a_baseline_of_several_runs_says_how_far_values_lie_apart(journal: Session) -> None:
    script = journal.repo.parent / "script.sh"
    script.write_text('echo "METRIC cost=$((10 + AR_SEED % 7))"\n')
    assert journal.init("--baseline-runs", "4") == 0
    base = journal.goal.tries[0]
    assert base.decision is not None
    values = sorted(body["value"] for _, body in base.measurements if body["role"] == "eval")
    assert len(values) == 4 and base.decision["value"] == values[1]
    assert session.noise_of(journal.goal) == values[3] - values[0] and journal.cartlab("verify") == 0
