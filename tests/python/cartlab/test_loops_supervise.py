"""LS: the supervisor's rounds, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import small_experiment
from small_experiment import Experiment, git

from cartlab.ledger import Ledger
from cartlab.loops import dispatch, goals, isolation, manifest, tasks

CHEAT = """
if round == 1: config(rate=0.1); say("ten times the rate")
elif round == 2: (work / "eval.py").write_text("print('error: 0.0')"); say("better evaluation")
elif round == 3: say("nothing")
elif round == 4: config(rate=0.05); say("half of it")
elif round == 5: (work / "train.py").write_text("raise RuntimeError('wrong shapes')"); say("a new layer")
elif round == 6: time.sleep(3600)
elif round == 7: (work / "sitecustomize.py").write_text("print('hello')"); say("a helper")
elif round == 8: config(rate=0.1); say("ten times, again")
elif round == 9: config(rate=0.2); say("twenty times"); print("Code ready"); sys.exit(3)
else: config(rate=0.3); (work / "helper.py").write_text("def score(x): return x"); say("thirty times")
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    made = small_experiment.make(tmp_path)
    monkeypatch.chdir(made.repo)
    assert made.handoff() == 0
    return made


def goal_of(one: Experiment) -> goals.Goal:
    return list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]


def test_ls_ten_rounds_with_a_gain_no_ops_a_cheat_a_crash_a_timeout_and_a_hidden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make(tmp_path, rounds=10)
    monkeypatch.chdir(one.repo)
    design = one.folder / "DESIGN.md"
    # The researcher's deadline is twice the time limit (LS12).
    design.write_text(design.read_text().replace("time_limit: 20", "time_limit: 4"))
    git(one.repo, "commit", "-q", "-am", "shorter rounds")
    assert one.handoff() == 0
    before = manifest.digest(manifest.scan(one.repo))
    head, index = git(one.repo, "rev-parse", "HEAD"), (one.repo / ".git/index").read_bytes()
    assert one.supervise(CHEAT) == 0
    rows = one.table()
    assert [row[3] for row in rows[1:]] == [
        "improved",
        "not_improved",
        "not_improved",
        "not_improved",
        "not_improved",
        "not_improved",
        "not_improved",
        "not_improved",
        "improved",
        "improved",
    ]
    insights = {int(row[0]): row[5] for row in rows}
    assert rows[2][1] == "❌ files: touched slope/eval.py"
    assert insights[2].startswith("modified fixed file slope/eval.py — a fixed file was changed")
    assert insights[3].startswith("no change")
    assert insights[5].startswith("crash: RuntimeError: wrong shapes. Likely cause: ")
    assert insights[6].startswith("timeout after 8s — likely cause: ")
    assert "sitecustomize.py changes how other programs start" in insights[7]
    assert insights[8].startswith("no change")
    assert "⚠ eval-like: slope/helper.py" in insights[10]
    # LS3: the user's checkout, its index and HEAD are what they were.
    assert manifest.digest(manifest.scan(one.repo)) == before
    assert git(one.repo, "rev-parse", "HEAD") == head and (one.repo / ".git/index").read_bytes() == index
    # LS25: one commit an improvement, with the document's message, and no view in it.
    log = git(one.worktree, "log", "--format=%s", f"{head}..HEAD").splitlines()
    assert [line.split(" — ")[0] for line in log[:3]] == [
        "autoresearch: round 10",
        "autoresearch: round 9",
        "autoresearch: round 1",
    ]
    assert "experiences.md" not in git(one.worktree, "ls-tree", "-r", "--name-only", "HEAD")
    # Every attempt can be looked at again.
    assert len(git(one.repo, "for-each-ref", "refs/ar/attempts").splitlines()) == 10
    said = capsys.readouterr().out
    assert "Round 1/10: error=0.322123 — improved" in said and "# Autoresearch Complete" in said
    assert one.cartlab("verify") == 0


def test_ls27_reaching_the_target_ends_the_loop_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_experiment.make(tmp_path, rounds=5, target="0.322123")
    monkeypatch.chdir(one.repo)
    assert one.handoff() == 0
    assert one.supervise("config(rate=0.1 if round == 2 else 0.02); say(str(round))") == 0
    assert goal_of(one).state == "target_reached" and len(one.table()) == 3
    assert one.supervise("say('x')") == 23
    assert one.supervise("config(rate=0.2)", "--extend", "1") == 0
    # The target is still reached, so the further round is not needed.
    assert goal_of(one).state == "target_reached"


