"""`--policy legacy` from the command line on the fake worker: its sizes, its gate, its row, and its standing.

The load and the waiting are handed in; what runs is the real pipeline.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_bench import Bench, make_bench
from ledger_runs import forge
from small_controller import small_lab

from cartlab import legacy, stats
from cartlab.cli import main
from cartlab.ledger import Ledger, parse_table
from cartlab.model import POLICY, Block
from cartlab.round import fold
from cartlab.verify import verify_root

SMALL = ("--policy", "legacy", "--steps", "250", "--repeats", "2", "--warmups", "0", "--max-load", "3")
Run = Callable[..., tuple[int, dict[str, Any]]]


def even(plan: Any, index: int, coin: int, *rest: Any) -> Any:
    """A pair of a candidate twice as fast without a worker, so that no load of the machine decides; under
    our own policy the real block.
    """
    if plan.legacy is None:
        return small_lab().run_block(plan, index, coin, *rest)
    count = plan.legacy["repeats"]
    base, cand = (200_000_000 + index,) * count, (100_000_000 + index,) * count
    order = "".join(side * count for side in ("BC", "CB")[coin])
    return Block(index, coin, order, base, cand, plan.legacy["steps"], stats.block_value(base, cand))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    made.project.commit("faster", work=50)
    return made


@pytest.fixture
def run(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """run(*words, loads=...): the loads are told one after the other, the last one again and again."""
    monkeypatch.chdir(bench.project.path)
    monkeypatch.setenv("AUTORESEARCH_ROOT_PATH", str(bench.root))

    def once(*words: str, loads: tuple[float | None, ...] = (0.1,), **lab: Any) -> tuple[int, dict[str, Any]]:
        told: Iterator[float | None] = iter(loads)
        hands: dict[str, Any] = {
            "run_block": even,
            "load": lambda: next(told, loads[-1]),
            "sleep": lambda _seconds: None,
            **lab,
        }
        code = main([*words, "--json"], repository=bench.project.path, lab=replace(small_lab(), **hands))
        out = capsys.readouterr().out
        return code, json.loads(out)

    return once


def events(bench: Bench, kind: str) -> list[dict[str, Any]]:
    return [event["body"] for event in bench.events() if event["type"] == kind]


def row(bench: Bench) -> dict[str, str]:
    return parse_table((bench.root / "results.tsv").read_text())[-1]


def test_a_screen_is_three_pairs_that_take_turns_and_a_marked_row(bench: Bench, run: Run) -> None:
    code, answer = run("screen", "HEAD~1", "HEAD", *SMALL)
    assert (code, answer["status"]) == (0, "triage_promote"), answer["reasons"]
    assert answer["policy_hash"] == legacy.policy_hash() != POLICY.hash
    assert answer["report"]["next"].endswith(" screen HEAD~1 HEAD")
    assert (answer["ratio"], answer["lcb"], answer["e_value"]) == (None, None, None)
    blocks = events(bench, "block")
    assert [block["order"] for block in blocks] == ["BBCC", "CCBB", "BBCC"]
    assert [block["coin"] for block in blocks] == [0, 1, 0]
    assert all((block["steps"], len(block["base_ns"])) == (250, 2) for block in blocks)
    (decision,) = events(bench, "decision")
    assert decision["marks"] == ["legacy"] and decision["evidence"] is None
    ratios = [
        statistics.median(1 / ns for ns in block["cand_ns"])
        / statistics.median(1 / ns for ns in block["base_ns"])
        for block in blocks
    ]
    cells = row(bench)
    assert float(cells["median_pair_ratio"]) == pytest.approx(statistics.median(ratios))
    assert json.loads(cells["pair_ratio_bootstrap_ci95"]) == pytest.approx([min(ratios), max(ratios)])
    assert (cells["measured_pairs"], cells["measured_invocation_count"]) == ("3", "6")
    assert (cells["candidate_faster_pairs"], cells["candidate_faster_pairs_required_for_win"]) == ("3", "3")
    assert (cells["load_gate_passed"], cells["load_gate_ignored_for_validity"]) == ("true", "false")
    assert cells["hl_ratio"] == cells["lcb"] == cells["e_value"] == ""
    assert json.loads(cells["bootstrap_ci95_invocation_median_sps"])[0] > 0
    assert cells["policy_hash"] == legacy.policy_hash() and cells["benchmark_tier"] == "local_diagnosis"
    report = verify_root(bench.root)
    assert report.holds and report.not_derived == 0, report.findings


def test_the_plan_has_the_appendixs_sizes_and_a_smoke_run_goes_before_the_pairs(
    bench: Bench, run: Run
) -> None:
    _, planned = run("accept", "HEAD~1", "HEAD", "--policy", "legacy", "--full", "--dry-run")
    plan = planned["details"]["plan"]
    assert plan["legacy"]["checkpoints"] == [7, 11, 15, 21, 31]
    assert (plan["legacy"]["steps"], plan["legacy"]["repeats"], plan["legacy"]["warmups"]) == (50_000, 3, 2)
    assert (plan["max_blocks"], plan["unit"], plan["checks"]) == (31, "process", False)
    assert plan["benchmark_tier"] == "local_acceptance" and not bench.root.exists()
    asked = []

    def watched(plan: Any, index: int, coin: int, *rest: Any) -> Any:
        asked.append((index, coin, plan.legacy["steps"], plan.legacy["repeats"]))
        return even(plan, index, coin, *rest)

    words = ("--policy", "legacy", "--steps", "200", "--repeats", "1", "--warmups", "2", "--max-load", "9")
    run("screen", "HEAD~1", "HEAD", *words, run_block=watched)
    assert asked[:3] == [(-1, 1, 1000, 1), (-2, 0, 200, 1), (-3, 1, 200, 1)]
    assert asked[3:] == [(0, 0, 200, 1), (1, 1, 200, 1), (2, 0, 200, 1)]


def test_real_processes_make_a_verdict_of_the_tier(bench: Bench, run: Run) -> None:
    words = (*SMALL[:3], "4050", *SMALL[4:])
    _, answer = run("screen", "HEAD~1", "HEAD", *words, run_block=small_lab().run_block)
    assert answer["status"] in ("triage_promote", "triage_discard", "inconclusive"), answer["reasons"]
    blocks = events(bench, "block")
    assert [block["order"] for block in blocks] == ["BBCC", "CCBB", "BBCC"]
    assert all(block["digests"]["base"] == block["digests"]["cand"] for block in blocks)
    assert all(block["dropped"] is None for block in blocks)
    # Of windows that were looked at, one a process; the share is None where none was or nothing tells.
    told = [block["witness"]["contention"]["waited_share"] for block in blocks]
    assert all(0.0 <= share <= 1.0 for share in told if share is not None)
    assert None not in told or not Path("/proc/self/schedstat").exists()
    assert all(min(*block["base_ns"], *block["cand_ns"]) > 0 for block in blocks)
    assert len({block["base_ns"][0] for block in blocks}) > 1
    assert verify_root(bench.root).holds


def test_a_stack_stops_at_a_checkpoint_and_an_acceptance_needs_no_checks(bench: Bench, run: Run) -> None:
    _, answer = run("accept-stack", "HEAD~1", "HEAD", *SMALL)
    assert len(events(bench, "block")) == 7
    assert answer["status"] == "keep_stack" and answer["details"]["checks"] == "not_run"
    _, kept = run("accept", "HEAD~1", "HEAD", *SMALL)
    assert (kept["status"], kept["report"]["decision"]) == ("keep", "keep")
    assert len(events(bench, "block")) == 10
    assert verify_root(bench.root).holds


def test_nothing_is_pooled_either_way_and_each_run_starts_afresh(bench: Bench, run: Run) -> None:
    assert run("screen", "HEAD~1", "HEAD", *SMALL)[1]["status"] == "triage_promote"
    first = run("screen", "HEAD~1", "HEAD")[1]
    assert first["blocks"] == {"used": 6, "dropped": 0, "pooled": 0} and not first["details"]["remembered"]
    process = run("screen", "HEAD~1", "HEAD", "--unit", "process", "--again")[1]
    assert process["blocks"]["pooled"] == 0
    again = run("screen", "HEAD~1", "HEAD", *SMALL)[1]
    assert not again["details"]["remembered"]
    assert row(bench)["measured_pairs"] == "3"
    ledger = Ledger.open(bench.root)
    pair = next(iter(ledger.attempts().values())).plan.pair
    assert len(ledger.blocks_of(pair, "process")) == len(ledger.blocks_of(pair)) == 6
    assert verify_root(bench.root).holds


def test_it_waits_for_a_low_load_and_looks_at_it_after_each_pair(bench: Bench, run: Run) -> None:
    slept: list[float] = []
    # 2.7 is below the limit of 3 and not below the start's 2.55.
    loads = (9.0, 2.7, 2.5, 1.0, 5.0, 5.0, 2.9, 2.9, 2.9, 2.9, 4.0)
    _, answer = run("screen", "HEAD~1", "HEAD", *SMALL, loads=loads, sleep=slept.append)
    # Two polls before the start (9, 2.7), one before the second pair.
    assert slept == [15, 15, 15]
    assert answer["status"] == "triage_promote"
    told = [block["witness"]["load_1m"] for block in events(bench, "block")]
    assert told == [5.0, 2.9, 2.9] and row(bench)["load_gate_passed"] == "true"


def test_a_load_above_the_limit_after_the_last_pair_fails_the_gate_alone(bench: Bench, run: Run) -> None:
    loads = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 7.0)
    _, answer = run("accept", "HEAD~1", "HEAD", *SMALL, loads=loads)
    assert "load" in " ".join(answer["reasons"]) and answer["status"] != "keep"
    assert row(bench)["load_gate_passed"] == "false"
    forced = run("screen", "HEAD~1", "HEAD", *SMALL, "--force-busy", "--approve", "a test", loads=(50.0,))[1]
    assert forced["status"] == "triage_promote" and row(bench)["load_gate_ignored_for_validity"] == "true"
    assert verify_root(bench.root).holds


def test_the_waiting_has_a_limit_and_says_what_it_waited_for(bench: Bench, run: Run) -> None:
    slept: list[float] = []
    words = (*SMALL, "--lease-wait", "60")
    code, answer = run("screen", "HEAD~1", "HEAD", *words, loads=(8.0,), sleep=slept.append)
    assert (code, answer["status"], slept) == (13, "busy_invalid", [15] * 4)
    assert "8.00 did not fall below 2.55 in 60 s" in answer["reasons"][0]
    # Once pairs are measured the run ends with them.
    code, answer = run("accept", "HEAD~1", "HEAD", *words, loads=(1.0, 1.0, 1.0, 8.0), sleep=slept.append)
    assert answer["status"] == "inconclusive" and "3.00" in row(bench)["limit_stop_reason"]
    assert row(bench)["measured_pairs"] == "1" and row(bench)["validity_passed"] == "false"
    assert verify_root(bench.root).holds


@pytest.mark.parametrize("flag", ["--max-measured-invocations", "--max-wall-clock-minutes"])
def test_a_limit_ends_the_run_at_the_pair_it_reached(bench: Bench, run: Run, flag: str) -> None:
    clock = iter(range(0, 100_000, 10))
    value = "5" if flag == "--max-measured-invocations" else "2"
    _, answer = run("accept-stack", "HEAD~1", "HEAD", *SMALL, flag, value, clock=lambda: float(next(clock)))
    assert answer["status"] == "inconclusive"
    assert row(bench)["limit_stop_reason"].startswith(("max_measured_invocations 5", "wall clock limit"))
    assert (row(bench)["measured_pairs"], len(events(bench, "block"))) == ("2", 2)
    assert verify_root(bench.root).holds


def test_a_calibration_counts_invocations_and_is_no_calibration_of_ours(bench: Bench, run: Run) -> None:
    code, answer = run("calibrate", "HEAD", *SMALL)
    assert (code, answer["status"]) == (11, "inconclusive")
    cells = row(bench)
    assert cells["measured_invocation_count"] == "11" and len(events(bench, "block")) == 6
    assert float(cells["official_median_sps"]) > 0 and cells["median_pair_ratio"] == ""
    assert run("round", "open")[0] == 23
    assert run("plan", "--effect", "1.03")[1]["details"]["noise"]["source"].startswith("a default")
    assert verify_root(bench.root).holds


def test_it_has_no_part_in_a_round_and_completes_none(bench: Bench, run: Run) -> None:
    base = bench.project.git("rev-parse", "HEAD")
    assert run("calibrate", "HEAD", "--max-blocks", "2")[0] == 0
    assert run("round", "open", "--goal", "less work")[0] == 0
    bench.project.commit("less", work=20)
    for tier in ("screen", "accept", "accept-stack"):
        run(tier, base, "HEAD", *SMALL)
    found = fold(Ledger.open(bench.root).events())
    assert found is not None and (found.state, found.kept, found.candidates) == ("open", [], {})
    code, answer = run("round", "confirm", "HEAD", "--policy", "legacy")
    assert (code, answer["status"]) == (2, "refused") and "--policy" in answer["reasons"][0]
    code, answer = run("round", "confirm", "HEAD", "--mechanism", "m", "--falsify", "f")
    assert code == 23
    assert fold(Ledger.open(bench.root).events()).state == "open"  # type: ignore[union-attr]


def test_a_changed_output_and_a_crash_end_it_as_any_run(bench: Bench, run: Run) -> None:
    bench.project.commit("pixel", observe="value ^ 1")
    code, answer = run("screen", "HEAD~1", "HEAD", *SMALL)
    assert (code, answer["status"]) == (12, "behaviour_changed")
    (decision,) = events(bench, "decision")
    assert "legacy" in decision["marks"] and verify_root(bench.root).holds


def test_outputs_that_differ_later_than_was_compared_before_end_it_too(bench: Bench, run: Run) -> None:
    late = {
        "before": "static int steps;",
        "at_step": "steps++;",
        "observe": "value ^ (uint64_t)(steps > 300)",
    }
    bench.project.commit("late", **late)
    words = (*SMALL[:3], "1000", *SMALL[4:])
    _, answer = run("screen", "HEAD~1", "HEAD", *words, run_block=small_lab().run_block)
    assert answer["status"] == "behaviour_changed" and "invocation" in answer["reasons"][0]


def test_the_other_commands_take_its_attempts_for_what_they_are(bench: Bench, run: Run) -> None:
    _, answer = run("accept", "HEAD~1", "HEAD", *SMALL)
    assert answer["status"] == "keep"
    assert run("status")[1]["details"]["latest_accepted"] is None
    for words in (["next"], ["explain", answer["attempt_id"]], ["report", "--session"], ["verify"]):
        code, said = run(*words)
        assert code == 0, said["reasons"]
    aggregate = bench.root / answer["details"]["artifact"]
    code, said = run("record", str(aggregate))
    assert code == 25 and "legacy policy" in said["reasons"][0]
    assert run("export", str(bench.root.parent / "copy.jsonl"))[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--max-blocks", "3"),
        ("--again",),
        ("--unit", "process"),
        ("--design", "groupseq"),
        ("--steps", "0"),
        ("--repeats", "two"),
        ("--max-load", "-1"),
        ("--max-measured-invocations", "1"),
    ],
    ids=lambda words: words[0],
)
def test_what_the_policy_does_not_know_is_refused(bench: Bench, run: Run, words: tuple[str, ...]) -> None:
    code, answer = run("screen", "HEAD~1", "HEAD", "--policy", "legacy", *words)
    assert (code, answer["status"]) == (2, "refused") and not bench.root.exists()


def test_verify_finds_a_verdict_that_its_pairs_do_not_give(bench: Bench, run: Run) -> None:
    run("screen", "HEAD~1", "HEAD", *SMALL)
    whole = (bench.root / "events.jsonl").read_bytes()

    def changed(kind: str, change: Callable[[dict[str, Any]], None]) -> list[str]:
        def rewrite(found: list[dict[str, Any]]) -> None:
            change(next(event["body"] for event in found if event["type"] == kind))

        (bench.root / "events.jsonl").write_bytes(whole)
        forge(bench.root, rewrite)
        return [finding.what for finding in verify_root(bench.root).findings]

    def said(what: list[str], word: str) -> bool:
        return any(word in one for one in what)

    assert said(changed("decision", lambda body: body.update(marks=[])), "marked")
    assert said(changed("decision", lambda body: body.update(status="triage_discard")), "triage_promote")
    assert said(changed("decision", lambda body: body["legacy"].update(estimate=1.5)), "estimate")
    assert said(changed("decision", lambda body: body["legacy"].update(load_fine=False)), "load")
    assert said(changed("block", lambda body: body.update(coin=1)), "wrong side")
    assert said(changed("block", lambda body: body.update(steps=5)), "sizes")
    assert said(changed("attempt_started", lambda body: body["legacy"].update(checkpoints=[5])), "between")
