"""note, idea, verify, explain, export, import, stop and report on a ledger with one screen in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_bench import Bench, make_bench

from cartlab.ledger import parse_table


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    made.project.commit("half", work=50)
    assert made.run("screen", "HEAD~1", "HEAD").code == 0
    return made


def test_a_note_and_an_idea_are_appended_below_what_people_wrote(bench: Bench) -> None:
    for word, name in (("note", "scratchpad.md"), ("idea", "ideas.md")):
        (bench.root / name).write_text("mine, without a newline")
        assert bench.run(word, "a", "thought").code == 0
        text = (bench.root / name).read_text()
        assert text.startswith("mine, without a newline\n") and "a thought" in text


def test_what_was_recorded_verifies_and_a_changed_raw_block_does_not(bench: Bench) -> None:
    good = bench.run("verify", "--json")
    assert good.code == 0 and good.json["details"] == {"holds": True, "findings": []}
    raw = next(bench.root.glob("benchmarks/runs/*/raw/block-00.json"))
    body = json.loads(raw.read_text())
    body["base_ns"][0] += 1
    raw.write_text(json.dumps(body))
    bad = bench.run("verify", "--json")
    assert bad.code == 22 and "block-00" in bad.json["reasons"][0]


def test_explain_tells_one_attempt_and_refuses_an_ambiguous_name(bench: Bench) -> None:
    answer = bench.run("explain", "screen", "--json")
    assert answer.code == 0 and len(answer.json["details"]["blocks"]) == 6
    assert bench.run("explain", "nothing-like-it").code == 25


def test_an_export_is_portable_and_its_import_never_counts(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    assert bench.run("export", str(file)).code == 0
    assert str(bench.project.path) not in file.read_text() and str(bench.root) not in file.read_text()
    assert bench.run("export", str(file)).code == 25
    other = tmp_path / "other-root"
    taken = bench.run("import", str(file), "--autoresearch-root", str(other), "--json")
    assert taken.code == 0 and len(taken.json["details"]["imported"]) == 1
    assert parse_table((other / "results.tsv").read_text())[0]["description"].startswith("imported")
    again = bench.run("import", str(file), "--autoresearch-root", str(other), "--json")
    assert again.json["details"]["imported"] == []
    fresh = bench.run("screen", "HEAD~1", "HEAD", "--autoresearch-root", str(other), "--json")
    assert fresh.json["blocks"]["pooled"] == 0 and not fresh.json["details"]["remembered"]


def test_stop_pauses_an_open_round_and_says_so_without_one(bench: Bench) -> None:
    assert "nothing to pause" in bench.run("stop").out
    assert bench.run("calibrate", "HEAD", "--max-blocks", "2").code == 0
    assert bench.run("round", "open").code == 0
    answer = bench.run("stop", "--reason", "enough")
    assert answer.code == 0 and answer.report["decision"] == "pause"
    assert json.loads((bench.root / "current.json").read_text())["state"] == "paused"


def test_a_session_report_has_every_line_that_the_document_asks_for(bench: Bench) -> None:
    body = bench.run("report", "--session", "--json").json["details"]
    assert {
        "branch",
        "baseline",
        "candidate",
        "latest_aggregate",
        "accepted",
        "rejects",
        "checks",
        "changed_files",
        "cleanup",
        "benchmark_limits",
        "artefacts",
        "round_baseline",
        "round_target",
        "cumulative_ratio",
        "next_experiment",
    } <= set(body)
    assert body["branch"] == "main" and body["latest_aggregate"]