def test_ls9_a_round_records_all_six_completed_tasks(experiment: Experiment) -> None:
    assert experiment.supervise("config(rate=0.1); say('faster')") == 0
    first, last = goal_of(experiment).tries[0], goal_of(experiment).tries[-1]
    assert first.decision is not None
    done = [*first.decision["tasks"], *first.steps["closed"]["tasks"]]
    assert done[:2] == ["R1 S1: Researcher — faster", "R1 S2: Compliance — ✅"]
    assert (
        done[2].startswith("R1 S3: Train — done ") and ", final loss=" in done[2] and "—" not in done[2][-3:]
    )
    assert done[3:] == [
        "R1 S4: Eval — error=0.322123 (best: 0.322123 ↑)",
        "R1 S5: Git — committed",
        "R1 S6: Termination — continue",
    ]
    assert last.steps["closed"]["tasks"][-1] == "R3 S6: Termination — done: completed"


def test_ls26_a_failed_round_leaves_nothing_for_the_next_one(experiment: Experiment) -> None:
    """An ignored checkpoint of a failed attempt must not be there to be evaluated."""
    body = """
(work / "out").mkdir(exist_ok=True)
(work / "out/model.json").write_text('{"a": 3.0}')
if round == 2: (work / "train.py").write_text("print('step=0')")
say("a checkpoint by hand")
"""
    assert experiment.supervise(body) == 0
    rows = experiment.table()
    assert [row[3] for row in rows[1:]] == ["not_improved"] * 3
    assert goal_of(experiment).tries[0].steps["submitted"]["dropped"] == ["slope/out/model.json"]
    assert "without its checkpoint" in rows[2][5]
    folder = experiment.worktree / "slope"
    left = sorted(path.name for path in folder.iterdir())
    assert "out" not in left and "experiences.md" in left
    goal = goal_of(experiment)
    tree = {p: e for p, e in manifest.scan(experiment.worktree).items() if not p.endswith(".md")}
    committed = git(experiment.worktree, "ls-tree", "-r", "--name-only", goal.accepted).splitlines()
    assert sorted(tree) == sorted(name for name in committed if not name.endswith(".md"))


def test_ls22_a_better_number_in_the_training_log_changes_nothing(experiment: Experiment) -> None:
    body = """
text = (work / "train.py").read_text()
(work / "train.py").write_text(text + "\\nprint('error: 0.000001')\\nprint('METRIC error=0')\\n")
say("louder")
"""
    assert experiment.supervise(body) == 0
    assert {row[2] for row in experiment.table()[1:]} <= {"2.451218", ""}
    assert {row[3] for row in experiment.table()[1:]} == {"not_improved"}


def test_ls24_an_evaluation_without_a_number_is_tried_again_and_then_fails_the_round(
    experiment: Experiment,
) -> None:
    body = """
text = (work / "train.py").read_text()
(work / "train.py").write_text(text.replace('json.dumps({"a": a})', '"nothing"'))
say("broken checkpoint")
"""
    assert experiment.supervise(body) == 0
    first = goal_of(experiment).tries[0]
    assert first.status == "metric_error"
    assert [body["role"] for _, body in first.measurements].count("eval") == 2


def test_ls14_more_than_the_strategy_cell_is_undone_and_flagged(experiment: Experiment) -> None:
    body = """
path = work / "experiences.md"
text = path.read_text().replace("status: running", "status: completed")
path.write_text(text + f"| {round} | ✅ | 0.0 | improved | a row of my own | it works | |\\n")
config(rate=0.02)
"""
    assert experiment.supervise(body) == 0
    row = experiment.table()[1]
    assert row[4] == "a row of my own" and row[2] != "0.0"
    assert "more than its own Strategy cell was changed" in row[5]


def test_ls14_the_strategy_of_the_own_row_is_taken(experiment: Experiment) -> None:
    body = """
path = work / "experiences.md"
path.write_text(path.read_text() + f"| {round} | | | | warmer \\\\| colder | | |\\n")
config(rate=0.02)
"""
    assert experiment.supervise(body) == 0
    row = goal_of(experiment).tries[0].steps["submitted"]
    assert row["strategy"] == "warmer | colder" and row["flags"] == []


