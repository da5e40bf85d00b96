"""What this installation has, what it lacks, and how fast this machine is: what `rollcart doctor` tells.

Each finding is one of: ok; note, worth knowing; missing, something optional that is not here, with what to
do; wrong, something that has to be repaired.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollcart import _native, discovery, games, importing
from rollcart.bench import sps
from rollcart.errors import RomError
from rollcart.words import counted

OK, NOTE, MISSING, WRONG = "ok", "note", "missing", "wrong"
SPEED_LANES = 16
_SHOWN_GAMES = 6


@dataclass(frozen=True)
class Finding:
    """One line: about what, of which level, what was found, what to do about it."""

    name: str
    level: str
    found: str
    advice: str = ""


def examine(
    *, seconds: float = 0.5, progress: Callable[[str], object] = str
) -> tuple[list[Finding], dict[str, Any]]:
    """All findings, and the measured speeds by name. seconds: how long each is measured, 0 for not at all."""
    found = [*_module(), *_machine(), *_games(), *_extras(), *_display()]
    speeds: dict[str, Any] = {}
    if seconds:
        try:
            speed, speeds = _speed(seconds, progress)
            found += speed
        except (TypeError, ValueError, AttributeError) as error:  # a module that is not of these sources
            found.append(Finding("environments", WRONG, f"none can be made: {error}", f"run: {sps.REBUILD}"))
    return found, speeds


def _module() -> Iterator[Finding]:
    native = Path(str(_native.__file__))
    yield Finding("rollcart", OK, f"{_native.__version__}, native module {native}")
    sources = Path(__file__).resolve().parents[2]
    if sps.stale_module(native, sources):
        yield Finding("native module", WRONG, f"older than the sources in {sources}", f"run: {sps.REBUILD}")
    yield Finding("Python", OK, f"{platform.python_version()} ({sys.executable})")


def _machine() -> Iterator[Finding]:
    from rollcart.bench import grid

    load = grid.busy()
    every = os.cpu_count() or 1
    cpus = f"{load['cpus']} of {every} CPUs usable" if load["cpus"] < every else f"{counted(every, 'CPU')}"
    yield Finding("machine", OK, f"{platform.machine()}, {_processor()}, {cpus}")
    for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name):
            yield Finding("threads", NOTE, f"{name}={os.environ[name]} limits the threads of environments")
            break
    if load["busy"]:
        yield Finding(
            "load",
            NOTE,
            f"{load['load']:.1f} on {counted(int(load['cpus']), 'CPU')}",
            "speeds below are too low while others run",
        )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown processor"
    names = re.findall(r"^model name\s*:\s*(.+)$", text, re.M)
    return names[0] if names else platform.processor() or "unknown processor"


def _games() -> Iterator[Finding]:
    for text in os.environ.get(discovery.DATA_PATH, "").split(os.pathsep):
        if text and not Path(text).expanduser().is_dir():
            yield Finding(discovery.DATA_PATH, WRONG, f"{text} is no folder", "unset it, or make the folder")
    playable, known = [], 0
    for name in sorted({target.game for target in importing.known_games().values()}):
        known += 1
        try:
            games.find(name)
        except (OSError, ValueError):
            continue
        playable.append(name)
    shown = ", ".join(playable[:_SHOWN_GAMES]) + (", ..." if len(playable) > _SHOWN_GAMES else "")
    text = f"{len(playable)} of {known} games with data files have their ROM: {shown or 'none'}"
    yield Finding("games", OK, text, "" if len(playable) > 1 else "your own: rollcart import FOLDER")
    try:
        games.find(games.BUNDLED)
    except (OSError, RomError) as error:
        yield Finding("bundled game", WRONG, str(error), "install rollcart again")


def _extras() -> Iterator[Finding]:
    wanted: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("rollcart") or []:
        match = re.match(r"([\w.-]+).*extra\s*==\s*['\"]([\w-]+)['\"]", line)
        older = re.search(r"python(?:_full)?_version\s*<\s*['\"]3\.(\d+)['\"]", line)
        if match and not (older and sys.version_info >= (3, int(older[1]))):
            wanted.setdefault(match[2], []).append(match[1])
    for extra, packages in wanted.items():
        absent = [name for name in packages if not _installed(name)]
        if absent:
            text = f"not installed: {', '.join(absent)}"
            yield Finding(f"extra {extra}", MISSING, text, f"pip install 'rollcart[{extra}]'")
        else:
            yield Finding(f"extra {extra}", OK, ", ".join(packages))


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _display() -> Iterator[Finding]:
    if sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        yield Finding("display", OK, "there is one for rollcart play")
    elif os.environ.get("SDL_VIDEODRIVER"):
        yield Finding("display", NOTE, f"SDL_VIDEODRIVER={os.environ['SDL_VIDEODRIVER']}")
    else:
        yield Finding(
            "display",
            MISSING,
            "neither DISPLAY nor WAYLAND_DISPLAY is set",
            "rollcart record makes pictures without",
        )


def _speed(seconds: float, progress: Callable[[str], object]) -> tuple[list[Finding], dict[str, Any]]:
    from rollcart.bench import grid
    from rollcart.vector_env import NesVectorEnv

    began = time.perf_counter()
    env = NesVectorEnv(num_envs=SPEED_LANES)
    env.reset(seed=0)
    first = time.perf_counter() - began
    env.close()
    work = grid.Workload(lanes=(1, SPEED_LANES), threads=(0,), seconds=seconds, repeats=1)
    found = grid.run(work, progress)
    speeds: dict[str, Any] = {"construct_and_reset_seconds": first, "rows": found["rows"]}
    text = [f"{SPEED_LANES} lanes made and reset in {1000 * first:.0f} ms"]
    for row in found["rows"]:
        rate, real = row["env_steps_per_sec"], row["frames_per_sec"] / 60.0988
        text.append(
            f"{counted(row['lanes'], 'lane')} on {counted(row['threads'], 'thread')}: "
            f"{rate:,.0f} steps of 4 frames a second, {real:,.0f} times a console"
        )
    advice = "rollcart bench measures it better"
    return [Finding("speed", OK, line, advice if line is text[-1] else "") for line in text], speeds
