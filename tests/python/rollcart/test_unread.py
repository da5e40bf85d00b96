"""stdout as `rollcart` may find it: nobody reads on, or its encoding is an old one."""

from __future__ import annotations

import os
import subprocess
import sys

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
