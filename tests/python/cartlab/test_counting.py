"""Counting instructions with tools that a test makes: they count what the worker does between on and off.

A worker notes its steps and its drawing of actions in its folder; the first slices cost more, as where code
is compiled and caches are filled. A tool that counts anything but warm steps gives another number.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import bare_lab
import pytest

from cartlab import host, measure
from cartlab.measure import counters, instructions
from cartlab.measure import worker as workers

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="perf and its pipes are Linux's")

NOTES = """
def noted(name):
    real = getattr(Session, name)
    def method(self, *rest):
        steps = rest[0] if rest else len(self.actions)
        with open_file("trace", "a") as file: file.write(f"{name} {steps}\\n")
        return real(self, *rest)
    setattr(Session, name, method)
from io import open as open_file
noted("prepare"); noted("run")
"""

# trace -> what a machine counts of it: 1,000 a warm step; the first two slices and drawing are dearer.
COUNTED = """
def counted(before, whole):
    runs, total = 0, 0
    for number, line in enumerate(whole):
        word, steps = line.split()
        runs += word == "run"
        cost = 1000 if word == "run" and runs > 2 else 7777
        total += cost * int(steps) if number >= len(before) else 0
    return total
def lines(path):
    return open(path).read().splitlines()
"""

PERF = f"""#!{sys.executable}
import os, signal, sys, time
{COUNTED}
words = sys.argv[1:]
report = words[words.index("-o") + 1]
trace = f"/proc/{{words[words.index('-p') + 1]}}/cwd/trace"
orders, answers = map(int, words[words.index("--control") + 1].removeprefix("fd:").split(","))
seen = {{}}
def ended(*_):
    time.sleep(0.05)
    total = counted(seen["enable"], seen["disable"])
    open(report, "w").write(f"# started\\n\\n{{total}},,instructions:u,1,100.00,,\\n")
    sys.exit(0)
signal.signal(signal.SIGINT, ended)
signal.alarm(60)
for line in os.fdopen(orders):
    time.sleep(0.05)
    seen[line.strip()] = lines(trace)
    os.write(answers, b"ack\\n")
signal.pause()
"""

# It runs the worker, and counts by what vgdb left in the worker's folder.
VALGRIND = f"""#!{sys.executable}
import subprocess, sys
{COUNTED}
words = sys.argv[1:]
tool = [word for word in words if word.startswith("--")]
code = subprocess.call(words[len(tool):])
print(f"==1== Collected : {{counted(lines('on'), lines('off')):,}}", file=sys.stderr, flush=True)
sys.exit(code)
"""
VGDB = f"""#!{sys.executable}
import shutil, sys
shutil.copy("trace", sys.argv[-1])
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bare_lab.Lab:
    for op in workers.LIMITS_S:
        monkeypatch.setitem(workers.LIMITS_S, op, 10.0)  # type: ignore[misc]
    monkeypatch.setattr(counters, "_LIMIT_S", 10.0)
    return bare_lab.make(tmp_path)


