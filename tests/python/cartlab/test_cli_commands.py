"""Each command as a process of its own on a tiny repository: what it answers, records, and exits with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_bench import SCRIPT, SCRIPTS, Bench, make_bench

from cartlab.ledger import RESULTS_TSV_COLUMNS, parse_table
from cartlab.model import DECISIONS, PHASES
from cartlab.outcome import Outcome, Report

KEYS = list(Outcome(command="", report=Report(phase="orient")).to_json())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """base, a much slower commit, a much faster one."""
    made = make_bench(tmp_path)
    made.project.commit("slower", work=200)
    made.project.commit("faster", work=50)
    return made


def repository_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_screen_promotes_records_and_is_remembered(bench: Bench) -> None:
    first = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert (first.code, first.json["status"]) == (0, "triage_promote")
    assert list(first.json) == KEYS and first.json["recorded"] is True
    assert first.json["report"]["phase"] in PHASES and first.json["report"]["decision"] in DECISIONS
    assert first.json["blocks"] == {"used": 6, "dropped": 0, "pooled": 0} and first.json["ratio"] > 1.5
    assert first.json["baseline"]["build_id"] and first.json["candidate"]["tree"]
    before = len(bench.events())
    second = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert second.json["attempt_id"] == first.json["attempt_id"] and second.code == 0
    assert second.json["details"]["remembered"] and len(bench.events()) == before
    third = bench.run("screen", "HEAD~1", "HEAD", "--again", "--json")
    assert third.json["blocks"] == {"used": 12, "dropped": 0, "pooled": 6}


def test_a_run_leaves_its_files_and_a_row(bench: Bench) -> None:
    answer = bench.run("screen", "HEAD~2", "HEAD~1")
    assert answer.code == 10 and answer.report["decision"] == "discard"
    (folder,) = (bench.root / "benchmarks" / "runs").iterdir()
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "plan.json",
        "aggregate.json",
        "manifest.json",
        "build-baseline.log",
        "build-candidate.log",
        *(f"raw/block-{index:02d}.json" for index in range(6)),
    }
    assert set(json.loads((folder / "manifest.json").read_text())["files"]) == files - {"manifest.json"}
    raw = json.loads((folder / "raw" / "block-00.json").read_text())
    assert len(raw["base_ns"]) == len(raw["cand_ns"]) > 1
    (row,) = parse_table((bench.root / "results.tsv").read_text())
    assert row["status"] == "triage_discard" and row["benchmark_tier"] == "local_triage"
    types = [event["type"] for event in bench.events()]
    assert types == ["attempt_started", *["block"] * 6, "decision", "attempt_finished"]


def test_an_acceptance_runs_the_checks_keeps_and_answers_from_the_ledger(bench: Bench) -> None:
    first = bench.run("accept", "HEAD~1", "HEAD", "--json")
    assert (first.code, first.json["status"]) == (0, "keep") and first.json["lcb"] >= 1.03
    assert first.json["details"]["checks"] == "passed"
    again = bench.run("accept", "HEAD~1", "HEAD", "--json")
    assert again.json["attempt_id"] == first.json["attempt_id"] and again.json["details"]["remembered"]
    stack = bench.run("accept-stack", "HEAD~1", "HEAD", "--json")
    assert (stack.code, stack.json["status"]) == (0, "keep_stack") and stack.json["blocks"]["pooled"] > 0


def test_without_its_checks_an_acceptance_cannot_keep(bench: Bench) -> None:
    answer = bench.run("accept", "HEAD~1", "HEAD", "--no-checks", "--max-blocks", "10", "--json")
    assert (answer.code, answer.json["status"]) == (11, "inconclusive") and answer.json["ratio"] > 1.5


def test_a_candidate_whose_checks_fail_is_not_kept_unless_the_baseline_fails_too(bench: Bench) -> None:
    bench.project.commit("warns", before="#warning slow\n#ifdef __OPTIMIZE__\n#else\n#error check\n#endif")
    answer = bench.run("accept", "HEAD~2", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (17, "checks_failed")
    bench.project.commit(
        "both fail", work=50, before="#warning slow\n#ifdef __OPTIMIZE__\n#else\n#error check\n#endif"
    )
    answer = bench.run("accept", "HEAD~1", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (0, "keep")


def test_calibrate_judges_nothing_and_counts_as_a_calibration(bench: Bench) -> None:
    answer = bench.run("calibrate", "HEAD", "--max-blocks", "3", "--json")
    assert (answer.code, answer.json["status"]) == (0, "baseline")
    assert answer.json["report"]["decision"] == "defer" and answer.json["blocks"]["pooled"] == 0
    current = json.loads((bench.root / "current.json").read_text())
    assert current["last_calibration"]["attempt_id"] == answer.json["attempt_id"]


def test_an_unrecorded_run_is_in_the_ledger_and_nowhere_else(bench: Bench) -> None:
    answer = bench.run("screen", "HEAD~1", "HEAD", "--no-record", "--json")
    assert answer.code == 0 and answer.json["recorded"] is False
    blocks = [event for event in bench.events() if event["type"] == "block"]
    assert len(blocks) == 6 and all(event["body"]["unrecorded"] for event in blocks)
    assert parse_table((bench.root / "results.tsv").read_text()) == []
    recorded = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert recorded.json["blocks"]["pooled"] == 0 and not recorded.json["details"]["remembered"]


def test_only_comparing_outputs_measures_nothing(bench: Bench) -> None:
    answer = bench.run("screen", "HEAD~1", "HEAD", "--equal-only", "--json")
    assert (answer.code, answer.json["status"]) == (0, "ok") and answer.json["ratio"] is None
    assert not [event for event in bench.events() if event["type"] == "block"]


def test_the_script_of_two_refs_asks_the_ledger_nothing(bench: Bench) -> None:
    bench.run("screen", "HEAD~1", "HEAD")
    answer = bench.run("--ref-benchmark", "HEAD~1", "HEAD", "--max-blocks", "2", "--json")
    assert answer.json["command"] == "run_git_ref_benchmark" and answer.json["recorded"] is False
    assert answer.json["blocks"]["pooled"] == 0
    single = bench.run("--ref-benchmark", "--single", "HEAD", "--max-blocks", "2", "--json")
    assert (single.code, single.json["status"]) == (0, "baseline")
    assert len(parse_table((bench.root / "results.tsv").read_text())) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("init",),
        ("screen", "HEAD~1", "HEAD"),
        ("accept", "HEAD~1", "HEAD", "--full"),
        ("accept-stack", "HEAD~1", "HEAD"),
        ("calibrate", "HEAD"),
        ("checks", "--quick"),
    ],
    ids=lambda words: words[0],
)
def test_a_dry_run_writes_nothing_anywhere(bench: Bench, words: tuple[str, ...]) -> None:
    before = repository_bytes(bench.project.path)
    answer = bench.run(*words, "--dry-run", "--json")
    assert (answer.code, answer.json["status"]) == (0, "planned")
    assert not bench.root.exists() and repository_bytes(bench.project.path) == before


def test_no_command_changes_a_byte_of_the_repository(bench: Bench) -> None:
    bench.project.write("engine.c", "dirty")
    bench.project.write("untracked.txt", "mine")
    before = repository_bytes(bench.project.path)
    for words in (("screen", "HEAD~1", "HEAD"), ("checks", "HEAD"), ("status",), ("next",), ("init",)):
        answer = bench.run(*words)
        assert answer.code in (0, 17), answer.err
    assert repository_bytes(bench.project.path) == before


def test_a_dirty_tree_is_said_in_one_line(bench: Bench) -> None:
    bench.project.write("README", "changed")
    answer = bench.run("screen", "HEAD~1", "HEAD", "--dry-run")
    said = [line for line in answer.err.splitlines() if "uncommitted" in line]
    assert said == ["the working tree has 1 uncommitted change (README): left alone, not measured"]


def test_the_first_line_names_what_is_measured(bench: Bench) -> None:
    answer = bench.run("screen", "HEAD~1", "HEAD", "--dry-run")
    assert answer.out.splitlines()[0].startswith("workload: fake ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("screen", "HEAD~1", "nowhere"), 20),
        (("screen", "0" * 40, "HEAD"), 20),
        (("screen", "HEAD~1", "HEAD", "--workload", "none"), 25),
        (("screen", "HEAD~1", "HEAD", "--game", "X"), 2),
        (("status", "--autoresearch-root", "inside"), 21),
        (("record", "nowhere.json"), 25),
        (("probe",), 23),
        (("screen", "HEAD~1"), 2),
        (("screen", "HEAD~1", "HEAD", "--policy", "legacy", "--max-blocks", "3"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_refusal_has_its_exit_code_one_line_and_the_whole_object(
    bench: Bench, words: tuple[str, ...], code: int
) -> None:
    answer = bench.run(*words, "--json")
    assert (answer.code, answer.json["exit_code"], answer.json["status"]) == (code, code, "refused")
    assert list(answer.json) == KEYS and answer.json["reasons"]
    assert "Traceback" not in answer.err


def test_a_ref_that_does_not_build_is_recorded_with_its_logs_tail(bench: Bench) -> None:
    bench.project.commit("broken", before="#error no such luck")
    answer = bench.run("screen", "HEAD~1", "HEAD")
    assert answer.code == 14 and "no such luck" in answer.err
    (row,) = parse_table((bench.root / "results.tsv").read_text())
    assert row["status"] == "build_failed" and row["decision"] == "discard"
    (log,) = bench.root.glob("benchmarks/runs/*/build-candidate.log")
    assert "no such luck" in log.read_text()


def test_other_outputs_are_recorded_and_never_ranked(bench: Bench) -> None:
    bench.project.commit("pixel", work=50, observe="value ^ 1")
    answer = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (12, "behaviour_changed")
    assert answer.json["ratio"] is None and "observations" in answer.json["reasons"][0]


def test_a_candidate_that_edits_the_harness_is_refused_and_recorded(bench: Bench) -> None:
    bench.project.write("harness/workload.py", "raise SystemExit\n")
    bench.project.commit("cheat")
    answer = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert (answer.code, answer.json["status"]) == (18, "compliance_failed")


def test_a_damaged_line_is_named_and_nothing_is_measured(bench: Bench) -> None:
    bench.run("screen", "HEAD~1", "HEAD")
    path = bench.root / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace('"coin":', '"c0in":')
    path.write_text("".join(lines))
    answer = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert answer.code == 22 and "line 3" in answer.json["reasons"][0]
    assert path.read_text() == "".join(lines)


def test_a_torn_last_line_is_cut_off_and_said(bench: Bench) -> None:
    bench.run("init")
    bench.run("screen", "HEAD~1", "HEAD")
    with (bench.root / "events.jsonl").open("a") as out:
        out.write('{"torn')
    answer = bench.run("status")
    assert answer.code == 0 and "torn" in answer.err


def test_record_imports_lowers_and_never_raises(bench: Bench, tmp_path: Path) -> None:
    bench.run("screen", "HEAD~1", "HEAD")
    (made,) = bench.root.glob("benchmarks/runs/*/aggregate.json")
    raised = bench.run("record", str(made), "--status", "keep", "--description", "wish", "--json")
    assert raised.code == 2 and "never raise" in raised.json["reasons"][0]
    silent = bench.run("record", str(made), "--status", "triage_discard", "--json")
    assert silent.code == 2
    lowered = bench.run("record", str(made), "--status", "triage_discard", "--description", "doubt", "--json")
    assert lowered.code == 0
    assert parse_table((bench.root / "results.tsv").read_text())[-1]["status"] == "triage_discard"
    other = str(tmp_path / "other-root")
    imported = bench.run("record", str(made), "--autoresearch-root", other, "--json")
    assert imported.code == 0 and imported.json["details"]["event"] == "import"
    fresh = bench.run("screen", "HEAD~1", "HEAD", "--autoresearch-root", other, "--json")
    assert fresh.json["blocks"]["pooled"] == 0


def test_an_edited_aggregate_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.run("screen", "HEAD~2", "HEAD~1")
    (made,) = bench.root.glob("benchmarks/runs/*/aggregate.json")
    body = json.loads(made.read_text())
    body["verdict"]["status"] = "triage_promote"
    (tmp_path / "edited.json").write_text(json.dumps(body))
    answer = bench.run("record", str(tmp_path / "edited.json"), "--json")
    assert answer.code == 25 and "its own block values give triage_discard" in answer.json["reasons"][0]


def test_checks_are_bound_to_the_tree_and_inherited_by_its_commit(bench: Bench) -> None:
    bench.project.engine(work=90)
    answer = bench.run("checks", "--json")
    assert answer.code == 0 and answer.json["recorded"] is True
    bench.project.commit("the same tree")
    assert answer.json["candidate"]["tree"] == bench.project.git("rev-parse", "HEAD^{tree}")
    accepted = bench.run("accept", "HEAD~1", "HEAD", "--max-blocks", "1")
    assert "checks: passed before on this tree" in accepted.out


def test_failing_checks_exit_seventeen_with_the_commands_tail(bench: Bench) -> None:
    bench.project.write("engine.c", "#error deliberate")
    answer = bench.run("checks", "--quick", "--surface", "native")
    assert answer.code == 17 and "deliberate" in answer.out and answer.report["decision"] == "discard"


def test_probe_refuses_a_build_older_than_its_sources_and_says_the_line(bench: Bench) -> None:
    top = bench.project.path
    (top / "pyproject.toml").write_text('[build-system]\nbuild-backend = "maturin"\n')
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", "libengine.so", "engine.c"], cwd=top, check=True)
    os.utime(top / "libengine.so", (1, 1))
    for words in (("probe",), ("diagnose", "--quick")):
        answer = bench.run(*words)
        lines = answer.out.splitlines()
        assert answer.code == 23 and "evidence: learning" in lines
        assert ".venv/bin/python -m maturin develop --release" in lines
        assert answer.report["next"] == ".venv/bin/python -m maturin develop --release"


def test_diagnose_learns_and_records_no_result(bench: Bench) -> None:
    top = bench.project.path
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", "libengine.so", "engine.c"], cwd=top, check=True)
    answer = bench.run("diagnose", "--quick")
    assert answer.code == 0 and "evidence: learning" in answer.out and answer.report["phase"] == "diagnose"
    assert json.loads((bench.root / "benchmarks" / "local-diagnosis.json").read_text())["median_speed"] > 0
    assert not (bench.root / "results.tsv").exists()


def test_status_and_next_work_before_init_and_after(bench: Bench) -> None:
    assert bench.run("next").report["next"] == "scripts/autoresearch.py init"
    assert bench.run("status").code == 0
    assert bench.run("init").code == 0
    (bench.root / "ideas.md").write_text("mine\n")
    assert bench.run("init").code == 0 and (bench.root / "ideas.md").read_text() == "mine\n"
    shown = bench.run("status").out
    for name in ("results.tsv", "current.json", "ideas.md", "scratchpad.md"):
        assert f"file: {bench.root / name}" in shown
    assert "no round is open: every command works as typed" in bench.run("next").out


def test_next_rebuilds_views_that_are_behind_the_ledger(bench: Bench) -> None:
    bench.run("screen", "HEAD~1", "HEAD")
    (bench.root / "current.json").unlink()
    answer = bench.run("next", "--json")
    assert answer.json["details"]["actions"][0]["action"] == "accept"
    assert (bench.root / "current.json").exists()


def test_next_imports_nothing_heavy(bench: Bench) -> None:
    bench.run("init")
    text = (
        "import sys; sys.argv = ['x', 'next']; from cartlab.cli import main; main(prog='x');"
        "print(sorted({'numpy', 'scipy', 'rich', 'yaml', 'matplotlib', 'subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=bench.project.path,
        env=bench.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_script_runs_with_any_python_and_is_executable(bench: Bench) -> None:
    assert os.access(SCRIPT, os.X_OK) and os.access(SCRIPTS / "run_git_ref_benchmark.py", os.X_OK)
    bare = [sys.executable, "-I", "-S", str(SCRIPT), "next"]
    done = subprocess.run(
        bare, cwd=bench.project.path, env=bench.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_without_an_environment_one_line_says_make_setup(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "clone" / "scripts").mkdir(parents=True)
    for name in ("autoresearch.py", "run_git_ref_benchmark.py"):
        copy = tmp_path / "clone" / "scripts" / name
        shutil.copy(SCRIPTS / name, copy)
        done = subprocess.run([sys.executable, "-I", "-S", str(copy), "next"], capture_output=True, text=True)
        assert done.returncode != 0 and "make setup" in done.stderr and done.stderr.count("\n") == 1


def test_the_columns_can_be_imported_from_the_script() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("autoresearch", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.RESULTS_TSV_COLUMNS is RESULTS_TSV_COLUMNS
