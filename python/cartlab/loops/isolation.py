"""How far a candidate's or a researcher's command is kept from everything else, and the word for it.

`landlock`: the kernel lets it write only in its own folders, and read nothing of the state root but those.
`process`: a session of its own and nothing
more; what it then does to the repository is found by comparing, not prevented. The level that was had is
recorded with every measurement.
"""

from __future__ import annotations

import functools
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cartlab.errors import BadInput

LEVELS = ("landlock", "process")
CHOICES = ("auto", *LEVELS)
_SCRIPT = Path(__file__).resolve().parent.with_name("landlock.py")
# Devices that ordinary programs write to; /dev/shm is where data loaders share arrays.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm")


@functools.cache
def available() -> str:
    """The best level that this machine has."""
    try:
        said = subprocess.run(
            [sys.executable, "-I", str(_SCRIPT)], capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "process"
    return "landlock" if said.strip().isdecimal() and int(said) > 0 else "process"


def level(choice: str) -> str:
    """The level that a choice means here; BadInput where the machine does not have the one asked for."""
    if choice == "auto":
        return available()
    if choice == "landlock" and available() != "landlock":
        raise BadInput(
            "isolation landlock needs Linux 5.13 or newer with Landlock switched on; this kernel has none",
            "use --isolation auto, which records what was had",
        )
    return choice


def wrap(
    command: str,
    level: str,
    writable: Sequence[Path],
    hidden: Sequence[Path] = (),
    readable: Sequence[Path] = (),
) -> str:
    """The shell line that runs `command` at this level, able to write below `writable`. Of what lies below
    `hidden` it can read that and `readable` alone, where the level is the kernel's.
    """
    if level != "landlock":
        return command
    folders = [str(path) for path in writable if path.exists()]
    devices = [name for name in _DEVICES if Path(name).exists()]
    closed = [word for path in hidden if path.exists() for word in ("--hide", str(path))]
    closed += [word for path in readable if path.exists() for word in ("--read", str(path))]
    words = [sys.executable, "-I", str(_SCRIPT), *closed, *folders, *devices, "--", "/bin/sh", "-c", command]
    return "exec " + shlex.join(words)


def home_folders(home: Path, guarded: Sequence[Path]) -> list[Path]:
    """The hidden folders of a home that a researcher's own tools keep things in (.cache, .config, ...), but
    for those that hold one of the guarded places.
    """
    if not home.is_dir():
        return []
    places = [path.resolve() for path in guarded]
    return [
        entry
        for entry in sorted(home.iterdir())
        if entry.name.startswith(".")
        and entry.is_dir()
        and not any(entry.resolve() == place or entry.resolve() in place.parents for place in places)
    ]