def tools(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    """Put these scripts first on PATH."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def count(lab: bare_lab.Lab, **changes: Any) -> instructions.Instructions:
    base = lab.build("base", NOTES)
    plan = lab.plan(workload=replace(lab.workload, **changes))
    return measure.count_instructions(plan, base, base, repo=lab.repo)


@LINUX
@pytest.mark.parametrize("tool", ["perf", "callgrind"])
def test_warm_steps_are_counted_and_nothing_else(
    lab: bare_lab.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    tools(tmp_path / "bin", monkeypatch, perf=PERF, valgrind=VALGRIND, vgdb=VGDB)
    monkeypatch.setattr(host, "counts_instructions", lambda: tool == "perf")
    found = count(lab)
    assert (found.tool, found.base, found.cand) == (tool, 1000.0, 1000.0), found.reason


@LINUX
def test_a_tool_without_a_count_is_no_witness(
    lab: bare_lab.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = VALGRIND.replace("Collected", "Nothing")
    tools(tmp_path / "bin", monkeypatch, valgrind=silent, vgdb=VGDB)
    monkeypatch.setattr(host, "counts_instructions", lambda: False)
    found = count(lab)
    assert (found.tool, found.base, found.cand) == (None, None, None)
    assert found.reason == "callgrind cannot be driven here: no count in its output"


@pytest.mark.parametrize("missing", [{"valgrind"}, {"vgdb"}, {"valgrind", "vgdb"}])
def test_callgrind_needs_both_of_its_programs(
    lab: bare_lab.Lab, monkeypatch: pytest.MonkeyPatch, missing: set[str]
) -> None:
    monkeypatch.setattr(host, "counts_instructions", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: None if name in missing else f"/bin/{name}")
    found = count(lab)
    assert (found.tool, found.reason) == (None, "valgrind is not installed")


def test_a_workload_may_be_smaller_under_callgrind(lab: bare_lab.Lab) -> None:
    small = instructions._small(replace(lab.workload, params={"lanes": 8, "k": 1, "witness": {"lanes": 2}}))
    assert small.params == {"lanes": 2, "k": 1}
    assert instructions._small(small).params == small.params


# --- perf on its pipes


def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Callable[[], counters.Counter]:
    """A perf that runs this text, with `orders` (a file) and `answer()`; ending by itself is noted."""
    text = f"""#!{sys.executable}
import os, signal, sys, time
words = sys.argv[1:]
report = words[words.index("-o") + 1]
orders, answers = map(int, words[words.index("--control") + 1].removeprefix("fd:").split(","))
orders = os.fdopen(orders)
def answer(): os.write(answers, b"ack\\n")
def itself(*_):
    open({str(tmp_path / "itself")!r}, "w").close()
    os._exit(0)
signal.signal(signal.SIGALRM, itself)
signal.alarm(8)
open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
{body}
"""
    tools(tmp_path / "bin", monkeypatch, perf=text)
    return lambda: counters.Counter(os.getpid(), tmp_path / "report")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@LINUX
def test_a_perf_that_does_not_start_leaves_no_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    before = open_files()
    with pytest.raises(FileNotFoundError):
        counters.Counter(os.getpid(), tmp_path / "report")
    assert open_files() == before


@LINUX
@pytest.mark.parametrize(
    ("body", "limit_s"),
    [("orders.readline()", 5.0), ("orders.readline()\ntime.sleep(2)\nanswer()\ntime.sleep(60)", 0.3)],
    ids=["ends", "is late"],
)
def test_an_order_that_is_not_answered_is_an_error_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, limit_s: float
) -> None:
    made = talk(tmp_path, monkeypatch, body)
    monkeypatch.setattr(counters, "_LIMIT_S", limit_s)
    before = open_files()
    counter = made()
    try:
        with pytest.raises(OSError, match="perf did not obey enable"):
            counter.on()
    finally:
        counter.end()
    assert open_files() == before


@LINUX
def test_each_order_waits_for_its_own_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "orders.readline()\nanswer()\nassert orders.readline() == 'disable\\n'\ntime.sleep(0.2)\n"
    body += f"open({str(tmp_path / 'obeyed')!r}, 'w').close()\nanswer()\nsignal.pause()"
    counter = talk(tmp_path, monkeypatch, body)()
    try:
        counter.on()
        assert not (tmp_path / "obeyed").exists()
        counter.off()
        assert (tmp_path / "obeyed").exists()
    finally:
        counter.end()


@LINUX
def test_with_its_block_a_counter_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(tmp_path, monkeypatch, "orders.readline()\nanswer()\nwhile True: signal.pause()")
    before = open_files()
    with pytest.raises(KeyError), counters.attached(os.getpid(), tmp_path / "report") as counter:
        counter.on()
        raise KeyError
    assert open_files() == before
    with pytest.raises(ProcessLookupError):  # Gone, and nobody's zombie.
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not (tmp_path / "itself").exists()


@LINUX
@pytest.mark.parametrize(
    ("report", "says"),
    [
        ("# begun\n\n12,,cycles:u,1\n", "no count in perf's answer"),
        ("<not counted>,,instructions:u,1\n", "perf counts no instructions:u here: <not counted>"),
        ("# begun\n\n9,,cycles:u,1\n34,,instructions:u,1\n", 34.0),
    ],
)
def test_the_count_is_read_from_perfs_answer_once_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: str, says: str | float
) -> None:
    body = (
        "def ended(*_):\n"
        f"    time.sleep(0.1)\n    open(report, 'w').write({report!r})\n    sys.exit(0)\n"
        "signal.signal(signal.SIGINT, ended)\nanswer() if orders.readline() else None\n"
        "while True: signal.pause()"
    )
    made = talk(tmp_path, monkeypatch, body)
    monkeypatch.setattr(counters, "_LIMIT_S", 5.0)
    counter = made()
    try:
        counter.on()
        if isinstance(says, float):
            assert counter.total() == says
        else:
            with pytest.raises(OSError, match=says):
                counter.total()
    finally:
        counter.end()
