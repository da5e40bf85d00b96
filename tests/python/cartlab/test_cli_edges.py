"""What people do at the edges: shorter runs, the same tree twice, files, full disks, odd names."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_bench import Bench, make_bench
from ledger_runs import a_plan, record
from small_controller import small_lab

from cartlab import config, sources
from cartlab.artefacts import AGGREGATE_SCHEMA
from cartlab.errors import BadRef, NotLegalNow, UsageError
from cartlab.ledger import Ledger
from cartlab.model import Block, Plan, Validity, Verdict
from cartlab.pipeline.checking import check, recorded_pass
from cartlab.pipeline.importing import read_aggregate, take_in
from cartlab.pipeline.lab import Lab, no_lease
from cartlab.pipeline.request import Request, Runner
from cartlab.pipeline.run import run
from cartlab.verify import verify_root

LIMITED = """
import resource, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, {here!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A repository whose HEAD is much faster than HEAD~1."""
    made = make_bench(tmp_path)
    made.project.commit("slower", work=200)
    made.project.commit("faster", work=50)
    return made


def test_a_shorter_screen_does_not_answer_for_a_whole_one(bench: Bench) -> None:
    short = bench.run("screen", "HEAD~1", "HEAD", "--json", "--max-blocks", "1")
    whole = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert not whole.json["details"]["remembered"] and whole.json["attempt_id"] != short.json["attempt_id"]
    assert whole.json["blocks"]["used"] + whole.json["blocks"]["dropped"] >= 6


def test_a_run_that_can_become_valid_no_more_ends(bench: Bench) -> None:
    def disturbed(plan: Plan, index: int, coin: int, *_: object) -> Block:
        return Block(
            index, coin, "BCCB", (100, 100), (90, 90), 10, math.log(100 / 90), dropped="busy: a test"
        )

    lab = replace(small_lab_alone(), run_block=disturbed)
    out = run(ASKED, lab, bench.project.path, bench.root, Silent())
    assert (out.status, out.exit_code) == ("busy_invalid", 13)
    # A screen measures eight blocks at most to have six: three lost of eight are more than 30 %.
    assert out.blocks == {"used": 0, "dropped": 3, "pooled": 0}
    assert "3 of 3 blocks dropped" in json.dumps(out.details)
    assert verify_root(bench.root).holds


class Silent:
    """A voice that says nothing."""

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def progress(self, line: str) -> None: ...


ASKED = Request(command="screen", tier="screen", base="HEAD~1", cand="HEAD")


def test_a_run_that_waited_while_its_pair_was_measured_goes_on_from_those_blocks(bench: Bench) -> None:
    place = (bench.project.path, bench.root, Silent())

    @contextlib.contextmanager
    def taken_meanwhile(*_: object) -> Iterator[None]:
        run(replace(ASKED, runner=Runner(max_blocks=2)), small_lab_alone(), *place)
        yield

    out = run(ASKED, replace(small_lab_alone(), lease=taken_meanwhile), *place)
    assert out.blocks == {"used": 6, "dropped": 0, "pooled": 2}
    assert verify_root(bench.root).holds


def test_waiting_for_another_controller_is_no_time_of_the_run(bench: Bench) -> None:
    late = 0.0

    @contextlib.contextmanager
    def long_queue(*_: object) -> Iterator[float]:
        nonlocal late
        late = 1000.0
        yield late

    real = small_lab_alone()
    lab = replace(real, lease=long_queue, clock=lambda: real.clock() + late)
    out = run(replace(ASKED, equal_only=True), lab, bench.project.path, bench.root, Silent())
    assert out.status == "ok" and out.details["queued_s"] == 1000.0
    assert 0.0 <= sum(value or 0.0 for value in out.seconds.values()) < 1000.0


def test_a_run_that_waited_while_its_pair_was_decided_answers_from_the_ledger(bench: Bench) -> None:
    place = (bench.project.path, bench.root, Silent())
    first = []

    @contextlib.contextmanager
    def taken_meanwhile(*_: object) -> Iterator[None]:
        first.append(run(ASKED, small_lab_alone(), *place))
        yield

    out = run(ASKED, replace(small_lab_alone(), lease=taken_meanwhile), *place)
    assert (out.attempt_id, out.details["remembered"]) == (first[0].attempt_id, True)


def test_a_run_whose_pair_is_measured_beside_it_does_not_bet_without_those_blocks(bench: Bench) -> None:
    place = (bench.project.path, bench.root, Silent())

    def disturbed(*words: object) -> object:
        run(replace(ASKED, runner=Runner(max_blocks=2)), small_lab_alone(), *place)
        return small_lab_alone().verify_equal(*words)

    with pytest.raises(NotLegalNow):
        run(ASKED, replace(small_lab_alone(), verify_equal=disturbed), *place)
    ended = [event["body"]["status"] for event in bench.events() if event["type"] == "attempt_finished"]
    assert ended[-1] == "interrupted" and len(ended) == 2
    assert run(ASKED, small_lab_alone(), *place).blocks["pooled"] == 2


@pytest.mark.parametrize("tier", ["screen", "accept"])
def test_builds_checks_and_blocks_all_happen_under_one_lease(bench: Bench, tier: str) -> None:
    held: list[bool] = []
    done: dict[str, list[bool]] = {}

    @contextlib.contextmanager
    def only_one(*_: object) -> Iterator[None]:
        assert not held
        held.append(True)
        yield
        held.clear()

    def noting(name: str) -> Any:
        real = getattr(small_lab(), name)

        def noted(*words: Any, **more: Any) -> Any:
            done.setdefault(name, []).append(bool(held))
            return real(*words, **more)

        return noted

    names = ("build", "verify_equal", "run_checks", "run_block", "instructions")
    lab = replace(small_lab(), lease=only_one, **{name: noting(name) for name in names})
    place = (bench.project.path, bench.root, Silent())
    run(replace(ASKED, command=tier, tier=tier, runner=Runner(max_blocks=2)), lab, *place)
    check("HEAD", "auto", True, lab, *place, dry_run=False, recorded=True)
    expected = set(names) - ({"instructions"} if tier == "screen" else set())
    assert set(done) == expected and all(all(seen) for seen in done.values()), done
    assert not held


def small_lab_alone() -> Lab:
    return replace(small_lab(), lease=no_lease)


def test_two_sides_of_one_tree_are_measured_and_never_kept(bench: Bench) -> None:
    answer = bench.run("accept", "HEAD", "HEAD", "--json", "--max-blocks", "2")
    assert answer.json["details"]["checks"] == "not_run" and not answer.json["status"].startswith("keep")
    assert sum(event["type"] == "block" for event in bench.events()) >= 2
    assert "checks: not run, both sides are the same tree" in answer.err


def an_aggregate(folder: Path, plan: Plan, values: list[float], verdict: Verdict) -> Path:
    """The file as a run writes it, for a decision that these values give."""
    path = folder / "aggregate.json"
    body = {
        "schema": AGGREGATE_SCHEMA,
        "plan": plan.to_json(),
        "verdict": verdict.to_json(),
        "validity": Validity(checks="passed").to_json(),
        "budget_ended": False,
        "earlier_blocks": 0,
        "block_values": [{"y": y, "dropped": None, "coin": 0} for y in values],
    }
    path.write_text(json.dumps(body))
    return path


def test_a_lowered_verdict_stays_lowered_when_its_file_is_recorded_again(tmp_path: Path) -> None:
    ledger, plan = Ledger.open(tmp_path), a_plan("one")
    values = [0.2] * 48
    verdict = record(ledger, plan, values)
    used = verdict.evidence.used if verdict.evidence else 0
    found = read_aggregate(an_aggregate(tmp_path, plan, values[:used], verdict))
    assert (verdict.status, found.verdict.status) == ("keep", "keep")
    assert take_in(ledger, found, "discard", "a doubt", None)[2] == "discard"
    kind, _, status = take_in(ledger, found, None, None, None)
    assert (kind, status, ledger.attempts()["one"].status) == ("", "discard", "discard")
    with pytest.raises(UsageError):
        take_in(ledger, found, "keep", "no doubt any more", None)


def test_a_forged_file_does_not_raise_the_attempt_whose_name_it_bears(tmp_path: Path) -> None:
    ledger, plan = Ledger.open(tmp_path), a_plan("one")
    assert record(ledger, plan, [0.0, 0.001, -0.001]).status == "inconclusive"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    better = record(Ledger.open(elsewhere), plan, [0.2] * 48)
    used = better.evidence.used if better.evidence else 0
    forged = read_aggregate(an_aggregate(tmp_path, plan, [0.2] * used, better))
    kind, _, status = take_in(ledger, forged, None, "look how fast", None)
    assert (kind, status, ledger.attempts()["one"].status) == ("", "inconclusive", "inconclusive")


def test_a_dry_run_names_the_command_line_that_does_what_it_showed(bench: Bench) -> None:
    words = (
        "accept",
        "HEAD~1..HEAD",
        "--json",
        "--",
        "--max-blocks",
        "3",
        "--force-busy",
        "--approve",
        "a b",
    )
    planned = bench.run(*words, "--dry-run")
    expected = "accept HEAD~1 HEAD --force-busy --max-blocks 3 --approve 'a b'"
    assert planned.json["report"]["next"] == f"scripts/autoresearch.py {expected}"
    script = bench.run("--ref-benchmark", "--single", "HEAD", "--dry-run", "--json")
    assert script.json["report"]["next"] == "scripts/run_git_ref_benchmark.py --single HEAD"
    refused = bench.run("--ref-benchmark", "HEAD", "--json")
    assert (refused.code, refused.json["command"]) == (2, "run_git_ref_benchmark")


def test_checks_of_a_revision_that_does_not_build_say_so_with_the_logs_tail(bench: Bench) -> None:
    bench.project.write("engine.c", "no C at all\n")
    bench.project.commit("broken")
    answer = bench.run("checks", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (14, "build_failed")
    assert "no C at all" in answer.json["details"]["problem"]["log_tail"] and "| " in answer.err


def test_a_pass_of_another_command_or_of_an_older_module_is_no_pass_of_the_tree(bench: Bench) -> None:
    top, surface = bench.project.path, config.load(bench.project.path).surfaces["native"]
    tree = bench.project.git("rev-parse", "HEAD^{tree}")
    assert bench.run("checks", "HEAD", "--json").json["recorded"] is True
    ledger = Ledger.open(bench.root)
    assert recorded_pass(ledger.events(), tree, [surface])
    assert not recorded_pass(ledger.events(), tree, [replace(surface, full=("another",))])
    (top / ".git" / "info" / "exclude").write_text("*.so\n")
    module = top / "libengine.so"
    module.write_bytes(b"built before")
    os.utime(module, (1, 1))
    answer = bench.run("checks", "--json")
    assert (answer.code, answer.json["recorded"]) == (0, False)
    assert "older than" in answer.json["reasons"][0]


def test_a_commit_below_a_shallow_clones_end_is_refused_with_what_to_fetch(
    bench: Bench, tmp_path: Path
) -> None:
    bench.project.git(
        "clone", "-q", "--depth", "1", f"file://{bench.project.path}", str(tmp_path / "a shallow")
    )
    with pytest.raises(BadRef) as refused:
        sources.resolve(tmp_path / "a shallow", "HEAD~1")
    assert "shallow" in refused.value.hint


def test_a_name_that_is_no_text_is_shown_escaped(bench: Bench) -> None:
    (bench.project.path / os.fsdecode(b"odd\xff.txt")).write_text("x")
    answer = bench.run("status", "--json", env={"LC_ALL": "C.UTF-8"})
    assert answer.json["details"]["dirty"] == ["odd\\xff.txt"]
    assert "odd\\xff.txt" in bench.run("status", env={"LC_ALL": "C.UTF-8"}).out


def test_damage_is_refused_by_its_line_until_it_is_set_aside(bench: Bench) -> None:
    bench.run("screen", "HEAD", "HEAD", "--max-blocks", "1")
    path = bench.root / "events.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'"seq":2', b'"seq":7')
    path.write_bytes(b"\n".join(lines))
    refused = bench.run("status", "--json")
    assert refused.code == 22 and "line 2" in refused.json["reasons"][0]
    assert refused.json["report"]["next"] == "scripts/autoresearch.py init --repair"
    assert bench.run("next").code == 22
    repaired = bench.run("init", "--repair")
    (aside,) = bench.root.glob("events.jsonl.damaged-*")
    assert repaired.code == 0 and aside.name in repaired.err and aside.read_bytes() == b"\n".join(lines[1:])
    assert bench.run("status").code == 0


def test_a_root_that_cannot_be_made_is_a_bad_root(bench: Bench) -> None:
    answer = bench.run("screen", "HEAD~1", "HEAD", "--json", "--autoresearch-root", "/proc/no/such")
    assert (answer.code, answer.json["status"]) == (21, "refused")


def test_a_full_disk_is_a_bad_root_and_not_an_error_of_ours(bench: Bench) -> None:
    bench.run("init")
    program = bench.root.parent / "limited.py"
    program.write_text(LIMITED.format(here=str(Path(__file__).parent)))
    small = Path(__file__).with_name("small_controller.py")
    answer = bench.run(str(small), "screen", "HEAD", "HEAD", "--json", script=program)
    assert (answer.code, answer.json["status"]) in ((21, "refused"), (14, "build_failed")), answer.err
    assert bench.run("status").code == 0


def test_the_checks_here_run_where_the_path_has_spaces() -> None:
    for surface in config.load(REPOSITORY).surfaces.values():
        for command in (*surface.quick, *surface.full):
            assert "$CARTLAB_PYTHON" not in command or '"$CARTLAB_PYTHON"' in command
