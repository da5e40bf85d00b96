"""LD: a session's file as its own tools write it, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartlab.cli import main
from cartlab.errors import BadInput, DamagedLedger
from cartlab.loops import journal_file
from cartlab.loops.confidence import Point, confidence, label
from cartlab.loops.journal_file import STATUSES, Config, Journal, Result

FIXTURE = Path(__file__).parent / "fixtures" / "autoresearch.jsonl"
NUMBERS = st.floats(-1e9, 1e9)
TEXTS = st.text(max_size=12)
RESULTS = st.builds(
    Result,
    run=st.integers(1, 99),
    commit=st.from_regex(r"[0-9a-f]{7}", fullmatch=True),
    metric=NUMBERS,
    status=st.sampled_from(STATUSES),
    description=TEXTS,
    metrics=st.dictionaries(TEXTS, NUMBERS, max_size=2),
    timestamp=st.integers(0, 2**41),
    segment=st.integers(0, 3),
    confidence=st.none() | NUMBERS,
    asi=st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=2),
    other=st.dictionaries(st.sampled_from(["seed", "host"]), st.integers(), max_size=1),
)
CONFIGS = st.builds(
    Config, TEXTS.filter(bool), TEXTS.filter(bool), TEXTS, st.sampled_from(["lower", "higher"])
)


@given(st.lists(CONFIGS | RESULTS, max_size=6))
def test_ld1_ld2_a_journal_survives_its_file(lines: list[Config | Result]) -> None:
    journal = Journal(tuple(lines))
    assert journal_file.parse(journal_file.render(journal)) == journal


def test_ld2_the_document_s_own_file_comes_back_line_by_line() -> None:
    text = FIXTURE.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines() if line]
    again = journal_file.render(journal_file.parse(text)).splitlines()
    assert [json.loads(line) for line in again] == lines


def test_ld1_a_second_config_is_a_new_segment_only_after_results() -> None:
    head, one = Config("a", "m"), Result(1, "0" * 7, 1.0, "keep")
    assert Journal((head, head)).segment == 0
    assert Journal((head, one, head, one, one)).segment == 1
    assert len(Journal((head, one, head, one, one)).current()) == 2


@pytest.mark.parametrize("bad", ["{", "[]", '{"status": "great"}', '{"type": "config"}', "null"])
def test_ld3_a_damaged_journal_is_read_and_not_decided_on(bad: str) -> None:
    text = FIXTURE.read_text(encoding="utf-8") + bad + "\n"
    found = journal_file.parse(text)
    assert len(found.results) == 5 and found.damaged == (8,)
    with pytest.raises(DamagedLedger, match="line 8"):
        journal_file.evaluate(found, 1.0)
    with pytest.raises(BadInput, match="config"):
        journal_file.status(journal_file.parse(""))


def test_ld9_a_value_is_compared_with_the_best_kept_one() -> None:
    found = journal_file.parse(FIXTURE.read_text(encoding="utf-8"))
    assert journal_file.evaluate(found, 388.0).decision == "keep"
    assert journal_file.evaluate(found, 388.25).decision == "discard"
    assert journal_file.evaluate(found, 389.0, "higher").decision == "keep"
    advice = journal_file.evaluate(found, 380.0)
    assert (advice.against, advice.delta) == (388.25, -32.0)
    first = journal_file.evaluate(Journal((Config("a", "m"),)), 5.0)
    assert (first.decision, first.against, first.confidence) == ("keep", None, None)


def test_ld16_the_confidence_of_the_three_tools() -> None:
    """By hand: 412, 415.5, 388.25, 390 have the median 401 and deviations 11, 14.5, 12.75, 11."""
    results = journal_file.parse(FIXTURE.read_text(encoding="utf-8")).current()
    given_points = journal_file.points(results)
    exact = (412.0 - 388.25) / 11.875
    assert confidence(given_points, "lower", "pi") == pytest.approx(exact)
    assert confidence(given_points, "lower", "factory") == round(exact, 2) == 2.0
    # Failed results do not count there: 412, 415.5, 388.25 have the median 412 and the deviation 3.5.
    assert confidence(given_points, "lower", "greencedar") == pytest.approx((412.0 - 388.25) / 3.5)
    assert [label(value) for value in (None, 0.5, 1.0, 2.0)] == [
        "n/a",
        "within noise",
        "marginal",
        "likely real",
    ]


def test_ld16_where_the_tools_say_null() -> None:
    keep, drop = Point(1.0, "keep"), Point(2.0, "discard")
    assert confidence([keep, drop], "lower") is None
    assert confidence([drop, drop, drop], "lower") is None
    assert confidence([keep, keep, keep], "lower") is None
    assert confidence([keep, drop, Point(3.0, "discard")], "lower") is None
    # Zero and negative metrics count for one of the tools alone.
    below = [Point(-1.0, "keep"), Point(-3.0, "keep"), Point(-2.0, "discard")]
    assert confidence(below, "lower", "pi") is None
    assert confidence(below, "lower", "greencedar") == 2.0
    # A crash that came first is the baseline of one, and not of the others.
    crash = [Point(0.0, "crash"), Point(4.0, "keep"), Point(5.0, "discard"), Point(7.0, "discard")]
    assert confidence(crash, "lower", "pi") == 4.0
    assert confidence(crash, "lower", "factory") is None


@given(st.lists(st.builds(Point, NUMBERS, st.sampled_from(STATUSES)), max_size=8))
def test_ld16_a_confidence_is_a_positive_number_or_null(given_points: list[Point]) -> None:
    for dialect in ("pi", "factory", "greencedar"):
        found = confidence(given_points, "lower", dialect)
        assert found is None or found >= 0


def test_ld18_status_has_the_helper_s_keys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FIXTURE.parent)
    assert main(["journal", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["details"] == {
        "name": "bundle size",
        "metricName": "kb",
        "direction": "lower",
        "totalExperiments": 5,
        "keptCount": 2,
        "baseline": 412.0,
        "bestKept": 388.25,
        "confidence": 2.0,
        "deltaPercent": -5.76,
    }
    assert main(["journal", "summary"]) == 0
    said = capsys.readouterr().out
    assert "#4 keep 388.25 KB: drop the polyfills" in said and "#2" not in said
    assert "5 experiments, 1 discarded; baseline 412 KB, best 388.25 KB (-5.76 %)" in said
    assert main(["journal", "evaluate", "--metric", "380"]) == 0
    assert capsys.readouterr().out.startswith("keep (against 388.25, -7.77 % from the baseline)")
    assert main(["journal", "evaluate"]) == 2
    assert main(["journal", "status", "--jsonl", "nowhere.jsonl"]) == 25


def test_ld3_repair_decides_without_the_lines_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "autoresearch.jsonl"
    path.write_text(FIXTURE.read_text(encoding="utf-8") + "{torn\n", encoding="utf-8")
    words = ["journal", "evaluate", "--metric", "380", "--jsonl", str(path)]
    assert main(words) == 22
    assert "line 8" in capsys.readouterr().err
    assert main([*words, "--repair"]) == 0
    assert capsys.readouterr().out.startswith("keep (against 388.25")
    assert path.read_text().endswith("{torn\n")
