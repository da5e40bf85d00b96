"""Equal footing: how threads are scheduled, and who works when it is the other side's turn."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cartlab.errors import Tampered
from cartlab.measure import footing
from cartlab.measure.slices import Side
from cartlab.model import BUSY

MS = 1_000_000
TOLD = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is Linux's")


def side(ending_ns: list[int], awake_ns: list[int], waited_ns: list[int] | None = None) -> Side:
    """Slices of 20 ms."""
    count = len(ending_ns)
    return Side(
        ns=[20 * MS] * count,
        waited_ns=waited_ns or [0] * count,
        ending_ns=ending_ns,
        awake_ns=awake_ns,
    )


def turns(
    ending_ns: int = 0, awake_ns: int = 0, slices: int = 50, explained_ns: int = 0, of: str = "cand"
) -> str | None:
    """check_turns of a side that ends so much later and is awake so much longer than the other."""
    one = side([ending_ns] * slices, [awake_ns] * slices, [explained_ns] * slices)
    two = side([0] * slices, [0] * slices)
    return footing.check_turns({"base": two, "cand": one} if of == "cand" else {"base": one, "cand": two})


# A share of a slice of 20 ms and what is tolerated beside it: 2 ms late, 0.25 ms awake, five times that.
LATE, AWAKE = 2 * MS, 250_000


@pytest.mark.parametrize("of", ["base", "cand"])
@pytest.mark.parametrize("slices", [8, 50])
def test_what_one_side_alone_does_in_the_others_turn_drops_the_block(of: str, slices: int) -> None:
    name = {"base": "baseline", "cand": "candidate"}[of]
    assert turns(slices=slices, of=of) is None
    assert turns(LATE, AWAKE, slices, of=of) is None
    ended = turns(LATE + 1, slices=slices, of=of)
    assert ended is not None and ended.startswith(f"{BUSY}: the {name}'s answers ended 2.00 ms later")
    awake = turns(0, AWAKE + 1, slices, of=of)
    assert awake is not None and awake.startswith(f"{BUSY}: the {name}'s worker was on a processor")
    assert turns(0, 5 * AWAKE, slices, of=of) is not None
    with pytest.raises(Tampered, match=f"the {name}'s worker must sleep while") as error:
        turns(0, 5 * AWAKE + 1, slices, of=of)
    assert error.value.details == {"side": of, "awake_ns": 5 * AWAKE + 1}


def test_a_late_end_that_the_kernel_explains_is_none() -> None:
    assert turns(LATE + 5 * MS, explained_ns=5 * MS) is None
    assert turns(LATE + 5 * MS, explained_ns=4 * MS) is not None


def test_what_both_sides_do_and_what_may_be_chance_favours_nobody() -> None:
    both = side([9 * MS] * 50, [9 * MS] * 50)
    assert footing.check_turns({"base": both, "cand": both}) is None
    mixed = side([9 * MS] * 30 + [0] * 20, [9 * MS] * 30 + [0] * 20)
    quiet = side([0] * 50, [0] * 50)
    assert footing.check_turns({"base": quiet, "cand": mixed}) is None


@contextmanager
def sleeping(*before: str) -> Iterator[int]:
    """A process that sleeps, once it is scheduled as `before` says."""
    with subprocess.Popen([*before, "sleep", "60"]) as process:
        try:
            while not _is_sleep(process.pid):
                time.sleep(0.005)
            yield process.pid
        finally:
            process.kill()


def _is_sleep(pid: int) -> bool:
    with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
        return file.read().startswith(b"sleep")


@TOLD
def test_threads_that_are_scheduled_alike_pass_and_others_are_tampering() -> None:
    with sleeping() as one, sleeping() as two, sleeping("nice", "-n", "3") as lower:
        ((policy, nice, processors),) = footing.of(one)
        assert (policy, nice) == (os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0))
        assert processors == os.sched_getaffinity(0)
        footing.check({"base": one, "cand": two})
        for pids in ({"base": one, "cand": lower}, {"base": lower, "cand": one}):
            with pytest.raises(Tampered, match="threads must be scheduled alike") as error:
                footing.check(pids)
            assert set(error.value.details) == {"base", "cand"}


def test_where_the_system_does_not_tell_nobody_is_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getscheduler", raising=False)
    assert footing.of(os.getpid()) == set()
    footing.check({"base": os.getpid(), "cand": 1})
