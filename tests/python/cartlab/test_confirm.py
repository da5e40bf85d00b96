"""The confirm run: what it measures, that it is had once, and that nothing of it is lost."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quick_desk import Desk, make_desk, open_round, to_stacked

from cartlab import disk
from cartlab.model import HELD_OUT
from cartlab.verify import verify_root


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def rounds_of(desk: Desk, action: str) -> list[dict[str, Any]]:
    return [e["body"] for e in desk.events("round") if e["body"]["action"] == action]


def confirm_runs(desk: Desk) -> list[dict[str, Any]]:
    return [e for e in desk.events("attempt_started") if e["body"]["tier"] == "confirm"]


def blocks_of(desk: Desk, attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {one["attempt"] for one in attempts}
    return [e["body"] for e in desk.events("block") if e["attempt"] in names]


def test_half_of_its_blocks_are_on_a_draw_made_after_the_candidate_was_fixed(desk: Desk) -> None:
    to_stacked(desk)
    measured: list[str | None] = []
    desk.change = lambda plan, block: (measured.append(plan.workload.held_out), block)[1]
    done = desk.run("round", "confirm", "--json")
    assert done.json["details"]["round"]["state"] == "complete", done.json["reasons"]
    (note,) = rounds_of(desk, "confirm")
    (run,) = confirm_runs(desk)
    assert run["body"]["workload"]["params"][HELD_OUT] == note["seed"]
    assert measured == [None, note["seed"]] * 12
    assert [b["witness"]["half"] for b in blocks_of(desk, [run])] == ["public", "held-out"] * 12
    assert {half: one["used"] for half, one in done.json["details"]["halves"].items()} == {
        "public": 12,
        "held-out": 12,
    }
    assert done.json["blocks"] == {"used": 24, "dropped": 0, "pooled": 0}
    session = done.json["details"]["session"]
    assert (session["next_baseline"], session["latest_aggregate"]) == (
        note["commit"],
        f"benchmarks/runs/{run['attempt']}/aggregate.json",
    )
    human = desk.run("explain", run["attempt"]).out
    assert "halves: public " in human and "(12 blocks), held-out " in human
    assert verify_root(desk.root).holds


def test_two_draws_are_never_the_same(desk: Desk) -> None:
    base, first = to_stacked(desk)
    desk.gain = lambda plan: 0.05 if plan.tier == "confirm" else 0.2
    kept = desk.run("round", "confirm", "--json")
    assert (kept.code, kept.json["exit_code"], kept.json["status"]) == (11, 11, "keep")
    assert "the estimate" in kept.json["reasons"][-1] and "1.10" in kept.json["reasons"][-1]
    second = desk.commit("better", work=40)
    assert desk.run("accept", base, second).code == 0
    assert desk.run("round", "confirm").code == 11
    assert desk.state() == "candidates"
    notes = rounds_of(desk, "confirm")
    assert [note["commit"] for note in notes] == [first, second]
    assert notes[0]["seed"] != notes[1]["seed"]


def test_a_difference_on_the_held_out_draw_alone_is_changed_behaviour(desk: Desk) -> None:
    to_stacked(desk)
    desk.equal = lambda plan: plan.workload.held_out is None
    answer = desk.run("round", "confirm", "--json")
    assert (answer.code, answer.json["status"]) == (12, "behaviour_changed")
    assert "held-out" in answer.json["reasons"][0]
    assert desk.state() == "candidates"
    assert desk.run("round", "confirm").code == 23


def test_a_workload_that_ignores_the_draw_is_told_from_one_that_uses_it(desk: Desk) -> None:
    to_stacked(desk)
    real = desk.lab.verify_equal
    assert "had twice" not in desk.run("round", "confirm").out
    assert desk.run("round", "open").code == 23
    base = open_round(desk)
    cand = desk.commit("quarter", work=25)
    assert desk.run("accept", base, cand).code == 0
    desk.lab = replace(
        desk.lab,
        verify_equal=lambda plan, *rest: real(replace(plan, workload=plan.workload.public), *rest),
    )
    assert "its public run was had twice" in desk.run("round", "confirm").out


def test_a_run_that_a_limit_stopped_goes_on_with_the_same_draw(desk: Desk) -> None:
    to_stacked(desk)
    seen: list[int] = []

    def stop_after_five(plan: Any, block: Any) -> Any:
        seen.append(block.index)
        if len(seen) == 5:
            raise KeyboardInterrupt
        return block

    desk.change = stop_after_five
    assert desk.run("round", "confirm").code == 130
    assert desk.run("next").report["next"].startswith("scripts/autoresearch.py round confirm")
    done = desk.run("round", "confirm", "--json")
    assert done.json["blocks"] == {"used": 24, "dropped": 0, "pooled": 4}
    assert done.json["details"]["round"]["state"] == "complete"
    assert len({note["seed"] for note in rounds_of(desk, "confirm")}) == 1
    halves = [b["witness"]["half"] for b in blocks_of(desk, confirm_runs(desk))]
    assert sorted(halves) == ["held-out"] * 12 + ["public"] * 12
    assert verify_root(desk.root).holds


def test_a_busy_run_is_had_again(desk: Desk) -> None:
    to_stacked(desk)
    desk.change = lambda plan, block: replace(block, dropped="busy: stolen")
    busy = desk.run("round", "confirm", "--json")
    assert (busy.code, busy.json["status"]) == (13, "busy_invalid")
    assert desk.state() == "confirming"
    desk.change = lambda plan, block: block
    assert desk.run("round", "confirm", "--json").json["details"]["round"]["state"] == "complete"


def test_flags_under_which_it_would_prove_nothing_are_refused_and_it_stays_to_be_had(desk: Desk) -> None:
    to_stacked(desk)
    for flags in (
        ("--max-blocks", "8"),
        ("--force-busy", "--approve", "why"),
        ("--unit", "process"),
        ("--no-record",),
    ):
        refused = desk.run("round", "confirm", *flags)
        assert refused.code == 2, (flags, refused.out, refused.err)
    assert rounds_of(desk, "confirm") == []
    assert desk.run("round", "confirm", "--dry-run").code == 0
    assert rounds_of(desk, "confirm") == []


def test_two_processes_that_ask_for_it_at_once_have_one(desk: Desk) -> None:
    to_stacked(desk)
    desk.gain = lambda plan: 0.05
    alone = desk.lab

    @contextlib.contextmanager
    def had_by_another_while_waiting(*_: Any) -> Iterator[None]:
        desk.lab = alone
        assert desk.run("round", "confirm").code == 11
        yield

    desk.lab = replace(alone, lease=had_by_another_while_waiting)
    late = desk.run("round", "confirm")
    assert late.code == 23 and "had meanwhile" in late.err
    assert len(confirm_runs(desk)) == 1 and desk.state() == "candidates"


@pytest.mark.parametrize("command", ["accept", "accept-stack"])
def test_with_confirm_an_acceptance_that_reaches_the_target_goes_on_to_it(desk: Desk, command: str) -> None:
    base = open_round(desk)
    small = desk.commit("small", work=95)
    answer = desk.run(command, base, small, "--confirm")
    assert answer.code == 0 and "no confirm run is due" in answer.out
    cand = desk.commit("half", work=50)
    done = desk.run(command, base, cand, "--confirm", "--json")
    assert done.json["command"] == "round confirm"
    assert done.json["details"]["round"]["state"] == "complete"
    without = desk.run(command, base, cand, "--confirm")
    assert "no round is open" in without.out


def test_every_obstacle_is_named_before_anything_is_measured(desk: Desk) -> None:
    base = open_round(desk)
    cand = desk.project.commit("half", work=50)
    assert desk.run("accept", base, cand).code == 0
    desk.project.git("checkout", "-q", "--detach", base)
    refused = desk.run("round", "confirm", cand)
    assert refused.code == 23
    for words in ("no mechanism", "no falsification", "neither HEAD"):
        assert words in refused.err + refused.out
    desk.project.git("checkout", "-q", "main")
    assert desk.run("round", "confirm", cand, "--mechanism", "half", "--falsify", "none").code == 0
    assert desk.state() == "complete"


class Killed(BaseException):
    """The process is gone: nothing catches this."""


class Mortal:
    """Kills at the n-th of the ledger's disk calls from now on; counts them all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.last: int | None = None
        for name in ("write", "fsync", "replace", "make_folder", "sync_folder"):
            monkeypatch.setattr(disk.Disk, name, self._wrapped(getattr(disk.Disk, name)))

    def _wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any) -> Any:
            self.calls += 1
            if self.last is not None and self.calls > self.last:
                raise Killed
            return real(*words)

        return call


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mortal]:
    found = Mortal(monkeypatch)
    yield found
    found.last = None


