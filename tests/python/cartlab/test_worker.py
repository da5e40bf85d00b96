"""One worker, driven by the letter: slice servers of a few lines that answer well, wrongly, late or not
at all.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ledger_runs import WORKLOAD, ref

from cartlab import processes
from cartlab.errors import BadInput, BehaviourChanged, CartlabError, Tampered, WorkerCrashed, WorkerTimeout
from cartlab.measure import worker as workers
from cartlab.measure.worker import Worker
from cartlab.model import Build

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is Linux's")
LIMITS = dict.fromkeys(("open", "run", "digest", "verify", "close"), 10.0)
BUILT = "a" * 64

# What every server here begins with: `ask()` waits for a request, `say(...)` writes at once, and `note(word)`
# tells the test.
SERVER = """
import json, os, sys, time
def ask():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def say(text, end="\\n"):
    sys.stdout.write((text if isinstance(text, str) else json.dumps(text)) + end)
    sys.stdout.flush()
def note(word):
    os.close(os.open(word, os.O_CREAT | os.O_WRONLY))
"""

Start = Callable[..., Worker]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """start(text, side=..., limits=...): a worker whose server is that Python text."""
    with ExitStack() as stack:

        def started(text: str, side: str = "candidate", **limits: float) -> Worker:
            (tmp_path / "server.py").write_text(SERVER + text)
            monkeypatch.setattr(workers, "SERVER", tmp_path / "server.py")
            build = Build(ref("cand"), "b", str(tmp_path), "native", BUILT, 0.0, False)
            return stack.enter_context(
                Worker(side, build, tmp_path / "adapter.py", limits={**LIMITS, **limits})
            )

        yield started


def noted(worker: Worker, word: str) -> None:
    """Wait for a server's note(word)."""
    end = time.monotonic() + 30
    while not (worker.scratch / word).exists():
        assert time.monotonic() < end, f"no {word}"
        time.sleep(0.005)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_conversation_from_its_opening_to_its_end(start: Start) -> None:
    worker = start(
        "asked = [ask()]\n"
        f"say({{'ok': True, 'build': {BUILT!r}}})\n"
        "asked.append(ask())\nsay({'ns': 5, 'cpu_ns': 6})\n"
        "asked.append(ask())\nsay({'digest': json.dumps(asked)})\n"
        "asked.append(ask())\nnote(asked[-1]['op'])\n"
    )
    worker.open(WORKLOAD, 7, 8)
    assert worker.run(3) == (5, 6)
    asked = worker.ask("digest", obs_steps=[1])["digest"]
    body = {"name": WORKLOAD.name, "params": dict(WORKLOAD.params)}
    opening = {"op": "open", "workload": body, "seed": 7, "layout_seed": 8}
    wanted: list[dict[str, Any]] = [opening, {"op": "run", "steps": 3}, {"op": "digest", "obs_steps": [1]}]
    assert asked == workers.json.dumps(wanted)
    assert worker.close() == 0
    noted(worker, "close")


def test_a_build_that_is_not_the_one_that_was_made_is_tampering(start: Start) -> None:
    worker = start("ask()\nsay({'ok': True, 'build': 'b' * 64})\nask()\n")
    with pytest.raises(Tampered, match="must have digest aaaaaaaaaaaa; the worker loaded bbbbbbbbbbbb"):
        worker.open(WORKLOAD, 1, 1)


# --- answers of another form

FORMS: list[tuple[str, Any, str | None]] = [
    ("run", {"ns": 1, "cpu_ns": 2}, None),
    ("run", [1], "in JSON"),
    ("run", 5, "in JSON"),
    ("run", "not JSON", "in JSON"),
    ("run", {"cpu_ns": 2}, "with ns"),
    ("run", {"ns": True, "cpu_ns": 2}, "with ns"),
    ("run", {"ns": 1, "cpu_ns": 2.0}, "with cpu_ns"),
    ("digest", {"digest": "d"}, None),
    ("digest", {"digest": None}, "with digest"),
    ("verify", {"digest": "d", "per_step": []}, None),
    ("verify", {"digest": "d", "per_step": [["label", "d"], ["other", "e"]]}, None),
    ("verify", {"digest": 1, "per_step": []}, "with digest"),
    *(
        ("verify", {"digest": "d", "per_step": rows}, "with per_step")
        for rows in (None, "", {}, ["ab"], [5], [["label"]], [["a", "b", "c"]], [["a", 1]], [[1, "a"]])
    ),
]


def test_only_an_answer_of_its_form_is_taken(start: Start) -> None:
    answers = [answer for _, answer, _ in FORMS]
    worker = start(f"for answer in {answers!r}:\n    ask()\n    say(answer)\nask()\n")
    for op, answer, wrong in FORMS:
        if wrong is None:
            assert worker.ask(op) == answer
        else:
            with pytest.raises(WorkerCrashed, match=f"the candidate's worker must answer {op} {wrong}"):
                worker.ask(op)


@pytest.mark.parametrize(
    ("side", "bad_input", "error"),
    [
        ("baseline", True, BadInput),
        ("candidate", True, BehaviourChanged),
        ("baseline", False, WorkerCrashed),
        ("candidate", None, WorkerCrashed),
    ],
)
def test_a_refusal_is_its_sides(
    start: Start, side: str, bad_input: bool | None, error: type[CartlabError]
) -> None:
    answer = {"error": "Bad: no", "trace": "at", **({} if bad_input is None else {"bad_input": bad_input})}
    worker = start(f"print('seen', file=sys.stderr, flush=True)\nask()\nsay({answer!r})\nask()\n", side)
    with pytest.raises(CartlabError, match=f"the {side}'s worker failed in run: Bad: no") as caught:
        worker.run(1)
    assert type(caught.value) is error
    wanted = {"side": side, "op": "run", "trace": "at", "stderr": "seen\n"}
    assert caught.value.details == wanted


