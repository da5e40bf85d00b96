"""LS32: after a kill between any two events the next run goes on, and ends as if nothing had been."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import small_experiment
from small_experiment import Experiment, git

from cartlab import disk
from cartlab.cli.talk import Talk
from cartlab.disk import Disk
from cartlab.errors import NotLegalNow, Tampered
from cartlab.ledger import Ledger
from cartlab.loops import dispatch, goals, intake, manifest, rounds, supervise
from cartlab.loops.desk import Desk, Options
from cartlab.loops.goals import Try
from cartlab.loops.running import Value

DIED = 9
BODY = "config(rate=[0.5, 0.1][round - 1]); say(['more', 'less'][round - 1])"


class DyingAfter(Disk):
    """Ends the process once it has stored the n-th event."""

    def __init__(self, number: int) -> None:
        self._left = number

    def fsync(self, fd: int) -> None:
        super().fsync(fd)
        if Path(f"/proc/self/fd/{fd}").readlink().name == "events.jsonl":
            self._left -= 1
            if self._left == 0:
                os._exit(DIED)


def died(one: Experiment, number: int, researcher: str) -> bool:
    """Run the loop in a child that ends after its n-th event; False where it ended by itself."""
    child = os.fork()
    if child == 0:
        disk.use(DyingAfter(number))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(one.cartlab("supervise", str(one.folder), "--researcher", researcher))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, DIED)
    return code == DIED


def outcome(one: Experiment) -> tuple[object, ...]:
    goal = list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]
    rows = [row[:5] for row in one.table()]
    tree = git(one.repo, "rev-parse", f"{goal.accepted}^{{tree}}")
    return goal.state, rows, tree, git(one.worktree, "rev-parse", "HEAD") == goal.accepted


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the ledger's descriptor in /proc")
def test_ls32_a_loop_killed_between_any_two_events_ends_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small_experiment.make_bare(tmp_path / "whole")
    monkeypatch.chdir(whole.repo)
    assert whole.supervise(BODY) == 0
    expected = outcome(whole)
    events = len(Ledger.open(whole.root, mend=False).events())
    assert events > 20
    pattern = small_experiment.make_bare(tmp_path / "pattern")
    for number in range(1, events + 1):
        place = tmp_path / str(number)
        shutil.copytree(pattern.repo, place / "clone")
        one = Experiment(place / "clone", place / "clone" / "slope", place / "root")
        os.chdir(one.repo)
        before = manifest.scan(one.repo)
        researcher = one.researcher(BODY)
        assert died(one, number, researcher), f"the run wrote fewer than {number} events"
        code = one.cartlab("supervise", str(one.folder), "--researcher", researcher)
        # Killed after the very last event, the loop had ended: there is nothing to go on with.
        assert code in ((0, 23) if number >= events - 1 else (0,)), number
        tree = outcome(one)
        assert (tree[0], [row[3:] for row in tree[1]], tree[3]) == (
            expected[0],
            [row[3:] for row in expected[1]],
            True,
        ), number
        assert one.cartlab("verify") == 0, number
        assert manifest.scan(one.repo) == before
        assert not list((one.root / "tmp/loops").glob("*/"))
        shutil.rmtree(place)


def test_ls4_the_resume_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = small_experiment.make_bare(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.supervise(BODY) == 0
    assert one.supervise(BODY) == 23
    assert one.supervise("config(rate=0.9)", "--extend", "2") == 0
    goal = list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]
    assert [found.round for found in goal.closed_rounds()] == [1, 2, 3, 4]
    # LA11: the fourth is the third's tree: it is not measured again.
    assert [found.status for found in goal.closed_rounds()][2:] == ["keep", "no_change"]
    # LS2: one worktree all the while, on no branch.
    listed = git(one.repo, "worktree", "list", "--porcelain").split("\n\n")
    assert len(listed) == 2 and "detached" in listed[1].splitlines()
    for state in ("blocked", "paused", "design_only"):
        with pytest.raises(NotLegalNow, match=f"a goal that is {state} cannot be taken up"):
            supervise.next_round(replace(goal, state=state), None)
    with pytest.raises(NotLegalNow, match="this goal is done: completed"):
        supervise.next_round(replace(goal, state="completed"), None)


def test_ls35_a_loop_that_an_agent_left_counts_as_stalled_after_the_heartbeat() -> None:
    from datetime import datetime, timedelta, timezone

    from cartlab.loops.goals import Goal
    from cartlab.loops.stall import stalled

    now = datetime.now(timezone.utc)
    quiet = (now - timedelta(minutes=31)).isoformat()
    goal = Goal("slope-1", "supervise", {}, quiet, state="running", changed=quiet)
    assert "for 31 min" in str(stalled(goal, now, alive=False))
    assert stalled(goal, now, alive=True) is None
    assert stalled(goal, now - timedelta(minutes=2), alive=False) is None
    goal.state = "completed"
    assert stalled(goal, now, alive=False) is None


def test_la1_la17_a_typed_keep_and_a_bent_value_are_found_by_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.supervise(BODY) == 0
    ledger = Ledger.open(one.root)
    goal = list(goals.fold(ledger.events()).values())[-1]
    attempt = goal.tries[0]
    assert attempt.decision is not None
    forged = {**attempt.decision, "value": 99.0, "text": "99", "inputs": {"measurements": []}}
    ledger.append("proposal", "mine", {"goal": goal.id, "round": 3, "state": "proposed"})
    ledger.append("decision", "mine", forged)
    capsys.readouterr()
    assert one.cartlab("verify", "--json") == 22
    found = json.loads(capsys.readouterr().out)["details"]["findings"]
    assert any("not that of an evaluation of its tree" in finding["what"] for finding in found)


def test_la1_no_caller_of_the_library_types_a_result_into_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=3)
    monkeypatch.chdir(one.repo)
    assert one.cartlab("attempt", "start", str(one.folder)) == 0
    ledger = Ledger.open(one.root)
    goal = list(goals.fold(ledger.events()).values())[-1]
    desk = Desk(one.repo, one.root, ledger, goal.id, Talk(as_json=True), Options())
    given = dispatch.dispatched(desk, goal, goal.tries[-1])
    (given.work / "config.json").write_text('{"rate": 0.001}')
    intake.take_in(desk, goal, given, "worse")
    attempt = desk.goal().tries[-1]
    tree = str(attempt.steps["submitted"]["tree"])
    desk.step(attempt, "screened")
    real = desk.measured(attempt, "eval", tree=tree, value=0.001, text="0.001")
    others = [
        desk.measured(Try("somebody", 1), "eval", tree=tree, value=9.0, text="9"),
        desk.measured(attempt, "eval", tree="another", value=9.0, text="9"),
        desk.measured(attempt, "train", tree=tree, value=9.0, text="9"),
        real,
        0,
        10_000,
    ]
    for seq in others:
        with pytest.raises(Tampered, match="only be kept with the value of a run of its own tree"):
            rounds.act(desk, goal, attempt, rounds.Result("keep", "typed", Value(9.0, "9", seq)), "greedy")
    assert desk.goal().tries[-1].decision is None
    # Nor does a verdict that was written past all this move anything.
    typed = {"goal": goal.id, "round": 1, "status": "keep", "value": 9.0, "text": "9", "measurement": real}
    ledger.append("decision", attempt.id, {**typed, "policy": "greedy", "inputs": {}, "tree": tree})
    with pytest.raises(Tampered):
        rounds.finish(desk, attempt)
    assert desk.goal().accepted == goal.accepted
    assert f"refs/ar/accepted/{goal.id}" not in git(one.repo, "for-each-ref") or (
        git(one.repo, "rev-parse", f"refs/ar/accepted/{goal.id}") == goal.accepted
    )
