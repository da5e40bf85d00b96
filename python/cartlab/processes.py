"""Process hygiene: what we start lives in its own session, carries a mark, and is gone when we say so.

A build that leaves a process behind would steal time from the other side's slices. Every worker and every
command therefore starts in its own session with a random mark in its environment, which its children
inherit; where the system has /proc, a child that left the process group is still found by that mark. What a
leftover or a time-out means is the caller's to say.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MARK = "CARTLAB_WORKER"
TERM_GRACE_S = 1.0
# What a command may print before it is ended: nobody reads so much, and it would fill the disk.
MOST_OUTPUT = 256 << 20
FLOODED = 128 + signal.SIGXFSZ  # as a shell tells of a file that grew too large
_LOOK_S = 0.5
_POLL_S = 0.01


@dataclass(frozen=True)
class Usage:
    """Of all threads of a process: time on a processor, time runnable without one, involuntary switches."""

    run_ns: int
    waited_ns: int
    switches: int


def usage(pid: int) -> Usage:
    """The kernel's count so far; zeros where it does not tell."""
    run = waited = switches = 0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        on, off = _schedstat(task)
        run, waited = run + on, waited + off
        with contextlib.suppress(OSError, ValueError, IndexError):
            switches += int(
                (task / "status").read_bytes().partition(b"nonvoluntary_ctxt_switches:")[2].split()[0]
            )
    return Usage(run, waited, switches)


def run_ns(pid: int) -> int:
    """Time on a processor of all threads of a process so far."""
    return sum(_schedstat(task)[0] for task in Path(f"/proc/{pid}/task").glob("*"))


def waited_ns(pid: int | None = None) -> int:
    """How long the calling thread, or the main thread of a process, was runnable without a processor (0 where
    the kernel does not tell).
    """
    return _schedstat(Path("/proc/thread-self" if pid is None else f"/proc/{pid}/task/{pid}"))[1]


def _schedstat(task: Path) -> tuple[int, int]:
    try:
        on, off, *_ = (task / "schedstat").read_bytes().split()
        return int(on), int(off)
    except (OSError, ValueError):
        return 0, 0


def marked(mark: str) -> list[int]:
    """Process ids that carry the mark and still run (zombies do not); empty where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0") and _runs(entry):
                found.append(int(entry.name))
    return sorted(found)


def _runs(entry: Path) -> bool:
    state = (entry / "stat").read_bytes().rpartition(b") ")[2][:1]
    return state not in (b"Z", b"X")


def _signal_all(process: subprocess.Popen[bytes], mark: str, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for pid in marked(mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that leads a session of its own, which is ours by right until `end`."""
    with _starting:
        process = subprocess.Popen(words, start_new_session=True, **options)
        _running.add(process.pid)
    return process


def leftovers(process: subprocess.Popen[bytes], mark: str, grace_s: float = TERM_GRACE_S) -> int:
    """How many processes outlive an ended worker: counted after `grace_s`, then killed."""
    deadline = time.monotonic() + grace_s
    while (left := len(marked(mark))) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if left:
        _signal_all(process, mark, signal.SIGKILL)
    return left


