"""`doctor`: each finding is one line, reads what the kernel says, and names no machine."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from cli_bench import make_bench

from cartlab import advice, host, lease


def test_every_question_is_answered_in_one_line() -> None:
    found = advice.report()
    assert len(found) == len(advice.ASKED)
    assert len({finding.name for finding in found}) == len(found)
    for finding in found:
        assert finding.level in (advice.GOOD, advice.NOTE, advice.POOR)
        assert finding.found and "\n" not in finding.found + finding.advice
        assert finding.advice or finding.level != advice.POOR
    text = json.dumps([finding.to_json() for finding in found])
    assert platform.node() not in text and str(Path.home()) not in text


@pytest.mark.parametrize(
    ("path", "content", "ask", "level", "words"),
    [
        ("cpu0/cpufreq/scaling_governor", "powersave", advice.governor, "note", "powersave"),
        ("cpu0/cpufreq/scaling_governor", "performance", advice.governor, "good", "performance"),
        ("intel_pstate/no_turbo", "0", advice.turbo, "note", "on"),
        ("intel_pstate/no_turbo", "1", advice.turbo, "good", "off"),
        ("cpufreq/boost", "1", advice.turbo, "note", "on"),
        ("cpufreq/boost", "0", advice.turbo, "good", "off"),
        ("smt/active", "1", advice.smt, "note", "on"),
        ("smt/active", "0", advice.smt, "good", "off"),
        ("smt/control", "notsupported", advice.smt, "note", "unknown"),
    ],
)
def test_the_kernels_files_decide(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    content: str,
    ask: object,
    level: str,
    words: str,
) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(content + "\n")
    monkeypatch.setattr(advice, "_CPU", tmp_path)
    finding = ask()  # type: ignore[operator]
    assert (finding.level, finding.found) == (level, words)


@pytest.mark.parametrize(
    ("text", "level", "words"),
    [("1", "note", "within a session"), ("0", "good", "hold"), (None, "note", "unknown")],
)
def test_priorities_that_count_within_a_session_alone_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, level: str, words: str
) -> None:
    place = tmp_path / "sched_autogroup_enabled"
    if text is not None:
        place.write_text(text + "\n")
    monkeypatch.setattr(advice, "_AUTOGROUP", place)
    finding = advice.sessions()
    assert finding.level == level and words in finding.found
    assert ("sched_autogroup_enabled=0" in finding.advice) == (text == "1")


@pytest.mark.parametrize(("value", "level"), [(0.5, "good"), (2.5, "note"), (9.0, "poor"), (None, "note")])
def test_load_is_judged_a_processor(monkeypatch: pytest.MonkeyPatch, value: float | None, level: str) -> None:
    monkeypatch.setattr(host, "load", lambda: value)
    monkeypatch.setattr(host, "usable_cpus", lambda: 2)
    assert advice.load().level == level


def test_time_that_others_got_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0.0, 100.0])
    monkeypatch.setattr(advice, "_SAMPLE_S", 0.0)
    monkeypatch.setattr(advice, "_steal_s", lambda: next(readings))
    assert advice.stolen().level == "poor"


def test_another_controller_that_measures_is_named() -> None:
    assert advice.others().found == "none measures now"
    with lease.hold(0.0):
        assert "measures now" in advice.others().found
        assert advice.others().level == "note"


def test_doctor_prints_its_findings_and_records_nothing(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    answer = bench.run("doctor")
    assert answer.code == 0
    assert "processors" in answer.out and "witnesses" in answer.out
    assert not (bench.root / "events.jsonl").exists()
    found = bench.run("doctor", "--json").json
    assert found["status"] == "ok"
    assert {finding["name"] for finding in found["details"]["findings"]} >= {"load", "governor"}
