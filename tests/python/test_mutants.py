"""The tool behind `make mutants`: it finds rules, notices what no test notices, and a few removals made here
turn a test red.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "mutants"
sys.path.insert(0, str(FOLDER))

import run as mutants  # noqa: E402
from rust_sites import rust_sites  # noqa: E402
from sites import sites, without  # noqa: E402

SOURCE = '''
"""A module."""
import os

LIMIT = 3


def judge(value: int, strict: bool, seen: list[int]) -> str:
    """Words are no rule."""
    assert seen is not None
    print("neither is this")
    if value < 0 and strict:
        raise ValueError("negative")
    seen.append(value)
    return "many" if value > LIMIT else "few"
'''


def test_rules_are_found_and_nothing_else_is() -> None:
    found = [(site.line, site.by, site.what) for site in sites(SOURCE)]
    assert sorted(found) == [
        (12, "(value <= 0)", "edge < to <=: value < 0"),
        (12, "False", "never: value < 0 and strict"),
        (12, "True", "always: value < 0 and strict"),
        (12, "True", "operand: strict"),
        (12, "True", "operand: value < 0"),
        (13, "pass", 'raise: raise ValueError("negative")'),
        (14, "pass", "call: seen.append(value)"),
        (15, "(value >= LIMIT)", "edge > to >=: value > LIMIT"),
        (15, "False", "never: value > LIMIT"),
        (15, "True", "always: value > LIMIT"),
    ]


def test_a_change_touches_its_own_bytes_alone_and_parses() -> None:
    for site in sites(SOURCE):
        changed = without(SOURCE, site)
        ast.parse(changed)
        head, tail = site.start, len(SOURCE.encode()) - site.end
        assert changed.encode()[:head] == SOURCE.encode()[:head]
        assert tail == 0 or changed.encode()[-tail:] == SOURCE.encode()[-tail:]
        assert changed != SOURCE


RUST = """
//! A file; if it were code { } it would count.
#[derive(Debug)]
pub struct Judge<'a> {
    seen: &'a mut Vec<u32>,
}

impl Judge<'_> {
    fn judge(&mut self, value: u32, strict: bool) -> Result<&'static str, String> {
        assert!(value < 100, "if this { } were code");
        if value >= 9 && strict {
            return Err("many; too many".into());
        }
        self.seen.push(value); // self.seen.clear();
        if let Some(last) = self.seen.last() {
            self.total += last;
        }
        let make = || value;
        Ok(match make() {
            n if n == 3 => "three",
            _ => "other",
        })
    }
}

#[cfg(test)]
mod tests {
    fn nothing_here(a: u32) {
        if a > 3 {}
    }
}
"""


def test_rules_of_rust_are_found_by_their_looks() -> None:
    found = [(site.line, site.by, site.what) for site in rust_sites(RUST)]
    assert found == [
        (11, "true", "operand: value >= 9"),
        (11, "false", "never: value >= 9 && strict"),
        (11, "true", "always: value >= 9 && strict"),
        (11, ">", "edge >= to >: >="),
        (11, "true", "operand: strict"),
        (12, "", 'return: return Err("many; too many".into());'),
        (14, "", "call: self.seen.push(value);"),
        (16, "", "update: self.total += last;"),
        (20, "false", "never: n == 3"),
        (20, "true", "always: n == 3"),
    ]
    lines = RUST.splitlines()
    for site in rust_sites(RUST):
        changed = without(RUST, site).splitlines()
        assert [n for n, (a, b) in enumerate(zip(lines, changed, strict=True), 1) if a != b] == [site.line]


def test_offsets_in_rust_are_those_of_bytes() -> None:
    source = 'fn f(a: u8) {\n    // \u00b5\n    g("\u00e4\u00f6");\n    if a > 1 {\n        h();\n    }\n}\n'
    assert [without(source, site).count("\u00e4") for site in rust_sites(source)] == [0, 1, 1, 1, 1]
    assert "    if a >= 1 {\n" in without(source, rust_sites(source)[-2])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with two rules, of which its test looks at one."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "judged.py").write_text(
        "def judge(value, strict):\n"
        "    if value < 0:\n        raise ValueError\n"
        "    if strict:\n        raise TypeError\n"
    )
    (tmp_path / "test_judged.py").write_text(
        "import judged, pytest\n\ndef test_it():\n    judged.judge(0, False)\n"
        "    with pytest.raises(ValueError):\n        judged.judge(-1, False)\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


ROOMS = {"python/judged.py": ("test_judged.py",)}


def test_a_rule_that_no_test_looks_at_survives_and_is_named(small: Path) -> None:
    before = {path: path.read_bytes() for path in small.rglob("*") if path.is_file()}
    done = mutants.run(small, ROOMS, seed=1, count=100, quiet=True)
    survivors = [(one.file, one.line, one.what) for one in done if one.killed_by is None]
    assert sorted(survivors) == [
        ("python/judged.py", 4, "never: strict"),
        ("python/judged.py", 5, "raise: raise TypeError"),
    ]
    assert {one.killed_by for one in done} == {None, "test_judged.py::test_it"}
    assert {path: path.read_bytes() for path in before} == before


def test_a_test_that_is_red_without_any_change_says_nothing(small: Path) -> None:
    (small / "test_judged.py").write_text("def test_it():\n    assert False\n")
    with pytest.raises(mutants.AlreadyRed, match="test_it"):
        mutants.run(small, ROOMS, seed=1, count=1, quiet=True)


def test_a_change_of_rust_that_does_not_compile_is_passed_over(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the four changes of a Rust file the compiler (here a stand-in) refuses one."""
    (small / "python" / "judged.rs").write_text("fn f(a: u8) {\n    if a > 1 {\n        g();\n    }\n}\n")
    built = []

    def build(copy: mutants.Copy) -> bool:
        built.append((copy.path / "python" / "judged.rs").read_text())
        return "if false" not in built[-1]

    monkeypatch.setattr(mutants.Copy, "build", build)
    done = mutants.run(small, {"python/judged.rs": ("test_judged.py",)}, seed=1, count=100, quiet=True)
    assert sorted(one.what for one in done) == ["always: a > 1", "call: g();", "edge > to >=: >"]
    assert all(one.killed_by is None for one in done), "no test looks at it"
    assert len(set(built)) == 5, "once as it is, and once without each rule"
    monkeypatch.setattr(mutants.Copy, "build", lambda _copy: False)
    with pytest.raises(mutants.DoesNotBuild):
        mutants.run(small, {"python/judged.rs": ("test_judged.py",)}, seed=1, count=1, quiet=True)


