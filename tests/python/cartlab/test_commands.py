"""Other people's repositories: a command that prints its metric, and a pytest-benchmark suite."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import fake_project
import pytest

from cartlab import config, measure
from cartlab.errors import (
    BehaviourChanged,
    MetricError,
    Tampered,
    UsageError,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.measure import commands
from cartlab.model import Block, Build, Plan, Workload

# A program whose METRIC is what it was compiled with: blocks are then exact to the digit.
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    printf("some text\\n");
    printf("METRIC rate=%g\\n", RATE);
    printf("{\\"latency\\": %g, \\"name\\": \\"x\\"}\\n", 1.0 / RATE);
    printf("DIGEST answer=%d\\n", ANSWER);
    return 0;
}
"""

CONFIG = """\
schema = 1
[project]
name = "tiny"
[build]
command = "cc -o $CARTLAB_BUILD_DIR/tiny $(cat flags) main.c"
artifact = "tiny"
[workload.rate]
kind = "command"
command = "$CARTLAB_BUILD_DIR/tiny"
metric = "rate"
unit = "things/s"
params = { runs = 4 }
"""


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    folder = tmp_path / "repo"
    folder.mkdir()
    made = fake_project.Project(folder)
    made.git("init", "-q", "-b", "main")
    made.write("autoresearch.toml", CONFIG)
    made.write("main.c", PROGRAM)
    made.write("flags", "-DRATE=200.0 -DANSWER=42\n")
    made.commit("base")
    return made


def variant(project: fake_project.Project, root: Path, flags: str) -> Build:
    project.write("flags", flags)
    project.commit(flags)
    return project.build(root)


def plan(project: fake_project.Project, **changes: Any) -> Plan:
    made = project.plan()
    return dataclasses.replace(made, workload=dataclasses.replace(made.workload, **changes))


def test_a_commands_metric_becomes_the_block_value(project: fake_project.Project, tmp_path: Path) -> None:
    base = project.build(tmp_path / "root")
    cand = variant(project, tmp_path / "root", "-DRATE=220.0 -DANSWER=42")
    for coin in (0, 1):
        block = measure.run_block(plan(project), 0, coin, base, cand, repo=project.path)
        assert block.y == pytest.approx(math.log(1.1), abs=1e-6)
        assert len(block.base_ns) == len(block.cand_ns) == 4
        assert block.order == ("BCCBCBBC" if coin == 0 else "CBBCBCCB")
        rates = [block.steps * 1e9 / ns for ns in block.base_ns]
        assert rates == pytest.approx([200.0] * 4, rel=1e-6)
        assert Block.from_json(json.loads(json.dumps(block.to_json()))) == block
        assert block.digests["base"] == block.digests["cand"]


def test_a_metric_where_lower_is_better_turns_the_sign(project: fake_project.Project, tmp_path: Path) -> None:
    base = project.build(tmp_path / "root")
    cand = variant(project, tmp_path / "root", "-DRATE=220.0 -DANSWER=42")
    by_latency = plan(project, metric="latency", direction="lower", unit="bytes")
    block = measure.run_block(by_latency, 0, 0, base, cand, repo=project.path)
    assert block.y == pytest.approx(math.log(1.1), abs=1e-5)


def test_the_controllers_own_clock_can_be_the_metric(project: fake_project.Project, tmp_path: Path) -> None:
    base = project.build(tmp_path / "root")
    by_wall = plan(project, metric="wall_seconds", direction="lower", unit="s")
    block = measure.run_block(by_wall, 0, 0, base, base, repo=project.path)
    assert min(block.base_ns) / block.steps > 1e4
    assert block.witness["wall_ns_per_run"]["base"] > 0


def test_a_command_that_gives_another_answer_changed_behaviour(
    project: fake_project.Project, tmp_path: Path
) -> None:
    base = project.build(tmp_path / "root")
    cand = variant(project, tmp_path / "root", "-DRATE=220.0 -DANSWER=43")
    found = measure.verify_equal(plan(project), base, cand, repo=project.path)
    assert not found.equal
    assert found.first_difference == "digest answer"
    with pytest.raises(BehaviourChanged, match="digest answer"):
        measure.run_block(plan(project), 0, 0, base, cand, repo=project.path)
    assert measure.verify_equal(plan(project), base, base, repo=project.path).equal


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        ("$CARTLAB_BUILD_DIR/tiny; exit 3", WorkerCrashed, "exit code 3"),
        ("echo METRIC other=1", MetricError, "must give the metric 'rate'; it gave other"),
        ("echo METRIC rate=fast", MetricError, "must be name=number"),
        ("echo METRIC rate=0", MetricError, "must be a number above 0"),
        ("echo METRIC rate=nan", MetricError, "must be a number above 0"),
        ("echo METRIC rate=1; sleep 30 &", Tampered, "must leave no process behind"),
        ("sleep 30", WorkerTimeout, "must end within 0.5 s"),
    ],
)
def test_a_command_that_misbehaves_is_named(
    project: fake_project.Project, tmp_path: Path, command: str, error: type[Exception], words: str
) -> None:
    build = project.build(tmp_path / "root")
    limit = {"timeout_s": 0.5} if "within" in words else {}
    with pytest.raises(error, match=words):
        measure.run_block(
            plan(project, command=command, params={"runs": 2, **limit}), 0, 0, build, build, repo=project.path
        )


