"""Every write of every command, once with death before, in and after it, and once with a full disk: nothing
that was recorded is lost, what remains verifies, and the next run goes on.

A dry pass notes each call of the disk with the file it is for, and of an event its type; what is then tried
is the first call of each kind: one block's writes are like another's.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import fake_project
import pytest
from fault_bench import DIED, Dying, Full, Place, Watched
from ledger_runs import a_plan

from cartlab.ledger import Ledger
from cartlab.verify import verify_root


@dataclass
class Case:
    """A command, what was done before it, and the exit codes that its repetition may have. events: try only
    the writes of events, where the files are those of a case that has been tried whole.
    """

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    again: tuple[int, ...] = (0,)
    code: int = 0
    damage: bool = False
    events: bool = False


OPENED = (("calibrate", "HEAD", "--max-blocks", "2"), ("round", "open"))
KEPT = (*OPENED, ("accept-stack", "base", "better"))
CASES = {
    "init": Case(("init",)),
    "screen": Case(("screen", "base", "better")),
    "accept": Case(("accept", "base", "better"), (("screen", "base", "better"),), events=True),
    "checks": Case(("checks", "HEAD"), (("init",),)),
    "note": Case(("note", "a lesson"), (("screen", "base", "better"),)),
    "round open": Case(("round", "open"), OPENED[:1], again=(0, 23)),
    "confirm": Case(("round", "confirm"), KEPT, again=(0, 23), events=True),
    "import": Case(("import", "other.export"), (("screen", "base", "better"),)),
    "record": Case(("record", "aggregate.json", "--status", "discard", "--description", "x"), again=(0, 2)),
    "repair": Case(("init", "--repair"), (("screen", "base", "better"),), damage=True),
}


def prepared(place: Place, name: str, case: Case) -> Path:
    """A root in which everything before the command was done."""
    root = place.folder / f"{name} before"
    for words in case.before:
        code, said = place.command(root, words)
        assert code == 0, said
    if case.damage:
        lines = (root / "events.jsonl").read_bytes().split(b"\n")
        lines[3] = lines[3].replace(b'"coin":0', b'"coin":1')
        (root / "events.jsonl").write_bytes(b"\n".join(lines))
    return root


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    made = Place(tmp_path, fake_project.make(tmp_path / "repo").path)
    monkeypatch.chdir(made.repo)
    other = tmp_path / "other"
    assert made.command(other, ["screen", "base", "better"])[0] == 0
    assert made.command(other, ["export", "other.export"])[0] == 0
    (aggregate,) = other.glob("benchmarks/runs/*/aggregate.json")
    shutil.copy(aggregate, made.repo / "aggregate.json")
    yield made


def copied(before: Path, after: Path) -> Path:
    shutil.rmtree(after, ignore_errors=True)
    if before.exists():
        shutil.copytree(before, after)
    return after


def calls(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def points(place: Place, before: Path, case: Case) -> list[tuple[int, str, str]]:
    """(number of the call, its name, the moment) of the first call of each kind, and the end of the last."""
    log = place.folder / "dry.log"
    log.unlink(missing_ok=True)
    code, said = place.command(copied(before, place.folder / "root"), case.words, lambda: Watched(log))
    assert code == case.code, said
    made = [one for one in calls(log) if "call" in one]
    first: dict[tuple[str, str], int] = {}
    for number, one in enumerate(made):
        first.setdefault((str(one["call"]), str(one["kind"])), number)
    found = []
    for (call, kind), number in first.items():
        if case.events and "events.jsonl" not in kind:
            continue
        moments = ("before", "within") if call == "write" else ("before",)
        found += [(number, call, moment) for moment in moments]
    # After a call is before the next one, but for the last.
    return [*found, (len(made) - 1, str(made[-1]["call"]), "after")]


def events_bytes(root: Path) -> bytes:
    path = root / "events.jsonl"
    return path.read_bytes() if path.exists() else b""


def goes_on(place: Place, root: Path, case: Case, stored: bytes, at: str) -> None:
    """The state after the fault: whole, verified, shown, and continued by the same command."""
    code, said = place.command(root, ["status"])
    assert code == 0, f"{at}: {said}"
    assert events_bytes(root).startswith(stored), f"{at}: an event that was stored is gone"
    assert verify_root(root).holds, f"{at}: {verify_root(root).findings}"
    code, said = place.command(root, case.words)
    assert code in case.again, f"{at}: {code} {said}"
    assert verify_root(root).holds, f"{at}: {verify_root(root).findings}"
    if case.damage:
        # The run whose end was set aside is closed by the next one that measures, and continued.
        code, said = place.command(root, ["screen", "base", "better"])
        assert code == 0 and verify_root(root).holds, f"{at}: {said}"
    if case.words == ("round", "confirm"):
        assert json.loads((root / "current.json").read_text())["state"] == "complete", at
    ledger = Ledger.open(root)
    assert ledger.reports == [] and ledger.abandoned() == [], at
    assert list(root.glob(".*.new")) == [], at


@pytest.mark.parametrize("name", CASES)
def test_death_at_any_write_loses_nothing_and_the_next_run_goes_on(place: Place, name: str) -> None:
    case = CASES[name]
    before = prepared(place, name, case)
    tried = 0
    for number, call, moment in points(place, before, case):
        at = f"{name}: death {moment} call {number} ({call})"
        root, log = copied(before, place.folder / "root"), place.folder / "log"
        log.unlink(missing_ok=True)
        code, said = place.command(root, case.words, partial(Dying, log, number, moment))
        assert code == DIED, f"{at}: {said}"
        sizes = [int(str(one["stored"])) for one in calls(log) if "stored" in one]
        stored = events_bytes(root)[: sizes[-1]] if sizes else whole_lines(before, case)
        if case.damage:
            # The damaged lines lie in the ledger until a copy beside it is whole.
            everything = b"".join(path.read_bytes() for path in root.glob("events.jsonl*"))
            assert damaged_part(before) in everything, at
            assert place.command(root, case.words)[0] == 0, at
        goes_on(place, root, case, stored, at)
        tried += 1
    assert tried >= 8


def whole_lines(root: Path, case: Case) -> bytes:
    """What the root held before: of a damaged ledger the part before the damage."""
    data = events_bytes(root)
    return data[: -len(damaged_part(root))] if case.damage else data


def damaged_part(root: Path) -> bytes:
    return b"\n".join(events_bytes(root).split(b"\n")[3:])


@pytest.mark.parametrize("name", ["init", "screen", "note", "import", "repair"])
def test_a_full_disk_at_any_write_is_told_and_the_next_run_goes_on(place: Place, name: str) -> None:
    case = CASES[name]
    before = prepared(place, name, case)
    for number, call, moment in points(place, before, case):
        if (call, moment) not in (("write", "within"), ("make_folder", "before")):
            continue
        at = f"{name}: full from call {number} ({call})"
        root, log = copied(before, place.folder / "root"), place.folder / "log"
        log.unlink(missing_ok=True)
        code, said = place.command(root, case.words, partial(Full, log, number, moment))
        assert code == 21, f"{at}: {code} {said}"
        assert "No space left" in said and "make room" in said and "Traceback" not in said, f"{at}: {said}"
        if case.damage:
            assert damaged_part(before) in b"".join(p.read_bytes() for p in root.glob("events.jsonl*")), at
            assert place.command(root, case.words)[0] == 0, at
        goes_on(place, root, case, whole_lines(before, case), at)


def test_the_points_are_those_of_every_kind_of_file(place: Place) -> None:
    case = CASES["screen"]
    before = prepared(place, "screen", case)
    log = place.folder / "kinds.log"
    place.command(copied(before, place.folder / "root"), case.words, lambda: Watched(log))
    kinds = {
        Path(str(one["kind"]).partition(" ")[0]).name
        for one in calls(log)
        if one.get("call") in ("write", "replace")
    }
    files = {"events.jsonl", "plan.json", "aggregate.json", "manifest.json", "results.tsv", "current.json"}
    assert files | {"build-baseline.log", "block-#.json"} <= kinds
    assert len(points(place, before, case)) >= 30


def test_an_abandoned_attempt_ends_with_its_final_decision_or_as_interrupted(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path)
    for name, decision in (
        ("none", None),
        ("final", {"status": "keep", "final": True}),
        ("by default", {"status": "discard"}),
        ("not final", {"status": "keep", "final": False}),
    ):
        ledger.append("attempt_started", name, a_plan(name).to_json())
        if decision is not None:
            ledger.append("decision", name, decision)
    assert ledger.close_abandoned() == ["none", "final", "by default", "not final"]
    ended = {name: one.status for name, one in ledger.attempts().items()}
    assert ended == {
        "none": "interrupted",
        "final": "keep",
        "by default": "discard",
        "not final": "interrupted",
    }