def test_the_same_seed_draws_the_same_lines() -> None:
    one, two = (mutants.draw(mutants.TOP, mutants.ROOMS, 5, 20) for _ in range(2))
    assert one == two and len(set(one)) == 20
    assert mutants.draw(mutants.TOP, mutants.ROOMS, 6, 20) != one


def test_each_rooms_files_and_tests_are_there() -> None:
    for room, tests in mutants.ROOMS.items():
        assert (mutants.TOP / room).exists(), room
        files = [test for test in tests if not test.startswith("cargo:")]
        assert files and all((mutants.TOP / test).is_file() for test in files), room
        for unit in (test for test in tests if test.startswith("cargo:")):
            place = mutants.TOP / "src" / unit.removeprefix("cargo:").replace("::", "/")
            below = [place.with_suffix(".rs"), *place.rglob("*.rs")]
            assert any("#[cfg(test)]" in path.read_text() for path in below), unit


def test_a_file_with_a_row_of_its_own_is_tried_against_its_tests_alone() -> None:
    assert mutants.room_of("src/vec_env/rng.rs") == "src/vec_env/rng.rs"
    assert mutants.room_of("src/vec_env/lane.rs") == "src/vec_env"
    assert mutants.room_of("src/emulator/fast.rs") is None
    drawn = {file for file, _ in mutants.draw(mutants.TOP, mutants.ROOMS, 0, 10**6)}
    assert {"src/vec_env/lane.rs", "src/vec_env/observe/stack.rs", "python/rollcart/vector_env.py"} <= drawn
    assert "src/vec_env/observe/bins/tests.rs" not in drawn


def test_what_is_said_to_be_equivalent_is_there_and_is_not_drawn() -> None:
    rooms = dict.fromkeys(mutants.ROOMS, ())
    drawn = {(file, site.what) for file, site in mutants.draw(mutants.TOP, rooms, 1, 10**6)}
    for file, what in mutants.EQUIVALENT:
        found = {site.what for site in sites((mutants.TOP / file).read_text(encoding="utf-8"))}
        assert what in found, f"{file} has no {what}: take it off the list"
        assert (file, what) not in drawn


def test_two_rules_of_deciding_drawn_now_turn_a_test_red() -> None:
    words = ["--count", "2", "--only", "python/cartlab/decide.py", "--json"]
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), *words], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["survivors"] == 0


def test_a_path_outside_the_rooms_is_wrong_use() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), "--only", "python/cartlab/root.py"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "python/cartlab/decide.py" in done.stderr


def test_ended_from_outside_it_leaves_no_copy_and_no_test_running(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "run.py"), "--count", "1", "--only", "python/cartlab/decide.py"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    source = (mutants.TOP / "python" / "cartlab" / "decide.py").read_bytes()
    deadline = time.monotonic() + 120
    while not any(
        one.read_bytes() not in (source, b"")
        for one in tmp_path.glob("mutants-*/copy/python/cartlab/decide.py")
    ):
        assert process.poll() is None and time.monotonic() < deadline, "a rule is removed and its tests begin"
        time.sleep(0.02)
    process.terminate()
    assert process.wait(60) == 143
    assert list(tmp_path.glob("mutants-*")) == []