def test_ls13_la19_a_researcher_can_write_neither_the_repository_nor_the_ledger(
    experiment: Experiment,
) -> None:
    body = f"""
import subprocess
config(rate=0.02); say("tidy")
for path in ({str(experiment.repo)!r}, {str(experiment.worktree)!r}):
    subprocess.run(["git", "-C", path, "commit", "--allow-empty", "-m", "mine"], capture_output=True)
try:
    open({str(experiment.root / "events.jsonl")!r}, "a").write("{{}}\\n")
except OSError:
    pass
"""
    head = git(experiment.repo, "rev-parse", "HEAD")
    confined = isolation.available() == "landlock"
    code = experiment.supervise(body)
    if confined:
        assert git(experiment.repo, "rev-parse", "HEAD") == head
        assert code == 0 and goal_of(experiment).tries[0].status == "keep"
    else:
        assert goal_of(experiment).tries[0].status == "tampered"


def test_ls13_la19_what_a_researcher_wrote_in_the_repository_is_found_where_nothing_confines_it(
    experiment: Experiment,
) -> None:
    """Each time another part of what it may not change; the trees that it hands in are gains."""
    body = f"""
import subprocess
repo = Path({str(experiment.repo)!r})
if round == 1: subprocess.run(["git", "-C", repo, "-c", "user.name=x", "-c", "user.email=x@example.com",
                               "commit", "-q", "--allow-empty", "-m", "mine"], check=True)
if round == 2: (repo / ".git/hooks/post-checkout").write_text("true")
if round == 3: (repo / ".git/info/exclude").write_text("eval.py")
config(rate=0.02 + round / 100); say("tidy")
"""
    assert experiment.supervise(body, "--isolation", "process") == 0
    found = goal_of(experiment).closed_rounds()
    assert [one.status for one in found] == ["tampered"] * 3
    for one, part in zip(found, ("refs", "hooks", "exclude"), strict=True):
        assert part in str((one.decision or {})["insight"])


def test_ls_attempts_by_hand_follow_the_same_rules(
    experiment: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert experiment.cartlab("attempt", "start", str(experiment.folder), "--json") == 0
    told = json.loads(capsys.readouterr().out)["details"]
    work = Path(told["work"])
    # LS35: the document's timers, as data.
    assert told["look_again_after_s"] == {"researcher": 120.0, "training": 16.0, "heartbeat": 1800.0}
    assert not (work.parent / ".git").exists() and len(told["tasks"]) == 6
    assert experiment.cartlab("attempt", "submit", "--strategy", "nothing yet") == 19
    assert experiment.cartlab("attempt", "start", str(experiment.folder), "--json") == 0
    capsys.readouterr()
    assert experiment.cartlab("attempt", "start", str(experiment.folder), "--json") == 0
    again = json.loads(capsys.readouterr().out)
    work = Path(again["details"]["work"])
    (work / "config.json").write_text('{"rate": 0.1, "steps": 10}')
    assert experiment.cartlab("note", "try a larger step") == 0
    assert experiment.cartlab("attempt", "submit", again["attempt_id"], "--strategy", "a larger step") == 0
    assert experiment.cartlab("attempt", "close", "--reason", "none is open") == 23
    assert experiment.cartlab("attempt", "start", str(experiment.folder)) == 0
    assert experiment.cartlab("attempt", "close", "--reason", "wrong idea") == 0
    assert goal_of(experiment).tries[-1].status == "interrupted"
    rows = experiment.table()
    assert [row[3] for row in rows[1:]] == ["not_improved", "improved"]
    assert rows[2][6] == "try a larger step" and rows[2][4] == "a larger step"
    assert experiment.cartlab("verify") == 0


def test_ls29_stop_ends_the_loop_after_its_round_and_supervise_takes_it_up_again(
    experiment: Experiment,
) -> None:
    words = ["stop", "--reason", "enough", "--autoresearch-root", str(experiment.root)]
    stop = [small_experiment.PYTHON, "-c", f"from cartlab.cli import main; main({words!r})"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "python")}
    body = f"""
import subprocess
config(rate=0.02 + round / 100); say("on")
subprocess.run({stop!r}, env={environment!r}, cwd={str(experiment.repo)!r})
"""
    # A researcher at the landlock level cannot write the ledger, so this one runs without.
    assert experiment.supervise(body, "--isolation", "process") == 0
    goal = goal_of(experiment)
    assert (goal.state, goal.reason) == ("stopped_by_user", "enough") and len(goal.closed_rounds()) == 1
    assert experiment.supervise("config(rate=0.2); say('further')") == 0
    assert goal_of(experiment).state == "completed" and len(experiment.table()) == 4


