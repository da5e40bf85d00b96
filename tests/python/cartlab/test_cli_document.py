"""The speed document's command lines, typed as they stand there, in its order, on a fresh clone.

The document names files of a repository that is set up: `.venv/bin/python` and `scripts/autoresearch.py`. In
the clone the first is a shell script that hands on to this Python, but for `-m maturin develop --release`,
in whose place it builds the fake project's library; the second runs the real command line over small blocks
(small_controller.py).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_bench import SMALL, Answer, Bench
from fake_project import CONFIG, Project, make

from cartlab.ledger.columns import parse_table
from cartlab.verify import verify_root

# "Control Plane": <...> is filled in, [...] is typed both with and without.
CONTROL_PLANE = """\
.venv/bin/python scripts/autoresearch.py init
.venv/bin/python scripts/autoresearch.py status
.venv/bin/python scripts/autoresearch.py next
.venv/bin/python scripts/autoresearch.py probe [--dry-run]
.venv/bin/python scripts/autoresearch.py diagnose [--quick] [--profile] [--dry-run]
.venv/bin/python scripts/autoresearch.py screen <baseline_ref> <candidate_ref> [--dry-run] [--no-record] [-- <extra runner args>]
.venv/bin/python scripts/autoresearch.py checks [--quick] [--dry-run] [--surface auto|native|python|benchmark]
.venv/bin/python scripts/autoresearch.py accept-stack <baseline_ref> <candidate_ref> [--dry-run] [--no-record] [-- <extra runner args>]
.venv/bin/python scripts/autoresearch.py accept <baseline_ref> <candidate_ref> [--full] [--dry-run] [--no-record] [-- <extra runner args>]
.venv/bin/python scripts/autoresearch.py calibrate <ref> [--full] [--dry-run] [--no-record] [-- <extra runner args>]
.venv/bin/python scripts/autoresearch.py record <aggregate.json> [--status <status>] [--description "..."] [--artifact <path>]
"""  # noqa: E501

# "Loop", steps 2 to 7: what is typed for each candidate, and for the bundle.
FALSIFY = ("scripts/autoresearch.py diagnose --quick", "scripts/autoresearch.py diagnose --profile")
BUILD = ".venv/bin/python -m maturin develop --release"
CHECK = "scripts/autoresearch.py checks --quick --surface <surface>"
SCREEN = "scripts/autoresearch.py screen <baseline_ref> <candidate_ref>"
STACK = "scripts/autoresearch.py accept-stack <baseline_ref> <candidate_ref>"
ACCEPT = "scripts/autoresearch.py accept <baseline_ref> <candidate_ref>"

SURFACES = """
[surfaces.python]
paths = ["*.py"]
quick = ["true"]
full = ["true"]

[surfaces.benchmark]
paths = ["bench/**"]
quick = ["true"]
full = ["true"]

[protected]"""

PYTHON = """\
#!/bin/sh
if [ "$*" = "-m maturin develop --release" ]; then
  exec cc -O1 -shared -fPIC -o libengine.so engine.c
fi
exec "{python}" "$@"
"""

CONTROLLER = """\
#!{python}
import runpy, sys
sys.path.insert(0, {folder!r})
sys.argv[0] = {small!r}
runpy.run_path({small!r}, run_name="__main__")
"""

REASON = "\n\nMechanism: less work in each step\nFalsified-by: the same number of instructions"


@dataclass
class Desk:
    """A fresh clone, a root beside it, and a shell."""

    bench: Bench
    filled: dict[str, str] = field(default_factory=dict)

    def type(self, line: str, *more: str) -> Answer:
        """Type a line of the document with its <...> filled in."""
        for name, value in self.filled.items():
            line = line.replace(name, value)
        done = subprocess.run(
            ["sh", "-c", " ".join([line, *more])],
            cwd=self.bench.project.path,
            env=self.bench.environment(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        found = json.loads(done.stdout) if "--json" in more else {}
        return Answer(done.returncode, done.stdout, done.stderr, found)

    def candidate(self, message: str, work: int) -> str:
        """Edit, build, check and commit, as the loop's steps 3 to 5 say."""
        project = self.bench.project
        project.engine(work=work)
        assert self.type(BUILD).code == 0
        assert self.type(CHECK).code == 0
        project.git("config", "user.email", "test@example.invalid")
        return project.commit(message + REASON)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    origin = make(tmp_path / "origin", CONFIG.replace("\n[protected]", SURFACES))
    origin.write("pyproject.toml", '[build-system]\nrequires = ["maturin"]\n')
    origin.write(".gitignore", ".venv/\nlibengine.so\n__pycache__/\n")
    script = {"python": sys.executable, "folder": str(SMALL.parent), "small": str(SMALL)}
    origin.write("scripts/autoresearch.py", CONTROLLER.format(**script))
    (origin.path / "scripts/autoresearch.py").chmod(0o755)
    origin.commit("scripts")
    origin.git("clone", "-q", str(origin.path), str(tmp_path / "clone"))
    clone = Project(tmp_path / "clone")
    clone.write(".venv/bin/python", PYTHON.format(**script))
    (clone.path / ".venv/bin/python").chmod(0o755)
    return Desk(Bench(clone, tmp_path / "root"))


