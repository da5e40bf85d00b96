"""The ledger's promises: the chain, the lock, torn tails, damage by line, crashes at each write, and the
views.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from cartlab.errors import BadRoot, DamagedLedger
from cartlab.ledger import RESULTS_TSV_COLUMNS, Disk, Ledger, no_round, parse_table
from cartlab.ledger.columns import cell, line_of, unescape
from cartlab.model import POLICY, Block, PairKey, Plan, Ref, Workload, canonical_json

BASE = Ref("main", "a" * 40, "b" * 40)
CAND = Ref("topic", "c" * 40, "d" * 40)
WORKLOAD = Workload("w", "slices", "w.py", "ops", "higher", "ops/s", 10, {"lanes": 4})


def a_plan(attempt: str, **changes: Any) -> Plan:
    made = Plan(
        attempt_id=attempt,
        command="accept",
        tier="accept",
        benchmark_tier="local_acceptance",
        base=BASE,
        cand=CAND,
        workload=WORKLOAD,
        policy="anytime",
        unit="block",
        design="betting",
        max_blocks=48,
        max_seconds=None,
        slices=50,
        slice_ms=20.0,
        harness_hash="h",
        policy_hash=POLICY.hash,
        host_class="x86-2",
    )
    return dataclasses.replace(made, **changes)


def a_block(index: int, y: float = 0.02, dropped: str | None = None) -> Block:
    return Block(
        index, index % 2, "BCCB", (1000, 1020), (980, 1000), 5, y, dropped, {"cpu": 1.5}, {"base": "e"}
    )


def start(ledger: Ledger, attempt: str, blocks: int = 0, **changes: Any) -> Plan:
    made = a_plan(attempt, **changes)
    ledger.append("attempt_started", attempt, made.to_json())
    for i in range(blocks):
        ledger.append("block", attempt, a_block(i).to_json())
    return made


def finish(ledger: Ledger, attempt: str, status: str, decide: bool = True, **more: Any) -> None:
    if decide:
        body = {
            "status": status,
            "decision": "keep",
            "final": True,
            "marks": [],
            "evidence": {"hl": 1.02, "lcb": 1.01},
        }
        ledger.append("decision", attempt, body)
    ledger.append("attempt_finished", attempt, {"status": status, **more})


# --- the chain --------------------------------------------------------------------------------


def test_each_event_carries_the_hash_of_its_canonical_json_and_of_the_one_before(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    for i in range(3):
        ledger.append("note", None, {"i": i, "text": 'ä ,"hash":"x"', "f": 0.1})
    prev = "0" * 64
    for seq, line in enumerate((tmp_path / "events.jsonl").read_bytes().splitlines(), start=1):
        event = json.loads(line)
        assert line == canonical_json(event)
        stated = event.pop("hash")
        assert hashlib.sha256(canonical_json(event)).hexdigest() == stated
        assert (event["v"], event["seq"], event["prev"]) == (1, seq, prev)
        assert event["time"].endswith("Z")
        prev = stated
    assert ledger.tip == (3, prev)
    assert [e["body"]["i"] for e in Ledger.open(tmp_path).events()] == [0, 1, 2]


def three_events(root: Path) -> bytes:
    ledger = Ledger.open(root)
    for i in range(3):
        ledger.append("note", None, {"text": f"event {i}", "value": 12345})
    return (root / "events.jsonl").read_bytes()


def test_an_edited_byte_anywhere_is_named_by_its_line(tmp_path: Path) -> None:
    data = three_events(tmp_path)
    starts = [0, *(i + 1 for i, c in enumerate(data) if c == 10)]
    for at in range(0, len(data) - 1, 7):
        if data[at] == 10:
            continue
        (tmp_path / "events.jsonl").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(DamagedLedger) as caught:
            Ledger.open(tmp_path)
        line = sum(s <= at for s in starts)
        # A byte that became a newline splits its line; the damage is still in that line.
        assert f"events.jsonl line {line}:" in caught.value.message
        assert caught.value.exit_code == 22


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda rows: rows[1:], 1),
        (lambda rows: [rows[0], rows[2]], 2),
        (lambda rows: [rows[1], rows[0], rows[2]], 1),
        (lambda rows: [*rows, rows[2]], 4),
        (lambda rows: [rows[0], b"", *rows[1:]], 2),
        (lambda rows: [rows[0], b"{}", *rows[1:]], 2),
    ],
    ids=["first dropped", "middle dropped", "reordered", "replayed", "blank line", "foreign line"],
)
def test_a_dropped_reordered_or_replayed_line_is_damage(tmp_path: Path, edit: Any, line: int) -> None:
    rows = three_events(tmp_path).splitlines()
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(edit(rows)) + b"\n")
    with pytest.raises(DamagedLedger, match=f"line {line}:"):
        Ledger.open(tmp_path)


def test_a_line_with_a_right_hash_that_is_no_event_is_damage(tmp_path: Path) -> None:
    rows = three_events(tmp_path).splitlines()
    bare = {key: value for key, value in json.loads(rows[1]).items() if key != "hash"}
    changed = [canonical_json({**bare, **one}) for one in ({"v": 2}, {"type": "verdict"}, {"seq": 9})]
    for head, tail in (
        (b'{"x":1', b",not json}"),
        (b'{"x":1', b',"y":2}'),
        (b'[{"x":1', b',"y":2}]'),
        *((one[: (at := one.index(b',"prev"'))], one[at:]) for one in changed),
    ):
        stated = hashlib.sha256(head + tail).hexdigest().encode()
        line = head + b',"hash":"' + stated + b'"' + tail
        (tmp_path / "events.jsonl").write_bytes(rows[0] + b"\n" + line + b"\n")
        with pytest.raises(DamagedLedger, match=r"line 2: (no JSON|expected (an )?event)"):
            Ledger.open(tmp_path)


def test_a_line_without_a_hash_is_told_from_one_with_a_wrong_one(tmp_path: Path) -> None:
    rows = three_events(tmp_path).splitlines()
    for line, said in ((b"{}", "with its hash, found"), (rows[1].replace(b"12345", b"1"), "not that of its")):
        (tmp_path / "events.jsonl").write_bytes(rows[0] + b"\n" + line + b"\n")
        with pytest.raises(DamagedLedger, match=said):
            Ledger.open(tmp_path)


def test_what_is_appended_on_a_condition_sees_all_events_and_may_read_the_ledger(tmp_path: Path) -> None:
    one, two = Ledger.open(tmp_path), Ledger.open(tmp_path)
    one.append("note", None, {"n": 1})

    def make(events: Any) -> Any:
        assert len(events) == len(two.events()) == 1
        return "note", None, {"seen": len(events)}

    assert two.transact(make)["body"] == {"seen": 1}
    with pytest.raises(RuntimeError, match="no"):
        two.transact(lambda events: (_ for _ in ()).throw(RuntimeError("no")))
    assert len(one.events()) == 2


def test_a_torn_last_line_is_cut_off_at_each_length_and_reported(tmp_path: Path) -> None:
    data = three_events(tmp_path)
    whole = data[: data[:-1].rfind(b"\n") + 1]
    for cut in range(len(whole) + 1, len(data)):
        (tmp_path / "events.jsonl").write_bytes(data[:cut])
        ledger = Ledger.open(tmp_path)
        assert "line 3" in ledger.reports[0]
        events = Ledger.open(tmp_path).events()
        assert [e["type"] for e in events] == ["note", "note", "repair"]
        assert events[2]["body"]["bytes"] == cut - len(whole)


def test_repair_sets_the_damaged_line_and_all_after_it_aside(tmp_path: Path) -> None:
    data = three_events(tmp_path)
    rows = data.splitlines(keepends=True)
    bad = rows[1].replace(b"12345", b"99999") + rows[2]
    (tmp_path / "events.jsonl").write_bytes(rows[0] + bad)
    ledger = Ledger.open(tmp_path, repair=True)
    assert [e["type"] for e in ledger.events()] == ["note", "repair"]
    kept = ledger.events()[1]["body"]
    assert (tmp_path / kept["file"]).read_bytes() == bad
    assert "line 2" in ledger.reports[0]
    assert Ledger.open(tmp_path).reports == []


def test_an_unknown_type_or_a_number_that_json_lacks_is_refused_before_the_disk(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    with pytest.raises(ValueError, match="event type"):
        ledger.append("verdict", None, {})
    with pytest.raises(ValueError, match=r"(?i)json"):
        ledger.append("note", None, {"x": float("nan")})
    assert ledger.events() == []


def test_a_missing_root_says_so() -> None:
    with pytest.raises(BadRoot, match="init"):
        Ledger.open("/nonexistent/cartlab")


# --- crashes and company ------------------------------------------------------------------------


class Dying(Disk):
    """Counts disk calls and ends the process at the n-th, after `part` of a write's bytes."""

    def __init__(self, fatal: int, part: float) -> None:
        self.left, self.part = fatal, part

    def _tick(self) -> bool:
        self.left -= 1
        return self.left == 0

    def write(self, fd: int, data: bytes) -> int:
        if self._tick():
            os.write(fd, data[: int(len(data) * self.part)])
            os._exit(9)
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        if self._tick():
            os._exit(9)
        super().fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        if self._tick():
            os._exit(9)
        super().truncate(fd, size)

    def replace(self, source: Path, target: Path) -> None:
        if self._tick():
            os._exit(9)
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        if self._tick():
            os._exit(9)
        super().sync_folder(folder)


