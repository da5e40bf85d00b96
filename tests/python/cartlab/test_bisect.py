"""`bisect` over a real repository: with made-up measurements of a known law, and once with real ones."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_project
import numpy as np
import pytest
from cli_bench import make_bench

from cartlab.errors import BadRef, BehaviourChanged, BuildFailed, UsageError
from cartlab.ledger import Ledger
from cartlab.measure import Equality
from cartlab.model import Block, Build, Plan, Ref
from cartlab.outcome import Outcome
from cartlab.pipeline.bisecting import Asked, bisect
from cartlab.pipeline.lab import Lab, no_count, no_lease
from cartlab.pipeline.request import Runner
from cartlab.simulate import Noise, block_values, records
from cartlab.verify import verify_root

WORKSTATION = Noise("workstation", 0.01)


class Mute:
    """A voice that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def warn(self, line: str) -> None:
        self.lines.append(line)

    def progress(self, line: str) -> None:
        pass


class World:
    """16 commits after the first. speed: of each, by number; broken: do not build; other: do other work."""

    def __init__(self, folder: Path) -> None:
        self.project = fake_project.make(folder / "repo")
        self.root = folder / "root"
        self.commits = [self.project.git("rev-parse", "HEAD")]
        for number in range(1, 17):
            # Number 5 changes nothing at all, 9 only a text: the tree, not what is built.
            if number == 9:
                self.project.write("README", "more\n")
            elif number != 5:
                self.project.engine(work=100 + number)
            self.commits.append(self.project.commit(f"number {number}"))
        self.speed = [1.0] * 17
        self.broken: set[int] = set()
        self.other: set[int] = set()
        self.built: list[int] = []
        self.measured: list[int] = []
        self.rng = np.random.default_rng(3)
        self.on_block: Callable[[], None] = lambda: None

    def slower_from(self, culprit: int, speed: float = 0.9) -> None:
        self.speed = [1.0 if number < culprit else speed for number in range(17)]

    def number(self, ref: Ref) -> int:
        return self.commits.index(ref.commit)

    def build(self, config: Any, ref: Ref, root: Path, **_: Any) -> Build:
        number = self.number(ref)
        self.built.append(number)
        if number in self.broken:
            raise BuildFailed(f"number {number} does not build", details={"log_tail": "error: broken"})
        return Build(ref, f"build-{number}", str(root), "engine", "0" * 64, 0.0, True)

    def equal(self, plan: Plan, base: Build, cand: Build, repo: Path) -> Equality:
        differ = (self.number(base.ref) in self.other) != (self.number(cand.ref) in self.other)
        first = "rewards" if differ else None
        return Equality(not differ, 20, 3, 0, "a" * 64, "b" * 64 if differ else "a" * 64, first)

    def block(self, plan: Plan, index: int, coin: int, base: Build, cand: Build, repo: Path) -> Block:
        self.on_block()
        number = self.number(cand.ref)
        self.measured.append(number)
        ratio = self.speed[number] / self.speed[self.number(base.ref)]
        y, drawn = block_values(WORKSTATION, ratio, 1, 1, self.rng)
        return replace(records(y[0], drawn[0])[0], index=index)

    def lab(self) -> Lab:
        return replace(
            Lab.real(),
            build=self.build,
            check_build=lambda build: None,
            build_log=lambda build: self.root / "no-log",
            verify_equal=self.equal,
            run_block=self.block,
            instructions=no_count,
            lease=no_lease,
        )

    def bisect(self, good: str = "HEAD~16", bad: str = "HEAD", **changes: Any) -> Outcome:
        self.voice = Mute()
        asked = Asked(good, bad, **changes)
        return bisect(asked, self.lab(), self.project.path, self.root, self.voice)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("culprit", [1, 6, 11, 16])
def test_the_slower_one_of_sixteen_is_found_though_two_do_not_build(world: World, culprit: int) -> None:
    world.slower_from(culprit)
    world.broken = {3, 8}
    answer = world.bisect()
    details = answer.details or {}
    assert (answer.status, answer.exit_code) == ("ok", 0), answer.text
    assert details["first_bad"] == world.commits[culprit]
    assert details["commits"] == 16
    # The text and the empty commit change nothing that is built, so nobody asks about them.
    assert details["building_commits"] == 14 and not {5, 9} & set(world.measured)
    assert len(set(world.measured)) <= 6 and max(details["alpha"] for details in details["answers"]) <= 0.05
    assert verify_root(world.root).holds
    assert not {"screen", "accept"} & {one.plan.tier for one in Ledger.open(world.root).attempts().values()}


