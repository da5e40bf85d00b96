"""A run that is stopped, politely or not: what is on disk counts, and the next run goes on from there."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_bench import Bench, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = make_bench(tmp_path)
    made.project.commit("the same speed", before="/* nothing */")
    return made


def blocks(bench: Bench) -> list[dict[str, object]]:
    path = bench.root / "events.jsonl"
    found = path.read_text().splitlines() if path.exists() else []
    whole = [json.loads(line) for line in found if line.endswith("}")]
    return [event for event in whole if event["type"] == "block"]


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def workers_of(bench: Bench) -> list[str]:
    """Command lines of processes that work on this bench's builds."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(bench.root) in words and "slice_server" in words:
            found.append(words)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_is_recorded_as_interrupted_and_leaves_no_process(
    bench: Bench, number: signal.Signals
) -> None:
    process = bench.start("accept", "HEAD~1", "HEAD", "--json")
    wait_for(lambda: len(blocks(bench)) >= 2)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    answer = json.loads(out)
    assert (process.returncode, answer["status"], answer["exit_code"]) == (130, "interrupted", 130)
    assert answer["report"]["decision"] == "inconclusive"
    assert workers_of(bench) == []
    finished = [event for event in bench.events() if event["type"] == "attempt_finished"]
    assert [event["body"]["status"] for event in finished] == ["interrupted"]


def test_an_interrupted_screen_is_continued_not_begun_again(bench: Bench) -> None:
    process = bench.start("screen", "HEAD~1", "HEAD")
    wait_for(lambda: len(blocks(bench)) >= 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    had = len(blocks(bench))
    assert 2 <= had <= 6
    answer = bench.run("screen", "HEAD~1", "HEAD", "--json")
    assert answer.json["blocks"] == {"used": 6, "dropped": 0, "pooled": had}
    assert len(blocks(bench)) == 6


def test_killed_at_random_moments_no_block_is_lost_and_the_next_run_goes_on(bench: Bench) -> None:
    draw = random.Random(20)
    seen = 0
    for _ in range(10):
        process = bench.start("accept", "HEAD~1", "HEAD")
        time.sleep(draw.uniform(0.1, 2.5))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        kept = blocks(bench)
        assert len(kept) >= seen
        seen = len(kept)
        status = bench.run("status", "--json")
        assert status.code == 0, status.err
    wait_for(lambda: workers_of(bench) == [])
    answer = bench.run("accept", "HEAD~1", "HEAD", "--max-blocks", "2", "--json")
    # On a quiet machine one of the killed runs may have decided already: then nothing new is measured.
    assert len(blocks(bench)) in (seen, seen + 1, seen + 2)
    assert answer.json["blocks"]["used"] == len(blocks(bench)), answer.json["reasons"]
    started = {event["attempt"] for event in bench.events() if event["type"] == "attempt_started"}
    closed = [event["attempt"] for event in bench.events() if event["type"] == "attempt_finished"]
    assert sorted(closed) == sorted(started)


def test_status_names_a_killed_run_until_the_next_one_closes_it(bench: Bench) -> None:
    process = bench.start("accept", "HEAD~1", "HEAD")
    wait_for(lambda: len(blocks(bench)) >= 1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    (one,) = bench.run("status", "--json").json["details"]["running"]
    assert one["state"].startswith("killed") and one["blocks"] >= 1


def test_ctrl_c_at_random_moments_leaves_no_process(bench: Bench) -> None:
    draw = random.Random(7)
    for _ in range(6):
        process = bench.start("accept", "HEAD~1", "HEAD", "--json")
        time.sleep(draw.uniform(0.3, 3.0))
        if process.poll() is not None:
            # On a quiet machine an earlier run may have measured all that decides: this one only answered.
            out, err = process.communicate(timeout=60)
            assert json.loads(out)["status"] == "discard", err
            continue
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        # Before the program has begun Python itself ends, by the signal.
        assert process.returncode in (130, -signal.SIGINT), err
        assert process.returncode != 130 or json.loads(out)["status"] == "interrupted"
        assert processes_of(bench) == []
    assert bench.run("verify").code == 0


def test_a_worker_that_hangs_dies_with_a_controller_that_is_killed(bench: Bench) -> None:
    bench.project.commit("hangs", at_step="for (;;) ;")
    process = bench.start("screen", "HEAD~1", "HEAD")
    wait_for(lambda: len(workers_of(bench)) >= 1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_for(lambda: workers_of(bench) == [], seconds=30.0)


def processes_of(bench: Bench) -> list[str]:
    """Command lines of all processes that have to do with this bench: workers, builds, git."""
    here, found = str(bench.root.parent).encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, place = (entry / "cmdline").read_bytes(), os.fsencode((entry / "cwd").readlink())
            running = (entry / "stat").read_bytes().rpartition(b") ")[2][:1] not in (b"Z", b"X")
        except OSError:
            continue
        if running and int(entry.name) != os.getpid() and (here in words or here in place):
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found
