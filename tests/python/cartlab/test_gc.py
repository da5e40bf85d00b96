"""`gc`: what can be made again goes by age and size; results and what a running attempt needs stay."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from cli_bench import Bench, make_bench
from ledger_runs import a_plan

from cartlab import garbage
from cartlab.cli.gc import _size
from cartlab.garbage import DAY_S, Item, Wish, choose
from cartlab.ledger import Ledger
from cartlab.sources import resolve
from cartlab.verify import verify_root

NOW = 1_000_000_000.0


def item(name: str, days: float, size: int, kind: str = "build", **more: object) -> Item:
    build = name if kind == "build" else None
    return Item(name, kind, size, NOW - days * DAY_S, **{"build": build, **more})  # type: ignore[arg-type]


# As survey() orders them.
ITEMS = [
    item("log", 40.0, 1, kind="log"),
    item("a/src", 30.0, 5, kind="sources", build="a"),
    item("a", 30.0, 10),
    item("b", 20.0, 20, held="a running attempt uses it"),
    item("target", 9.0, 40, kind="target"),
    item("c", 2.0, 80),
    item("trash", 0.0, 3, kind="leftover"),
]


@pytest.mark.parametrize(
    ("wish", "gone"),
    [
        (Wish(), {"trash"}),
        (Wish(older_than=14.0), {"log", "a/src", "a", "trash"}),
        (Wish(older_than=9.0), {"log", "a/src", "a", "target", "trash"}),
        (Wish(older_than=0.0), {"log", "a/src", "a", "target", "c", "trash"}),
        (Wish(older_than=0.0, keep=1), {"log", "a/src", "a", "target", "trash"}),
        (Wish(older_than=0.0, keep=3), {"log", "target", "trash"}),
        (Wish(max_bytes=156), {"trash"}),
        (Wish(max_bytes=155), {"log", "trash"}),
        (Wish(max_bytes=150), {"log", "a/src", "trash"}),
        (Wish(max_bytes=0), {"log", "a/src", "a", "target", "c", "trash"}),
        (Wish(max_bytes=0, keep=1), {"log", "a/src", "a", "target", "trash"}),
        (Wish(older_than=14.0, max_bytes=100), {"log", "a/src", "a", "target", "trash"}),
    ],
)
def test_age_size_and_number_choose_what_goes(wish: Wish, gone: set[str]) -> None:
    assert {one.name for one in choose(ITEMS, wish, NOW)} == gone


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("123", 123), ("2K", 2048), ("1.5 MiB", 1536 << 10), ("2gb", 2 << 30)]
)
def test_sizes_are_read_as_people_write_them(text: str, count: int) -> None:
    assert _size(text) == count


def test_hard_links_count_once_and_named_children_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    alone, _ = garbage.measure(tmp_path)
    os.link(tmp_path / "one", tmp_path / "two")
    assert garbage.measure(tmp_path)[0] == alone
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "three").write_bytes(b"x" * 100_000)
    assert garbage.measure(tmp_path)[0] > alone
    assert garbage.measure(tmp_path, leave={"part"})[0] == alone
    assert garbage.measure(tmp_path / "gone") == (0, 0.0)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A root with one screen of two builds, kept sources, a failed build's log and a target folder."""
    made = make_bench(tmp_path)
    made.project.commit("faster", work=50)
    assert made.run("screen", "HEAD~1", "HEAD", "--keep-sources").code == 0
    made.project.write("engine.c", "int broken(\n")
    made.project.commit("broken")
    assert made.run("screen", "HEAD~1", "HEAD").code == 14
    (made.root / "tmp" / "build" / "target" / "object").write_bytes(b"x" * 10_000)
    return made


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_everything_that_can_be_made_again_goes_and_no_result_does(bench: Bench) -> None:
    before = files(bench.root)
    planned = bench.run("gc", "--older-than", "0", "--dry-run", "--json")
    assert planned.json["status"] == "planned" and files(bench.root) == before
    kinds = {one["kind"] for one in planned.json["details"]["freed"]}
    assert kinds == {"build", "sources", "target", "log"}
    answer = bench.run("gc", "--older-than", "0", "--json")
    assert (answer.code, answer.json["recorded"]) == (0, False)
    assert answer.json["details"]["freed"] == planned.json["details"]["freed"]
    assert answer.json["details"]["freed_bytes"] > 10_000
    left = {name for name in before if not name.startswith(("builds/", "tmp/build/target"))}
    assert files(bench.root) == left
    assert not [name for name in left if "trash" in name]
    assert verify_root(bench.root).holds
    # The pair goes on where it was: what was freed is made again.
    again = bench.run("screen", "HEAD~2", "HEAD~1", "--again", "--json")
    assert (again.code, again.json["blocks"]["pooled"]) == (0, 6)


def test_the_builds_that_were_used_last_stay(bench: Bench) -> None:
    old = min((bench.root / "builds").glob("*/stamp.json"), key=lambda path: path.stat().st_mtime).parent
    answer = bench.run("gc", "--older-than", "0", "--keep", "2", "--json")
    assert {one["kind"] for one in answer.json["details"]["freed"]} == {"target", "log"}
    assert old.is_dir()


def test_nothing_of_a_running_attempt_goes(bench: Bench) -> None:
    ledger = Ledger.open(bench.root)
    ref = resolve(bench.project.path, "HEAD~1")
    plan = a_plan("running").to_json() | {"base": ref.to_json(), "cand": ref.to_json()}
    with ledger.running("running"):
        ledger.append("attempt_started", "running", plan)
        answer = bench.run("gc", "--older-than", "0", "--json")
        (held,) = [one for one in answer.json["details"]["kept"] if one["kind"] == "build"]
        assert held["held"] == "a running attempt uses it"
        assert len(list((bench.root / "builds").glob("*/stamp.json"))) == 1
    assert bench.run("gc", "--older-than", "0").code == 0
    assert not list((bench.root / "builds").iterdir())


def test_a_place_where_somebody_builds_is_left_alone(bench: Bench) -> None:
    (bench.root / "builds" / "unstamped").mkdir()
    with (bench.root / "tmp" / "build" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = bench.run("gc", "--older-than", "0", "--json")
        held = {one["name"] for one in answer.json["details"]["kept"]}
        assert held == {"builds/unstamped", "tmp/build/target"}
    assert bench.run("gc").code == 0
    assert not (bench.root / "builds" / "unstamped").exists()


def test_what_a_killed_gc_set_aside_goes_with_the_next(bench: Bench) -> None:
    trash = bench.root / "tmp" / "trash-1" / "0" / "locked"
    trash.mkdir(parents=True)
    (trash / "file").write_text("x")
    trash.chmod(0o500)
    assert bench.run("gc").code == 0
    assert not list((bench.root / "tmp").glob("trash-*"))


def test_a_missing_root_and_a_wrong_size_are_said(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    answer = bench.run("gc", "--json")
    assert answer.code == 0 and answer.json["details"]["freed"] == [] and not bench.root.exists()
    wrong = bench.run("gc", "--max-size", "big", "--json")
    assert wrong.code == 2 and "500M" in wrong.json["reasons"][0]
