"""Witnesses: CPU time and instructions stand beside the claim, and a disagreement is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_project
import pytest

from cartlab import advice, host, measure
from cartlab.measure import counters
from cartlab.model import Block
from cartlab.stats.witnesses import witnesses


def block(base_cpu: float, cand_cpu: float, dropped: str | None = None) -> Block:
    times = {"cpu_ns_per_step": {"base": base_cpu, "cand": cand_cpu}}
    return Block(0, 0, "BC", (1,), (1,), 1, 0.0, dropped=dropped, witness=times)


def test_cpu_time_is_the_median_over_valid_blocks() -> None:
    blocks = [block(110, 100), block(121, 110), block(150, 100, "busy: x"), block(99, 90)]
    found = witnesses(blocks, 1.1)
    assert found.cpu == pytest.approx(1.1)
    assert found.instructions is None
    assert found.disagree == ()


@pytest.mark.parametrize(
    ("hl", "cand_cpu", "counted", "disagree"),
    [
        (1.10, 120.0, {"base": 100.0, "cand": 90.0}, ["CPU time"]),
        (1.10, 90.0, {"base": 100.0, "cand": 120.0}, ["instructions"]),
        (0.90, 90.0, {"base": 100.0, "cand": 80.0}, ["CPU time", "instructions"]),
        (1.10, 100.5, {"base": 100.0, "cand": 100.5}, []),
        (1.005, 120.0, None, []),
        (None, 120.0, None, []),
    ],
)
def test_only_opinions_in_opposite_directions_disagree(
    hl: float | None, cand_cpu: float, counted: dict[str, float] | None, disagree: list[str]
) -> None:
    found = witnesses([block(100.0, cand_cpu)], hl, counted)
    assert len(found.disagree) == len(disagree)
    for text, name in zip(found.disagree, disagree, strict=True):
        assert name in text
        assert name in found.line()


def test_blocks_without_cpu_times_have_no_such_witness() -> None:
    assert witnesses([Block(0, 0, "BC", (1,), (1,), 1, 0.0)], 1.1).cpu is None
    assert witnesses([], None).line() == "  witnesses: none"


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_callgrind_counts_the_work_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "counts_instructions", lambda: False)
    project = fake_project.make(tmp_path / "repo")
    base = project.build(tmp_path / "root")
    project.commit("half as much again", work=150)
    cand = project.build(tmp_path / "root")
    found = measure.count_instructions(project.plan(), base, cand, repo=project.path)
    assert found.tool == "callgrind", found.reason
    assert found.base is not None and found.cand is not None
    # Four lanes of 2,000 turns of a few instructions each; the candidate's thousand turns more are what
    # differs.
    assert 4 * 1000 * 3 < found.cand - found.base < 4 * 1000 * 12
    same = measure.count_instructions(project.plan(), base, base, repo=project.path)
    assert same.base is not None and same.cand is not None
    assert same.base == pytest.approx(same.cand, rel=0.02)


def test_without_valgrind_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = fake_project.make(tmp_path / "repo")
    build = project.build(tmp_path / "root")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    found = measure.count_instructions(project.plan(), build, build, repo=project.path)
    assert (found.tool, found.reason) == (None, "valgrind is not installed")


# perf as far as the counter talks to it: notes each order, obeys, and tells a number of the worker's steps.
PERF = """
import os, signal, sys
words = sys.argv[1:]
if "-p" not in words:
    print("1000,,instructions:u,1,100.00,,", file=sys.stderr)
    sys.exit(0)
report = words[words.index("-o") + 1]
orders, answers = map(int, words[words.index("--control") + 1].removeprefix("fd:").split(","))
seen = []
def ended(*_):
    assert seen == ["enable", "disable"], seen
    open(report, "w").write("# started\\n\\n{value},,{event},1,100.00,,\\n")
    sys.exit(0)
signal.signal(signal.SIGINT, ended)
for line in os.fdopen(orders):
    seen.append(line.strip())
    os.write(answers, b"ack\\n")
signal.pause()
"""


def fake_perf(folder: Path, value: str = "640000", event: str = "instructions:u") -> None:
    folder.mkdir()
    text = PERF.replace("{value}", value).replace("{event}", event)
    (folder / "perf").write_text(f"#!{sys.executable}\n{text}")
    (folder / "perf").chmod(0o755)


def test_the_processors_counter_is_asked_where_it_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_perf(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    project = fake_project.make(tmp_path / "repo")
    build = project.build(tmp_path / "root")
    assert host.counts_instructions() and "perf" in advice.witnesses().found
    found = measure.count_instructions(project.plan(), build, build, repo=project.path)
    assert (found.tool, found.base, found.cand) == ("perf", 10_000.0, 10_000.0), found.reason


@pytest.mark.parametrize(
    ("value", "event", "says"),
    [("<not supported>", "instructions:u", "counts no instructions:u"), ("1", "cycles:u", "no count in")],
)
def test_a_counter_without_an_answer_is_no_witness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, event: str, says: str
) -> None:
    fake_perf(tmp_path / "bin", value, event)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    project = fake_project.make(tmp_path / "repo")
    build = project.build(tmp_path / "root")
    found = measure.count_instructions(project.plan(), build, build, repo=project.path)
    assert found.base is None and says in found.reason


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_perf_itself_counts_what_happens_between_on_and_off(tmp_path: Path) -> None:
    # The clock of a task is there in every virtual machine, the instruction counter in few.
    busy = "import sys\nfor _ in sys.stdin:\n    sum(range(10**7))\n    print('done', flush=True)\n"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", busy], **pipes) as worker:
        assert worker.stdin is not None and worker.stdout is not None

        def work() -> None:
            print("go", file=worker.stdin, flush=True)
            worker.stdout.readline()  # type: ignore[union-attr]

        work()
        with counters.attached(worker.pid, tmp_path / "report", "task-clock:u") as counter:
            work()
            counter.on()
            work()
            counter.off()
            work()
            once = counter.total()
        with counters.attached(worker.pid, tmp_path / "twice", "task-clock:u") as counter:
            counter.on()
            work()
            work()
            counter.off()
            twice = counter.total()
        worker.stdin.close()
    assert 0 < once < twice


def gapped(gap: float, dropped: str | None = None) -> Block:
    return Block(0, 0, "BC", (1,), (1,), 1, 0.0, dropped=dropped, witness={"clock_gap": gap})


@pytest.mark.parametrize(
    ("gaps", "disagrees"),
    [
        ([0.03] * 10, True),
        ([0.03] * 9, False),
        ([0.03] * 9 + [-0.01], False),
        ([0.03] * 20 + [-0.01] * 4, True),
        ([0.009] * 30, False),
        ([-0.03] * 30, False),
    ],
)
def test_a_clock_bent_below_the_tolerance_of_a_block_shows_over_blocks(
    gaps: list[float], disagrees: bool
) -> None:
    found = witnesses([*map(gapped, gaps), gapped(9.0, "busy: x")], 1.05)
    assert bool(found.disagree) == disagrees
    assert found.clock_gap == pytest.approx(sorted(gaps)[len(gaps) // 2], abs=1e-9)
    if disagrees:
        assert "the controller's clock" in found.line() and "3.0%" in found.line()
