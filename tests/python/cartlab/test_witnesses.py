"""Witnesses: CPU time and instructions stand beside the claim, and a disagreement is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import fake_project
import pytest

from cartlab import measure
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
def test_callgrind_counts_the_work_and_nothing_else(tmp_path: Path) -> None:
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