def test_la22_a_change_of_what_a_number_means_starts_a_new_segment(experiment: Experiment) -> None:
    assert experiment.supervise("config(rate=0.1)") == 0
    assert experiment.cartlab("protocol", "set", "max_rounds", "5") == 0
    assert experiment.cartlab("protocol", "set", "time_limit", "10", "--reason", "shorter") == 0
    assert experiment.cartlab("protocol", "set", "colour", "red") == 2
    assert experiment.supervise("config(rate=0.05)", "--extend", "1") == 0
    goal = goal_of(experiment)
    assert goal.segment == 1
    # The baseline is the accepted tree's value under the new rules, and a worse one does not beat it.
    assert goal.body["protocol"]["baseline"] == "0.322123"
    assert goal.tries[-1].status == "discard"
    assert experiment.cartlab("verify") == 0


@pytest.mark.parametrize("policy", ["repeat-k", "verified", "paired"])
def test_the_policies_decide_on_runs_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    one = small_experiment.make(tmp_path, rounds=2)
    monkeypatch.chdir(one.repo)
    assert one.handoff() == 0
    assert one.supervise("config(rate=[0.1, 0.05][round - 1])", "--policy", policy) == 0
    assert [found.status for found in goal_of(one).closed_rounds()] == ["keep", "discard"]
    assert one.cartlab("verify") == 0


def test_ls16_ls17_new_files_and_eval_like_code(experiment: Experiment) -> None:
    assert experiment.supervise("(work / 'notes.txt').write_text('x'); config(rate=0.02)") == 0
    assert goal_of(experiment).tries[0].status == "keep"
    assert experiment.cartlab("protocol", "set", "strict_variable", "true") == 0
    assert experiment.supervise("(work / 'more.txt').write_text('x'); config(rate=0.2)", "--extend", "1") == 0
    assert "strict about its variable files" in goal_of(experiment).tries[-1].decision["insight"]