def _a_run(root: Path, done: Path, disk: Disk) -> None:
    """A small run; notes in `done` each event whose append returned."""
    ledger = Ledger.open(root, disk=disk)
    made = a_plan("run")
    steps = [("attempt_started", made.to_json()), *(("block", a_block(i).to_json()) for i in range(3))]
    steps += [("decision", {"status": "inconclusive"}), ("attempt_finished", {"status": "inconclusive"})]
    for kind, body in steps:
        event = ledger.append(kind, "run", body)
        with done.open("a") as file:
            file.write(f"{event['seq']}\n")
    ledger.note("scratchpad.md", "a lesson")
    ledger.project()
    with done.open("a") as file:
        file.write("end\n")


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_death_at_any_disk_call_loses_nothing_that_had_returned(tmp_path: Path, part: float) -> None:
    fork = multiprocessing.get_context("fork")
    for fatal in range(1, 100):
        root = tmp_path / f"{part}-{fatal}"
        root.mkdir()
        (root / "scratchpad.md").write_text("mine\n")
        done = root / "done.txt"
        process = fork.Process(target=_a_run, args=(root, done, Dying(fatal, part)))
        process.start()
        process.join()
        returned = done.read_text().split() if done.exists() else []
        ledger = Ledger.open(root)
        whole = [e for e in ledger.events() if e["type"] != "repair"]
        acknowledged = [int(seq) for seq in returned if seq != "end"]
        assert len(whole) >= len(acknowledged)
        assert [e["seq"] for e in whole[: len(acknowledged)]] == acknowledged
        assert len(whole) <= len(acknowledged) + 1 or not process.exitcode or len(acknowledged) == 6
        assert (root / "scratchpad.md").read_text().startswith("mine\n")
        # The next controller carries on.
        closed = ledger.close_abandoned()
        assert closed == (["run"] if 0 < len(whole) < 6 else [])
        ledger.project()
        assert len(parse_table((root / "results.tsv").read_text())) == (1 if whole else 0)
        assert Ledger.open(root).reports == []
        if "end" in returned:
            assert process.exitcode == 0
            break
        assert process.exitcode == 9
    else:
        pytest.fail("the run never got through")
    assert fatal > 20