def forms(line: str) -> list[str]:
    """The line without its options, and with all of them; one form a surface."""
    bare = re.sub(r" \[[^\]]*\]", "", line)
    full = line.replace("[", "").replace("]", "")
    choices = re.search(r"\w+(?:\|\w+)+", full)
    words = choices.group(0).split("|") if choices else [""]
    return [bare, *(full.replace(choices.group(0), word) if choices else full for word in words)]


def test_every_line_of_the_control_plane_is_accepted_as_typed(desk: Desk) -> None:
    desk.bench.project.engine(work=50)
    desk.bench.project.commit("faster")
    stale = desk.type(".venv/bin/python scripts/autoresearch.py probe")
    assert stale.code == 23 and stale.report["next"] == BUILD
    assert desk.type(BUILD).code == 0
    desk.filled = {
        "<baseline_ref>": "HEAD~1",
        "<candidate_ref>": "HEAD",
        "<ref>": "HEAD",
        "<extra runner args>": "--max-blocks 2 --max-wall-clock-minutes 5",
        "<status>": "triage_promote",
        "<path>": "elsewhere",
    }
    ran = 0
    for line in CONTROL_PLANE.splitlines():
        if " record " in line:
            runs = desk.bench.root.glob("benchmarks/runs/*-screen-*/aggregate.json")
            desk.filled["<aggregate.json>"] = str(min(runs))
        for typed in forms(line):
            answer = desk.type(typed)
            assert answer.code in (0, 11), (typed, answer.code, answer.out, answer.err)
            assert list(answer.report) == ["phase", "inputs", "outputs", "decision", "next"], typed
            ran += 1
    assert ran == 25


def test_the_document_is_carried_out_from_init_to_a_complete_round(desk: Desk) -> None:
    run = ".venv/bin/python scripts/autoresearch.py"
    for command in ("init", "status", "next"):
        assert desk.type(f"{run} {command}").code == 0
    desk.filled = {"<ref>": "HEAD", "<surface>": "native"}
    # "resolve and calibrate live HEAD, then fix that exact commit as the round baseline"
    refused = desk.type(f"{run} round open --goal 'cheaper steps'")
    assert refused.code == 23 and "calibrate HEAD" in refused.err
    assert desk.type(f"{run} calibrate <ref>").code == 0
    opened = desk.type(f"{run} round open --goal 'cheaper steps'", "--json")
    base = opened.json["details"]["baseline_commit"]
    assert base == desk.bench.project.git("rev-parse", "HEAD")
    desk.filled["<baseline_ref>"] = base
    assert desk.type(BUILD).code == 0
    for line in (f"{run} probe", *FALSIFY):
        learned = desk.type(line)
        assert learned.code == 0 and "evidence: learning" in learned.out, learned.err
    for message, work in (("first", 80), ("second", 60)):
        desk.filled["<candidate_ref>"] = desk.candidate(message, work)
        screened = desk.type(SCREEN)
        assert screened.report["decision"] == "defer" and "triage_promote" in screened.out, screened.err
        assert "no mechanism" not in screened.err
    assert "accept-stack" in desk.type(f"{run} next").report["next"]
    stacked = desk.type(STACK, "--json")
    assert stacked.json["status"] == "keep_stack" and stacked.json["ratio"] >= 1.1, stacked.json["reasons"]
    accepted = desk.type(ACCEPT, "--json")
    assert accepted.json["status"] == "keep", accepted.json["reasons"]
    confirm = desk.type(f"{run} next").report["next"]
    assert confirm == f"scripts/autoresearch.py round confirm {desk.filled['<candidate_ref>'][:12]}"
    done = desk.type(confirm, "--json")
    assert done.code == 0, done.json["reasons"]
    assert done.json["details"]["round"]["state"] == "complete", done.json["details"]
    halves = done.json["details"]["halves"]
    assert {half: one["used"] for half, one in halves.items()} == {"public": 12, "held-out": 12}
    # "record aggregate evidence, update scratchpad.md, ... report artifacts and next baseline, and stop"
    rows = parse_table((desk.bench.root / "results.tsv").read_text())
    modes = [row["mode"] for row in rows]
    assert modes == ["calibrate", "screen", "screen", "accept-stack", "accept", "round confirm"]
    assert float(rows[-1]["ratio_vs_round_baseline"]) >= 1.1
    assert "cheaper steps" in (desk.bench.root / "scratchpad.md").read_text()
    assert desk.type(f"{run} next", "--json").json["details"]["actions"][0]["action"] == "stop"
    session = desk.type(desk.type(f"{run} next").report["next"], "--json").json["details"]
    assert session["next_baseline"] == desk.filled["<candidate_ref>"]
    assert session["latest_aggregate"] == rows[-1]["artifact"]
    assert desk.bench.project.git("status", "--porcelain") == ""
    report = verify_root(desk.bench.root)
    assert report.holds, report.findings