def test_an_answer_may_be_so_long_and_no_longer(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_LONGEST", 1000)
    # With its end a line of 1,000 bytes, and one of 1,001.
    for spare in (990, 991):
        worker = start(f"ask()\nsay({{'x': 'x' * {spare}}})\nask()\n")
        if spare == 990:
            assert len(worker.ask("open")["x"]) == spare
        else:
            with pytest.raises(WorkerCrashed, match="must answer open in one line"):
                worker.ask("open")


# --- answers at another time


def test_the_parents_clock_stops_at_the_first_byte_and_goes_on_to_the_last(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start("ask()\nsay({'ns': 1, 'cpu_ns': 2, 'long': 'x' * 300_000})\nask()\n")
    ticks = iter(range(100, 10**6))
    monkeypatch.setattr(workers.time, "perf_counter_ns", lambda: next(ticks))
    worker.run(1)
    # One look when the request goes out, one at the first byte, one after each of the parts.
    assert worker.elapsed_ns == 1
    assert worker.ending_ns >= 5
    assert worker.spent_ns == worker.elapsed_ns + worker.ending_ns


@pytest.mark.parametrize("when", ["with the answer before", "after it"])
def test_an_answer_before_the_question_is_tampering(start: Start, when: str) -> None:
    early = "say('{}\\nEARLY')\n" if when == "with the answer before" else "say('{}')\nask()\nsay('EARLY')\n"
    worker = start(f"ask()\n{early}note('said')\nask()\nask()\n")
    worker.ask("open")
    if when == "after it":
        worker.send("open")
    noted(worker, "said")
    with pytest.raises(Tampered, match=r"must answer what it is asked; found b'EARLY.*' before run") as error:
        worker.run(1)
    assert error.value.details == {"side": "candidate", "op": "run"}


SILENT = "ask()\ntime.sleep(25)\n"
TRICKLES = "ask()\nwhile True:\n    say('x', end='')\n    time.sleep(0.01)\n"


@pytest.mark.parametrize("text", [SILENT, TRICKLES], ids=["silent", "trickles"])
def test_what_does_not_answer_within_its_limit_is_killed(start: Start, text: str) -> None:
    worker = start(text, run=0.4)
    with pytest.raises(WorkerTimeout, match=r"must answer run within 0\.4 s; it was killed") as error:
        worker.run(1)
    assert error.value.details == {"side": "candidate", "op": "run", "stderr": ""}
    assert is_gone(worker.pid) and not worker.scratch.exists()


def test_at_its_limit_an_answer_is_late(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start("ask()\nsay({})\nnote('said')\nask()\n", open=0.0)
    worker.send("open")
    noted(worker, "said")
    with monkeypatch.context() as still:
        still.setattr(workers.time, "monotonic", lambda: 5.0)
        with pytest.raises(WorkerTimeout):
            worker.receive("open")


def test_what_does_not_end_within_its_limit_is_killed(start: Start) -> None:
    worker = start("ask()\ntime.sleep(25)\n", close=0.3)
    with pytest.raises(WorkerTimeout, match=r"must answer close within 0\.3 s"):
        worker.close()
    assert is_gone(worker.pid)


# --- ends


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("os._exit(0)", "with exit code 0"),
        ("os._exit(3)", "with exit code 3"),
        ("os.kill(os.getpid(), 9)", "with signal 9"),
        ("os.close(1); time.sleep(0.2); os._exit(4)", "with exit code 4"),
        ("os.close(1); time.sleep(25)", "with exit code None"),
    ],
)
def test_a_worker_that_ends_says_how(start: Start, end: str, says: str) -> None:
    worker = start(f"print('seen', file=sys.stderr, flush=True)\nask()\n{end}\n")
    with pytest.raises(WorkerCrashed, match=f"the candidate's worker ended {says} during run") as error:
        worker.run(1)
    assert error.value.details["stderr"] == "seen\n"
    if says.endswith("None"):
        return
    with pytest.raises(WorkerCrashed, match=f"ended {says} during digest"):
        worker.send("digest")
    # Ending what has ended is no error.
    assert worker.close() == 0


def test_leaving_ends_the_process_and_removes_what_was_its_own(start: Start, tmp_path: Path) -> None:
    start("")
    build = Build(ref("cand"), "b", str(tmp_path), "native", BUILT, 0.0, False)
    (tmp_path / "server.py").write_text(SERVER + "note('up')\ntime.sleep(60)\n")
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0  # noqa: PTH208
    with pytest.raises(KeyError), Worker("baseline", build, tmp_path / "adapter.py") as worker:
        noted(worker, "up")
        raise KeyError
    assert is_gone(worker.pid) and not worker.scratch.exists()
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


# --- surroundings


@LINUX
def test_a_file_that_a_worker_writes_has_a_limit(start: Start) -> None:
    worker = start("ask()\n")
    limit = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    assert limit == (workers._LARGEST, workers._LARGEST)


def test_a_worker_sees_little_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LANG", "C")
    found = workers.environment(tmp_path, "mark", 3)
    own = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), processes.MARK: "mark", "CARTLAB_PAD": "xxx"}
    assert found.items() >= {**own, "LANG": "C", workers.WRITABLE: str(tmp_path)}.items()
    assert "SECRET" not in found
    monkeypatch.setattr(workers, "CONFINED", False)
    assert workers.WRITABLE not in workers.environment(tmp_path, "mark", 3)
