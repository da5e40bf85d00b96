"""docs/loops.md: each requirement names a test that exists, and none is missing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "loops.md"
CARRIED_OUT = [
    *(f"LH{n}" for n in range(1, 17)),
    *(f"LS{n}" for n in range(1, 38)),
    *(f"LC{n}" for n in range(1, 34)),
    *(f"LD{n}" for n in range(1, 29)),
    *(f"LA{n}" for n in range(1, 23)),
]


def rows() -> dict[str, list[str]]:
    table = re.findall(
        r"^\| (L[A-Z]\d+) \| .* \| ((?:`\w+`(?:, )?)+) \|$", PAGE.read_text(encoding="utf-8"), re.M
    )
    assert len(dict(table)) == len(table)
    return {name: re.findall(r"\w+", tests) for name, tests in table}


def test_every_named_test_exists() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)\(", text, re.M))
    assert {name for names in rows().values() for name in names} - known == set()


def test_no_requirement_that_is_carried_out_is_missing() -> None:
    assert [name for name in CARRIED_OUT if name not in rows()] == []


def test_the_command_line_offers_every_policy() -> None:
    from cartlab.cli import loopdesk
    from cartlab.loops import policies

    assert set(loopdesk.POLICIES) == set(policies.POLICIES)


SKILLS = PAGE.parents[1] / "skills"
LOOPS = ("autoresearch-speed", "campaign", "handoff", "journal", "supervise")


def test_each_loop_has_a_skill_of_its_own_in_the_form_that_agents_read() -> None:
    assert tuple(sorted(path.name for path in SKILLS.iterdir())) == LOOPS
    for name in LOOPS:
        text = (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")
        head = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", text)
        assert head is not None and head[1] == name and len(head[2]) < 1024, name
        assert len(text.splitlines()) < 60, "a skill points at the commands and restates none of their rules"
    assert (SKILLS / "autoresearch-speed" / "SPECS.md").is_file()


@pytest.mark.parametrize("skill", LOOPS)
def test_every_command_line_of_a_skill_is_one(
    skill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line that a skill quotes fits its command, and runs with --help."""
    from cartlab.cli import build_parser, load, main
    from cartlab.cli.options import hoist
    from cartlab.cli.table import BY_NAME

    monkeypatch.chdir(tmp_path)
    lines = re.findall(
        r"autoresearch\.py ([^\n`]+)", (SKILLS / skill / "SKILL.md").read_text(encoding="utf-8")
    )
    assert lines
    for line in lines:
        name, words = hoist(shlex.split(line))
        row = BY_NAME[str(name)]
        load(row).translate(build_parser("autoresearch.py", row).parse_intermixed_args(words))
        assert main([*shlex.split(line), "--help"], repository=PAGE.parents[1]) == 0
        assert str(name) in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
