"""`next`'s fast path: it answers from the views only while every byte of the ledger is what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_runs import a_plan, record

from cartlab.errors import DamagedLedger
from cartlab.glance import chain_tip, glance
from cartlab.ledger import Ledger


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with one finished run and up-to-date views."""
    ledger = Ledger.open(tmp_path)
    ledger.init()
    record(ledger, a_plan("one"), [0.05] * 12)
    ledger.project()
    return tmp_path


def test_the_views_are_believed_while_the_chain_is_whole(root: Path) -> None:
    seen = glance(root)
    assert seen is not None and seen.current["last_seq"] == len(Ledger.open(root).events())
    assert [row["attempt_id"] for row in seen.rows] == ["one"]
    opened = Ledger.open(root)
    assert chain_tip(root / "events.jsonl") == opened.tip


def test_an_empty_ledger_is_a_whole_one(tmp_path: Path) -> None:
    Ledger.open(tmp_path).init()
    seen = glance(tmp_path)
    assert seen is not None and seen.rows == []


def test_a_changed_byte_anywhere_is_left_to_the_reader_who_names_it(root: Path) -> None:
    path = root / "events.jsonl"
    data = path.read_bytes()
    for at in range(0, len(data), 53):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert glance(root) is None, at
        if data[at:] != b"\n":  # without its last newline the last line is torn, not damaged
            with pytest.raises(DamagedLedger):
                Ledger.open(root)


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: rows[1:],
        lambda rows: [*rows[:2], *rows[3:]],
        lambda rows: [rows[1], rows[0], *rows[2:]],
        lambda rows: [*rows, rows[-1]],
        lambda rows: [rows[0], b"\n", *rows[1:]],
        lambda rows: rows[:-1],
        lambda rows: [*rows[:-1], rows[-1][:-1]],
        lambda rows: [],
    ],
    ids=["first", "one between", "order", "twice", "blank", "last", "newline", "all"],
)
def test_a_lost_or_moved_line_is_seen(root: Path, edit: object) -> None:
    path = root / "events.jsonl"
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(edit(rows)))  # type: ignore[operator]
    assert glance(root) is None


def test_views_that_are_older_than_the_ledger_or_gone_are_not_believed(root: Path) -> None:
    Ledger.open(root).append("note", None, {"text": "newer"})
    assert glance(root) is None
    Ledger.open(root).project()
    assert glance(root) is not None
    (root / "results.tsv").unlink()
    assert glance(root) is None


def test_who_only_reads_leaves_a_torn_last_line_where_it_is(root: Path) -> None:
    path = root / "events.jsonl"
    torn = path.read_bytes() + b'{"attempt":null,"bo'
    path.write_bytes(torn)
    ledger = Ledger.open(root, mend=False)
    assert "a torn last line" in ledger.reports[0]
    assert len(ledger.events()) == torn.count(b"\n")
    assert path.read_bytes() == torn


@pytest.mark.parametrize("left", [0, 1, 3])
def test_an_end_that_is_gone_is_damage_and_its_repair_is_recorded(root: Path, left: int) -> None:
    """Whoever deletes the newest lines, whole, would delete a verdict; the views still know of them."""
    path = root / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:left]))
    assert glance(root) is None
    with pytest.raises(DamagedLedger, match=rf"made of {len(lines)} events, the ledger has {left}"):
        Ledger.open(root)
    mended = Ledger.open(root, repair=True)
    mended.project()
    assert [event["type"] for event in mended.events()][left:] == ["repair"]
    assert len(Ledger.open(root).events()) == left + 1
