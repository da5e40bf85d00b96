"""Files of other tools: read, written again byte for byte, taken into a ledger, and never counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_experiment
import small_journal
from hypothesis import given
from hypothesis import strategies as st

from cartlab.cli import export, import_
from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.loops import goals, importing, journal_file, states, tsv, tsvviews
from cartlab.loops.campaign import board
from cartlab.model import STATUSES
from cartlab.round import fold

FIXTURES = Path(__file__).parent / "fixtures"
FILES = {
    "karpathy": FIXTURES / "tables" / "karpathy.tsv",
    "leo": FIXTURES / "tables" / "leo.tsv",
    "journal": FIXTURES / "tables" / "log.jsonl",
    "experiences": FIXTURES / "experiences.md",
    "experiments": FIXTURES / "campaign" / "EXPERIMENTS.md",
    "board": FIXTURES / "campaign" / "board.jsonl",
}
EXPECTED = {
    "karpathy": ["keep", "keep", "discard", "crashed"],
    "leo": [
        "baseline",
        "keep",
        "discard",
        "crashed",
        "checks_failed",
        "keep",
        "no_change",
        "metric_error",
    ],
    "journal": ["keep", "discard", "crashed", "keep"],
}


def text_of(form: str) -> str:
    return FILES[form].read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FILES)
def test_a_file_is_known_by_its_beginning_and_its_rows_get_words_of_the_ledger(form: str) -> None:
    assert importing.detect(text_of(form)) == form
    rows = importing.read(text_of(form), form)
    assert rows and {row.status for row in rows} <= set(STATUSES)
    if form in EXPECTED:
        assert [row.status for row in rows] == EXPECTED[form]
    # What crashed has no value, whatever number stands in its cell.
    assert all(row.value is None for row in rows if row.status == "crashed")
    json.dumps([row.native for row in rows], allow_nan=False)


def test_the_tables_come_back_byte_for_byte() -> None:
    assert tsv.render_karpathy(tsv.parse_karpathy(text_of("karpathy"))) == text_of("karpathy")
    assert tsv.render_leo(tsv.parse_leo(text_of("leo"))) == text_of("leo")
    found = journal_file.parse(text_of("journal"))
    assert journal_file.parse(journal_file.render(found)) == found and found.damaged == ()
    entries = board.parse(text_of("board"))
    assert board.parse(board.render(entries)) == entries


CELL = st.text(st.characters(exclude_categories=("C", "Z")), max_size=12)


@given(st.lists(st.builds(tsv.Karpathy, CELL, CELL, CELL, st.sampled_from(tsv.KARPATHY_STATUSES), CELL)))
def test_any_karpathy_table_comes_back(rows: list[tsv.Karpathy]) -> None:
    table = tsv.KarpathyTable("val_bpb", tuple(rows))
    assert tsv.parse_karpathy(tsv.render_karpathy(table)) == table


@given(
    st.sampled_from(["higher", "lower"]),
    st.lists(st.builds(tsv.Leo, CELL, CELL, CELL, CELL, CELL, CELL, CELL)),
    st.lists(CELL.map(lambda text: f"# {text}".rstrip()), max_size=2),
)
def test_any_leo_table_comes_back(direction: str, rows: list[tsv.Leo], comments: list[str]) -> None:
    table = tsv.LeoTable(direction, tuple(rows), tuple(comments))
    assert tsv.parse_leo(tsv.render_leo(table)) == table


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("karpathy", "", "five columns"),
        ("karpathy", "commit\tx\tm\tstatus\tdescription\na\t1\t2\tbest\tx\n", "line 2: status"),
        ("karpathy", "commit\tx\tm\tstatus\tdescription\na\t1\n", "line 2: expected 5 cells"),
        ("leo", "iteration\tcommit\n", "columns must be"),
        ("leo", "\t".join(tsv.LEO) + "\n", "metric_direction"),
        ("journal", '{"type":"config","name":"a","metricName":"b"}\nnot json\n', "line 2"),
        ("experiments", "nothing", "exp_id"),
        ("xml", "", "expected one of"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_was_expected(form: str, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        importing.read(text, form)


def test_a_file_of_no_known_kind_is_taken_for_an_export() -> None:
    for text in ("", "hello", '{"format":"cartlab-export"}', "| a | b |", "[1]"):
        assert importing.detect(text) is None


def test_la1_imported_rows_are_shown_once_and_count_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=1)
    monkeypatch.chdir(one.repo)
    for form, path in FILES.items():
        assert one.cartlab("import", str(path), "--dry-run") == 0
        capsys.readouterr()
        assert one.cartlab("import", str(path), "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["details"]["format"] == form and told["details"]["imported"]
        assert one.cartlab("import", str(path), "--as", form, "--json") == 0
        assert json.loads(capsys.readouterr().out)["recorded"] is False
    ledger = Ledger.open(one.root, mend=False)
    events = ledger.events()
    assert {event["type"] for event in events} == {"import"}
    # Neither a goal nor an attempt nor a round comes of them, and a typed keep beats nobody.
    assert goals.fold(events) == {} and ledger.attempts() == {} and fold(events) is None
    shown = (one.root / "results.tsv").read_text(encoding="utf-8")
    assert "imported: a longer warm-up" in shown and shown.count("\n") == len(events) + 1
    assert one.supervise("config(rate=0.5)") == 0
    goal = list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]
    assert goal.closed_rounds()[0].status == "keep"
    assert one.cartlab("verify") == 0
    assert one.cartlab("import", str(one.folder / "eval.py")) == 25
    assert one.cartlab("import", str(FILES["leo"]), "--as", "karpathy") == 25


def test_a_goal_is_written_as_both_tables_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=3)
    monkeypatch.chdir(one.repo)
    body = """
