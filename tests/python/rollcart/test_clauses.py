"""The tables of docs/vector-env.md: each clause has its row, and each test named there exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROWS = re.findall(
    r"^\| ((?:RG|RS|RR|RM|RE|U)\d+) \|.*\| (.*) \|$", (ROOT / "docs/vector-env.md").read_text(), re.M
)


def test_every_clause_of_gymnasium_has_one_row() -> None:
    clauses = [clause for clause, _ in ROWS]
    assert len(clauses) == len(set(clauses))
    assert {f"RG{number}" for number in range(1, 26)} <= set(clauses)


def test_every_test_that_a_row_names_exists_and_bears_its_clause() -> None:
    found = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    for clause, cell in ROWS:
        named = re.findall(r"`(test_\w+)`", cell)
        assert named, f"{clause} names no test"
        for name in named:
            assert name in found, f"{clause}: there is no {name}"
            assert clause.lower() in name.split("_"), f"{clause}: {name} is of another clause"
