"""Other people's repositories, from `init` to a kept candidate, with the installed `cartlab`, nothing faked.

The C program's autoresearch.toml is the text of docs/benchmarking.md. How busy the machine is must not
decide these tests, so the contention rule is waived where a verdict is asked for; a forced keep is a small
gain at most.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_project import Project

from cartlab.verify import verify_root

DOCS = Path(__file__).resolve().parents[3] / "docs" / "benchmarking.md"
HEADING = "### Another repository, in ten lines\n"
CARTLAB = Path(sys.executable).parent / "cartlab"
WAIVED = ("--force-busy", "--approve", "a test on a shared machine")

PROGRAM = """\
#include <stdio.h>
#include <time.h>
#define TURNS %(turns)d
static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}
int main(void) {
    double start = now();
    volatile unsigned long x = 1;
    for (int item = 0; item < 2000; item++)
        for (int turn = 0; turn < TURNS; turn++) x = x * 6364136223846793005UL + 1;
    printf("METRIC rate=%%f\\n", 2000 / (now() - start));
    printf("DIGEST items=%%d\\n", 2000);
    return 0;
}
"""

ENGINE = """\
unsigned long work(unsigned long x, int items) {
    volatile unsigned long sink = x;
    for (int turn = 0; turn < items * %(turns)d; turn++) sink = sink * 6364136223846793005UL + 1;
    return x * 31 + items;
}
"""

ADAPTER = '''\
"""Drives libtiny.so: a session of numbers that are worked on."""

import ctypes
import random
import sys
from pathlib import Path

BAD_INPUT = ()


class Session:
    def __init__(self, seed):
        self.library = ctypes.CDLL(str(Path(sys.path[0]) / "libtiny.so"))
        self.library.work.restype = ctypes.c_ulong
        self.library.work.argtypes = [ctypes.c_ulong, ctypes.c_int]
        self.native = str(Path(sys.path[0]) / "libtiny.so")
        self.random = random.Random(seed)
        self.given, self.kept = [], []

    def prepare(self, steps):
        self.given = [self.random.getrandbits(32) for _ in range(steps)]

    def forget(self):
        self.kept = []

    def run(self):
        for number in self.given:
            self.kept.append(self.library.work(number, 400))

    def results(self):
        return list(self.kept)

    def observation(self, step):
        return self.kept[step].to_bytes(8, "little")

    def verify(self, steps):
        self.prepare(steps)
        self.run()
        for step, number in enumerate(self.kept):
            yield f"step {step}", number

    def close(self):
        self.library = None


def open(workload, seed, layout_seed):
    return Session(seed)
'''

SLICES = """
[workload.slices]
kind = "slices"
command = "bench/adapter.py"
metric = "steps_per_sec"
unit = "steps/s"
verify = 8
"""

SUITE = """
[workload.suite]
kind = "pytest-benchmark"
command = '"$CARTLAB_PYTHON" -m pytest -q bench --benchmark-max-time=0.02 --benchmark-min-rounds=3'
metric = "*"
direction = "lower"
unit = "s"
params = { runs = 2 }
"""

# What nobody may import outside this repository; on the path of every process that cartlab starts.
STRANGER = "import pathlib\npathlib.Path({trace!r}).touch()\nraise ImportError('another project')\n"


def ten_lines() -> str:
    """The indented block below the heading, as a reader would copy it."""
    section = DOCS.read_text().partition(HEADING)[2]
    found = re.search(r"\n\n((?:    .*\n)+)", section)
    assert found is not None
    return "".join(line[4:] for line in found[1].splitlines(keepends=True))


def built_by(command: str, artifact: str, workload: str) -> str:
    """The ten lines with another build, and another workload as the default."""
    text = ten_lines().replace('cc -O2 -o "$CARTLAB_BUILD_DIR/tiny" main.c', command)
    text = text.replace('artifact = "tiny"', f'artifact = "{artifact}"')
    return f'default_workload = "{workload}"\n{text}'


@dataclass
class Elsewhere:
    """A repository that knows nothing of this one, and a root beside it."""

    project: Project
    root: Path
    trace: Path

    def cartlab(self, *words: str) -> dict[str, Any]:
        """Run the installed command inside the repository; returns its JSON with the exit code checked."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AUTORESEARCH", "RETRO", "GIT_"))}
        own = {
            "AUTORESEARCH_ROOT_PATH": str(self.root),
            "PYTHONPATH": str(self.trace.parent / "shadow"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [CARTLAB, *words, "--json"],
            cwd=self.project.path,
            env={**kept, **own},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert not self.trace.exists(), "rollcart was imported"
        answer: dict[str, Any] = json.loads(done.stdout)
        assert answer["exit_code"] == done.returncode
        # What to type next is what works here: there is no scripts/autoresearch.py in this repository.
        assert answer["report"]["next"].startswith("cartlab ")
        assert "scripts/autoresearch.py" not in done.stdout + done.stderr
        return answer


def elsewhere(folder: Path, config: str, files: dict[str, str]) -> Elsewhere:
    project = Project(folder / "tiny")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    project.write("autoresearch.toml", config)
    for name, text in files.items():
        project.write(name, text)
    project.commit("base")
    trace, shadow = folder / "trace", folder / "shadow" / "rollcart"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text(STRANGER.format(trace=str(trace)))
    # A folder's name may hold anything: the document's lines quote what they are given.
    return Elsewhere(project, folder / "its root \u00fc'$", trace)


def test_the_ten_lines_are_ten() -> None:
    assert len(ten_lines().splitlines()) == 10


def test_the_documents_lines_carry_a_c_program_from_init_to_a_kept_candidate(tmp_path: Path) -> None:
    tiny = elsewhere(tmp_path, ten_lines(), {"main.c": PROGRAM % {"turns": 6000}})
    tiny.project.write("main.c", PROGRAM % {"turns": 3000})
    tiny.project.commit("half the turns")
    assert tiny.cartlab("init")["status"] == "ok"
    checks = tiny.cartlab("checks")
    assert (checks["status"], checks["recorded"]) == ("ok", True)
    assert tiny.cartlab("calibrate", "HEAD", "--max-blocks", "2", *WAIVED)["status"] == "baseline"
    screen = tiny.cartlab("screen", "HEAD~1", "HEAD", *WAIVED)
    assert screen["status"] == "triage_promote" and screen["ratio"] > 1.5
    accept = tiny.cartlab("accept", "HEAD~1", "HEAD", *WAIVED)
    assert (accept["exit_code"], accept["status"]) == (0, "keep_small_gain")
    assert accept["lcb"] >= 1.03 and accept["details"]["checks"] == "passed"
    assert accept["blocks"]["pooled"] == 6
    tiny.project.write("main.c", (PROGRAM % {"turns": 3000}).replace('%d\\n", 2000', '%d\\n", 1999'))
    tiny.project.commit("another answer")
    assert tiny.cartlab("screen", "HEAD~1", "HEAD")["status"] == "behaviour_changed"
    assert verify_root(tiny.root).holds


def test_an_adapter_of_its_own_makes_slices(tmp_path: Path) -> None:
    config = built_by(
        'cc -O2 -shared -fPIC -o "$CARTLAB_BUILD_DIR/libtiny.so" main.c', "libtiny.so", "slices"
    )
    config += SLICES
    files = {"main.c": ENGINE % {"turns": 20}, "bench/adapter.py": ADAPTER}
    tiny = elsewhere(tmp_path, config, files)
    tiny.project.write("main.c", ENGINE % {"turns": 10})
    tiny.project.commit("half the turns")
    accept = tiny.cartlab("accept", "HEAD~1", "HEAD", *WAIVED)
    assert (accept["exit_code"], accept["status"]) == (0, "keep_small_gain")
    assert accept["ratio"] > 1.5
    assert verify_root(tiny.root).holds


def test_a_suite_of_benchmarks_is_a_workload(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is missing: its workload is not tried")
    config = built_by('cp tiny.py "$CARTLAB_BUILD_DIR"', "tiny.py", "suite") + SUITE
    suite = "import tiny\n\ndef test_work(benchmark):\n    assert benchmark(tiny.work) == 42\n"
    slow = "def work():\n    for _ in range(%d): pass\n    return 42\n"
    tiny = elsewhere(tmp_path, config, {"tiny.py": slow % 20000, "bench/test_tiny.py": suite})
    tiny.project.write("tiny.py", slow % 8000)
    tiny.project.commit("fewer turns")
    screen = tiny.cartlab("screen", "HEAD~1", "HEAD", "--max-blocks", "2", *WAIVED)
    assert screen["blocks"]["used"] == 2 and screen["ratio"] > 1.5
    assert verify_root(tiny.root).holds


def test_a_rust_program_by_the_controllers_clock(tmp_path: Path) -> None:
    assert shutil.which("cargo"), "the toolchain that builds this repository builds the test's program"
    config = """\
schema = 1
project.name = "tiny"
build.command = 'cargo build --release --offline && cp "$CARGO_TARGET_DIR/release/tiny" "$CARTLAB_BUILD_DIR"'
build.artifact = "tiny"
[workload.wall]
kind = "command"
command = '"$CARTLAB_BUILD_DIR/tiny"'
metric = "wall_seconds"
direction = "lower"
unit = "s"
"""
    main = (
        "fn main() {\n    let mut x = 1u64;\n"
        "    for i in 0..%d { x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i)); }\n"
        '    println!("DIGEST done=yes");\n}\n'
    )
    manifest = '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n'
    tiny = elsewhere(tmp_path, config, {"Cargo.toml": manifest, "src/main.rs": main % 40_000_000})
    tiny.project.write(".gitignore", "Cargo.lock\n")
    tiny.project.write("src/main.rs", main % 10_000_000)
    tiny.project.commit("fewer turns")
    screen = tiny.cartlab("screen", "HEAD~1", "HEAD", *WAIVED)
    assert screen["status"] == "triage_promote" and screen["ratio"] > 1.5
