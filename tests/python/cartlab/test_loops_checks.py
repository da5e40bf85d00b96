"""LA13: weakened checks, tried and refused, and what verify asks of each keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import PYTHON, insight, prepared, words

from cartlab.errors import BadInput
from cartlab.loops import witness
from cartlab.loops.witness import Collected

# --- LA13: checks -------------------------------------------------------------------------------------

TESTS = """\
import json
config = json.load(open("config.json"))
def test_rate():
    assert config["rate"] < 1
"""
# What a test framework does, in a tenth of its time: each test as often as there are cases, and a JUnit file.
RUNNER = """\
import json, sys
sys.path.insert(0, "tests")
import test_rate
config = json.load(open("config.json"))
cases, bad = [], 0
for name in [name for name in dir(test_rate) if name.startswith("test_")]:
    for case in range(config["cases"]):
        inner = "<skipped/>" if config["fast"] else ""
        try:
            if not config["fast"]:
                getattr(test_rate, name)()
        except AssertionError:
            inner, bad = "<failure/>", 1
        cases.append(f'<testcase classname="test_rate" name="{name}[{case}]">{inner}</testcase>')
open(sys.argv[1], "w").write("<testsuites><testsuite>" + "".join(cases) + "</testsuite></testsuites>")
sys.exit(bad)
"""
CHECKS = """
## Witnesses
- checks: sh tests/check.sh {junit}
- check_files: tests/
"""


def test_la13_weakened_checks_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prepared(
        tmp_path,
        monkeypatch,
        5,
        CHECKS,
        config__json='{"rate": 0.01, "cases": 2, "fast": false}',
        tests_slash_test_rate__py=TESTS,
        tests_slash_run__py=RUNNER,
        tests_slash_check__sh=f'{PYTHON} tests/run.py "$1"\n',
    )
    body = """
config(rate=0.02 + round / 100)
if round == 1: (work / "tests/test_rate.py").write_text("def test_nothing(): pass"); config(rate=5)
if round == 2: (work / "tests/check.sh").write_text("true || true"); config(rate=5)
if round == 3: config(cases=1)
if round == 4: config(fast=True)
"""
    assert one.supervise(body) == 0
    assert words(one) == ["checks_failed"] * 4 + ["keep"]
    assert "1 of 2 tests are gone" in insight(one, 3)
    assert "2 more tests are skipped" in insight(one, 4)
    assert one.cartlab("verify") == 0


def _acceptance(checks: bool, *runs: tuple[str, str, dict[str, Any]], sealed: int = 0) -> list[str]:
    """What verify says of a keep of g-r1, whose tree is "t", after these runs (attempt, role, body)."""
    from cartlab.verify.acceptance import Acceptance

    said: list[str] = []
    replay = Acceptance(lambda name, what: said.append(what))
    asked = {"witnesses": {"checks": "make test" if checks else ""}}
    replay.goal({"goal": "g", "op": "opened", "describes": {"protocol": asked}})
    if sealed:
        replay.goal({"goal": "g", "op": "holdout", "digest": "d", "looks": sealed})
    for attempt, role, body in runs:
        whole = {"goal": "g", "role": role, "tree": "t", "passed": True, "digest": "d", **body}
        replay.measurement({"attempt": attempt, "body": whole})
    replay.kept("g-r1", "g", "t")
    return said


def test_la13_la12_verify_asks_each_keep_for_its_checks_and_its_holdout() -> None:
    base = ("g-reference0", "checks", {"ids": ["a", "b"], "skipped": ["b"]})
    ran = ("g-r1", "checks", {"ids": ["a", "b", "c"], "skipped": ["b"]})
    look = ("g-r1", "holdout", {})
    assert _acceptance(False) == _acceptance(True, base, ran) == []
    assert _acceptance(True, base) == ["kept without the checks that its protocol asks for"]
    assert _acceptance(True, ran) == ["kept by checks that were never run on the baseline"]
    weaker = "kept by checks that are weaker than the baseline's"
    assert _acceptance(True, base, ("g-r1", "checks", {"ids": ["a"], "skipped": []})) == [weaker]
    assert _acceptance(True, base, ("g-r1", "checks", {"ids": ["a", "b"], "skipped": ["a"]})) == [weaker]
    other = ("g-r1", "checks", {"ids": ["a", "b"], "skipped": [], "tree": "other"})
    assert _acceptance(True, base, other) == ["kept without the checks that its protocol asks for"]
    assert _acceptance(False, look, sealed=1) == []
    assert _acceptance(False, sealed=1) == ["kept without passing the sealed holdout"]
    assert _acceptance(False, ("g-r0", "holdout", {}), look, sealed=1) == ["look 2 at a holdout with 1"]
    another = "a look at another holdout than the one that was sealed"
    assert _acceptance(False, ("g-r1", "holdout", {"digest": "e"}), sealed=1) == [another]


def test_la13_tests_are_read_from_plain_xml_alone() -> None:
    data = b"""<testsuites><testsuite><testcase classname="a" name="x"/>
    <testcase classname="a" name="y"><skipped type="pytest.xfail"/></testcase></testsuite></testsuites>"""
    found = witness.junit(data)
    assert found == Collected(frozenset({"a::x", "a::y"}), frozenset({"a::y"}))
    for bad in (b"", b"<a", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b" " * (9 << 20)):
        with pytest.raises(BadInput):
            witness.junit(bad)


IDS = st.frozensets(st.sampled_from("abcdef"))


@given(IDS, IDS, IDS, IDS)
def test_la13_checks_are_weaker_when_a_test_is_gone_or_newly_skipped(
    ids: frozenset[str], skips: frozenset[str], later: frozenset[str], later_skips: frozenset[str]
) -> None:
    before, after = Collected(ids, skips & ids), Collected(later, later_skips & later)
    assert (witness.weaker(before, after) is None) == (
        before.ids <= after.ids and after.skipped <= before.skipped
    )
