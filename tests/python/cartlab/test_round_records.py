"""What a round leaves in the records: the cells of results.tsv, patches and trees that come again, and when a
calibration still counts.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from quick_desk import Desk, make_desk, open_round, to_stacked

from cartlab.errors import LeaseTimeout
from cartlab.ledger import Ledger
from cartlab.ledger.columns import parse_table
from cartlab.pipeline import learning
from cartlab.round import fold


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def test_the_ratio_to_the_rounds_baseline_stands_in_the_rows_of_proofs_alone(desk: Desk) -> None:
    before = desk.commit("before any round", work=90)
    assert desk.run("accept", f"{before}~1", before).code == 0
    base, _ = to_stacked(desk)
    assert desk.run("screen", f"{base}~1", base).code == 0
    assert desk.run("round", "confirm").code == 0
    rows = parse_table((desk.root / "results.tsv").read_text())
    cells = {(row["mode"], row["baseline_commit"] == base): row["ratio_vs_round_baseline"] for row in rows}
    assert cells[("accept", False)] == cells[("screen", True)] == cells[("screen", False)] == ""
    assert cells[("calibrate", True)] == ""
    for mode in ("accept-stack", "round confirm"):
        (row,) = [row for row in rows if row["mode"] == mode]
        assert float(row["ratio_vs_round_baseline"]) == float(row["hl_ratio"]) > 1.7


def test_the_end_of_an_attempt_says_its_patch_and_its_toolchain(desk: Desk) -> None:
    base, cand = to_stacked(desk)
    ends = {e["attempt"]: e["body"] for e in desk.events("attempt_finished")}
    tiers = {e["attempt"]: e["body"]["tier"] for e in desk.events("attempt_started")}
    by_tier = {tiers[name]: body for name, body in ends.items()}
    assert by_tier["calibrate"]["patch_id"] is None
    assert by_tier["screen"]["relink_floor"] is None
    assert by_tier["screen"]["patch_id"] == by_tier["accept-stack"]["patch_id"] is not None
    assert {body["toolchain"] for body in ends.values()} == {desk.lab.toolchain(desk.project.path)}
    assert {base, cand} == {desk.project.git("rev-parse", ref) for ref in ("HEAD~1", "HEAD")}


def test_a_tree_or_a_patch_that_comes_again_is_named_with_its_earlier_verdict(desk: Desk) -> None:
    base = open_round(desk)
    slow = desk.commit("slow", work=150)
    assert desk.run("screen", base, slow).code == 10
    assert "was judged before" not in desk.run("screen", base, slow, "--again").err
    desk.project.git("checkout", "-q", "-b", "elsewhere", base)
    desk.project.write("README", "other words\n")
    other = desk.project.commit("words")
    desk.project.git("cherry-pick", slow)
    patch = desk.run("screen", other, "HEAD")
    assert f"the same patch was judged before: triage_discard as {slow[:12]}" in patch.err
    # Twice the same idea, so that the round asks for a look.
    assert desk.run("round", "resume", "--reason", "a test").code == 0
    tree = desk.run("accept", base, "HEAD", "--dry-run")
    assert (
        f"the same tree was judged before: triage_discard as {desk.project.git('rev-parse', 'HEAD')[:12]}"
        in (tree.err)
    )


def test_a_calibration_counts_for_its_host_its_toolchain_and_a_week(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = open_round(desk)

    def first() -> str:
        action: str = desk.run("next", "--json").json["details"]["actions"][0]["action"]
        return action

    assert first() == "diagnose"
    real = desk.lab
    for name, other in (("toolchain", lambda *_: "t" * 64), ("host_class", lambda: "another host")):
        desk.lab = replace(real, **{name: other})
        assert first() == "calibrate", name
    assert desk.run("round", "abandon", "--reason", "over").code == 0
    refused = desk.run("round", "open")
    assert refused.code == 23 and "this host and toolchain" in refused.err
    desk.lab = real
    assert first() == "diagnose"
    monkeypatch.setattr("cartlab.sources.toolchain_id", lambda *_: "t" * 64)
    line = desk.run("next")
    assert line.report["next"].endswith("calibrate HEAD") and "toolchain" in line.out
    monkeypatch.undo()
    assert base == desk.project.git("rev-parse", "HEAD")


def test_hashes_that_a_round_pins_refuse_another_workload_harness_or_list_of_protected_paths(
    desk: Desk,
) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    toml = desk.project.path / "autoresearch.toml"
    before = toml.read_text()
    for change, words in (
        (before.replace("lanes = 4", "lanes = 5"), "pins its workload"),
        (before.replace('["harness/**", ', '["harness/other", '), "protected paths changed"),
    ):
        assert change != before
        toml.write_text(change)
        refused = desk.run("screen", base, "HEAD")
        assert refused.code == 23 and words in refused.err
    toml.write_text(before)
    adapter = desk.project.path / "harness" / "workload.py"
    adapter.write_text(adapter.read_text() + "# changed\n")
    refused = desk.run("screen", base, "HEAD")
    assert refused.code == 23 and "harness changed" in refused.err
    desk.project.git("checkout", "-q", "--", "harness")
    assert desk.run("screen", base, "HEAD").code == 0


def test_a_commit_inherits_the_checks_of_its_tree_and_no_quick_ones(desk: Desk) -> None:
    base = open_round(desk)
    ran: list[bool] = []
    real = desk.lab.run_checks
    desk.lab = replace(desk.lab, run_checks=lambda *w, **m: (ran.append(m["quick"]), real(*w, **m))[1])
    desk.project.engine(work=50)
    assert desk.run("checks", "--quick").code == 0
    assert desk.run("checks").code == 0
    desk.commit("half")
    assert desk.run("accept", base, "HEAD").code == 0
    assert ran == [True, False]
    desk.project.engine(work=40)
    assert desk.run("checks", "--quick").code == 0
    desk.commit("more")
    assert desk.run("accept", base, "HEAD").code == 0
    assert ran == [True, False, True, False]


def test_current_json_has_the_calibrations_toolchain(desk: Desk) -> None:
    assert desk.run("calibrate", "HEAD").code == 0
    current = json.loads((desk.root / "current.json").read_text())
    assert current["last_calibration"]["toolchain"] == desk.lab.toolchain(desk.project.path)


def seconds_a_valid_block(desk: Desk, tier: str) -> float:
    """By the newest run of this tier: its seconds in blocks, over the blocks that count."""
    name = [e["attempt"] for e in desk.events("attempt_started") if e["body"]["tier"] == tier][-1]
    blocks = [e["body"] for e in desk.events("block") if e["attempt"] == name]
    valid = sum(block["dropped"] is None for block in blocks)
    assert 0 < valid < len(blocks)
    (end,) = [e["body"] for e in desk.events("attempt_finished") if e["attempt"] == name]
    return float(end["seconds"]["blocks"]) / valid


def test_what_a_block_costs_counts_the_dropped_ones_beside_it(desk: Desk) -> None:
    ticks = itertools.count()
    desk.lab = replace(desk.lab, clock=lambda: float(next(ticks)))
    desk.change = lambda plan, block: replace(block, dropped="busy: test") if block.index % 5 == 1 else block
    base = open_round(desk)
    desk.commit("half", work=50)
    plan = desk.run("bisect", base, "HEAD", "--dry-run", "--json").json["details"]
    each = seconds_a_valid_block(desk, "calibrate")
    assert plan["costs"][0]["minutes"] == pytest.approx(
        plan["questions"] * plan["costs"][0]["blocks_a_question"] * each / 60
    )
    assert desk.run("screen", base, "HEAD").code == 0
    found = fold(Ledger.open(desk.root, mend=False).events())
    assert found is not None
    (candidate,) = found.candidates.values()
    assert candidate.seconds_per_block == pytest.approx(seconds_a_valid_block(desk, "screen"))


def test_probe_and_diagnose_wait_for_whoever_measures(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = desk.project.path / "engine.c"
    desk.project.build(desk.root.parent / "elsewhere")
    library = next((desk.root.parent / "elsewhere").rglob("libengine.so"))
    shutil.copy(library, desk.project.path / "libengine.so")
    os.utime(engine, (1, 1))
    held: list[str] = []
    timed: list[list[str]] = []

    @contextlib.contextmanager
    def turn(wait_s: float | None, _progress: object) -> Iterator[None]:
        held.append(f"waits up to {wait_s}")
        yield
        held.append("over")

    def probe(*_: object, **__: object) -> dict[str, object]:
        timed.append(list(held))
        raise LeaseTimeout("enough seen")

    monkeypatch.setattr(learning, "probe", probe)
    desk.lab = replace(desk.lab, lease=turn)
    for words in (("probe",), ("diagnose", "--quick")):
        assert desk.run(*words, "--dry-run").code == 0 and held == []
        assert desk.run(*words, "--lease-wait", "7").code == 24
        assert timed.pop() == held == ["waits up to 7.0"]
        held.clear()
