"""What a command says and what becomes of it, rule by rule: lines of milliseconds, builds of one file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ledger_runs import a_plan, ref

from cartlab.errors import (
    BehaviourChanged,
    CartlabError,
    MetricError,
    Tampered,
    UsageError,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.measure import commands
from cartlab.model import Block, Build, Workload

# A build says what its file "said" holds.
SAYS = "cat $CARTLAB_BUILD_DIR/said"


def a_workload(command: str = SAYS, kind: str = "command", **changes: Any) -> Workload:
    fields: dict[str, Any] = {"metric": "rate", "direction": "higher", "unit": "things/s", "verify_steps": 9}
    return Workload("w", kind, command, **{**fields, "params": {"runs": 2}, **changes})


def built(folder: Path, name: str, said: str = "") -> Build:
    out = folder / name / "out"
    out.mkdir(parents=True)
    (out / "said").write_text(said)
    return Build(ref(name), name, str(out), "said", "a" * 64, 0.0, False)


def builds(folder: Path, base: str, cand: str) -> dict[str, Build]:
    return {"base": built(folder, "base", base), "cand": built(folder, "cand", cand)}


def measured(folder: Path, workload: Workload, base: str, cand: str) -> Block:
    sides = builds(folder, base, cand)
    return commands.run(a_plan("a", "screen", workload=workload), 0, 0, sides, folder)


def once(folder: Path, workload: Workload, said: str = "", side: str = "cand") -> commands.Run:
    return commands.once(workload, side, built(folder, side, said), folder, 0, 1, 9)


# --- both sides


@pytest.mark.parametrize("runs", [0, -2, 1, 3])
def test_run_counts_that_cannot_balance_are_refused(tmp_path: Path, runs: int) -> None:
    with pytest.raises(UsageError, match=f"even and at least 2, so that orders balance; found {runs}"):
        measured(tmp_path, a_workload(params={"runs": runs}), "METRIC rate=1", "METRIC rate=1")


RATE = "METRIC rate=4\n"


@pytest.mark.parametrize(
    ("base", "cand", "says", "details"),
    [
        (f"{RATE}METRIC x=1\n", RATE, "the same metrics; x comes from one of them alone", {}),
        (RATE, f"{RATE}METRIC x=1\n", "the same metrics; x comes from one of them alone", {}),
        (f"{RATE}DIGEST d=1", f"{RATE}DIGEST d=2", "run 0 differ: digest d", {"base": "1", "cand": "2"}),
        (f"{RATE}DIGEST d=1", RATE, "run 0 differ: digest d", {"base": "1", "cand": None}),
        (RATE, f"{RATE}DIGEST d=2", "run 0 differ: digest d", {"base": None, "cand": "2"}),
    ],
)
def test_sides_that_say_other_things_change_behaviour(
    tmp_path: Path, base: str, cand: str, says: str, details: Mapping[str, Any]
) -> None:
    with pytest.raises(BehaviourChanged, match=says) as error:
        measured(tmp_path, a_workload(), base, cand)
    assert error.value.details == details
    found = commands.verify(
        a_plan("a", "screen", workload=a_workload()), builds(tmp_path / "again", base, cand), tmp_path
    )
    assert not found.equal and found.first_difference is not None
    assert found.base_digest != found.cand_digest


def test_sides_that_say_the_same_are_equal_and_make_a_block(tmp_path: Path) -> None:
    said = f"{RATE}METRIC x=1\nDIGEST d=1\nDIGEST e=1\n"
    plan = a_plan("a", "screen", workload=a_workload())
    found = commands.verify(plan, builds(tmp_path / "verified", said, said), tmp_path)
    assert (found.equal, found.items, found.steps, found.first_difference) == (True, 4, 9, None)
    block = measured(tmp_path, a_workload(), said, said)
    assert (block.order, block.y, block.witness["log_ratios"]) == ("BCCB", 0.0, {"rate": 0.0})
    assert block.digests["base"] == block.digests["cand"]
    assert min(*block.witness["wall_ns_per_run"].values(), *block.witness["cpu_ns_per_run"].values()) > 0


def test_a_comparison_says_that_the_metric_is_missing(tmp_path: Path) -> None:
    plan = a_plan("a", "screen", workload=a_workload())
    with pytest.raises(MetricError, match="must give the metric 'rate'; it gave x"):
        commands.verify(plan, builds(tmp_path, "METRIC x=1", "METRIC x=1"), tmp_path)


def test_a_metric_that_not_every_run_gives_has_its_ratio_of_those_that_do(tmp_path: Path) -> None:
    """Of two runs the second gives one number less."""
    workload = a_workload(
        "test -e $CARTLAB_BUILD_DIR/second || echo METRIC b=3; cat $CARTLAB_BUILD_DIR/said\n"
        "touch $CARTLAB_BUILD_DIR/second",
        metric="*",
    )
    block = measured(tmp_path, workload, "METRIC a=4", "METRIC a=8")
    assert block.witness["log_ratios"] == pytest.approx({"a": 0.6931471805599453, "b": 0.0})


# --- the metric


@pytest.mark.parametrize(
    ("metric", "metrics", "found"),
    [
        ("a", {"a": 2.0, "b": 8.0}, 2e9),
        ("*", {"a": 2.0, "b": 8.0}, 4e9),
        ("*", {"a": 2.0}, 2e9),
        ("*", {}, "must give the metric '\\*'; it gave none"),
        ("c", {"a": 2.0, "b": 8.0}, "must give the metric 'c'; it gave a, b"),
        ("a", {}, "must give the metric 'a'; it gave none"),
        *(
            ("a", {"a": value}, "must be a number above 0")
            for value in (0.0, -1.0, float("inf"), float("nan"))
        ),
    ],
)
def test_a_cost_is_of_the_metric_that_was_asked_for(
    metric: str, metrics: Mapping[str, float], found: str | float
) -> None:
    workload = a_workload(metric=metric, direction="lower", unit="s")
    if isinstance(found, float):
        assert commands.cost(workload, metrics) == pytest.approx(found)
    else:
        with pytest.raises(MetricError, match=found):
            commands.cost(workload, metrics)


def test_a_cost_is_nanoseconds_of_a_rate_and_of_a_time() -> None:
    costs = [
        commands.cost(a_workload(direction=direction, unit=unit), {"rate": 4.0})
        for direction, unit in (("higher", "s"), ("lower", "s"), ("lower", "ms"), ("lower", "bytes"))
    ]
    assert costs == pytest.approx([2.5e8, 4e9, 4e6, 4e9])


@pytest.mark.parametrize(
    ("changes", "value", "lies"),
    [
        ({}, 0.022, False),
        ({}, 0.0221, True),
        ({"unit": "ms"}, 22.1, True),
        ({"unit": "bytes"}, 100.0, False),
        ({"direction": "higher"}, 100.0, False),
        ({"kind": "pytest-benchmark"}, 100.0, False),
        ({"metric": "*"}, 0.0221, True),
    ],
)
def test_a_time_of_a_command_is_no_longer_than_its_process_lived(
    changes: dict[str, Any], value: float, lies: bool
) -> None:
    workload = a_workload(**{"direction": "lower", "unit": "s", **changes})
    lived_ns = 20_000_000  # and a twentieth and a millisecond more
    if lies:
        with pytest.raises(Tampered, match=r"says that rate took 0\.022 s; its process lived 0\.020"):
            commands._clock_agrees(workload, "cand", {"rate": value}, lived_ns)
    else:
        commands._clock_agrees(workload, "cand", {"rate": value}, lived_ns)


# --- what is read


@pytest.mark.parametrize(
    ("line", "metrics", "digests"),
    [
        ("METRIC a=1.5", {"a": 1.5}, {}),
        ("  METRIC a = 2e3", {"a": 2000.0}, {}),
        ("DIGEST out=ab cd", {}, {"out": "ab cd"}),
        ("METRIC", {}, {}),
        ("METRIC =5", {}, {}),
        ("DIGEST", {}, {}),
        ("DIGEST =x", {}, {}),
        ("noise a=3", {}, {}),
        ("5", {}, {}),
        ("[1]", {}, {}),
        ("null", {}, {}),
        ('  {"c": 4, "d": true, "e": "x", "f": null}', {"c": 4.0}, {}),
        ("{broken", {}, {}),
        ("METRIC a=1\nMETRIC a=2", {"a": 2.0}, {}),
    ],
)
def test_a_line_is_a_metric_a_digest_numbers_or_prose(
    line: str, metrics: dict[str, float], digests: dict[str, str]
) -> None:
    assert commands.parse(f"before\n{line}\nafter\n") == (metrics, digests)


def test_a_metric_line_without_a_number_is_refused() -> None:
    with pytest.raises(MetricError, match="must be name=number; found 'METRIC a=fast'"):
        commands.parse("METRIC a=fast")


# --- one process


@pytest.mark.parametrize(
    ("command", "error", "says"),
    [
        ("exit 3", WorkerCrashed, "the candidate's command ended with exit code 3; it said: nothing"),
        ("echo one; echo two; exit 3", WorkerCrashed, "exit code 3; it said: two"),
        ("echo METRIC rate=1; sleep 30 &", Tampered, "the candidate's worker must leave no process behind"),
        ("echo METRIC rate=1; sleep 30", WorkerTimeout, r"the candidate's command must end within 0\.5 s"),
    ],
)
def test_a_process_that_does_not_end_well_is_named(
    tmp_path: Path, command: str, error: type[CartlabError], says: str
) -> None:
    limit = 0.5 if error is WorkerTimeout else 20.0
    with pytest.raises(error, match=says) as caught:
        once(tmp_path, a_workload(command, params={"timeout_s": limit}))
    assert caught.value.details is not None and caught.value.details["side"] == "cand"


def test_a_process_sees_its_build_its_seed_and_its_steps_and_runs_in_an_empty_folder(tmp_path: Path) -> None:
    names = "CARTLAB_BUILD_DIR CARTLAB_PYTHON CARTLAB_SEED CARTLAB_VERIFY_STEPS PYTHONPATH CARTLAB_HELD_OUT"
    told = "; ".join(f"echo DIGEST {name}=${{{name}-none}}" for name in names.split())
    workload = a_workload(f"{told}; echo DIGEST here=$(ls | grep -vx output); echo METRIC rate=1")
    found = once(tmp_path, workload)
    home = str(tmp_path / "cand" / "out")
    assert found.digests == {
        "CARTLAB_BUILD_DIR": home,
        "CARTLAB_PYTHON": sys.executable,
        "CARTLAB_SEED": "1",
        "CARTLAB_VERIFY_STEPS": "9",
        "PYTHONPATH": home,
        "CARTLAB_HELD_OUT": "none",
        "here": "",
    }
    assert (found.metrics, found.wall_ns > 0) == ({"rate": 1.0}, True)
    drawn = once(tmp_path / "drawn", workload.drawn("a1"))
    assert drawn.digests["CARTLAB_HELD_OUT"] == "a1"


def test_the_controllers_clock_is_a_metric_where_it_is_asked_for(tmp_path: Path) -> None:
    by_wall = once(tmp_path, a_workload("true", metric="wall_seconds", direction="lower", unit="s"))
    assert by_wall.metrics == {"wall_seconds": by_wall.wall_ns / 1e9}


def test_a_process_is_held_to_how_long_it_lived(tmp_path: Path) -> None:
    lying = a_workload("echo METRIC rate=100", direction="lower", unit="s")
    with pytest.raises(Tampered, match="the candidate says that rate took 100"):
        once(tmp_path, lying)


# --- a suite

# As pytest-benchmark's command line, as far as it is given: it notes what it got and writes the report.
SUITE = """
import json, os, sys
report = next(word.partition("=")[2] for word in sys.argv if word.startswith("--benchmark-json="))
plugin = [os.path.join(path, "build_first.py") for path in os.environ["PYTHONPATH"].split(os.pathsep)]
told = {"words": sys.argv[1:], "here": os.getcwd(), "first": os.environ["PYTHONPATH"].split(os.pathsep)[0],
        "plugin": any(map(os.path.exists, plugin))}