class Full(Disk):
    """Takes half of the next write, as a full disk does."""

    full = False

    def write(self, fd: int, data: bytes) -> int:
        if self.full:
            os.write(fd, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(fd, data)


def test_a_full_disk_refuses_the_event_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    disk = Full()
    ledger = Ledger.open(tmp_path, disk=disk)
    start(ledger, "a", blocks=2)
    ledger.project()
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    disk.full = True
    for write in (
        lambda: ledger.append("block", "a", a_block(2).to_json()),
        lambda: ledger.note("ideas.md", "x"),
        ledger.project,
    ):
        with pytest.raises(BadRoot, match="No space left"):
            write()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    disk.full = False
    assert ledger.append("block", "a", a_block(2).to_json())["seq"] == 4
    assert len(Ledger.open(tmp_path).attempts()["a"].blocks) == 3


def _append_many(root: Path, name: str) -> None:
    ledger = Ledger.open(root)
    for i in range(40):
        ledger.append("note", name, {"i": i})
        if i % 10 == 0:
            ledger.project()


def test_writers_of_several_processes_take_turns(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_append_many, args=(tmp_path, f"w{k}")) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [w.exitcode for w in writers] == [0] * 4
    events = Ledger.open(tmp_path).events()
    assert [e["seq"] for e in events] == list(range(1, 161))
    for k in range(4):
        assert [e["body"]["i"] for e in events if e["attempt"] == f"w{k}"] == list(range(40))
    assert json.loads((tmp_path / "current.json").read_text())["last_seq"] <= 160


def test_two_open_ledgers_see_each_others_events(tmp_path: Path) -> None:
    one, two = Ledger.open(tmp_path), Ledger.open(tmp_path)
    for n, ledger in enumerate((one, two, one), 1):
        ledger.append("note", None, {"n": n})
    assert [e["body"]["n"] for e in two.events()] == [1, 2, 3]
    two.append("note", None, {"n": 4})
    one.project()
    assert json.loads((tmp_path / "current.json").read_text())["last_seq"] == 4


def test_a_clock_set_back_does_not_change_the_order(tmp_path: Path) -> None:
    times = iter(["2030-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"])
    ledger = Ledger.open(tmp_path, now=lambda: next(times))
    ledger.append("note", None, {"n": 1})
    ledger.append("note", None, {"n": 2})
    assert [e["body"]["n"] for e in Ledger.open(tmp_path).events()] == [1, 2]


def _hold(root: Path, ready: Any, leave: Any) -> None:
    with Ledger.open(root).running("a"):
        ready.set()
        leave.wait()


def test_an_attempt_is_abandoned_only_when_its_process_is_gone(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    start(ledger, "a", blocks=1)
    fork = multiprocessing.get_context("fork")
    ready, leave = fork.Event(), fork.Event()
    process = fork.Process(target=_hold, args=(tmp_path, ready, leave))
    process.start()
    assert ready.wait(20)
    assert ledger.close_abandoned() == []
    process.kill()
    process.join()
    assert ledger.close_abandoned() == ["a"]
    assert ledger.attempts()["a"].status == "interrupted"
    assert ledger.close_abandoned() == []


# --- evidence ---------------------------------------------------------------------------------


def test_a_pairs_blocks_continue_over_reruns_and_tiers_in_ledger_order(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    pair = start(ledger, "s", blocks=6, tier="screen").pair
    start(ledger, "other", blocks=2, cand=dataclasses.replace(CAND, tree="e" * 40))
    start(ledger, "a", blocks=3)
    assert len(ledger.blocks_of(pair)) == 9
    assert len(ledger.blocks_of(pair, before="a")) == 6
    renamed = dataclasses.replace(a_plan("x"), base=dataclasses.replace(BASE, name="v1", commit="9" * 40))
    assert len(ledger.blocks_of(renamed.pair)) == 9
    for change in ({"harness_hash": "z"}, {"host_class": "z"}, {"workload_hash": "z"}):
        assert ledger.blocks_of(dataclasses.replace(pair, **change)) == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"recorded": False}, "inconclusive"),
        ({"policy": "legacy"}, "inconclusive"),
        ({"unit": "process"}, "inconclusive"),
        ({}, "behaviour_changed"),
        ({}, "tampered"),
    ],
)
def test_unrecorded_legacy_and_spoiled_blocks_are_never_evidence(
    tmp_path: Path, changes: dict[str, Any], status: str
) -> None:
    ledger = Ledger.open(tmp_path)
    pair = start(ledger, "a", blocks=4, **changes).pair
    finish(ledger, "a", status)
    assert ledger.blocks_of(pair) == []
    start(ledger, "b", blocks=2)
    finish(ledger, "b", "interrupted", decide=False)
    assert len(ledger.blocks_of(pair)) == 2


