"""The tables of docs/vector-env.md: each clause has its row, and each test named there exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROWS = re.findall(
    r"^\| ((?:RG|RS|RR|RM|RE|U)\d+) \|.*\| (.*) \|$", (ROOT / "docs/vector-env.md").read_text(), re.M
)


# Clauses of each kind, and the reports, whose numbers have gaps.
KINDS = {"RG": 25, "RS": 7, "RR": 28, "RM": 10, "RE": 4}
REPORTS = "3 4 5 6 10 11 12 13 14 15 16 20 21 22 25 26 27 28 29 30 31 32 33 34 36 37 38 39 42 44"


def test_every_clause_and_report_has_one_row() -> None:
    clauses = [clause for clause, _ in ROWS]
    wanted = [f"{kind}{number}" for kind, count in KINDS.items() for number in range(1, count + 1)]
    wanted += [f"U{int(number):02}" for number in REPORTS.split()]
    assert sorted(clauses) == sorted(wanted)


def bears(name: str, clause: str) -> bool:
    """Whether a test's name has the clause, or a range of them like rr6_to_rr18."""
    words = name.split("_")
    ranges = (words[at - 1 : at + 2] for at, word in enumerate(words) if word == "to" and at > 0)
    kind, number = re.fullmatch(r"([A-Z]+)(\d+)", clause).groups()  # type: ignore[union-attr]
    for ends in ranges:
        limits = [re.fullmatch(rf"{kind.lower()}(\d+)", end) for end in (ends[0], ends[-1])]
        if all(limits) and int(limits[0][1]) <= int(number) <= int(limits[1][1]):  # type: ignore[index]
            return True
    return clause.lower() in words


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
            assert bears(name, clause), f"{clause}: {name} is of another clause"