json.dump(told, open("told.json", "w"))
print("METRIC printed=1")
rows = [{"fullname": name, "stats": {"median": median}} for name, median in (("t::a", 100.0), ("t::b", 2))]
json.dump({"benchmarks": rows}, open(report, "w"))
"""


def test_a_suite_runs_in_the_checkout_with_the_build_first_and_gives_its_report(tmp_path: Path) -> None:
    (tmp_path / "suite.py").write_text(SUITE)
    workload = a_workload(
        "$CARTLAB_PYTHON suite.py", "pytest-benchmark", metric="t::a", direction="lower", unit="s"
    )
    found = once(tmp_path, workload)
    assert (found.metrics, found.digests) == ({"t::a": 100.0, "t::b": 2.0}, {})
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["words"][:5] == ["-p", "build_first", "-p", "no:cacheprovider", "--benchmark-only"]
    assert (told["here"], told["plugin"]) == (str(tmp_path), True)
    assert told["first"] == str(tmp_path / "cand" / "out")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"benchmarks": [{}]}', '{"benchmarks": 5}'])
def test_a_report_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    report = tmp_path / "report.json"
    report.write_text(text)
    for path in (report, tmp_path / "none.json"):
        with pytest.raises(MetricError, match="must write pytest-benchmark's report; found none"):
            commands.suite_metrics(path)