def end(process: subprocess.Popen[bytes], mark: str) -> None:
    """TERM to the worker's group and to everything marked, KILL after a second; returns when all are gone."""
    if process.poll() is None:
        # A stopped process acts on TERM only once it goes on.
        _signal_all(process, mark, signal.SIGTERM)
        _signal_all(process, mark, signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    leftovers(process, mark, 0.0)
    _over.add(process.pid)
    _running.discard(process.pid)


def tail(path: Path, most: int) -> str:
    """The last bytes of a file, however long it is; nothing where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def _ended(process: subprocess.Popen[bytes], timeout_s: float, logs: Sequence[Path]) -> int | None:
    """Wait for the end; None where the time is over, FLOODED where a log grew too large."""
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, _LOOK_S))
        if any(log.stat().st_size > MOST_OUTPUT for log in logs):
            return FLOODED
    return process.poll()


def _untie(process: subprocess.Popen[bytes]) -> None:
    """Let the watcher of an ended or timed-out command go, and only it."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"\n")
        process.stdin.close()


# --- what slipped out of its mark -----------------------------------------------------------------------

_SET_CHILD_SUBREAPER = 36
_running: set[int] = set()  # the sessions of commands that run now, ours by right
_over: set[int] = set()  # of those that ran; what of them is just dying is nobody's stray
_adopting = 0
_lock = threading.Lock()
# Held while a command starts and while strays are looked for: a session that is just being made is no stray.
_starting = threading.Lock()
_stopped = False


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Meanwhile whoever loses its parent below us becomes our child (Linux), so that a process which took a
    session of its own and emptied its environment is still found.
    """
    _adopt(1)
    try:
        yield
    finally:
        _adopt(-1)


def _adopt(change: int) -> None:
    global _adopting
    if sys.platform != "linux":
        return
    with _lock:
        _adopting += change
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(_adopting > 0), 0, 0, 0)


def end_strays() -> int:
    """Kill and reap our children that lead or sit in a session which is neither ours nor a running command's;
    returns how many there were. What they leave behind becomes our child in turn.
    """
    mine, ended = os.getpid(), 0
    for _ in range(100):
        with _starting:
            found = _strays(mine)
            # Ended before another thread looks, which would end and count the same ones.
            for pid, dying in found:
                with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    ended += not dying
                    os.waitpid(pid, 0)
        if not found:
            break
    return ended


def _strays(mine: int) -> list[tuple[int, bool]]:
    """(pid, was it over anyway) of our children in sessions that are nobody's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parts = (entry / "stat").read_bytes().rpartition(b") ")[2].split()
            session = int(parts[3])
            if int(parts[1]) == mine and session != os.getsid(0) and session not in _running:
                found.append((int(entry.name), parts[0] == b"Z" or session in _over))
    return found


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """End all commands that run, and let none start meanwhile: for a Ctrl-C, which only one thread gets."""
    global _stopped
    with _starting:
        _stopped = True
        for pid in tuple(_running):  # other threads take theirs out meanwhile
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
    try:
        yield
    finally:
        _stopped = False


@dataclass(frozen=True)
class Outcome:
    """How a command ended. returncode: None where it was killed at its time limit; left: processes that
    outlived it (they were killed).
    """

    returncode: int | None
    seconds: float
    left: int


# Ties a command to us: its watcher holds the reading end of a pipe, and where that ends without a line (we
# were killed, so nobody will end the command) it kills the command's whole group.
TIED = """
exec 3<&0 </dev/null
( read -r line <&3 || kill -KILL 0 ) &
exec 3<&-
exec /bin/sh -c "$0"
"""


def run_shell(
    command: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    log: Path,
    errors: Path | None = None,
    strays: bool = False,
) -> Outcome:
    """Run one shell line to its end; its output is appended to `log`, what it says on stderr to `errors`
    where that is given. Nothing is left running after any exception, nor when this process is killed. strays:
    also end what dropped its mark; only for a caller that starts no sessions of its own meanwhile.
    """
    if strays:
        with adopting():
            done = run_shell(command, cwd=cwd, env=env, timeout_s=timeout_s, log=log, errors=errors)
            return replace(done, left=done.left + end_strays())
    mark = secrets.token_hex(8)
    start = time.monotonic()
    with log.open("ab") as output, contextlib.ExitStack() as stack:
        complaints = subprocess.STDOUT if errors is None else stack.enter_context(errors.open("ab"))
        with _starting:
            if _stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                ["/bin/sh", "-c", TIED, command],
                cwd=cwd,
                env={**env, MARK: mark},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=complaints,
                start_new_session=True,
            )
            _running.add(process.pid)
        returncode = None
        try:
            returncode = _ended(process, timeout_s, [log] if errors is None else [log, errors])
            if returncode is None or process.returncode is None:
                return Outcome(returncode, time.monotonic() - start, 0)
        finally:
            _untie(process)
            # A command may leave a helper that is just ending (a compiler cache's client); it gets a moment.
            left = leftovers(process, mark, 0.5) if process.returncode is not None else 0
            end(process, mark)
            if returncode == FLOODED:
                output.write(f"\nended by cartlab: more than {MOST_OUTPUT} bytes of output\n".encode())
                output.flush()
    return Outcome(returncode, time.monotonic() - start, left)
