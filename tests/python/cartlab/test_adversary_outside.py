"""Candidates that reach beyond their own worker: the other side, the controller, the ledger, the disk. Each
test is one trick; none may become a faster verdict, and none may end the controller.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import fake_project
import pytest
from fake_lab import instant_lab
from ledger_runs import a_block

from cartlab import landlock, measure, processes, sources
from cartlab.errors import (
    BehaviourChanged,
    BuildFailed,
    CartlabError,
    Tampered,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.ledger import Ledger
from cartlab.ledger.store import written
from cartlab.measure import worker
from cartlab.model import Block, Build, Plan
from cartlab.pipeline.request import Request
from cartlab.pipeline.run import run

CONFINED = pytest.mark.skipif(landlock.version() < 6, reason="this kernel's Landlock scopes no signals")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is Linux's")


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def honest(project: fake_project.Project, root: Path) -> Build:
    return project.build(root)


def against(project: fake_project.Project, base: Build, cand: Build, **sizes: object) -> Block:
    return measure.run_block(project.plan(**sizes), 0, 0, base, cand, repo=project.path)


def judged(project: fake_project.Project, base: Build, cand: Build, **sizes: object) -> Block:
    """The first block that the machine was quiet enough for; one that is dropped says nothing."""
    for _ in range(20):
        block = against(project, base, cand, **sizes)
        if block.dropped is None:
            break
    return block


def extended(project: fake_project.Project, root: Path, text: str) -> Build:
    """A candidate with a Python part that runs inside the worker."""
    project.write("extension.py", text)
    project.commit("extension")
    return project.build(root)


def runs(mark: str) -> bool:
    """Whether a process with this word on its command line is there."""
    return mark in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


# Two forks, a session of its own and an empty environment: nothing but its parents tells whose it is.
HIDDEN_CHILD = """
import os
if not os.fork():
    os.setsid()
    if not os.fork():
        os.execve("/bin/sh", ["sh", "-c", "while :; do :; done", {mark!r}], {{}})
    os._exit(0)
"""


@LINUX
def test_a_child_that_dropped_its_mark_and_its_session_is_found_and_killed(
    project: fake_project.Project, root: Path, honest: Build, tmp_path: Path
) -> None:
    mark = f"hidden-of-{tmp_path.name}"
    cand = extended(project, root, HIDDEN_CHILD.format(mark=mark))
    with pytest.raises(Tampered, match="that hid still ran"):
        against(project, honest, cand)
    assert not runs(mark)
    with pytest.raises(Tampered, match="that hid still ran"):
        measure.verify_equal(project.plan(), honest, cand, repo=project.path)
    assert not runs(mark)


BUILD_SCRIPT = fake_project.CONFIG.replace("for part in", "test ! -f build.sh || sh build.sh; for part in")


@LINUX
def test_a_process_that_a_build_hides_is_killed_before_anything_is_timed(tmp_path: Path, root: Path) -> None:
    mark = f"hidden-of-{tmp_path.name}"
    project = fake_project.make(tmp_path / "scripted", BUILD_SCRIPT)
    hidden = f"while :; do :; done; : {mark}"
    project.write("build.sh", f"(setsid env -i sh -c '{hidden}' </dev/null >/dev/null 2>&1 &)\n")
    project.commit("a build script")
    project.build(root)
    assert not runs(mark)


@CONFINED
@pytest.mark.parametrize("where", ["events.jsonl", "builds/planted", "current.json"])
def test_a_worker_cannot_write_into_the_root(
    project: fake_project.Project, root: Path, honest: Build, where: str
) -> None:
    (root / "events.jsonl").write_text("the ledger\n")
    cand = extended(project, root, f"open({str(root / where)!r}, 'a').write('forged')\n")
    with pytest.raises(WorkerCrashed, match="Permission denied"):
        against(project, honest, cand)
    assert (root / "events.jsonl").read_text() == "the ledger\n"
    assert not (root / "builds/planted").exists()


@CONFINED
def test_a_worker_can_stop_neither_the_controller_nor_the_other_side(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    text = (
        "import os, signal\nfrom pathlib import Path\nstopped = []\n"
        "for entry in Path('/proc').glob('[0-9]*'):\n"
        "    words = (entry / 'cmdline').read_bytes().split(b'\\0') if entry.exists() else []\n"
        "    if any(w.endswith(b'slice_server.py') for w in words) and int(entry.name) != os.getpid():\n"
        "        try: os.kill(int(entry.name), signal.SIGCONT); stopped.append(entry.name)\n"
        "        except PermissionError: pass\n"
        "try: os.kill(os.getppid(), signal.SIGCONT); stopped.append('controller')\n"
        "except PermissionError: pass\n"
        "if stopped: raise SystemExit(f'signals reached {stopped}')\n"
    )
    cand = extended(project, root, text)
    assert abs(fake_project.gain(against(project, honest, cand))) < 0.5


OTHERS = (
    "import os\nfrom pathlib import Path\n"
    "def others():\n"
    "    for entry in Path('/proc').glob('[0-9]*'):\n"
    "        try: words = (entry / 'cmdline').read_bytes().split(b'\\0')\n"
    "        except OSError: continue\n"
    "        pid = int(entry.name)\n"
    "        if HERE in words and pid != os.getpid(): yield pid\n"
)


@LINUX
@pytest.mark.parametrize(
    "harm",
    [
        "os.setpriority(os.PRIO_PROCESS, pid, 19)",
        "os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))",
    ],
    ids=["priority", "policy"],
)
@pytest.mark.parametrize("coin", [0, 1])
def test_a_worker_that_lowers_the_other_sides_priority_is_tampering(
    project: fake_project.Project, root: Path, honest: Build, harm: str, coin: int
) -> None:
    text = OTHERS.replace("HERE", repr(honest.path.encode())) + (
        "import __main__\nreal = __main__.Server.run\n"
        "def run(self, request):\n"
        f"    for pid in others(): {harm}\n"
        "    return real(self, request)\n"
        "__main__.Server.run = run\n"
    )
    cand = extended(project, root, text)
    with pytest.raises(Tampered, match="threads must be scheduled alike"):
        measure.run_block(project.plan(), 0, coin, honest, cand, repo=project.path)


WAKING = """
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static void *wake(void *none) {{
    struct timespec at;
    for (;;) {{
        usleep(700);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
        long until = at.tv_sec * 1000000000L + at.tv_nsec + 1500000L;
        do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at); while (at.tv_sec * 1000000000L + at.tv_nsec < until);
    }}
    return none;
}}
""".replace("{{", "{").replace("}}", "}")


@LINUX
def test_a_thread_that_wakes_in_the_other_sides_slices_is_tampering(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    project.commit(
        "wakes", before=WAKING, at_step="static pthread_t t; if (!t) pthread_create(&t, 0, wake, 0);"
    )
    cand = project.build(root)
    # Where the waking delays the baseline's answers, its clock is what disagrees first.
    with pytest.raises(Tampered, match=r"must sleep while the baseline's|answers were not late"):
        judged(project, honest, cand, slices=24, slice_ms=8.0)


def test_work_after_the_first_byte_of_an_answer_never_counts(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    """The controller's clock stops there, so that it would agree with the lie."""
    text = (
        "import __main__\nreal = __main__.Server.run\n"
        "def run(self, request):\n"
        "    self.begin()\n    begun, self.begin = self.begin, lambda: None\n"
        "    return {**real(self, request), 'ns': 1000}\n"
        "__main__.Server.run = run\n"
    )
    cand = extended(project, root, text)
    block = against(project, honest, cand, slices=24, slice_ms=5.0)
    assert block.dropped is not None


