"""What a block is made of: what it is refused for, what drops it, what both sides are held to."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import bare_lab
import pytest
from ledger_runs import a_plan

from cartlab import measure
from cartlab.errors import BadInput, BehaviourChanged, MetricError, Tampered, UsageError, WorkerCrashed
from cartlab.measure import blocks, equality, invocations
from cartlab.measure import worker as workers
from cartlab.measure.contention import Contention
from cartlab.measure.slices import Side
from cartlab.model import BUSY, Block

MS = 1_000_000
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is Linux's")
QUIET = Contention(0.01, 0.0, 0.2, 0.0, 1.9, 5.0)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bare_lab.Lab:
    for op in workers.LIMITS_S:
        monkeypatch.setitem(workers.LIMITS_S, op, 10.0)  # type: ignore[misc]
    return bare_lab.make(tmp_path)


# --- the value


@pytest.mark.parametrize(
    ("base", "cand"),
    [([], []), ([1], [1, 2]), ([1, 2], [1]), ([0, 5], [5, 5]), ([5, 5], [5, 0]), ([5, 5], [5, -1])],
)
def test_times_that_give_no_value_are_a_metric_error(base: list[int], cand: list[int]) -> None:
    with pytest.raises(MetricError, match="same number of positive slice times"):
        blocks.log_ratio(base, cand)


# --- putting a block together


def a_side(late_ms: float = 0.1, awake_ns: int = 0, slices: int = 8) -> Side:
    """Slices of 20 ms."""
    return Side(
        ns=[20 * MS] * slices,
        cpu_ns=[30 * MS] * slices,
        parent_ns=[round((20 + late_ms) * MS)] * slices,
        waited_ns=[0] * slices,
        ending_ns=[0] * slices,
        awake_ns=[awake_ns] * slices,
    )


def put_together(base: Side, cand: Side, busy: Contention = QUIET, **more: Any) -> Block:
    setting = blocks.Setting(a_plan("a", "screen"), 3, 1, {}, Path("none"))
    return blocks.record(setting, "BC" * 8, 100, {"base": base, "cand": cand}, busy, **more)


def test_a_quiet_block_is_kept_with_what_its_clocks_said() -> None:
    for paired in (True, False):
        block = put_together(a_side(), a_side(), paired=paired)
        assert (block.dropped, block.index, block.coin, block.steps) == (None, 3, 1, 100)
        assert block.witness["cpu_ns_per_step"] == {"base": 300_000.0, "cand": 300_000.0}
        assert block.witness["parent_excess_ns"] == {"base": 100_000, "cand": 100_000}
        assert ("clock_gap" in block.witness) == paired


def test_a_block_is_dropped_for_a_busy_machine_for_late_answers_and_for_restless_turns() -> None:
    quiet, late, restless = a_side(), a_side(late_ms=9.0), a_side(awake_ns=600_000)
    waiting = replace(QUIET, waited_share=0.9)
    for sides, busy, says in (
        ((quiet, quiet), waiting, "waited_share 0.90 is above"),
        ((late, late), waiting, "waited_share 0.90 is above"),
        ((late, late), QUIET, "the baseline's answers were 9.0 ms late"),
        ((quiet, restless), QUIET, "the candidate's worker was on a processor in the baseline's slices"),
    ):
        dropped = put_together(*sides, busy, paired=True).dropped
        assert dropped is not None and dropped.startswith(f"{BUSY}: {says}")
    # Without turns nobody can have worked in the other's.
    assert put_together(quiet, restless).dropped is None


def test_clocks_are_held_against_what_was_timed_at_once() -> None:
    """The sum of ten answers is later than one may be; a claim hidden in a sum is still found."""
    whole, parts = a_side(late_ms=8.0), a_side(late_ms=0.8)
    requests = {"base": parts, "cand": parts}
    block = put_together(whole, whole, requests=requests)
    assert block.dropped is None and block.witness["parent_excess_ns"]["base"] == 800_000
    with pytest.raises(Tampered, match="every answer was late"):
        put_together(whole, whole)
    with pytest.raises(Tampered, match="the candidate's clock"):
        put_together(parts, parts, requests={"base": parts, "cand": a_side(late_ms=-5.0)})


def test_a_process_that_stays_is_its_sides() -> None:
    blocks.check_leftovers({"base": 0, "cand": 0})
    with pytest.raises(
        Tampered, match="the candidate's worker must leave no process behind; 2 still"
    ) as error:
        blocks.check_leftovers({"base": 0, "cand": 2})
    assert error.value.details == {"side": "cand", "left_behind": 2}


@LINUX
def test_what_hides_from_its_mark_and_its_session_is_tampering(tmp_path: Path) -> None:
    with blocks.nothing_strays():
        subprocess.run(["true"], check=True)
    hides = f"setsid env -i sleep 60 </dev/null >/dev/null 2>&1 & echo $! > {tmp_path}/pid"
    with pytest.raises(Tampered, match="1 that hid still ran"), blocks.nothing_strays():
        subprocess.run(["sh", "-c", hides], check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


# --- whole blocks


@pytest.mark.parametrize("measured", [blocks.run, blocks.run_halves])
@pytest.mark.parametrize("slices", [0, -2, 1, 3])
def test_slice_counts_that_cannot_balance_are_refused_before_anything_starts(
    lab: bare_lab.Lab, measured: Any, slices: int
) -> None:
    setting = blocks.Setting(lab.plan(slices=slices), 0, 0, {}, lab.adapter)
    with pytest.raises(UsageError, match=f"even and at least 2.*; found {slices}"):
        measured(setting)


def test_two_slices_a_side_are_enough(lab: bare_lab.Lab) -> None:
    blocks._check_slices(lab.plan(slices=2))


@pytest.mark.parametrize("unit", ["block", "process"])
def test_a_unit_says_how_the_sides_take_turns(lab: bare_lab.Lab, unit: str) -> None:
    base, cand = lab.build("base"), lab.build("cand", "WORK = 400")
    block = measure.run_block(lab.plan(unit=unit), 0, 0, base, cand, repo=lab.repo)
    assert block.order == ("BCCBCBBC" * 3 if unit == "block" else "B" * 12 + "C" * 12)
    assert len(block.base_ns) == len(block.cand_ns) == 12
    assert block.digests["base"] == block.digests["cand"] != bare_lab.nothing()
    assert ("clock_gap" in block.witness) == (unit == "block")
    assert block.witness["contention"]["switches_per_s"] is not None
    assert block.witness["layouts"]["reason"] == "no [layout] command"


def test_a_pair_of_invocations_is_a_block_of_repeats(lab: bare_lab.Lab) -> None:
    base, cand = lab.build("base"), lab.build("cand")
    plan = lab.plan(legacy={"steps": 250, "repeats": 2}, unit="process")
    block = measure.run_block(plan, 0, 1, base, cand, repo=lab.repo)
    assert (block.order, block.steps, len(block.base_ns), len(block.cand_ns)) == ("CCBB", 250, 2, 2)
    assert block.digests["base"] == block.digests["cand"] != bare_lab.nothing()
    assert block.witness["contention"]["switches_per_s"] is not None
    assert "layouts" not in block.witness


# Each way of measuring by what it is called with.
WAYS = {
    "resident": blocks.run,
    "halves": blocks.run_halves,
    "invocations": lambda setting: invocations.run_pair(setting, {"steps": 250, "repeats": 2}),
}


@pytest.mark.parametrize("way", WAYS)
def test_outputs_that_differ_later_than_was_compared_before_change_behaviour(
    lab: bare_lab.Lab, way: str
) -> None:
    part = "COUNT = [0]\nreal = Session.step\ndef step(self, action):\n    COUNT[0] += 1\n"
    part += "    return real(self, action) + (COUNT[0] > 200)\nSession.step = step\n"
    setting = lab.setting(lab.build("base"), lab.build("cand", part), slice_ms=5.0)
    with pytest.raises(BehaviourChanged, match="differ while timing"):
        WAYS[way](setting)


@LINUX
@pytest.mark.parametrize("way", WAYS)
def test_a_child_that_a_worker_leaves_is_tampering(lab: bare_lab.Lab, way: str) -> None:
    setting = lab.setting(lab.build("base"), lab.build("cand", bare_lab.LEAVES_A_CHILD))
    with pytest.raises(Tampered, match="the candidate's worker must leave no process behind; 1 still"):
        WAYS[way](setting)


@LINUX
def test_a_worker_that_is_scheduled_otherwise_is_tampering(lab: bare_lab.Lab) -> None:
    setting = lab.setting(lab.build("base"), lab.build("cand", "os.nice(3)"))
    with pytest.raises(Tampered, match="threads must be scheduled alike"):
        blocks.run(setting)


# --- equality


LIES = """
import __main__
real = __main__.Server.verify
def verify(self, request):
    answer = real(self, request)
    answer.update({told})
    return answer