def test_where_the_neighbours_do_not_build_the_range_remains_with_its_reasons(world: World) -> None:
    world.slower_from(8)
    world.broken = {7, 8}
    answer = world.bisect()
    details = answer.details or {}
    assert (answer.status, answer.exit_code) == ("inconclusive", 11)
    # 9 changes nothing that is built and so cannot be it.
    assert details["range"] == [world.commits[number] for number in (7, 8, 10)]
    assert set(details["skipped"]) == {world.commits[7], world.commits[8]}
    assert all("does not build" in why for why in details["skipped"].values())
    again, built = world.bisect(), list(world.built)
    assert (again.details or {})["range"] == details["range"] and world.built == built
    world.broken = set()
    third = world.bisect(again=True)
    assert (third.details or {})["first_bad"] == world.commits[8]


def test_a_commit_that_does_other_work_is_passed_over(world: World) -> None:
    world.slower_from(11)
    world.other = {7, 8}
    details = world.bisect().details or {}
    assert details["first_bad"] == world.commits[11]
    assert set(details["skipped"]) <= {world.commits[7], world.commits[8]} != set()
    assert all("behaviour_changed" in why for why in details["skipped"].values())


def test_where_good_and_bad_do_other_work_the_commit_that_changed_it_is_named(world: World) -> None:
    world.other = set(range(12, 17))
    answer = world.bisect()
    assert (answer.status, answer.exit_code) == ("behaviour_changed", 12)
    assert (answer.details or {})["behaviour_changed_in"] == [world.commits[12]]
    assert world.measured == []


def test_no_difference_asks_about_no_commit(world: World) -> None:
    answer = world.bisect(runner=Runner(max_blocks=12))
    assert answer.exit_code == 11 and set(world.measured) == {16}
    assert len(world.measured) == 12
    world.slower_from(4, speed=1.1)
    answer = world.bisect()
    assert "not slower" in answer.reasons[0]


def test_a_gain_is_found_too(world: World) -> None:
    world.slower_from(13, speed=1.1)
    answer = world.bisect(faster=True)
    assert (answer.details or {})["first_bad"] == world.commits[13]
    assert answer.ratio is not None and answer.ratio > 1.05


def test_an_interrupted_search_goes_on_with_its_blocks(world: World) -> None:
    world.slower_from(11)
    count = 0

    def interrupt() -> None:
        nonlocal count
        count += 1
        if count == 20:
            raise KeyboardInterrupt

    world.on_block = interrupt
    first = world.bisect()
    assert (first.status, first.exit_code, first.command) == ("interrupted", 130, "bisect")
    assert first.report.next.endswith(f"bisect {world.commits[0][:12]} {world.commits[16][:12]}")
    before = list(world.measured)
    details = world.bisect().details or {}
    assert details["first_bad"] == world.commits[11]
    blocks = sum(one["blocks"] for one in details["answers"])
    assert blocks == len(world.measured) and len(before) == 19
    # What is decided is not measured again.
    measured = len(world.measured)
    assert (world.bisect().details or {})["first_bad"] == world.commits[11]
    assert len(world.measured) == measured


def test_a_dry_run_counts_questions_and_costs_and_writes_nothing(world: World) -> None:
    answer = world.bisect(dry_run=True)
    details = answer.details or {}
    assert answer.status == "planned" and details["questions"] == 5 and not world.root.exists()
    assert [row["minutes"] for row in details["costs"]] == [None] * 3 and world.built == []
    world.slower_from(3)
    assert world.bisect().exit_code == 0
    costs = (world.bisect(dry_run=True).details or {})["costs"]
    assert costs[0]["blocks_a_question"] >= costs[2]["blocks_a_question"] >= 8