def test_a_time_longer_than_the_process_lived_is_tampering(
    project: fake_project.Project, tmp_path: Path
) -> None:
    build = project.build(tmp_path / "root")
    lying = plan(project, command="echo METRIC t=100", metric="t", direction="lower", unit="s")
    with pytest.raises(Tampered, match="its process lived"):
        measure.run_block(lying, 0, 0, build, build, repo=project.path)


def test_a_time_is_believed_up_to_the_tolerance_and_not_beyond(project: fake_project.Project) -> None:
    told = plan(project, metric="t", direction="lower", unit="s").workload
    lived_ns = 20_000_000  # a twentieth and a millisecond more is 22 ms
    commands._clock_agrees(told, "cand", {"t": 0.022}, lived_ns)
    with pytest.raises(Tampered, match="the candidate says that t took"):
        commands._clock_agrees(told, "cand", {"t": 0.0226}, lived_ns)


def test_run_counts_that_cannot_balance_are_refused(project: fake_project.Project, tmp_path: Path) -> None:
    build = project.build(tmp_path / "root")
    with pytest.raises(UsageError, match="runs a side must be even"):
        measure.run_block(plan(project, params={"runs": 3}), 0, 0, build, build, repo=project.path)


def test_lines_of_a_command_are_read_as_metrics_digests_or_prose() -> None:
    text = (
        'METRIC a=1.5\n  METRIC b = 2e3\nDIGEST out=ab cd\n{"c": 4, "d": true, "e": "x"}\n'
        "{broken\nMETRIC\nnoise a=3\n"
    )
    text += '{"deep": ' + "[" * 100_000 + '\n{"huge": 1' + "0" * 400 + "}\n"
    assert commands.parse(text) == ({"a": 1.5, "b": 2000.0, "c": 4.0}, {"out": "ab cd"})


SUITE = """\
import tiny

def test_sum(benchmark):
    assert benchmark(tiny.work) == tiny.ANSWER

def test_other(benchmark):
    benchmark(lambda: None)
"""


def test_a_pytest_benchmark_suite_gives_one_metric_a_test(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    project = fake_project.Project(folder)
    project.git("init", "-q", "-b", "main")
    command = "$CARTLAB_PYTHON -m pytest -q bench --benchmark-max-time=0.02 --benchmark-min-rounds=3"
    text = CONFIG.replace(
        '"cc -o $CARTLAB_BUILD_DIR/tiny $(cat flags) main.c"', '"cp tiny.py $CARTLAB_BUILD_DIR"'
    )
    text = text.replace('artifact = "tiny"', 'artifact = "tiny.py"').replace(
        '"command"', '"pytest-benchmark"'
    )
    text = text.replace('"$CARTLAB_BUILD_DIR/tiny"', f'"{command}"').replace("runs = 4", "runs = 2")
    text = text.replace('metric = "rate"', 'metric = "bench/test_tiny.py::test_sum"\ndirection = "lower"')
    text = text.replace('unit = "things/s"', 'unit = "s"')
    project.write("autoresearch.toml", text)
    project.write("bench/test_tiny.py", SUITE)
    project.write("tiny.py", "ANSWER = 199990000\ndef work(): return sum(range(20000))\n")
    project.commit("base")
    base = project.build(tmp_path / "root")
    project.write(
        "tiny.py", "ANSWER = 199990000\ndef work(): return [sum(range(20000)) for _ in range(4)][0]\n"
    )
    project.commit("slower")
    cand = project.build(tmp_path / "root")
    made = dataclasses.replace(project.plan(), workload=config.load(folder).workload())
    before = project.git("status", "--porcelain", "--ignored")
    block = measure.run_block(made, 0, 0, base, cand, repo=folder)
    assert fake_project.gain(block) < -0.5
    assert set(block.witness["log_ratios"]) == {"bench/test_tiny.py::test_sum"}
    every = dataclasses.replace(made, workload=dataclasses.replace(made.workload, metric="*"))
    ratios = measure.run_block(every, 0, 0, base, cand, repo=folder).witness["log_ratios"]
    assert set(ratios) == {"bench/test_tiny.py::test_sum", "bench/test_tiny.py::test_other"}
    assert project.git("status", "--porcelain", "--ignored") == before
    project.write("conftest.py", "import importlib, sys\nsys.path.insert(0, '.')\nimport tiny\n")
    with pytest.raises(WorkerCrashed) as error:
        measure.run_block(made, 0, 0, base, cand, repo=folder)
    assert "must import tiny from the build" in error.value.details["stderr"]


def test_costs_of_several_metrics_are_their_geometric_mean() -> None:
    workload = Workload("w", "pytest-benchmark", "c", "*", "lower", "s", 0)
    assert commands.cost(workload, {"a": 1e-3, "b": 4e-3}) == pytest.approx(2e6)


def test_a_command_gets_the_seed_of_a_held_out_draw_and_the_public_run_gets_none(
    project: fake_project.Project, tmp_path: Path
) -> None:
    build = project.build(tmp_path / "root")
    workload = project.plan().workload
    command = "echo METRIC rate=1; echo DIGEST draw=${CARTLAB_HELD_OUT:-none}"
    public = dataclasses.replace(workload, command=command)
    found = [
        commands.once(one, "base", build, project.path, 0, 1, 0).digests["draw"]
        for one in (public, public.drawn("a1b2"), public.drawn("a1b2").public)
    ]
    assert found == ["none", "a1b2", "none"]