NEXT = (("next",), ("status",), ("round", "show"), ("round", "confirm"), ("screen", "HEAD~1", "HEAD"))


def test_killed_at_any_write_it_is_neither_lost_nor_had_twice(desk: Desk, mortal: Mortal) -> None:
    to_stacked(desk)
    kept = desk.root.with_name("kept")
    shutil.copytree(desk.root, kept)
    ends: list[int] = []

    def note_last_block(plan: Any, block: Any) -> Any:
        ends.append(mortal.calls)
        return block

    mortal.calls = 0
    desk.change = note_last_block
    assert desk.run("round", "confirm").code == 0
    points = range(ends[-1], mortal.calls)
    assert len(points) > 20
    for number, point in enumerate(points):
        shutil.rmtree(desk.root)
        shutil.copytree(kept, desk.root)
        mortal.calls, mortal.last = 0, point
        with pytest.raises(Killed):
            desk.run("round", "confirm")
        mortal.last = None
        decided = any(e["attempt"] and "confirm" in e["attempt"] for e in whole(desk, "decision"))
        first = NEXT[number % len(NEXT)]
        assert desk.run(*first).code in (0, 23), (point, first)
        if not decided and first != ("round", "confirm"):
            assert desk.run("round", "confirm").code == 0
        assert len(confirm_runs(desk)) == (1 if decided else 2), point
        assert [body["action"] for body in map(body_of, desk.events("round"))].count("complete") == 1
        assert len(blocks_of(desk, confirm_runs(desk))) in (24, 25)
        notes = [e for e in desk.events("note") if e["body"]["kind"] == "lesson"]
        desk.run("next")
        assert len(notes) == 1 and desk.state() == "complete", point
        report = verify_root(desk.root)
        assert report.holds, (point, report.findings)


def body_of(event: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = event["body"]
    return body


def whole(desk: Desk, kind: str) -> list[dict[str, Any]]:
    """Events of this kind; a line that was torn by the kill is left out."""
    import json

    text = (desk.root / "events.jsonl").read_text()
    found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [event for event in found if event["type"] == kind]
