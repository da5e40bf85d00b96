"""Running the protocol's commands: train, eval, profile, parity, checks, and the researcher.

Every command is one shell line in a session of its own with a hard limit; its stdout and stderr go to files
that outlive it. What measures gets a clean environment (an allow-list, a home and a temporary folder made for
this one run), so that nothing of the candidate's past or of the caller's shell can reach it. The researcher
gets the caller's environment, because agents need their own, less what would lead it to our state.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cartlab.processes import run_shell, stopping
from cartlab.root import VARIABLE

# What a measured command may know of the caller's environment.
ALLOWED = ("PATH", "LANG", "TZ", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
_TAIL_LINES, _TAIL_BYTES = 50, 4096
_POLL_S = 0.02
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ran:
    """How a command ended. returncode: None where its limit killed it; first_output_s: when its first line
    was there, None where none came; left: processes that outlived it and were killed.
    """

    returncode: int | None
    seconds: float
    first_output_s: float | None
    left: int
    stdout: Path
    stderr: Path

    @property
    def output(self) -> str:
        """All of stdout."""
        return self.stdout.read_text(encoding="utf-8", errors="replace")

    @property
    def complaint(self) -> str:
        """The end of stderr, or of stdout where stderr is empty, for people: 50 lines or 4 KB at most."""
        return tail(self.stderr) or tail(self.stdout)


def tail(path: Path) -> str:
    """A log's last 50 lines or 4 KB, without control characters."""
    if not path.exists():
        return ""
    with path.open("rb") as log:  # a training's log can be larger than the memory
        log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        data = log.read(_TAIL_BYTES).decode("utf-8", "replace")
    lines = [plain(line) for line in data.splitlines()]
    return "\n".join(lines[-_TAIL_LINES:]).strip("\n")


def plain(text: str, limit: int = 1000) -> str:
    """Text that came from a candidate as data: one line, printable, capped."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def measured_environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The clean environment: allow-listed names, a home and a temporary folder of this run's own."""
    env = {key: os.environ[key] for key in ALLOWED if key in os.environ}
    env.update({key: value for key, value in os.environ.items() if key.startswith("LC_")})
    for name in ("home", "tmp"):
        # Anew for each run: in what an earlier one left there a candidate could keep its answers.
        remove(folder / name)
        (folder / name).mkdir(parents=True)
    env.update(
        HOME=str(folder / "home"),
        TMPDIR=str(folder / "tmp"),
        PYTHONNOUSERSITE="1",
        PYTHONDONTWRITEBYTECODE="1",
        **(extra or {}),
    )
    return env


def remove(path: Path) -> None:
    """Remove a file or a folder with all in it, also where a command took the rights to a folder away."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        path.chmod(0o700)
        for top, names, _ in os.walk(path):
            for name in names:
                if not (inner := Path(top, name)).is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(path)


def researcher_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without git's variables and without the way to our state."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("GIT_", "CARTLAB_")) and key != VARIABLE
    }
    return {**kept, **extra}


def run(command: str, *, cwd: Path, env: Mapping[str, str], limit_s: float, folder: Path, name: str) -> Ran:
    """Run one shell line with a closed stdin; its output is `NAME.out` and `NAME.err` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    for path in (out, err):
        path.write_bytes(b"")
    with _first_line(out) as first:
        done = run_shell(command, cwd=cwd, env=env, timeout_s=limit_s, log=out, errors=err, strays=True)
    return Ran(done.returncode, done.seconds, first[0] if first else None, done.left, out, err)


def at_once(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Do it for each in a thread of its own; the first error is raised once all have ended. Ctrl-C ends the
    commands of all of them.
    """
    if len(items) <= 1:
        return [work(one) for one in items]
    with ThreadPoolExecutor(len(items)) as pool:
        futures = [pool.submit(work, one) for one in items]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            with stopping():
                wait(futures)
            raise


@contextmanager
def _first_line(path: Path) -> Iterator[list[float]]:
    """Notes when the file's first line was complete, to within a fiftieth of a second."""
    found: list[float] = []
    began, over = time.monotonic(), threading.Event()

    def watch() -> None:
        while True:
            ended = over.wait(_POLL_S)
            with path.open("rb") as file:
                head = file.read(65536)
            if b"\n" in head:
                found.append(time.monotonic() - began)
                return
            if ended:
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def fill(command: str, **places: object) -> str:
    """A command with its `{name}` placeholders filled in; other braces stay as they are."""
    for name, value in places.items():
        command = command.replace("{" + name + "}", str(value))
    return command