def test_a_threshold_decides_what_counts_as_changed(world: World) -> None:
    world.speed = [1.0] * 4 + [0.97] * 6 + [0.85] * 7
    assert (world.bisect(threshold=0.985).details or {})["first_bad"] == world.commits[4]
    assert (world.bisect(threshold=0.9).details or {})["first_bad"] == world.commits[10]
    with pytest.raises(UsageError, match="below 1"):
        world.bisect(threshold=1.1)
    with pytest.raises(UsageError, match="above 1"):
        world.bisect(threshold=0.9, faster=True)


def test_a_time_limit_is_the_whole_searchs_and_loses_nothing(world: World) -> None:
    world.slower_from(11)
    lab, seconds = world.lab(), iter(range(0, 100_000, 10))
    asked = Asked("HEAD~16", "HEAD", runner=Runner(max_minutes=10.0))
    slow = replace(lab, clock=lambda: float(next(seconds)))
    answers = [bisect(asked, slow, world.project.path, world.root, Mute())]
    while answers[-1].exit_code == 11 and len(answers) < 20:
        assert "limit of 10 minutes" in answers[-1].reasons[0]
        answers.append(bisect(asked, slow, world.project.path, world.root, Mute()))
    assert 1 < len(answers) < 20 and (answers[-1].details or {})["first_bad"] == world.commits[11]


def test_two_that_are_not_on_one_line_are_refused(world: World) -> None:
    with pytest.raises(BadRef, match="first-parent line"):
        world.bisect("HEAD", "HEAD~3")
    world.project.git("switch", "-q", "-c", "side", "HEAD~8")
    side = world.project.commit("side", work=300)
    world.project.git("switch", "-q", "main")
    world.project.git("merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", "side")
    with pytest.raises(BadRef, match="first-parent line"):
        world.bisect(side, "HEAD")


def test_nothing_that_is_built_changed(world: World) -> None:
    with pytest.raises(UsageError, match="none of the 1 commits changes what is built"):
        world.bisect("HEAD~8", "HEAD~7")


def test_a_bisect_leaves_an_open_round_as_it_is(world: World) -> None:
    from cartlab.round import fold, open_round

    world.slower_from(11)
    world.root.mkdir()
    ledger = Ledger.open(world.root)
    head = Ref("HEAD", world.commits[16], world.project.git("rev-parse", "HEAD^{tree}"))
    open_round(ledger, head, "2026-01-01T00:00:00Z", {}, "goal")
    assert world.bisect().exit_code == 0
    found = fold(ledger.events())
    assert found is not None and found.state == "open" and not found.candidates


def test_an_error_of_the_worker_is_a_commit_that_tells_nothing(world: World) -> None:
    world.slower_from(11)
    real = world.block

    def failing(plan: Plan, index: int, coin: int, base: Build, cand: Build, repo: Path) -> Block:
        if world.number(cand.ref) == 8:
            raise BehaviourChanged("the outputs of slice 3 differ while timing: rewards")
        return real(plan, index, coin, base, cand, repo)

    world.block = failing  # type: ignore[method-assign]
    details = world.bisect().details or {}
    assert details["first_bad"] == world.commits[11]


def test_kill_9_in_the_middle_loses_one_block_at_most(tmp_path: Path) -> None:
    """With real builds and real measurements: three commits, the second is twice as slow."""
    bench = make_bench(tmp_path)
    for number, work in enumerate((100, 210, 210)):
        bench.project.write("note.txt", f"{number}\n")
        bench.project.commit(f"number {number}", work=work, before=f"// {number}")
    culprit = bench.project.git("rev-parse", "HEAD~1")
    process = bench.start("bisect", "HEAD~3", "HEAD", "--json")
    deadline = time.monotonic() + 120
    events = bench.root / "events.jsonl"
    while time.monotonic() < deadline and (
        not events.exists() or events.read_bytes().count(b'"type":"block"') < 5
    ):
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = [event for event in bench.events() if event["type"] == "block"]
    answer = bench.run("bisect", "HEAD~3", "HEAD", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["details"]["first_bad"] == culprit
    blocks = [event for event in bench.events() if event["type"] == "block"]
    assert blocks[: len(before)] == before and len(before) >= 5
    assert sum(one["blocks"] for one in answer.json["details"]["answers"]) == len(blocks)
    assert verify_root(bench.root).holds
    assert json.loads((bench.root / "current.json").read_text())
