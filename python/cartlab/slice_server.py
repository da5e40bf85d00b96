"""The slice server: drives one build of one workload, one timed slice at a time.

Source: SPECS.md sections 4 and 6. It runs by path, `python -I slice_server.py ADAPTER BUILD_DIR`,
imports the standard library alone (and runs landlock.py beside it, a script of the same kind), speaks JSON
lines over stdin and stdout, and knows neither which side it drives nor what is decided from its
numbers. Which slice comes when, time limits, and comparing are the controller's.

    {"op":"open","workload":{},"seed":S,"layout_seed":L}  ->  {"ok":true,"build":sha256 of the native module}
    {"op":"run","steps":N}                  ->  {"ns":T,"cpu_ns":C}, once every other thread sleeps
    {"op":"digest","obs_steps":[indices]}   ->  {"digest":hex} of the newest slice's outputs
    {"op":"verify","steps":N}               ->  {"digest":hex,"per_step":[[label,hex], ...]}
    {"op":"close"}                          ->  the process ends
    anything that fails                     ->  {"error":message,"trace":text,"bad_input":true|false}

To add a workload, write an adapter: a Python file with

    open(workload, seed, layout_seed) -> session
                              import the package from BUILD_DIR (it is first on sys.path)
    session.native            path of the native module in use; `open` fails unless it lies in BUILD_DIR
    session.prepare(steps)    outside the clock: draw the actions of the next slice
    session.forget()          outside the clock, short: let go of the outputs of the slice before
    session.run()             inside the clock: take the prepared steps and keep what each returned
    session.results()         one value a step: rewards, terminations, truncations, infos (None, numbers,
                              strings, bytes, lists, dictionaries, numpy arrays)
    session.observation(i)    the observation that step i of the newest slice returned
    session.verify(steps)     yields (label, value): everything that two equal builds must agree on
    session.close()

and name it as the workload's `command` in autoresearch.toml. Half of a confirm run's blocks have a seed in
workload["params"]["held_out"]: draw other start states and inputs from it; nobody could have tuned for those.
An adapter may set BAD_INPUT, the exception
classes that mean "this workload cannot be run by anyone" (a file that is no ROM) and so say nothing about
the build.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib.util
import json
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

Request = dict[str, Any]
Answer = dict[str, Any]

# Counts up whenever what is hashed, or its order, changes: digests of two versions never compare as equal.
DIGEST_VERSION = 1

# Bound before any code of the build is imported, so that a build which patches `time` patches its own copy
# alone.
_wall_ns = time.perf_counter_ns
_cpu_ns = time.process_time_ns
_sleep = time.sleep
_sha256 = hashlib.sha256

WRITABLE = "CARTLAB_WRITABLE"
# What ordinary programs write to; /dev/shm is where data loaders share arrays.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm")

PARK_LIMIT_NS = 2_000_000_000
PARK_POLL_S = 0.0001


def feed(digest: Any, value: Any) -> None:
    """Hash `value` by type, shape and content, so that 1, 1.0, True and "1" differ."""
    if value is None:
        digest.update(b"N;")
    elif isinstance(value, bool):
        digest.update(b"B1;" if value else b"B0;")
    elif isinstance(value, int):
        digest.update(b"I%d;" % value)
    elif isinstance(value, float):
        digest.update(b"F" + struct.pack("<d", value))
    elif isinstance(value, str):
        text = value.encode()
        digest.update(b"S%d:" % len(text) + text)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        digest.update(b"Y%d:" % len(value))
        digest.update(value)
    elif isinstance(value, dict):
        digest.update(b"D%d:" % len(value))
        for key in sorted(value, key=str):
            feed(digest, key)
            feed(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(b"L%d:" % len(value))
        for item in value:
            feed(digest, item)
    elif hasattr(value, "dtype") and hasattr(value, "tobytes"):
        # What makes its numbers when somebody looks would do the work outside the clock, or not at all.
        numpy = sys.modules.get("numpy")
        if numpy is None or not (type(value) is numpy.ndarray or isinstance(value, numpy.generic)):
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise TypeError(f"an array must be numpy's own, made by the time it is returned; found {kind}")
        digest.update(f"A{value.dtype.str}{value.shape}:".encode())
        if value.dtype.kind == "O":
            feed(digest, value.tolist())
        else:
            digest.update(value.tobytes())
    else:
        raise TypeError(
            f"a digest takes numbers, text, bytes, lists, dictionaries, numpy arrays; found {type(value)}"
        )


def digest_of(value: object) -> str:
    """The hexadecimal digest of one value."""
    digest = _sha256(b"cartlab-digest-%d;" % DIGEST_VERSION)
    feed(digest, value)
    return digest.hexdigest()


def native_digest(path: str, build_dir: str) -> str:
    """The sha256 of the native module; an error unless it really lies in the build directory."""
    real, home = os.path.realpath(path), os.path.realpath(build_dir)
    if os.path.commonpath([real, home]) != home:
        raise RuntimeError(
            f"the native module must lie in the build directory; found {real}: was the package built?"
        )
    return _sha256(Path(real).read_bytes()).hexdigest()


def busy_threads() -> int:
    """How many other threads of this process want a processor (0 where the system does not tell)."""
    own, busy = str(os.getpid()), 0
    try:
        tasks = list(Path("/proc/self/task").iterdir())
    except OSError:
        return 0
    for task in tasks:
        if task.name == own:
            continue
        try:
            state = (task / "stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:
            continue  # the thread has ended
        busy += state == b"R"
    return busy


def wait_until_parked() -> None:
    """Return once every other thread sleeps: the idle side must leave the processors to the other one."""
    start = _wall_ns()
    while busy_threads():
        if _wall_ns() - start > PARK_LIMIT_NS:
            raise RuntimeError(
                "threads of this build still run 2 s after the slice; they must sleep between steps"
            )
        _sleep(PARK_POLL_S)


class Server:
    """One build and one open session; each public method answers one op."""

    def __init__(self, adapter_path: str, build_dir: str) -> None:
        self.adapter_path = adapter_path
        self.build_dir = build_dir
        self.bad_input: tuple[type[BaseException], ...] = ()
        self.session: Any = None
        self.steps = 0
        self.prepared = 0
        self.begin: Callable[[], None] = lambda: None

    def open(self, request: Request) -> Answer:
        sys.path.insert(0, os.path.realpath(self.build_dir))
        spec = importlib.util.spec_from_file_location("cartlab_adapter", self.adapter_path)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"the adapter must be a Python file; found {self.adapter_path}")
        adapter = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(adapter)
        self.bad_input = tuple(getattr(adapter, "BAD_INPUT", ()))
        self.session = adapter.open(request["workload"], request["seed"], request.get("layout_seed"))
        digest = native_digest(self.session.native, self.build_dir)
        wait_until_parked()
        return {"ok": True, "build": digest}

    def run(self, request: Request) -> Answer:
        steps = request["steps"]
        if self.prepared != steps:
            self.session.prepare(steps)
        self.steps, self.prepared = steps, 0
        self.session.forget()
        run = self.session.run
        cpu = _cpu_ns()
        start = _wall_ns()
        run()
        elapsed = _wall_ns() - start
        cpu = _cpu_ns() - cpu
        # The answer's first byte goes out now, the rest once the pool is parked: parking can take
        # milliseconds on a busy machine, and the parent's clock must not count them.
        self.begin()
        wait_until_parked()
        return {"ns": elapsed, "cpu_ns": cpu}

    def digest(self, request: Request) -> Answer:
        results = list(self.session.results())
        if len(results) != self.steps:
            raise RuntimeError(f"the slice took {len(results)} steps where {self.steps} were asked for")
        observations = [self.session.observation(step) for step in request["obs_steps"]]
        answer = {"digest": digest_of([results, observations])}
        del results, observations
        gc.collect()
        # The next slice is most often as long as this one: drawing its actions now keeps `run` short for the
        # parent's clock.
        if not self.prepared:
            self.session.prepare(self.steps)
            self.prepared = self.steps
        return answer

    def verify(self, request: Request) -> Answer:
        per_step = [[label, digest_of(value)] for label, value in self.session.verify(request["steps"])]
        return {"digest": digest_of(per_step), "per_step": per_step}

    def close(self, _request: Request) -> None:
        if self.session is not None:
            self.session.close()


OPS = ("open", "run", "digest", "verify", "close")


def serve(server: Server, requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until `close` or the end of the input, one line of JSON each."""
    for line in requests:
        request = json.loads(line)
        begun: list[bool] = []

        def begin(begun: list[bool] = begun) -> None:
            begun.append(True)
            replies.write("{")
            replies.flush()

        server.begin = begin
        try:
            if request.get("op") not in OPS:
                raise ValueError(f"op must be one of {', '.join(OPS)}; found {request.get('op')!r}")
            answer = getattr(server, request["op"])(request)
        except BaseException as error:
            answer = {
                "error": f"{type(error).__name__}: {error}",
                "trace": traceback.format_exc()[-4000:],
                "bad_input": isinstance(error, server.bad_input),
            }
        if request.get("op") == "close":
            return
        text = json.dumps(answer)
        replies.write((text[1:] if begun else text) + "\n")
        replies.flush()