def test_ls7_only_one_supervisor_works_on_a_goal(experiment: Experiment) -> None:
    assert experiment.cartlab("attempt", "start", str(experiment.folder)) == 0
    goal = goal_of(experiment)
    import fcntl

    with (experiment.root / "tmp/loops" / f"{goal.id}.lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert experiment.cartlab("attempt", "submit") == 23
    assert experiment.cartlab("attempt", "submit") == 19


def test_ls2_a_strange_folder_in_the_worktree_s_place_is_refused(experiment: Experiment) -> None:
    experiment.worktree.mkdir()
    (experiment.worktree / "mine.txt").write_text("keep")
    assert experiment.supervise("say('x')") == 25
    assert (experiment.worktree / "mine.txt").read_text() == "keep"


def test_ls32_a_worktree_that_was_moved_stops_the_loop_with_a_hint(experiment: Experiment) -> None:
    assert experiment.supervise("config(rate=0.1)") == 0
    git(experiment.worktree, "commit", "-q", "--allow-empty", "-m", "mine")
    assert experiment.supervise("config(rate=0.2)", "--extend", "1") == 23
    git(experiment.worktree, "checkout", "-q", "--detach", goal_of(experiment).accepted)
    assert experiment.supervise("config(rate=0.2)", "--extend", "1") == 0


def test_ls34_the_worktree_goes_only_when_asked_and_the_result_stays(
    experiment: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment.supervise("config(rate=0.1)", "--worktree", "remove") == 0
    assert not experiment.worktree.exists()
    goal = goal_of(experiment)
    assert "0.322123" in git(experiment.repo, "log", "-1", "--format=%s", goal.accepted)
    # What is offered for taking it over does that, by hand: no loop writes in the checkout.
    git(experiment.repo, *capsys.readouterr().out.partition("to take it over: git ")[2].split()[:2])
    assert '"rate": 0.1' in (experiment.folder / "config.json").read_text()


def test_ls34_a_worktree_in_which_somebody_works_is_not_removed(
    experiment: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment.supervise("config(rate=0.1)") == 0
    with subprocess.Popen(["sleep", "600"], cwd=experiment.worktree) as child:
        try:
            again = ("--extend", "1", "--worktree", "remove")
            assert experiment.supervise("config(rate=0.2)", *again) == 23
            assert f"in use by process {child.pid}" in capsys.readouterr().err
            assert experiment.worktree.is_dir()
        finally:
            child.kill()


def test_a_script_that_is_missing_stops_the_loop_after_three_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dispatch, "START_S", 3600.0)
    one = small_experiment.make(tmp_path, rounds=5)
    monkeypatch.chdir(one.repo)
    assert one.handoff() == 0
    words = ["supervise", str(one.folder), "--researcher"]
    assert one.cartlab(*words, f"{small_experiment.PYTHON} missing.py") == 23
    told = " ".join(capsys.readouterr().err.split())
    assert "3 attempts in a row ended alike" in told and "missing.py" in told
    goal = goal_of(one)
    assert (len(goal.closed_rounds()), goal.state) == (3, "running")
    assert one.supervise("config(rate=0.1); say('the script is there now')") == 0
    assert len(goal_of(one).closed_rounds()) == 5 and one.cartlab("verify") == 0


def test_a_report_of_loops_alone_names_them_and_where_they_are_shown(
    experiment: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment.cartlab("attempt", "start", str(experiment.folder)) == 0
    goal = goal_of(experiment).id
    page = experiment.root / "report.html"
    assert experiment.cartlab("report") == 0
    assert goal in page.read_text() and "cartlab serve" in page.read_text()
    for form in ("md", "json"):
        capsys.readouterr()
        assert experiment.cartlab("report", "--format", form) == 0
        told = capsys.readouterr().out
        assert goal in told and "cartlab show" in told and "best 2.451218" in told


def test_a_researcher_that_works_and_then_fails_alike_keeps_its_rounds(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "START_S", 3600.0)
    body = "config(rate=0.05); say('half'); sys.exit(2)"
    assert experiment.supervise(body) == 0
    assert experiment.supervise(body, "--extend", "2") == 0
    assert len(goal_of(experiment).closed_rounds()) == dispatch.SAME + 2


def test_lc33_a_researcher_with_a_recursive_delete_needs_an_approval(experiment: Experiment) -> None:
    line = ["supervise", str(experiment.folder), "--researcher", "rm -rf out; true"]
    assert experiment.cartlab(*line) == 23
    assert experiment.cartlab(*line, "--approve", "a folder of its own copy") == 0


def test_ls9_the_task_list_is_the_document_s_own() -> None:
    from cartlab.loops.protocol import parse

    text = (Path(__file__).parent / "fixtures" / "autoresearch-protocol.md").read_text(encoding="utf-8")
    found = parse(text)
    assert tasks.created(found, 3, "0.91") == [
        "R3 S1: Researcher — improve accuracy on model.py, layers/",
        "R3 S2: Compliance — files + parity (1 kernels)",
        "R3 S3: Train — python train.py (limit: 5 min)",
        "R3 S4: Eval — python eval.py --split val (current best: 0.91)",
        "R3 S5: Git — awaiting result",
        "R3 S6: Termination — 3/12",
    ]
    assert tasks.evaluated(found, 3, "0.92", "0.92", True) == "R3 S4: Eval — accuracy=0.92 (best: 0.92 ↑)"
    assert tasks.evaluated(found, 3, "0.90", "0.92", False) == "R3 S4: Eval — accuracy=0.90 (best: 0.92 —)"
    assert tasks.complied(3, tasks.parity_broken("gelu", "shape", "(2,) vs (3,)")) == (
        "R3 S2: Compliance — ❌ parity(gelu): shape (2,) vs (3,)"
    )
    assert tasks.acted(3, True) == "R3 S5: Git — committed"
    assert tasks.terminated(3, None) == "R3 S6: Termination — continue"
    assert tasks.terminated(12, "completed") == "R12 S6: Termination — done: completed"
