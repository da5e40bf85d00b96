"""One worker: a slice server process for one side, driven under time limits.

The parent's own clock runs around every request, so that a worker whose clock was bent is seen. The worker
gets a small environment of its own: a private home and temporary folder, padding of a drawn length (the
size of the environment moves the stack), and an allocator told not to give memory back between slices (page
faults are the largest noise of a workload that keeps its outputs).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cartlab import processes
from cartlab.errors import (
    BadInput,
    BehaviourChanged,
    CartlabError,
    Tampered,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.model import Build, Workload, parsed_json

SERVER = Path(__file__).resolve().parent.parent / "slice_server.py"

# Seconds that one request may take. `run` is per request: a slice aims at tens of milliseconds.
LIMITS_S: Mapping[str, float] = {"open": 120.0, "run": 60.0, "digest": 60.0, "verify": 600.0, "close": 10.0}

# What each answer holds. A build shares its process with the server and may garble what that says.
_ANSWERS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "run": {"ns": lambda value: type(value) is int, "cpu_ns": lambda value: type(value) is int},
    "digest": {"digest": lambda value: isinstance(value, str)},
    "verify": {
        "digest": lambda value: isinstance(value, str),
        "per_step": lambda value: _are_labelled(value),
    },
}
_LONGEST = 16 << 20  # bytes of an answer
_LARGEST = 1 << 30  # bytes of a file that a worker writes, what it prints among them


def _are_labelled(rows: Any) -> bool:
    """Pairs of label and digest."""
    return isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and all(isinstance(item, str) for item in row) for row in rows
    )


BASELINE = "baseline"
_PASSED_ON = ("PATH", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT")
_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "67108864",
}
_TAIL = 4000
# The slice server lets itself write nowhere but there; the tests of what is found without that switch it off.
WRITABLE = "CARTLAB_WRITABLE"
CONFINED = True


def _limit_files(pid: int) -> None:
    """Let the kernel end what would fill the disk (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (_LARGEST, _LARGEST))


