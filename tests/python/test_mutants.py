"""The tool behind `make mutants`: it finds rules, notices what no test notices, and a few removals made here
turn a test red.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "mutants"
sys.path.insert(0, str(FOLDER))

import run as mutants  # noqa: E402
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


def test_the_same_seed_draws_the_same_lines() -> None:
    rooms = dict.fromkeys(mutants.ROOMS, ())
    one, two = (mutants.draw(mutants.TOP, rooms, 5, 20) for _ in range(2))
    assert one == two and len(set(one)) == 20
    assert mutants.draw(mutants.TOP, rooms, 6, 20) != one


def test_each_rooms_tests_are_there() -> None:
    for names in mutants.ROOMS.values():
        for name in names:
            assert (mutants.TOP / f"{mutants.HERE}{name}.py").is_file(), name


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
