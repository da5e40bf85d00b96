"""The words of a command line: flags anywhere, `--`, ranges, refusals; and the help that teaches."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from cartlab.cli import build_parser, load, main
from cartlab.cli.options import LEGACY_FLAGS, hoist, two_refs
from cartlab.cli.table import BY_NAME, ROWS, Row
from cartlab.errors import BadRef, UsageError
from cartlab.outcome import Outcome, Report


def translated(line: str) -> Any:
    name, rest = hoist(line.split())
    row = BY_NAME[str(name)]
    return load(row).translate(build_parser("cartlab", row).parse_intermixed_args(rest))


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_every_row_has_a_module_that_declares_translates_and_runs(row: Any) -> None:
    module = load(row)
    assert callable(module.declare) and callable(module.translate) and callable(module.run)
    assert module.__doc__ and f"`{row.name}" in module.__doc__
    for example in row.examples:
        assert f"{example} ".startswith(f"{row.name} ")
        _, rest = hoist(shlex.split(example))
        module.translate(build_parser("cartlab", row).parse_intermixed_args(rest))


def test_help_lists_the_commands_in_the_order_of_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], prog="scripts/autoresearch.py") == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"\n  {row.name} ") for row in ROWS]
    assert places == sorted(places)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_commands_help_shows_examples_and_succeeds(row: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*row.name.split(), "--help"], prog="scripts/autoresearch.py") == 0
    shown = capsys.readouterr().out
    assert all(f"scripts/autoresearch.py {example}" in shown for example in row.examples)


def test_flags_may_stand_before_between_and_after_the_refs_and_after_two_dashes() -> None:
    lines = [
        "screen A B --dry-run --no-record -- --max-blocks 3",
        "--dry-run screen A --no-record B --max-blocks 3",
        "screen --max-blocks 3 --dry-run --no-record A B",
        "screen A..B --dry-run --no-record --max-blocks 3",
        "--autoresearch-root R screen A B --max-blocks 3 --no-record -- --dry-run",
    ]
    requests = [translated(line) for line in lines]
    assert all(request == requests[0] for request in requests)
    assert (requests[0].base, requests[0].cand) == ("A", "B")
    assert requests[0].dry_run and not requests[0].recorded and requests[0].runner.max_blocks == 3


def test_a_range_may_leave_out_the_side_that_is_head() -> None:
    assert two_refs("screen", ["main.."]) == ("main", "HEAD")
    assert two_refs("screen", ["..topic"]) == ("HEAD", "topic")
    with pytest.raises(BadRef):
        two_refs("screen", ["a...b"])
    with pytest.raises(UsageError):
        two_refs("screen", ["a"])
    with pytest.raises(UsageError):
        two_refs("screen", ["a", "b", "c"])


@pytest.mark.parametrize("flag", LEGACY_FLAGS)
def test_the_predecessors_flags_are_refused_with_a_hint_outside_its_policy(flag: str) -> None:
    with pytest.raises(UsageError) as caught:
        translated(f"screen A B {flag} 3")
    assert "--policy legacy" in caught.value.hint
    assert translated(f"screen A B {flag} 3 --policy legacy").runner.legacy == {flag: "3"}


def test_waiving_the_contention_rule_needs_a_reason() -> None:
    with pytest.raises(UsageError):
        translated("accept A B --force-busy")
    assert translated("accept A B --force-busy --approve busy-lab").runner.approve == "busy-lab"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "screem A B",
        "screen A",
        "screen A B --max-blocks 0",
        "screen A B --max-blocks x",
        "accept A B --max-wall-clock-minutes nan",
        "screen A B --dry",
        "checks --surface nowhere --bogus",
        "calibrate",
        "record",
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_code_two(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json", *line.split()], prog="cartlab") == 2
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["status"] == "refused" and answer["exit_code"] == 2 and answer["reasons"]
    assert shown.err.startswith("error: ")


def test_the_object_has_every_key_also_where_nothing_is_known() -> None:
    answer = Outcome(command="next", report=Report(phase="orient")).to_json()
    assert list(answer) == [
        "schema",
        "command",
        "status",
        "exit_code",
        "reasons",
        "attempt_id",
        "recorded",
        "baseline",
        "candidate",
        "workload_hash",
        "harness_hash",
        "policy_hash",
        "ratio",
        "lcb",
        "ucb",
        "e_value",
        "guard",
        "alpha",
        "blocks",
        "candidate_faster_blocks",
        "seconds",
        "ledger",
        "report",
        "details",
    ]
    assert list(answer["baseline"]) == ["ref", "commit", "tree", "build_id"]
    assert list(answer["blocks"]) == ["used", "dropped", "pooled"]
    assert list(answer["seconds"]) == ["build", "verify", "blocks", "other"]
    assert list(answer["report"]) == ["phase", "inputs", "outputs", "decision", "next"]


def test_a_number_that_json_cannot_hold_is_null() -> None:
    answer = Outcome(
        command="accept", report=Report(phase="acceptance"), lcb=float("-inf"), e_value=float("nan")
    )
    assert answer.to_json()["lcb"] is None and answer.to_json()["e_value"] is None


@pytest.mark.parametrize("line", ["bisect A B", "plan A B", "plan --effect 1.03"])
def test_commands_that_read_block_sequences_refuse_the_policy_without_them(line: str) -> None:
    translated(line)
    with pytest.raises(UsageError, match="legacy policy"):
        translated(f"{line} --policy legacy")


def test_a_misspelt_flag_is_answered_with_the_one_that_was_meant() -> None:
    parser = build_parser("cartlab", BY_NAME["screen"])
    with pytest.raises(UsageError) as error:
        parser.parse_intermixed_args(["HEAD~1", "HEAD", "--max-block", "3"])
    assert "did you mean --max-blocks?" in error.value.hint
    with pytest.raises(UsageError) as error:
        parser.parse_intermixed_args(["HEAD~1", "HEAD", "--zzzzzz"])
    assert error.value.hint.startswith("cartlab screen BASE CAND [flags]; ")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_help_says_on_its_first_line_how_the_command_is_typed(row: Row) -> None:
    first, *rest = build_parser("cartlab", row).format_help().splitlines()
    assert first.startswith(f"usage: cartlab {row.name}") and first.endswith("[flags]")
    assert "None" not in first and len(first) < 100
    assert f"  cartlab {row.examples[0]}" in rest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "--limit", "x"), "expected a whole number"),
        (("simulate", "--trials", "-1"), "expected"),
        (("round", "open", "--target", "x"), "expected a number"),
        (("round", "open", "--target", "1.01", "--dry-run"), "expected a --target of 1.10 or more"),
        (("bisect", "HEAD~1", "HEAD", "--design", "groupseq"), "bounds that hold at any time"),
        (("bisect", "HEAD~1", "HEAD", "--no-record"), "--no-record cannot be given"),
        (("publish", "--approve", "x", "--no-record"), "always recorded"),
    ],
)
def test_a_wrong_value_is_told_what_was_expected(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*words, "--autoresearch-root", str(tmp_path), "--json"]) == 2
    assert said in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
