"""docs/adapters.md's table of clauses is true: every clause has a row, and every row its tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROWS = re.findall(r"^\| ((?:RS|RM|RE|U)\d+) \|.*\| (.*) \|$", (ROOT / "docs/adapters.md").read_text(), re.M)


def test_every_clause_of_the_adapters_has_a_row() -> None:
    named = [clause for clause, _ in ROWS]
    assert len(named) == len(set(named))
    assert {f"RS{n}" for n in range(1, 8)} | {f"RM{n}" for n in range(1, 11)} | {"RE3"} <= set(named)


@pytest.mark.parametrize(("clause", "tests"), ROWS)
def test_every_row_names_tests_that_exist(clause: str, tests: str) -> None:
    prefix = f"test_{clause.lower()}_"
    assert tests.startswith(f"`{prefix}*`: ")
    with_names, _, others = tests.partition(";")
    for listed, wanted in ((with_names, f"def {prefix}"), (others, "def test_")):
        for file in re.findall(r"`([\w/]+\.py)`", listed):
            folder = ROOT / "tests" / ("" if "/" in file else "python/rollcart")
            assert wanted in (folder / file).read_text(), f"{file} has no {wanted}"
    assert ".py`" in with_names