def environment(scratch: Path, mark: str, pad: int) -> dict[str, str]:
    """What a worker sees of the machine: the same for both sides but for the mark and the padding."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    own = {"HOME": str(scratch), "TMPDIR": str(scratch), processes.MARK: mark, "CARTLAB_PAD": "x" * pad}
    if CONFINED:
        own[WRITABLE] = str(scratch)
    return kept | _ALLOCATOR | own


class Worker:
    """A running slice server. Use as a context manager: leaving it ends the process and its children."""

    def __init__(
        self,
        side: str,
        build: Build,
        adapter: Path,
        pad: int = 0,
        limits: Mapping[str, float] = LIMITS_S,
        under: Sequence[str] = (),
    ):
        """side: "baseline" or "candidate", for messages; adapter: the controller's own file; pad: bytes;
        under: a command that runs the worker (a counting tool).
        """
        self.side = side
        self.build = build
        self.limits = limits
        self.elapsed_ns = 0
        self.ending_ns = 0
        self.waited_ns = 0
        self._mark = secrets.token_hex(8)
        self._buffer = b""
        self._scratch = Path(tempfile.mkdtemp(prefix="cartlab-"))
        with (self._scratch / "stderr").open("wb") as errors:
            self._process = processes.start(
                [*under, sys.executable, "-I", "-B", str(SERVER), str(adapter), build.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(self._scratch, self._mark, pad),
                cwd=self._scratch,
            )
        _limit_files(self._process.pid)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id of the slice server."""
        return self._process.pid

    @property
    def scratch(self) -> Path:
        """The worker's own folder: its home, its temporary folder and where it runs."""
        return self._scratch

    @property
    def spent_ns(self) -> int:
        """What the newest answer took from the request to its end."""
        return self.elapsed_ns + self.ending_ns

    def open(self, workload: Workload, seed: int, layout_seed: int) -> None:
        """Load the build; Tampered where the native module in use is not the one that was built."""
        self.start_opening(workload, seed, layout_seed)
        self.opened()

    def start_opening(self, workload: Workload, seed: int, layout_seed: int) -> None:
        """The first half of `open`, so that both sides can load at once where nothing is timed."""
        body = {"name": workload.name, "params": dict(workload.params)}
        self.send("open", workload=body, seed=seed, layout_seed=layout_seed)

    def opened(self) -> None:
        """The second half: wait for the answer, and look at what was loaded."""
        answer = self.receive("open")
        if answer.get("build") != self.build.artifact_sha256:
            raise Tampered(
                f"the {self.side}'s native module must have digest {self.build.artifact_sha256[:12]}; "
                f"the worker loaded {str(answer.get('build'))[:12]}",
                "something changed the cached build after it was made; remove it and build again",
            )

    def run(self, steps: int) -> tuple[int, int]:
        """Time `steps` steps: (wall ns, process CPU ns) by the worker. `elapsed_ns` then holds the parent's
        time from the request to the first byte of the answer, `ending_ns` that from there to its last,
        `waited_ns` how long the parent and the
        worker's main thread were ready to go on meanwhile and had no processor, by the kernel's count.
        """
        waited = processes.waited_ns() + processes.waited_ns(self.pid)
        answer = self.ask("run", steps=steps)
        self.waited_ns = processes.waited_ns() + processes.waited_ns(self.pid) - waited
        return int(answer["ns"]), int(answer["cpu_ns"])

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One request and its answer. Raises WorkerTimeout, WorkerCrashed, or BadInput for a refused
        workload.
        """
        self.send(op, **fields)
        return self.receive(op)

    def send(self, op: str, **fields: Any) -> None:
        """Write a request; the parent's clock starts."""
        assert self._process.stdin is not None
        self._heard_nothing(op)
        line = json.dumps({"op": op, **fields}).encode() + b"\n"
        self._sent = time.perf_counter_ns()
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (BrokenPipeError, OSError):
            raise self._crashed(op) from None

    def receive(self, op: str) -> dict[str, Any]:
        """Read the answer to `op`; the parent's clock stops at its first byte."""
        line = self._line(op)
        try:
            answer = parsed_json(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise WorkerCrashed(f"the {self.side}'s worker must answer {op} in JSON; found {line[:80]!r}")
        if "error" in answer:
            raise self._failure(answer)(
                f"the {self.side}'s worker failed in {op}: {answer['error']}",
                details={
                    "side": self.side,
                    "op": op,
                    "trace": answer.get("trace", ""),
                    "stderr": self.stderr_tail(),
                },
            )
        wrong = [key for key, fits in _ANSWERS.get(op, {}).items() if not fits(answer.get(key))]
        if wrong:
            raise WorkerCrashed(
                f"the {self.side}'s worker must answer {op} with {wrong[0]}; found {line[:80]!r}",
                "look for code of the build that writes into the worker's answers",
                details={"side": self.side, "op": op, "stderr": self.stderr_tail()},
            )
        return answer

    def _failure(self, answer: dict[str, Any]) -> type[CartlabError]:
        # The baseline opens first where work is compared: what it takes and the candidate refuses is a
        # change.
        if not answer.get("bad_input"):
            return WorkerCrashed
        return BadInput if self.side == BASELINE else BehaviourChanged

    def close(self) -> int:
        """Ask the worker to end; returns how many processes it left behind (they are killed)."""
        self.start_closing()
        return self.closed()

    def start_closing(self) -> None:
        """The first half of `close`: both sides can end at once where nothing is timed."""
        with contextlib.suppress(WorkerCrashed):
            self.send("close")

    def closed(self) -> int:
        """The second half: wait for the end, and count."""
        try:
            self._process.wait(self.limits["close"])
        except subprocess.TimeoutExpired:
            raise self._timed_out("close") from None
        return processes.leftovers(self._process, self._mark)

    def kill(self) -> None:
        """End the process and everything it started, whatever state it is in, and remove its folder."""
        processes.end(self._process, self._mark)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def stderr_tail(self) -> str:
        """The end of what the worker printed."""
        return processes.tail(self._scratch / "stderr", _TAIL)

    def _line(self, op: str) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        deadline = time.monotonic() + self.limits[op]
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise self._timed_out(op)
            chunk = os.read(fd, 65536)
            if not self._buffer:
                self.elapsed_ns = time.perf_counter_ns() - self._sent
            if not chunk:
                raise self._crashed(op)
            self._buffer += chunk
            self.ending_ns = time.perf_counter_ns() - self._sent - self.elapsed_ns
            if len(self._buffer) > _LONGEST:
                raise WorkerCrashed(
                    f"the {self.side}'s worker must answer {op} in one line; found {_LONGEST >> 20} MiB",
                    details={"side": self.side, "op": op},
                )
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _heard_nothing(self, op: str) -> None:
        """Tampered where an answer lies there before anything was asked: no clock would run around it."""
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        early = self._buffer
        if not early and select.select([fd], [], [], 0)[0]:
            early = os.read(fd, 65536)
        if early:
            raise Tampered(
                f"the {self.side}'s worker must answer what it is asked; found {early[:80]!r} before {op}",
                "look for code of the build that writes into the worker's answers",
                details={"side": self.side, "op": op},
            )

    def _crashed(self, op: str) -> WorkerCrashed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        how = f"with signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return WorkerCrashed(
            f"the {self.side}'s worker ended {how} during {op}",
            "run `explain` on the attempt for what it printed",
            details={"side": self.side, "op": op, "returncode": code, "stderr": self.stderr_tail()},
        )

    def _timed_out(self, op: str) -> WorkerTimeout:
        details = {"side": self.side, "op": op, "stderr": self.stderr_tail()}
        self.kill()
        return WorkerTimeout(
            f"the {self.side}'s worker must answer {op} within {self.limits[op]:g} s; it was killed",
            details=details,
        )