def test_a_decided_pair_answers_from_the_ledger_and_an_undecided_one_does_not(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    pair = start(ledger, "a", blocks=1).pair
    ask = lambda tier="accept", policy=POLICY.hash: ledger.verdict_of(pair, tier, policy)  # noqa: E731
    finish(ledger, "a", "inconclusive")
    assert ask() is None
    start(ledger, "b")
    finish(ledger, "b", "keep")
    found = ask()
    assert found is not None
    assert (found[0].id, found[1]["status"]) == ("b", "keep")
    assert ask(policy="another") is None
    assert ask("accept-stack") is None
    assert ask("screen") is None
    start(ledger, "s", tier="screen")
    finish(ledger, "s", "inconclusive")
    assert ask("screen") is not None


def test_an_interrupted_forced_or_unrecorded_verdict_answers_for_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    pair = start(ledger, "a", recorded=False).pair
    finish(ledger, "a", "keep")
    start(ledger, "b")
    ledger.append("decision", "b", {"status": "keep_small_gain", "final": True, "marks": ["forced"]})
    start(ledger, "c", tier="screen")
    finish(ledger, "c", "interrupted")
    assert ledger.verdict_of(pair, "accept", POLICY.hash) is None
    assert ledger.verdict_of(pair, "screen", POLICY.hash) is None


def test_the_floor_is_the_newest_calibrations_of_this_class_of_host(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    assert ledger.floor_of("x86-2") is None
    runs = ((0.02, {}), (0.3, {"host_class": "arm-8"}), (0.015, {}), (0.04, {"recorded": False}))
    for name, (floor, more) in zip("abcde", (*runs, (0.04, {"unit": "process"})), strict=True):
        start(ledger, name, tier="calibrate", **({"host_class": "x86-2"} | more))
        finish(ledger, name, "baseline", relink_floor=floor)
    assert ledger.floor_of("x86-2") == pytest.approx(1.015)
    start(ledger, "killed before its end", tier="calibrate", host_class="x86-2")
    ledger.append("decision", "killed before its end", {"status": "baseline"})
    assert ledger.floor_of("x86-2") is None


# --- views ------------------------------------------------------------------------------------
def test_the_columns_are_the_contracts_in_its_order() -> None:
    theirs = """
        epoch, commit, baseline_commit, mode, benchmark_tier, workload_hash, measured_invocation_count,
        measured_pairs, official_median_sps, mean_invocation_median_sps,
        bootstrap_ci95_invocation_median_sps, median_pair_ratio, mean_pair_ratio,
        pair_ratio_bootstrap_ci95, candidate_faster_pairs, candidate_faster_pairs_required_for_win,
        validity_passed, load_gate_passed, load_gate_ignored_for_validity, limit_stop_reason,
        previous_limit_stop_reason, benchmark_limits, discarded_incomplete_pair_raw_files,
        expected_rom_sha256, rom_sha256, state_sha256, decision, status, description, artifact"""
    ours = """
        recorded_at, attempt_id, hl_ratio, lcb, ucb, e_value, guard, ratio_vs_round_baseline, policy_hash,
        harness_hash, base_build_id, cand_build_id"""
    assert tuple(f"{theirs},{ours}".replace(",", " ").split()) == RESULTS_TSV_COLUMNS


def test_a_row_says_what_the_blocks_were(tmp_path: Path) -> None:
    times = iter(f"2026-01-01T00:00:{i:02d}.000Z" for i in range(30))
    ledger = Ledger.open(tmp_path, now=lambda: next(times))
    start(ledger, "a")
    for i, (y, dropped) in enumerate([(0.02, None), (-0.01, None), (0.5, "busy: steal 30 %"), (0.03, None)]):
        ledger.append("block", "a", a_block(i, y, dropped).to_json())
    finish(
        ledger,
        "a",
        "keep",
        description="two\tcells\nand a \\",
        artifact="benchmarks/runs/a",
        base_build_id="bb",
    )
    ledger.project()
    (row,) = parse_table((tmp_path / "results.tsv").read_text())
    assert row["commit"] == CAND.commit
    assert row["epoch"] == "1767225606"
    assert (row["measured_pairs"], row["measured_invocation_count"], row["candidate_faster_pairs"]) == (
        "3",
        "8",
        "2",
    )
    assert float(row["median_pair_ratio"]) == pytest.approx(1.0202013)
    assert float(row["official_median_sps"]) == pytest.approx((20 / 980 + 20 / 1000) / 2 * 1e9)
    assert row["description"] == "two\tcells\nand a \\"
    assert (row["load_gate_passed"], row["load_gate_ignored_for_validity"]) == ("true", "false")
    assert row["pair_ratio_bootstrap_ci95"] == ""
    assert row["base_build_id"] == "bb"


@pytest.mark.parametrize("text", ["a\tb", "a\nb\r", "\\t", "\\", "a\\\\n", "plain ä"])
def test_a_cell_never_breaks_the_table_and_comes_back(text: str) -> None:
    written = cell(text)
    assert not set(written) & set("\t\n\r")
    assert unescape(written) == text


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(KeyError, match="typo"):
        line_of({"typo": 1})


def test_unrecorded_attempts_have_events_but_no_row(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    start(ledger, "a", blocks=1, recorded=False)
    finish(ledger, "a", "keep")
    ledger.project()
    assert parse_table((tmp_path / "results.tsv").read_text()) == []
    assert len(ledger.events()) == 4
    assert json.loads((tmp_path / "current.json").read_text())["latest_accepted"] is None


def test_views_are_rebuilt_from_the_events_alone(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.init()
    start(ledger, "a", blocks=2)
    finish(ledger, "a", "keep")
    ledger.project()
    before = {n: (tmp_path / n).read_bytes() for n in ("results.tsv", "current.json")}
    for name in before:
        (tmp_path / name).unlink()
    Ledger.open(tmp_path).project()
    assert {n: (tmp_path / n).read_bytes() for n in before} == before


def test_current_json_before_any_round_has_every_key_and_no_value(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    made = ledger.init()
    assert "events.jsonl" in made
    current = json.loads((tmp_path / "current.json").read_text())
    assert {key: current[key] for key in no_round()} == no_round()
    assert current["last_seq"] == 0
    assert ledger.init() == []


def test_the_rounds_part_comes_from_whoever_keeps_the_round(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path, round_part=lambda events: {"state": "open", "target": 1.1 + len(events)})
    ledger.append("note", None, {})
    ledger.project()
    current = json.loads((tmp_path / "current.json").read_text())
    assert (current["state"], current["target"], current["round_id"]) == ("open", 2.1, None)


def test_notes_append_stamped_blocks_and_change_no_other_byte(tmp_path: Path) -> None:
    mine = "my own text without a newline"
    (tmp_path / "ideas.md").write_text(mine)
    ledger = Ledger.open(tmp_path)
    event = ledger.note("ideas.md", "try a table\n\n", kind="idea")
    ledger.note("ideas.md", "another")
    text = (tmp_path / "ideas.md").read_text()
    assert text.startswith(mine + "\n\n<!-- cartlab idea seq 1 ")
    assert event["body"] == {"file": "ideas.md", "kind": "idea", "text": "try a table\n\n"}
    assert text.endswith("-->\nanother\n")
    with pytest.raises(ValueError, match="scratchpad"):
        ledger.note("events.jsonl", "x")


def test_a_pair_key_is_what_a_plan_says() -> None:
    assert a_plan("a").pair == PairKey(BASE.tree, CAND.tree, WORKLOAD.hash, "h", "x86-2")
