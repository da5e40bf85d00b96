"""What cartlab starts is gone when it is done, and also when cartlab is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cartlab import processes

RUN = """
import sys
from pathlib import Path
from cartlab.processes import run_shell
run_shell(sys.argv[1], cwd=Path("."), env={"PATH": "/usr/bin:/bin"}, timeout_s=300, log=Path("log"))
"""


def sleeping(seconds: str) -> list[int]:
    wanted = f"sleep\0{seconds}\0".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == wanted:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def until(condition: object, limit_s: float = 20.0) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc to look for processes")
def test_a_command_and_its_children_die_with_a_killed_controller(tmp_path: Path) -> None:
    seconds = f"28{os.getpid() % 10000:04d}.5"
    line = f"sleep {seconds} & sleep {seconds}; sleep {seconds}"
    controller = subprocess.Popen([sys.executable, "-c", RUN, line], cwd=tmp_path)
    try:
        assert until(lambda: len(sleeping(seconds)) == 2)
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        assert until(lambda: not sleeping(seconds))
    finally:
        controller.kill()
        for pid in sleeping(seconds):
            os.kill(pid, signal.SIGKILL)


def test_a_command_reads_nothing_and_its_end_leaves_nothing_to_count(tmp_path: Path) -> None:
    done = processes.run_shell(
        "cat; echo out; exit 3",
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        timeout_s=60,
        log=tmp_path / "log",
    )
    assert (done.returncode, done.left) == (3, 0)
    assert (tmp_path / "log").read_text() == "out\n"


def test_a_command_past_its_limit_is_ended_with_its_children(tmp_path: Path) -> None:
    seconds = f"29{os.getpid() % 10000:04d}.5"
    done = processes.run_shell(
        f"sleep {seconds} & sleep {seconds}",
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        timeout_s=0.3,
        log=tmp_path / "log",
    )
    assert (done.returncode, sleeping(seconds)) == (None, [])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_strays_are_ended_and_the_commands_of_other_threads_are_not(tmp_path: Path) -> None:
    """Several threads at once: each command leaves a process that dropped its session and its mark."""
    slip = "import os, sys, time\nif os.fork(): sys.exit()\nos.setsid()\nif os.fork(): os._exit(0)\n"
    slip += "[os.close(n) for n in range(3)]\ntime.sleep(600)"
    line = f"env -i {sys.executable} -c '{slip}'; sleep 0.2; echo whole"
    done = {}

    def run(at: int) -> None:
        log = tmp_path / f"{at}.log"
        ended = processes.run_shell(
            line, cwd=tmp_path, env=dict(os.environ), timeout_s=60, log=log, strays=True
        )
        done[at] = (ended.returncode, log.read_text().strip(), ended.left)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one[:2] for one in done.values()} == {(0, "whole")}
    # Whoever looks first ends what the others left behind as well.
    assert sum(one[2] for one in done.values()) == 4
    assert processes.end_strays() == 0