def die_with_parent() -> None:
    """Have the kernel kill this process once the controller is gone, however it went: a worker that hangs in
    native code would never read that its requests have ended. Linux only; elsewhere the end of input must do.
    """
    if not sys.platform.startswith("linux"):
        return
    parent, set_parent_death_signal = os.getppid(), 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def confine() -> None:
    """Write nowhere but in the worker's own folder from here on, and send no signal out (Linux's Landlock): a
    build could else change the ledger, the other side's build or what it remembers. Where the kernel has none
    of that, what can be found afterwards has to do.
    """
    place = os.environ.get(WRITABLE)
    if not place:
        return
    spec = importlib.util.spec_from_file_location("landlock", Path(__file__).with_name("landlock.py"))
    assert spec is not None and spec.loader is not None
    landlock = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(landlock)
    if landlock.version() > 0:
        landlock.confine([place, *(name for name in DEVICES if Path(name).exists())], [], [])


def main(argv: list[str]) -> int:
    """Keep the protocol's own descriptors, so that a build that prints cannot break it, and serve."""
    if len(argv) != 3:
        print("usage: python -I slice_server.py ADAPTER BUILD_DIR", file=sys.stderr)
        return 2
    die_with_parent()
    confine()
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    serve(Server(argv[1], argv[2]), requests, replies)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
