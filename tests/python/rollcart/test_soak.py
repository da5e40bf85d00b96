"""The soak, a short one: what `make soak-env` does for 20 million steps."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from rollcart.bench import soak


def test_two_runs_are_equal_and_memory_is_flat() -> None:
    """In a process of its own: what other tests left in this one comes and goes while it runs."""
    command = [sys.executable, "-m", "rollcart.bench.soak", "--steps", "6000", "--lanes", "8", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["flat"] and told["equal"]
    assert told["runs"][0]["steps"] == 6000 and told["runs"][0]["resets"] > 40


def test_u20_growth_and_drift_are_told(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    sums = iter("ab")
    monkeypatch.setattr(soak, "play", lambda *_: soak.Run(1, 0, next(sums), 9 << 20, 9 << 20, 0.0))
    assert soak.main([]) == 1
    assert "GREW" in (told := capsys.readouterr().out) and "DIFFER" in told


def test_a_leak_is_growth_and_what_a_compiler_held_is_not() -> None:
    """32 MiB in blocks that the C library keeps when they are freed; between them one that stays in use."""
    code = (
        "import sys, rollcart; from rollcart.bench.soak import at_rest\n"
        "env = rollcart.NesVectorEnv(); env.reset(); before = at_rest(env)\n"
        "held = [bytes(100_000) for _ in range(320)]; last = bytes(100_000)\n"
        "if sys.argv[1] == 'freed': held = None\n"
        "print(at_rest(env) - before)\n"
    )
    grown = {}
    for case in ("held", "freed"):
        done = subprocess.run([sys.executable, "-c", code, case], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        grown[case] = int(done.stdout)
    assert grown["held"] > soak.MOST_GROWTH > grown["freed"], grown


def test_another_seed_is_other_work() -> None:
    assert soak.play(640, 4, 1).checksum != soak.play(640, 4, 2).checksum


def test_it_tells_how_far_it_is_and_can_be_stopped() -> None:
    command = [sys.executable, "-m", "rollcart.bench.soak", "--lanes", "8"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    first = child.stderr.readline()
    child.send_signal(signal.SIGINT)
    out, rest = child.communicate(timeout=60)
    assert re.fullmatch(r"run 1: [\d,]+ of 20,000,000 steps, \d+ MiB, \d+ s to go\n", first)
    assert child.returncode == 130 and "run 1: stopped (" in rest and not out
