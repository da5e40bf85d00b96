"""Relinked variants: other bytes, the same work; cached, checked, and recorded where they cannot be made."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

import fake_project
import pytest

from cartlab import config, measure, sources
from cartlab.errors import Tampered
from cartlab.measure import schedule
from cartlab.model import Block
from cartlab.stats import relink_floor

# The build leaves its object file; the layout command links it again with the seed in its build id.
BUILD = "cc -O1 -shared -fPIC -pthread -o $CARTLAB_BUILD_DIR/libengine.so engine.c || exit 1"
SAVING = "cc -O1 -fPIC -pthread -c -o $CARTLAB_LINK_DIR/engine.o engine.c || exit 1\n" + BUILD
LAYOUT = '''
[layout]
command = """
cd $CARTLAB_LINK_DIR
cc -shared -pthread -Wl,--build-id=0x0000000$CARTLAB_LAYOUT_SEED -o $CARTLAB_ARTIFACT engine.o
"""
'''


def make(tmp_path: Path, layout: str = LAYOUT) -> fake_project.Project:
    assert BUILD in fake_project.CONFIG
    return fake_project.make(tmp_path / "repo", fake_project.CONFIG.replace(BUILD, SAVING) + layout)


def test_a_variant_is_another_artifact_beside_an_untouched_build(tmp_path: Path) -> None:
    project = make(tmp_path)
    settings, build = config.load(project.path), project.build(tmp_path / "root")
    one, two = sources.variant(settings, build, 1), sources.variant(settings, build, 2)
    assert len({build.artifact_sha256, one.artifact_sha256, two.artifact_sha256}) == 3
    assert (one.ref, one.artifact) == (build.ref, build.artifact)
    for each in (build, one, two):
        sources.check(each)
    again = sources.variant(settings, build, 1)
    assert again.cached and not one.cached
    assert again.artifact_sha256 == one.artifact_sha256


def test_a_variant_that_changed_on_disk_is_made_anew(tmp_path: Path) -> None:
    project = make(tmp_path)
    settings, build = config.load(project.path), project.build(tmp_path / "root")
    made = sources.variant(settings, build, 1)
    Path(made.path, made.artifact).write_bytes(b"not what was linked")
    with pytest.raises(Tampered):
        sources.check(made)
    assert not sources.variant(settings, build, 1).cached


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 3", "ended with exit code 3"),
        ("true", "left the artifact as it was"),
        ("rm $CARTLAB_ARTIFACT", "left the artifact as it was"),
    ],
)
def test_what_cannot_be_relinked_is_said_once_and_remembered(
    tmp_path: Path, command: str, reason: str
) -> None:
    project = make(tmp_path, f'\n[layout]\ncommand = "echo run >> {tmp_path}/runs; {command}"\n')
    settings, build = config.load(project.path), project.build(tmp_path / "root")
    for _ in range(2):
        with pytest.raises(sources.CannotRelink, match=reason):
            sources.variant(settings, build, 1)
    assert (tmp_path / "runs").read_text() == "run\n"
    sources.check(build)


def test_blocks_measure_drawn_variants_and_record_their_numbers(tmp_path: Path) -> None:
    project = make(tmp_path)
    build, plan = project.build(tmp_path / "root"), project.plan()
    drawn = []
    for index in range(3):
        layouts = measure.run_block(plan, index, 0, build, build, repo=project.path).witness["layouts"]
        assert set(layouts) == {"base", "cand"}
        assert all(1 <= number <= sources.VARIANTS for number in layouts.values())
        drawn.append((layouts["base"], layouts["cand"]))
    turned = measure.run_block(plan, 0, 1, build, build, repo=project.path).witness["layouts"]
    assert (turned["cand"], turned["base"]) == drawn[0]
    assert drawn == [
        tuple(
            1 + schedule.number(plan.attempt_id, index, f"variant-{role}", sources.VARIANTS)
            for role in (1, 2)
        )
        for index in range(3)
    ]


def test_a_block_without_a_layout_command_says_so(tmp_path: Path) -> None:
    project = make(tmp_path, "")
    build = project.build(tmp_path / "root")
    layouts = measure.run_block(project.plan(), 0, 0, build, build, repo=project.path).witness["layouts"]
    assert layouts == {"base": None, "cand": None, "reason": "no [layout] command"}


def calibration(
    scatter: float, noise: float, blocks: int = 64, waited: float = 0.1, relinked: bool = True
) -> list[Block]:
    """Blocks whose values scatter by `scatter`, of slices that scatter by `noise`; both normal, seeded."""
    draw = random.Random(5)
    found = []
    for index in range(blocks):
        middle = draw.gauss(0.0, scatter)
        ratios = [middle + draw.gauss(0.0, noise) for _ in range(50)]
        base = tuple(round(1e9 * math.exp(ratio)) for ratio in ratios)
        layouts = (
            {"base": 1 + index % 8, "cand": 1 + index // 8 % 8} if relinked else {"base": None, "cand": None}
        )
        witness = {"layouts": layouts, "contention": {"waited_share": waited}}
        y = statistics.median(ratios)
        found.append(Block(index, 0, "BC" * 50, base, (10**9,) * 50, 1, y, witness=witness))
    return found


def test_the_relink_floor_is_what_layouts_leave_after_averaging_over_them() -> None:
    floor = relink_floor(calibration(scatter=0.03, noise=0.02))
    assert floor == pytest.approx(2.326 * 0.03 / math.sqrt(8), rel=0.25)


def test_noise_that_the_slices_explain_is_no_relink_floor() -> None:
    loud = relink_floor(calibration(scatter=0.0, noise=0.2))
    assert loud is not None
    assert loud < 0.02
    assert loud < 0.5 * 2.326 * 1.2533 * 0.2 / math.sqrt(50)


def test_what_cannot_relink_or_is_too_busy_has_no_floor() -> None:
    assert relink_floor(calibration(0.03, 0.02, blocks=7)) is None
    assert relink_floor(calibration(0.03, 0.02, relinked=False)) is None
    assert relink_floor(calibration(0.03, 0.02, waited=0.6)) is None