__main__.Server.verify = verify
"""


@pytest.mark.parametrize(
    ("part", "equal", "first"),
    [
        ("", True, None),
        ("Session.step = lambda self, action: 5", False, "step 0"),
        (LIES.format(told="digest='other'"), False, None),
        (LIES.format(told="per_step=[*answer['per_step'][:9], ['step 9', 'other']]"), False, "step 9"),
        (LIES.format(told="per_step=answer['per_step'][:9]"), False, "step 9, which only one side gave"),
    ],
)
def test_builds_are_equal_where_all_that_they_gave_is(
    lab: bare_lab.Lab, part: str, equal: bool, first: str | None
) -> None:
    base, cand = lab.build("base"), lab.build("cand", part)
    found = measure.verify_equal(lab.plan(), base, cand, repo=lab.repo)
    assert (found.equal, found.items, found.steps, found.first_difference) == (equal, 10, 10, first)


@pytest.mark.parametrize(
    ("base", "cand", "first"),
    [
        ([["a", "1"], ["b", "2"]], [["a", "1"], ["b", "2"]], None),
        ([["a", "1"], ["b", "2"]], [["a", "1"], ["b", "3"]], "b"),
        ([["a", "1"]], [["b", "1"]], "the baseline gave 'a' where the candidate gave 'b'"),
        ([["a", "1"], ["b", "2"]], [["a", "1"]], "b, which only one side gave"),
        ([["a", "1"]], [["a", "1"], ["b", "2"]], "b, which only one side gave"),
        ([], [], None),
    ],
)
def test_the_first_difference_has_its_label(
    base: list[list[str]], cand: list[list[str]], first: str | None
) -> None:
    assert equality.first_difference(base, cand) == first


@LINUX
def test_a_child_that_is_left_while_work_is_compared_is_tampering(lab: bare_lab.Lab) -> None:
    base, cand = lab.build("base"), lab.build("cand", bare_lab.LEAVES_A_CHILD)
    with pytest.raises(Tampered, match="the candidate's worker must leave no process behind"):
        measure.verify_equal(lab.plan(), base, cand, repo=lab.repo)


def test_a_build_that_does_not_open_ends_the_comparison(lab: bare_lab.Lab) -> None:
    base, cand = lab.build("base"), lab.build("cand", "raise ValueError('no such thing')")
    with pytest.raises(WorkerCrashed, match="failed in open: ValueError: no such thing"):
        measure.verify_equal(lab.plan(), base, cand, repo=lab.repo)


# --- what may be measured at all


def test_a_build_or_a_harness_that_is_another_than_planned_is_tampering(lab: bare_lab.Lab) -> None:
    base, cand = lab.build("base"), lab.build("cand")
    plan = lab.plan()
    for one, other in ((base, cand), (cand, base)):
        planted = Path(one.path, "planted")
        planted.write_text("results")
        with pytest.raises(Tampered, match="changed on disk"):
            measure.run_block(plan, 0, 0, one, other, repo=lab.repo)
        with pytest.raises(Tampered, match="changed on disk"):
            measure.run_block(plan, 0, 0, other, one, repo=lab.repo)
        planted.unlink()
    measure.run_block(plan, 0, 0, base, cand, repo=lab.repo)
    lab.adapter.with_name("bare_table.json").write_text("{}")
    with pytest.raises(Tampered, match="the harness must stay as it was when the plan was made"):
        measure.run_block(plan, 0, 0, base, cand, repo=lab.repo)


def test_commands_go_the_way_of_commands(lab: bare_lab.Lab) -> None:
    base, cand = lab.build("base"), lab.build("cand")
    command = "echo METRIC rate=10; echo DIGEST steps=$CARTLAB_VERIFY_STEPS"
    workload = replace(
        lab.workload, kind="command", command=command, metric="rate", params={"runs": 2}, unit="x"
    )
    plan = lab.plan(workload=workload, slices=7)
    found = measure.verify_equal(plan, base, cand, repo=lab.repo)
    assert (found.equal, found.items) == (True, 2)
    block = measure.run_block(plan, 0, 0, base, cand, repo=lab.repo)
    assert block.order == "BCCB" and block.witness["layouts"]["reason"] == "no [layout] command"
    counted = measure.count_instructions(plan, base, cand, repo=lab.repo)
    assert (counted.tool, counted.reason) == (None, "only slices can be counted")


# --- the harness


def test_an_adapter_is_hashed_with_its_tables_and_with_the_adapters_that_it_names(lab: bare_lab.Lab) -> None:
    folder, own = (
        lab.adapter.parent,
        set(measure.harness_files(lab.repo, replace(lab.workload, kind="command"))),
    )

    def found() -> set[str]:
        files = measure.harness_files(lab.repo, lab.workload)
        assert set(files) >= own
        return {path.name for path in files if path not in own}

    for name in ("bare_table.json", "other.py", "other_table.json", "third.py", "stranger.py"):
        (folder / name).write_text("")
    (folder / "bare_folder").mkdir()
    assert found() == {"bare.py", "bare_table.json"}
    lab.adapter.write_text('build_on("other")\n')
    # Two that name each other, and one that names itself.
    (folder / "other.py").write_text('build_on("bare", "third")\n')
    assert found() == {"bare.py", "bare_table.json", "other.py", "other_table.json", "third.py"}
    (folder / "other.py").write_text('build_on("bare"); build_on("third")\n')
    (folder / "third.py").write_text('NAME = "third"\n')
    assert found() == {"bare.py", "bare_table.json", "other.py", "other_table.json", "third.py"}
    with pytest.raises(BadInput, match=r"must name an adapter file in this checkout; not harness/none\.py"):
        measure.harness_files(lab.repo, replace(lab.workload, command="harness/none.py"))


def test_the_harness_hash_follows_names_and_bytes(lab: bare_lab.Lab) -> None:
    def now() -> str:
        return measure.harness_hash(lab.repo, lab.workload)

    table = lab.adapter.with_name("bare_table.json")
    found = [now()]
    for text in ("{1}", "{2}"):
        table.write_text(text)
        found.append(now())
    table = table.rename(table.with_name("bare_values.json"))
    found.append(now())
    assert len(set(found)) == 4
    table.unlink()
    assert now() == found[0]
