"""What this machine is, as far as a measurement depends on it. No host name, no path, no user.

Blocks are pooled and calibrations count only within one host class: processor model, architecture, operating
system and the processors that this process may use.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cartlab.model import digest_of

_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")


def read(path: Path) -> str:
    """A small system file as text, "" where there is none."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


@functools.lru_cache(maxsize=1)
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    for line in read(_PROC / "cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Hardware", "cpu model"):
            return " ".join(value.split())
    return platform.processor() or platform.machine()


def cgroup_folders() -> list[Path]:
    """This process's cgroup and its parents, innermost first; v2, or v1's cpu controller."""
    for line in read(_PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            home = _CGROUP if controllers == "" else _CGROUP / "cpu"
            inner = home / path.lstrip("/")
            return [folder for folder in (inner, *inner.parents) if folder.is_relative_to(home)]
    return [_CGROUP]


def cgroup_cpus() -> float | None:
    """Processors' worth of time that the control group allows, None where there is no limit."""
    limits = []
    for folder in cgroup_folders():
        quota, _, period = read(folder / "cpu.max").partition(" ")
        if not quota:
            quota, period = read(folder / "cpu.cfs_quota_us"), read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            limits.append(int(quota) / int(period))
    return min(limits) if limits else None


def usable_cpus() -> int:
    """How many processors this process may really use: affinity and control group, at least 1."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    limit = cgroup_cpus()
    return max(1, count if limit is None else min(count, int(limit)))


def load() -> float | None:
    """The 1-minute load average, None where the system has none."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def counts_instructions() -> bool:
    """May this user read the processor's instruction counter through perf (few virtual machines have one)."""
    if not shutil.which("perf"):
        return False
    done = subprocess.run(
        ["perf", "stat", "-x,", "-e", "instructions:u", "true"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode == 0 and "<not" not in done.stderr


def host_class() -> str:
    """12 hex digits that two runs share when their blocks may be pooled."""
    return digest_of([cpu_model(), platform.machine(), platform.system(), usable_cpus()])[:12]


def facts() -> Mapping[str, Any]:
    """What a record says of the machine that measured."""
    return {
        "host_class": host_class(),
        "cpu_model": cpu_model(),
        "machine": platform.machine(),
        "system": platform.system(),
        "usable_cpus": usable_cpus(),
        "cgroup_cpus": cgroup_cpus(),
        "load_1m": load(),
    }
