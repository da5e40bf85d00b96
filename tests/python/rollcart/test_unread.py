"""Commands that are cut short: nobody reads on, an old encoding, Ctrl-C while loading or at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rollcart.cli.answer import UNREAD
from rollcart.cli.table import ROWS

# The command with stdout on a pipe whose reader is gone before anything is written.
GONE = """
import os, sys
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)
os.execv(sys.executable, [sys.executable, "-m", "rollcart", *sys.argv[1:]])
"""


def unread(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", GONE, *words], stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("words", [(), ("--help",), ("--version",), *((row.name, "--help") for row in ROWS)])
def test_a_text_may_be_cut_anywhere(words: tuple[str, ...]) -> None:
    done = unread(*words)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_listing_that_nobody_reads_ends_without_a_traceback() -> None:
    done = unread("trace", "--frames", "3")
    assert (done.returncode, done.stderr) == (UNREAD, "")


def test_help_is_whole_in_an_old_encoding() -> None:
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "rollcart", "--help"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0 and "exit codes" in done.stdout


SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
# Ctrl-C while the package is imported, or while it works.
LOADING = """
import builtins, runpy, sys
def interrupted(*_, **__): raise KeyboardInterrupt
real = builtins.__import__
builtins.__import__ = lambda name, *rest: interrupted() if name.startswith("rollcart") else real(name, *rest)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
WORKING = """
import runpy, sys
import rollcart.bench.main
def interrupted(*_, **__): raise KeyboardInterrupt
rollcart.bench.main.main = interrupted
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("script", "text"),
    [("benchmark_sps.py", LOADING), ("benchmark_sps.py", WORKING), ("benchmark_rollout.py", LOADING)],
)
def test_ctrl_c_is_an_exit_code_and_no_traceback(script: str, text: str) -> None:
    command = [sys.executable, "-c", text, str(SCRIPTS / script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
