"""Blocks with a fake worker: order, coin, digests, clocks, and what a worker that misbehaves ends in."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import fake_project
import pytest

from cartlab import measure
from cartlab.errors import (
    BadInput,
    BehaviourChanged,
    MetricError,
    Tampered,
    UsageError,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.measure import blocks, schedule
from cartlab.measure import worker as workers
from cartlab.model import Block


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


# --- schedule: pure


@pytest.mark.parametrize("coin", [0, 1])
@pytest.mark.parametrize("slices", [2, 8, 50, 52])
def test_orders_alternate_abba_and_baab_and_balance_first_places(coin: int, slices: int) -> None:
    pairs = schedule.pairs(coin, slices)
    firsts = [pair[0] for pair in pairs]
    assert len(pairs) == slices
    assert firsts.count("base") == firsts.count("cand") == slices // 2
    assert schedule.order(coin, 4) == ("BCCBCBBC" if coin == 0 else "CBBCBCCB")
    # A drift that is linear in time leaves nothing in a whole turn.
    order = schedule.order(coin, 4)
    for side in "BC":
        assert sum(at for at, letter in enumerate(order) if letter == side) == sum(range(8)) / 2


def test_the_coin_turns_spawn_order_padding_and_orientation_together() -> None:
    assert schedule.roles(0) == ("base", "cand")
    assert schedule.roles(1) == ("cand", "base")
    assert {schedule.draw_coin() for _ in range(64)} == {0, 1}


def test_block_numbers_are_the_same_on_replay_and_new_in_every_attempt_and_block() -> None:
    def seed(attempt: str, index: int) -> int:
        return schedule.number(attempt, index, "seed", 2**31)

    assert seed("a", 0) == seed("a", 0)
    assert len({seed("a", 0), seed("a", 1), seed("b", 0), schedule.number("a", 0, "layout", 2**31)}) == 4


def test_the_block_value_is_the_median_log_ratio_over_slice_pairs() -> None:
    assert blocks.log_ratio([110, 220, 100, 99], [100, 200, 1, 100]) == pytest.approx(math.log(1.1))
    assert blocks.log_ratio([100, 100], [200, 200]) == pytest.approx(-math.log(2))
    with pytest.raises(MetricError):
        blocks.log_ratio([100, 0], [100, 100])
    with pytest.raises(MetricError):
        blocks.log_ratio([100], [100, 100])


# --- equality before timing


def test_equal_work_is_equal_and_counts_what_was_compared(project: fake_project.Project, root: Path) -> None:
    build = project.build(root)
    found = measure.verify_equal(project.plan(), build, build, repo=project.path)
    assert found.equal
    assert found.first_difference is None
    assert found.items == 1 + 3 * 20 + 1
    assert found.to_json()["base_digest"] == found.to_json()["cand_digest"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"observe": "value ^ (actions[lane] == 7)"}, "observations"),
        ({"reward": "(double)(value % 8) + 1e-12"}, "step 0 rewards"),
        ({"observe": "value ^ (lane == 3)"}, "step 0 observations"),
    ],
)
def test_the_first_difference_is_named(
    project: fake_project.Project, root: Path, change: dict[str, str], named: str
) -> None:
    base = project.build(root)
    project.commit("other", **change)
    found = measure.verify_equal(project.plan(), base, project.build(root), repo=project.path)
    assert not found.equal
    assert found.first_difference is not None
    assert named in found.first_difference


def test_an_item_that_one_side_alone_gives_is_a_difference() -> None:
    from cartlab.measure.equality import first_difference

    short, long = [["a", "1"]], [["a", "1"], ["b", "2"]]
    assert first_difference(short, long) == first_difference(long, short) == "b, which only one side gave"
    assert (
        first_difference([["a", "1"]], [["b", "1"]]) == "the baseline gave 'a' where the candidate gave 'b'"
    )
    assert first_difference([["a", "1"]], [["a", "1"]]) is None


# --- blocks


def test_a_block_holds_everything_that_its_event_needs(project: fake_project.Project, root: Path) -> None:
    build, plan = project.build(root), project.plan()
    for coin in (0, 1):
        block = measure.run_block(plan, coin, coin, build, build, repo=project.path)
        assert (block.index, block.coin) == (coin, coin)
        assert len(block.base_ns) == len(block.cand_ns) == plan.slices
        assert block.order == schedule.order(coin, plan.slices)
        assert block.y == blocks.log_ratio(block.base_ns, block.cand_ns)
        assert block.digests["base"] == block.digests["cand"]
        assert block.steps > 0
        assert set(block.witness["cpu_ns_per_step"]) == {"base", "cand"}
        assert min(block.witness["cpu_ns_per_step"].values()) > 0
        assert Block.from_json(json.loads(json.dumps(block.to_json()))) == block


def test_a_candidate_that_works_twice_as_long_is_slower_whoever_plays_role_1(
    project: fake_project.Project, root: Path
) -> None:
    base = project.build(root)
    project.commit("slower", work=200)
    cand = project.build(root)
    for coin in (0, 1):
        block = measure.run_block(project.plan(), 0, coin, base, cand, repo=project.path)
        assert fake_project.gain(block) < -0.2
        assert block.witness["cpu_ns_per_step"]["cand"] > 1.3 * block.witness["cpu_ns_per_step"]["base"]
        turned = measure.run_block(project.plan(), 0, coin, cand, base, repo=project.path)
        assert fake_project.gain(turned) > 0.2


def test_slice_counts_that_cannot_balance_are_refused(project: fake_project.Project, root: Path) -> None:
    build = project.build(root)
    with pytest.raises(UsageError, match="must be even"):
        measure.run_block(project.plan(slices=7), 0, 0, build, build, repo=project.path)


def test_a_worker_that_dies_is_crashed_and_named(project: fake_project.Project, root: Path) -> None:
    base = project.build(root)
    project.commit("dies", before="#include <stdlib.h>", at_step="static int n; if (++n == 50) abort();")
    cand = project.build(root)
    with pytest.raises(WorkerCrashed, match="the candidate's worker ended with signal 6 during") as error:
        measure.run_block(project.plan(), 0, 0, base, cand, repo=project.path)
    assert error.value.exit_code == 15


def test_a_worker_that_hangs_is_killed_within_its_limit(
    project: fake_project.Project, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = project.build(root)
    project.commit("hangs", at_step="static int n; if (++n == 50) for (;;);")
    cand = project.build(root)
    monkeypatch.setitem(workers.LIMITS_S, "run", 0.5)  # type: ignore[misc]
    with pytest.raises(WorkerTimeout, match=r"the candidate's worker must answer run within 0\.5 s") as error:
        measure.run_block(project.plan(), 0, 0, base, cand, repo=project.path)
    assert error.value.exit_code == 15
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert cand.path not in listed


def test_a_worker_that_does_not_end_is_killed_within_its_limit(
    project: fake_project.Project, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = project.build(root)
    before = "#include <unistd.h>\n__attribute__((destructor)) static void stay(void) { for (;;) pause(); }"
    project.commit("stays", before=before)
    cand = project.build(root)
    monkeypatch.setitem(workers.LIMITS_S, "close", 0.5)  # type: ignore[misc]
    with pytest.raises(WorkerTimeout, match=r"the candidate's worker must answer close within 0\.5 s"):
        measure.run_block(project.plan(), 0, 0, base, cand, repo=project.path)


def test_an_adapter_that_is_not_there_is_bad_input(project: fake_project.Project, root: Path) -> None:
    build, plan = project.build(root), project.plan()
    wrong = dataclasses.replace(plan, workload=dataclasses.replace(plan.workload, command="harness/none.py"))
    with pytest.raises(BadInput, match="must name an adapter file"):
        measure.run_block(wrong, 0, 0, build, build, repo=project.path)


def test_a_workload_that_nobody_can_run_is_bad_input(project: fake_project.Project, root: Path) -> None:
    build, plan = project.build(root), project.plan()
    params = {**plan.workload.params, "lanes": -1}
    wrong = dataclasses.replace(plan, workload=dataclasses.replace(plan.workload, params=params))
    with pytest.raises(BadInput, match="lanes must be at least 1; found -1"):
        measure.verify_equal(wrong, build, build, repo=project.path)


def test_the_harness_hash_follows_the_adapter_and_its_tables(project: fake_project.Project) -> None:
    workload = project.plan().workload
    hashes = {measure.harness_hash(project.path, workload)}
    project.write("harness/workload_policy.json", "{}")
    hashes.add(measure.harness_hash(project.path, workload))
    project.write("harness/workload.py", "# other\n")
    hashes.add(measure.harness_hash(project.path, workload))
    project.write("harness/unrelated.py", "# other\n")
    hashes.add(measure.harness_hash(project.path, workload))
    assert len(hashes) == 3
    project.write("autoresearch.toml", fake_project.CONFIG + '[layout]\ncommand = "another"\n')
    hashes.add(measure.harness_hash(project.path, workload))
    assert len(hashes) == 4


# What measuring imports and yet does not depend on: plain values, errors, and the reading of the settings
# (whose workload and layout are hashed themselves).
VALUES = {"model", "errors", "config", "sources"}


def test_whatever_measuring_imports_is_in_the_harness_hash(project: fake_project.Project) -> None:
    package = Path(measure.__file__).resolve().parent.parent
    hashed = {path.resolve() for path in measure.harness_files(project.path, project.plan().workload)}
    named = {"sources.layouts", "sources.stamps", "sources.tools"}
    for path in sorted((package / "measure").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cartlab":
                stem = str(node.module).partition(".")[2]
                named |= {stem} if stem else {alias.name for alias in node.names}
    assert {"measure.worker", "processes", "host"} <= named
    for name in named - VALUES - {"measure"}:
        assert (package / f"{name.replace('.', '/')}.py") in hashed, name


# --- the protocol to the letter


def converse(
    project: fake_project.Project, build_dir: str, *requests: dict[str, object]
) -> list[dict[str, object]]:
    """Start the slice server as the contract says and send it JSON lines."""
    done = subprocess.run(
        [sys.executable, "-I", str(workers.SERVER), str(project.path / "harness/workload.py"), build_dir],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_slice_server_speaks_the_protocol(project: fake_project.Project, root: Path) -> None:
    build = project.build(root)
    workload = {"name": "fake", "params": {"lanes": 2, "work": 10}}
    opening = {"op": "open", "workload": workload, "seed": 5, "layout_seed": 0}
    answers = converse(
        project,
        build.path,
        opening,
        {"op": "run", "steps": 6},
        {"op": "digest", "obs_steps": [0, 2, 5, 5]},
        {"op": "digest", "obs_steps": []},
        {"op": "verify", "steps": 3},
        {"op": "close"},
        {"op": "run", "steps": 1},
    )
    opened, ran, digest, fewer, verified = answers
    assert opened == {"ok": True, "build": build.artifact_sha256}
    assert set(ran) == {"ns", "cpu_ns"}
    assert set(digest) == set(fewer) == {"digest"}
    assert digest != fewer
    assert set(verified) == {"digest", "per_step"}
    again = converse(
        project, build.path, opening, {"op": "run", "steps": 6}, {"op": "digest", "obs_steps": [0, 2, 5, 5]}
    )
    assert again[2] == digest
    other = converse(
        project,
        build.path,
        {**opening, "seed": 6},
        {"op": "run", "steps": 6},
        {"op": "digest", "obs_steps": []},
    )
    assert other[2] != fewer


def test_open_fails_unless_the_native_module_lies_in_the_build_directory(
    project: fake_project.Project, root: Path, tmp_path: Path
) -> None:
    build = project.build(root)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "libengine.so").symlink_to(Path(build.path) / "libengine.so")
    opening = {"op": "open", "workload": {"name": "fake", "params": {"lanes": 2, "work": 1}}, "seed": 1}
    (answer,) = converse(project, str(outside), opening)
    assert "must lie in the build directory" in str(answer["error"])
    (answer,) = converse(project, str(tmp_path / "nowhere"), opening)
    assert "error" in answer


def test_unknown_and_failing_requests_are_answered_with_an_error(
    project: fake_project.Project, root: Path
) -> None:
    build = project.build(root)
    first, second = converse(project, build.path, {"op": "sleep"}, {"op": "run", "steps": 1})
    assert "op must be one of open, run, digest, verify, close" in str(first["error"])
    assert "error" in second


def test_digests_tell_types_shapes_and_places_apart() -> None:
    import importlib.util

    import numpy as np

    spec = importlib.util.spec_from_file_location("server_under_test", workers.SERVER)
    assert spec is not None and spec.loader is not None
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    values = [
        None, 0, 1, 1.0, True, "1", b"1", [1], [[1]], [], {}, {"a": 1}, {"b": 1}, ["ab", "c"], ["a", "bc"],
        np.zeros(2), np.zeros((1, 2)), np.zeros(2, np.float32), np.zeros(2, np.int64),
        np.array([None, 1], object),
        -0.0, 0.0, float("nan"),
    ]  # fmt: skip
    digests = [server.digest_of(value) for value in values]
    assert len(set(digests)) == len(values)
    assert server.digest_of({"a": 1, "b": 2}) == server.digest_of({"b": 2, "a": 1})
    assert server.digest_of(np.arange(6).reshape(2, 3).T) == server.digest_of(
        np.arange(6).reshape(2, 3).T.copy()
    )
    with pytest.raises(TypeError, match="a digest takes"):
        server.digest_of(object())


def test_an_error_beside_a_worker_ends_it_and_removes_its_folder(
    project: fake_project.Project, root: Path
) -> None:
    build, adapter = project.build(root), measure.adapter_of(project.path, project.plan().workload)
    with pytest.raises(KeyError), workers.Worker("baseline", build, adapter) as worker:
        os.kill(worker.pid, 0)
        raise KeyError
    with pytest.raises(ProcessLookupError):  # Gone, and nobody's zombie.
        os.kill(worker.pid, 0)
    assert not worker.scratch.exists()


# --- one process a half


def test_a_block_of_two_processes_does_the_same_work_one_half_after_the_other(
    project: fake_project.Project, root: Path
) -> None:
    base = project.build(root)
    project.commit("slower", work=200)
    cand = project.build(root)
    plan = project.plan(unit="process")
    for coin in (0, 1):
        block = measure.run_block(plan, 0, coin, base, cand, repo=project.path)
        halves = "B" * plan.slices, "C" * plan.slices
        assert block.order == (halves[0] + halves[1] if coin == 0 else halves[1] + halves[0])
        assert fake_project.gain(block) < -0.2
        assert block.digests["base"] == block.digests["cand"] != hashlib.sha256().hexdigest()
        assert block.witness["contention"]["cpu_per_wall"] > 0


def test_a_block_of_two_processes_compares_outputs_too(project: fake_project.Project, root: Path) -> None:
    base = project.build(root)
    project.commit("other", observe="value ^ 1")
    cand = project.build(root)
    with pytest.raises(BehaviourChanged, match="differ while timing"):
        measure.run_block(project.plan(unit="process"), 0, 1, base, cand, repo=project.path)


def test_a_harness_that_changes_during_a_run_ends_it(project: fake_project.Project, root: Path) -> None:
    build, plan = project.build(root), project.plan()
    project.write("harness/workload_table.json", "{}")
    with pytest.raises(Tampered, match="the harness must stay as it was"):
        measure.run_block(plan, 0, 0, build, build, repo=project.path)