def test_an_answer_before_the_question_is_tampering(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    text = (
        "import __main__, os, stat\nreal = __main__.Server.digest\n"
        "def digest(self, request):\n"
        "    for fd in range(3, 12):\n"
        "        try:\n"
        '            if stat.S_ISFIFO(os.fstat(fd).st_mode): os.write(fd, b\'{"digest": ""}\\n{"ns": 1, \')\n'
        "        except OSError: pass\n"
        "    return real(self, request)\n"
        "__main__.Server.digest = digest\n"
    )
    cand = extended(project, root, text)
    with pytest.raises(Tampered, match="must answer what it is asked; found"):
        against(project, honest, cand)


LAZY = """
import sys
frame = sys._getframe(1)
while "Session" not in frame.f_globals: frame = frame.f_back
Session = frame.f_globals["Session"]
class Later:
    dtype = type("dtype", (), {"str": "|u1", "kind": "u"})()
    def __init__(self, make): self.make = make
    shape = property(lambda self: (len(self.make()),))
    def tobytes(self): return self.make()
real = Session.observation
Session.observation = lambda self, step: Later(lambda: real(self, step))
"""


def test_an_observation_that_is_made_when_somebody_looks_is_refused(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    cand = extended(project, root, LAZY)
    with pytest.raises(WorkerCrashed, match="an array must be numpy's own, made by the time it is returned"):
        against(project, honest, cand)


@pytest.mark.parametrize("code", [0, 7])
def test_a_worker_that_ends_by_itself_is_a_crash_whatever_its_exit_code_says(
    project: fake_project.Project, root: Path, honest: Build, code: int
) -> None:
    text = f"import __main__, os\n__main__.Server.run = lambda self, request: os._exit({code})\n"
    cand = extended(project, root, text)
    with pytest.raises(WorkerCrashed, match=f"the candidate's worker ended with exit code {code} during run"):
        against(project, honest, cand)


def test_a_worker_that_ignores_being_ended_is_ended(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.Worker.__init__, "__defaults__", (0, {**worker.LIMITS_S, "run": 1.0}, ()))
    text = (
        "import __main__, signal\n"
        "for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
        "def run(self, request):\n    while True: pass\n"
        "__main__.Server.run = run\n"
    )
    cand = extended(project, root, text)
    with pytest.raises(WorkerTimeout, match="must answer run within 1 s; it was killed"):
        against(project, honest, cand)
    assert not runs(cand.path)


@LINUX
def test_a_worker_that_prints_without_end_fills_no_disk_and_no_memory(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_LARGEST", 1 << 20)
    text = "import os\nfor _ in range(10**6): os.write(2, b'x' * 4096)\n"
    cand = extended(project, root, text)
    with pytest.raises(WorkerCrashed, match="File too large") as error:
        against(project, honest, cand)
    assert len(str(error.value.details["stderr"])) <= 4000


def test_the_end_of_a_file_costs_as_much_as_it_is_long(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.seek(1 << 40)
        file.write(b"the end")
    assert processes.tail(path, 7) == "the end"
    assert processes.tail(tmp_path / "none", 7) == ""


def test_a_command_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MOST_OUTPUT", 1 << 20)
    log = tmp_path / "log"
    done = processes.run_shell(
        f"yes printing-of-{tmp_path.name}",
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        timeout_s=300,
        log=log,
    )
    assert done.returncode == processes.FLOODED == 128 + signal.SIGXFSZ
    assert processes.tail(log, 100).endswith("ended by cartlab: more than 1048576 bytes of output\n")
    assert not runs(f"printing-of-{tmp_path.name}")


def test_a_build_that_prints_without_end_does_not_build(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MOST_OUTPUT", 1 << 20)
    project = fake_project.make(tmp_path / "scripted", BUILD_SCRIPT)
    project.write("build.sh", "yes\n")
    project.commit("a build script")
    with pytest.raises(BuildFailed, match="exit code 153") as error:
        project.build(root)
    assert "more than 1048576 bytes of output" in str(error.value.details["log_tail"])


# What a build can learn of the side that it is on. Nothing of it makes less work equal.
SIDES = {
    "path": "HERE == __main__.sys.argv[2]",
    "parity": "os.getpid() % 2",
    "environment": "len(os.environ['CARTLAB_PAD']) % 2",
    "inode": "os.stat(HERE).st_ino % 2",
    "age": "os.stat(HERE).st_mtime > os.stat(os.path.dirname(__main__.__file__)).st_mtime",
    "descriptor": "len(os.listdir('/proc/self/fd')) % 2",
}


@pytest.mark.parametrize("told_by", SIDES)
def test_less_work_on_the_side_that_it_thinks_it_is_changes_behaviour_or_gains_nothing(
    project: fake_project.Project, root: Path, honest: Build, told_by: str
) -> None:
    text = (
        "import __main__, os, sys\nHERE = sys.path[0]\n"
        "frame = sys._getframe(1)\n"
        "while 'Session' not in frame.f_globals: frame = frame.f_back\n"
        "Session = frame.f_globals['Session']\n"
        f"if {SIDES[told_by]}:\n"
        "    def run(self):\n"
        "        for actions in self.actions[::2]: self.kept += 2 * [self.step(actions)]\n"
        "        del self.kept[len(self.actions):]\n"
        "    Session.run = run\n"
    )
    cand = extended(project, root, text)
    try:
        assert abs(fake_project.gain(against(project, honest, cand))) < 0.5
    except BehaviourChanged as error:
        assert error.exit_code == 12


class Quiet:
    """A voice that says nothing."""

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def progress(self, line: str) -> None: ...


@pytest.mark.parametrize("own", [True, False], ids=["this attempt", "another attempt of the pair"])
def test_a_block_that_the_controller_did_not_write_is_tampering(
    project: fake_project.Project, root: Path, tmp_path: Path, own: bool
) -> None:
    """The chain can be hashed by anybody: who may write the file can add blocks that link."""

    def forging(plan: Plan, index: int, *_: object) -> Block:
        ours = list(written)
        ledger = Ledger.open(root)
        attempt = plan.attempt_id if own else "forged"
        if not own:
            ledger.append("attempt_started", attempt, replace(plan, attempt_id=attempt).to_json())
        ledger.append("block", attempt, a_block(index, 0.5).to_json())
        written[:] = ours
        return a_block(index, 0.0)

    lab = replace(instant_lab(tmp_path / "lab"), run_block=forging)
    asked = Request(command="screen", tier="screen", base="base", cand="better")
    out = run(asked, lab, project.path, root, Quiet())
    assert (out.status, out.exit_code) == ("tampered", 16)
    assert "was written by another process" in " ".join(out.reasons)


def test_no_trick_leaves_a_worker_or_its_folder(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    tricks = ["raise SystemExit(0)\n", "import os\nos.kill(os.getpid(), 9)\n", "raise KeyboardInterrupt\n"]
    for text in tricks:
        cand = extended(project, root, text)
        with pytest.raises(CartlabError):
            against(project, honest, cand)
        assert not list(scratch.iterdir())
        end = time.monotonic() + 30
        while runs(cand.path) and time.monotonic() < end:
            time.sleep(0.05)
        assert not runs(cand.path)
    sources.check(honest)
