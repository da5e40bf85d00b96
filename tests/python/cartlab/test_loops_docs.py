"""docs/loops.md: each requirement names a test that exists, and none is missing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "loops.md"
CARRIED_OUT = [
    *(f"LH{n}" for n in range(1, 17)),
    *(f"LS{n}" for n in range(1, 38)),
    *(f"LC{n}" for n in range(1, 34)),
    *(f"LD{n}" for n in range(1, 29)),
    *(f"LA{n}" for n in range(1, 23)),
]


def rows() -> dict[str, str]:
    return dict(re.findall(r"^\| (L[A-Z]\d+) \| .* \| `(\w+)` \|$", PAGE.read_text(encoding="utf-8"), re.M))


def test_every_named_test_exists() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)\(", text, re.M))
    assert {name for name in rows().values() if name not in known} == set()


def test_no_requirement_that_is_carried_out_is_missing() -> None:
    assert [name for name in CARRIED_OUT if name not in rows()] == []


def test_the_command_line_offers_every_policy() -> None:
    from cartlab.cli import loopdesk
    from cartlab.loops import policies

    assert set(loopdesk.POLICIES) == set(policies.POLICIES)


def test_every_command_line_of_a_skill_is_one() -> None:
    """Each line that a skill quotes is understood: its command has a help, and its words fit it."""
    from cartlab.cli import build_parser
    from cartlab.cli.options import hoist
    from cartlab.cli.table import BY_NAME

    skills = PAGE.parents[1] / "skills"
    seen = 0
    for path in sorted(skills.glob("*/SKILL.md")):
        for line in re.findall(r"scripts/autoresearch\.py ([^\n`]+)", path.read_text(encoding="utf-8")):
            name, words = hoist(shlex.split(line))
            build_parser("autoresearch.py", BY_NAME[str(name)]).parse_intermixed_args(words)
            seen += 1
    assert seen > 10
