"""Two controllers at once, a clock that is set back, and disks that are really full or really read-only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import fake_project
import pytest
from fake_lab import instant_lab
from fault_bench import Place

from cartlab import lease
from cartlab.ledger import Ledger, parse_table, store
from cartlab.pipeline import lab as labs
from cartlab.pipeline.lab import Lab
from cartlab.verify import verify_root


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path, fake_project.make(tmp_path / "repo").path)
    monkeypatch.chdir(made.repo)
    return made


# --- two controllers


def busy_lab(folder: Path) -> Lab:
    """An instant laboratory with the machine's lease, whose builds, checks and blocks take some time and are
    noted in FOLDER/diary.
    """
    lab = instant_lab(folder)

    def slowly(name: str) -> Callable[..., Any]:
        real = getattr(lab, name)

        def noted(*words: Any, **more: Any) -> Any:
            with (folder / "diary").open("a") as diary:
                diary.write(f"{os.getpid()}\n")
            time.sleep(0.01)
            return real(*words, **more)

        return noted

    return replace(
        lab, lease=lease.hold, **{name: slowly(name) for name in ("build", "run_checks", "run_block")}
    )


def turns(place: Place) -> list[str]:
    """Who worked, in order, each turn once."""
    found: list[str] = []
    for worker in (place.folder / "lab" / "diary").read_text().splitlines():
        if found[-1:] != [worker]:
            found.append(worker)
    return found


@pytest.mark.parametrize("roots", [1, 2])
def test_two_controllers_take_turns_and_both_are_recorded(place: Place, roots: int) -> None:
    place.lab = busy_lab
    lines = [["accept", "base", "better"], ["calibrate", "base", "--max-blocks", "8"]]
    where = [place.folder / f"root-{number % roots}" for number in range(2)]
    running = [place.start(root, words) for root, words in zip(where, lines, strict=True)]
    ended = [place.ended(*one) for one in running]
    assert [code for code, _ in ended] == [0, 0], ended
    assert len(turns(place)) == 2, "one controller worked while the other held the machine"
    attempts = [one for root in set(where) for one in Ledger.open(root).attempts().values()]
    assert sorted(str(one.status) for one in attempts) == ["baseline", "keep"]
    assert all(verify_root(root).holds for root in where)
    rows = [row for root in set(where) for row in parse_table((root / "results.tsv").read_text())]
    assert len(rows) == 2


def test_the_same_command_twice_at_once_is_measured_once(place: Place) -> None:
    place.lab, root = busy_lab, place.folder / "root"
    running = [place.start(root, ["screen", "base", "better", "--json"]) for _ in range(2)]
    ended = [place.ended(*one) for one in running]
    answers = [json.loads(said[said.index("{") :]) for code, said in ended if code == 0]
    assert len(answers) == 2, ended
    assert sorted(one["details"]["remembered"] for one in answers) == [False, True]
    assert len({one["attempt_id"] for one in answers}) == 1 and verify_root(root).holds


# --- the clock


class SetBack(datetime):
    """A clock that was set back by `by`."""

    by = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - cls.by


def real_names(folder: Path) -> Lab:
    return replace(instant_lab(folder), attempt_id=labs.new_attempt_id)


def test_a_clock_that_is_set_back_changes_no_order_and_no_age_is_negative(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.lab, root = real_names, place.folder / "root"
    for module in (store, labs):
        monkeypatch.setattr(module, "datetime", SetBack)
    for days, words in (
        (0, ["calibrate", "base", "--max-blocks", "2"]),
        (2, ["screen", "base", "better"]),
        (4, ["accept", "base", "better"]),
        (6, ["calibrate", "base", "--max-blocks", "2"]),
        (7, ["note", "the clock was wrong"]),
    ):
        monkeypatch.setattr(SetBack, "by", timedelta(days=days))
        code, said = place.command(root, words)
        assert code == 0, said
    events = Ledger.open(root).events()
    times = [event["time"] for event in events]
    assert times != sorted(times) and [event["seq"] for event in events] == list(range(1, len(events) + 1))
    names = list(Ledger.open(root).attempts())
    assert len(set(names)) == 4
    assert verify_root(root).holds
    current = json.loads((root / "current.json").read_text())
    assert current["last_calibration"]["attempt_id"] == names[-1]
    assert current["latest_accepted"]["attempt_id"] == names[2]
    rows = parse_table((root / "results.tsv").read_text())
    assert [row["attempt_id"] for row in rows] == names


def test_a_calibration_from_what_is_now_the_future_is_zero_days_old(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = place.folder / "root"
    monkeypatch.setattr(store, "datetime", SetBack)
    monkeypatch.setattr(SetBack, "by", -timedelta(days=300))
    assert place.command(root, ["calibrate", "base", "--max-blocks", "2"])[0] == 0
    code, said = place.command(root, ["status"])
    assert code == 0 and "0.0 days ago" in said, said
    assert place.command(root, ["next"])[0] == 0
    assert Ledger.open(root).events()[0]["time"] > datetime.now(timezone.utc).isoformat()


# --- real disks


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small file system at `folder`, or a skip that says why."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
def test_a_really_full_disk_is_told_and_what_was_recorded_is_whole(place: Place) -> None:
    with mounted(place.folder / "disk", "-o", "size=256k") as disk:
        root = disk / "root"
        assert place.command(root, ["screen", "base", "better"])[0] == 0
        kept = (root / "events.jsonl").read_bytes()
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        for words in (["accept", "base", "better"], ["note", "x" * 20_000], ["calibrate", "base"]):
            code, said = place.command(root, words)
            assert code == 21 and "No space left" in said and "make room" in said, said
            assert "Traceback" not in said
        assert (root / "events.jsonl").read_bytes().startswith(kept)
        filler.unlink()
        assert place.command(root, ["accept", "base", "better"])[0] == 0
        assert verify_root(root).holds and (root / "events.jsonl").read_bytes().startswith(kept)


@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
def test_a_root_on_a_read_only_disk_is_refused_with_what_to_do(place: Place) -> None:
    with mounted(place.folder / "disk") as disk:
        root = disk / "root"
        assert place.command(root, ["screen", "base", "better"])[0] == 0
        done = subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"it cannot be made read-only here: {done.stderr.strip()}")
        before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for words in (["screen", "base", "better"], ["status"], ["init"]):
            code, said = place.command(root, words)
            assert code == 21 and "can be written" in said and "AUTORESEARCH_ROOT_PATH" in said, said
        assert len(Ledger.open(root, mend=False).events()) > 6
        assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