if round == 1: config(rate=0.5); say("faster")
if round == 2: config(rate="none"); say("a broken value")
if round == 3: config(rate=0.2); say("slower")
"""
    assert one.supervise(body) == 0
    assert one.cartlab("export", "k.tsv", "--as", "karpathy") == 0
    assert one.cartlab("export", "l.tsv", "--as", "leo", "--goal", "slope") == 0
    karpathy = tsv.parse_karpathy((one.repo / "k.tsv").read_text())
    assert [(row.status, row.metric, row.description) for row in karpathy.rows] == [
        ("keep", "0.5", "faster"),
        ("crash", "0.000000", "a broken value"),
        ("discard", "0.2", "slower"),
    ]
    leo = tsv.parse_leo((one.repo / "l.tsv").read_text())
    assert leo.direction == "higher" and karpathy.metric == "rate"
    assert [(row.status, row.delta, row.guard) for row in leo.rows] == [
        ("baseline", "0.0", "-"),
        ("keep", "+0.49", "pass"),
        ("crash", "-", "-"),
        ("discard", "-0.3", "-"),
    ]
    assert [row.status for row in importing.read((one.repo / "l.tsv").read_text(), "leo")] == [
        "baseline",
        "keep",
        "crashed",
        "discard",
    ]
    assert one.cartlab("export", "l.tsv", "--as", "leo") == 25
    assert one.cartlab("export", "m.tsv", "--as", "leo", "--goal", "nothing") == 25
    assert one.cartlab("export", "m.tsv", "--goal", "slope") == 2


def test_a_journal_is_written_as_both_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = small_journal.make(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.init() == 0
    one.x("8")
    assert one.log("less work") == 0
    assert one.cartlab("export", "k.tsv", "--as", "karpathy") == 0
    assert one.cartlab("export", "l.tsv", "--as", "leo") == 0
    rows = tsv.parse_karpathy((one.repo / "k.tsv").read_text()).rows
    assert [(row.status, row.metric, row.description) for row in rows] == [
        ("keep", "10", "baseline"),
        ("keep", "8", "less work"),
    ]
    leo = tsv.parse_leo((one.repo / "l.tsv").read_text())
    assert [(row.status, row.metric, row.delta) for row in leo.rows] == [
        ("baseline", "10", "-"),
        ("keep", "8", "-2"),
    ]
    assert leo.direction == "lower"


def test_a_speed_controller_s_table_is_read_by_its_column_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cartlab.ledger.columns import RESULTS_TSV_COLUMNS, line_of, parse_table

    one = small_experiment.make_bare(tmp_path)
    monkeypatch.chdir(one.repo)
    first = RESULTS_TSV_COLUMNS[:30]
    row = {
        "commit": "a" * 40,
        "status": "keep",
        "benchmark_tier": "local_acceptance",
        "median_pair_ratio": 1.07,
    }
    cells = dict(zip(RESULTS_TSV_COLUMNS, line_of({**row, "description": "a\tb"}).split("\t"), strict=True))
    lines = ["\t".join(first), "\t".join(cells[name] for name in first)]
    text = "\n".join(lines) + "\n"
    assert importing.detect(text) == "speed"
    (found,) = importing.read(text, "speed")
    assert (found.status, found.value, found.description) == ("keep", 1.07, "a\tb")
    with pytest.raises(BadInput, match="line 2: expected 30 cells"):
        importing.read(text.replace("keep\t", "keep\t\t"), "speed")
    (tmp_path / "results.tsv").write_text(text)
    assert one.cartlab("import", str(tmp_path / "results.tsv")) == 0
    (shown,) = parse_table((one.root / "results.tsv").read_text())
    assert (shown["status"], shown["median_pair_ratio"], shown["lcb"]) == ("keep", "1.07", "")
    assert shown["description"] == "imported: a\tb"
    assert one.cartlab("report", "--format", "md") == 0


def test_every_verdict_has_a_word_that_both_tables_read_again() -> None:
    for name, words in states.VIEWS.items():
        assert words.leo in (*importing._LEO, "—"), name
        assert words.karpathy in (*importing._KARPATHY, "—"), name


def test_the_command_line_offers_every_format() -> None:
    assert ("auto", "ledger", *importing.FORMATS) == import_.FORMS
    assert ("ledger", *tsvviews.FORMATS) == export.FORMS
