"""What reads a whole ledger looks at each part of it once: counted, not timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ledger_runs import a_plan, record

from cartlab.ledger import Ledger, parse_table, results_tsv, rows
from cartlab.ledger.columns import cell
from cartlab.verify.chain import checked_lines

RUNS, PAIRS = 6, 3


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Some runs of a few pairs, each pair's in turn."""
    made = Ledger.open(tmp_path)
    for number in range(RUNS):
        record(made, a_plan(f"run{number}", "screen", cand=f"topic{number % PAIRS}"), [0.02] * 6)
    return made


def test_a_row_is_made_from_the_runs_of_its_own_pair_alone(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    whole = rows.blocks_of

    def counting(known: Any, *more: Any, **how: Any) -> Any:
        looked.append(len(known))
        return whole(known, *more, **how)

    monkeypatch.setattr(rows, "blocks_of", counting)
    found = parse_table(results_tsv(ledger.events()))
    assert looked == [RUNS // PAIRS] * RUNS
    # And they are the same as with all runs at hand.
    known = ledger.attempts()
    for row in found:
        of_all = rows.row_of(known[row["attempt_id"]], known)
        assert {key: cell(value) for key, value in of_all.items()} == {k: cell(v) for k, v in row.items()}
    assert len({row["measured_pairs"] for row in found}) > 1


def test_the_lines_of_a_ledger_are_counted_once(ledger: Ledger) -> None:
    counted: list[Any] = []

    class Bytes(bytes):
        def count(self, *words: Any) -> int:
            counted.append(words)
            return super().count(*words)

    data = Bytes((ledger.root / "events.jsonl").read_bytes())
    assert all(event is not None for _, event, _ in checked_lines(data))
    assert len(counted) == 1 and data.count(b"\n") > RUNS
