"""The machine's lease: one holder, a queue with a limit, and nothing left behind by the dead."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cartlab import lease
from cartlab.errors import LeaseTimeout

HOLDER = """
import sys
from cartlab import lease
with lease.hold():
    print("held", flush=True)
    sys.stdin.read()
"""


def other_holder() -> subprocess.Popen[str]:
    """Another process that holds the lease until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_free_lease_is_held_at_once_and_given_back() -> None:
    for _ in range(2):
        with lease.hold(0.0) as waited:
            assert waited < 60
            assert lease.path().exists()


def test_a_second_controller_waits_for_the_first_and_is_told_who_measures() -> None:
    process = other_holder()
    told: list[str] = []
    assert process.stdin is not None
    threading.Timer(0.5, process.stdin.close).start()
    with lease.hold(60, told.append) as waited:
        assert waited > 0
    process.wait(10)
    assert len(told) == 1
    assert f"process {process.pid} since" in told[0]


def test_waiting_ends_at_its_limit_with_its_own_exit_code() -> None:
    process = other_holder()
    with pytest.raises(LeaseTimeout, match=f"process {process.pid}") as error, lease.hold(0.3):
        raise AssertionError("two controllers hold the lease")
    assert error.value.exit_code == 24
    process.communicate("")


def test_a_controller_that_is_killed_gives_the_lease_up() -> None:
    process = other_holder()
    process.kill()
    process.wait(10)
    with lease.hold(10):
        pass


def test_an_error_inside_gives_the_lease_up() -> None:
    with pytest.raises(ZeroDivisionError), lease.hold(0.0):
        raise ZeroDivisionError
    with lease.hold(0.0):
        pass


def test_the_lease_is_in_the_systems_temporary_folder_whatever_the_users_one_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(lease.VARIABLE)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert tmp_path not in lease.path().parents


WAITER = """
import sys
from cartlab import lease
print("waits", flush=True)
with lease.hold(60):
    print("held", flush=True)
    sys.stdin.read()
"""


def waiter(queued: int) -> subprocess.Popen[str]:
    """Another process that waits for the lease; returns once its place is the `queued`-th of the queue."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    deadline = time.monotonic() + 30
    while len(places()) < queued:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def places() -> list[Path]:
    return sorted(lease.path().parent.glob(f"{lease.QUEUE}*"))


def test_the_queue_is_first_come_first_served_and_forgets_the_dead() -> None:
    holder = other_holder()
    first, dead, second = waiter(1), waiter(2), waiter(3)
    dead.kill()
    dead.wait(10)
    with pytest.raises(LeaseTimeout), lease.hold(0.3):
        raise AssertionError("overtook the queue")
    for leaves, comes in ((holder, first), (first, second)):
        assert leaves.stdin is not None and comes.stdout is not None
        leaves.communicate("")
        assert comes.stdout.readline() == "held\n"
    second.communicate("")
    with lease.hold(0.0):
        assert places() == []


def test_who_comes_while_others_wait_does_not_overtake_them_when_the_lease_is_free() -> None:
    holder = other_holder()
    first = waiter(1)
    first.send_signal(signal.SIGSTOP)
    holder.communicate("")
    with pytest.raises(LeaseTimeout), lease.hold(0.5):
        raise AssertionError("overtook the queue")
    first.send_signal(signal.SIGCONT)
    first.communicate("")


def test_waiting_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "TOLD_EVERY_S", 0.25)
    process = other_holder()
    told: list[str] = []
    with pytest.raises(LeaseTimeout), lease.hold(1.0, told.append):
        raise AssertionError("two controllers hold the lease")
    process.communicate("")
    assert len(told) >= 2 and "of at most 1 s" in told[-1]
