"""export and import: nothing of the machine leaves it, everything can be derived again, and nothing
imported counts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ledger_runs import a_plan, record

from cartlab import round as rounds
from cartlab.errors import BadInput
from cartlab.exchange import export_events, import_export, read_export, redact
from cartlab.ledger import Ledger, parse_table
from cartlab.verify import verify_events, verify_root

NOW = "2026-01-10T00:00:00.000Z"


def spread(centre: float, n: int) -> list[float]:
    return [centre + 0.002 * ((i % 3) - 1) for i in range(n)]


def a_ledger(folder: Path) -> Ledger:
    folder.mkdir()
    ledger = Ledger.open(folder)
    ledger.init()
    record(ledger, a_plan("s1", "screen"), spread(0.12, 6))
    record(ledger, a_plan("a1", "accept"), spread(0.12, 48), artifact="benchmarks/runs/a1/aggregate.json")
    record(ledger, a_plan("n1", "accept", cand="x", recorded=False), spread(0.1, 9))
    record(
        ledger,
        a_plan("a2", "accept", cand="y"),
        spread(-0.05, 48),
        description="see /home/jo/notes.txt on box7",
    )
    ledger.append("note", None, {"text": "C:\\Users\\jo\\x and ~/y and box7"})
    ledger.project()
    return ledger


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see /home/jo/notes.txt", "see <hidden>"),
        ("at=/tmp/a/b", "at=<hidden>"),
        ("'/opt/x/y' failed", "'<hidden>' failed"),
        ("C:\\Users\\jo\\x", "<hidden>"),
        ("~/y", "<hidden>"),
        ("\\\\server\\share", "<hidden>"),
        ("steps/s", "steps/s"),
        ("scripts/workloads/nes_batch.py", "scripts/workloads/nes_batch.py"),
        ("1 / 3 and 5/6", "1 / 3 and 5/6"),
        ("host box7, not box77", "host <hidden>, not box77"),
    ],
)
def test_a_text_loses_paths_and_names_and_nothing_else(text: str, shown: str) -> None:
    assert redact(text, ["box7"]) == shown


def test_private_fields_are_left_out_at_any_depth() -> None:
    found = redact({"a": [{"pid": 1, "rom_path": "x", "lanes": 4}], "hostname": "h", "n": 1.5, "none": None})
    assert found == {"a": [{"lanes": 4}], "n": 1.5, "none": None}


def test_an_export_names_no_path_and_still_verifies_from_its_slices(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path / "one")
    data = export_events(ledger.events(), NOW, ["box7"])
    for word in (b"/home", b"/x/y.nes", b"box7", b"Users", b"~/"):
        assert word not in data
    export = read_export(data)
    assert export.report.decisions == 4
    assert export.header["origin_tip"] == ledger.tip[1]
    assert len(export.events) == len(ledger.events())
    assert verify_events(data.partition(b"\n")[2]).holds
    assert data == export_events(ledger.events(), NOW, ["box7"])


def test_what_is_imported_comes_back_row_for_row_and_never_counts(tmp_path: Path) -> None:
    one = a_ledger(tmp_path / "one")
    (tmp_path / "two").mkdir()
    two = Ledger.open(tmp_path / "two", round_part=rounds.round_part)
    two.init()
    data = export_events(one.events(), NOW)
    taken = import_export(two, data)
    assert len(taken) == 3
    two.project()
    theirs = parse_table((one.root / "results.tsv").read_text())
    ours = parse_table((two.root / "results.tsv").read_text())
    changed = {"description", "recorded_at", "attempt_id"}
    for before, after in zip(theirs, ours, strict=True):
        assert {k: v for k, v in before.items() if k not in changed} == {
            k: v for k, v in after.items() if k not in changed
        }
        assert after["description"].startswith("imported")
        assert after["recorded_at"] > before["recorded_at"]
        assert after["attempt_id"].startswith("imported-")
    plan = a_plan("a1", "accept")
    assert two.blocks_of(plan.pair) == []
    assert two.verdict_of(plan.pair, "accept", plan.policy_hash) is None
    assert json.loads((two.root / "current.json").read_text())["latest_accepted"] is None
    assert import_export(two, data) == []
    assert verify_root(two.root).holds


def test_an_import_is_no_progress_in_a_round(tmp_path: Path) -> None:
    one = a_ledger(tmp_path / "one")
    (tmp_path / "two").mkdir()
    two = Ledger.open(tmp_path / "two")
    plan = a_plan("a1", "accept")
    rounds.open_round(two, plan.base, NOW, {})
    import_export(two, export_events(one.events(), NOW))
    found = rounds.fold(two.events())
    assert found is not None
    assert (found.state, found.kept, found.candidates) == ("open", [], {})


def test_a_file_that_is_no_export_or_was_edited_is_refused(tmp_path: Path) -> None:
    data = export_events(a_ledger(tmp_path / "one").events(), NOW)
    for bad, word in (
        (b"PK\x03\x04", "another file"),
        (b"{}\n", "another file"),
        (data.replace(b'"version":1', b'"version":9', 1), "version"),
        (data.replace(b'"coin":1', b'"coin":0', 1), "does not verify"),
        (data[:-20], "does not verify"),
    ):
        with pytest.raises(BadInput, match=word) as caught:
            read_export(bad)
        assert caught.value.exit_code == 25


def test_an_empty_ledger_exports_and_imports_as_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    data = export_events(ledger.events(), NOW)
    assert read_export(data).events == []
    assert import_export(ledger, data) == []
