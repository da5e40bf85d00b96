"""What a machine does to measurements, and what its owner can do about it: the facts behind `doctor`.

Sources: the kernel's files on frequency scaling, turbo, SMT, control groups, stolen time, autogroups,
pressure and swap; the tools on PATH. Each finding is one line; advice only where something can be done.
Nothing is changed, nothing is measured for longer than a moment, and what a system does not tell is said to
be unknown.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cartlab import host, lease
from cartlab.errors import LeaseTimeout
from cartlab.host import read

GOOD, NOTE, POOR = "good", "note", "poor"
_AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
_CPU = Path("/sys/devices/system/cpu")
_SAMPLE_S = 0.5


@dataclass(frozen=True)
class Finding:
    """One fact. level: "good", "note" (worth knowing) or "poor" (costs blocks); advice: "" for none."""

    name: str
    level: str
    found: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it stands in `--json`."""
        return asdict(self)


def processors() -> Finding:
    """How many this process may use."""
    count = host.usable_cpus()
    limit = host.cgroup_cpus()
    found = f"{count} usable of {os.cpu_count() or 1}, {host.cpu_model()}"
    if limit is not None:
        return Finding(
            "processors", NOTE, f"{found}; the control group allows {limit:g}", "raise its cpu.max"
        )
    return Finding("processors", GOOD if count > 1 else NOTE, found)


def governor() -> Finding:
    """The frequency governor of the first processor."""
    name = read(_CPU / "cpu0" / "cpufreq" / "scaling_governor")
    if not name:
        return Finding("governor", NOTE, "unknown (a virtual machine, or no frequency scaling)")
    if name == "performance":
        return Finding("governor", GOOD, name)
    return Finding("governor", NOTE, name, "`cpupower frequency-set -g performance` steadies clocks")


def turbo() -> Finding:
    """Is the clock raised while there is thermal room?"""
    no_turbo = read(_CPU / "intel_pstate" / "no_turbo")
    boost = read(_CPU / "cpufreq" / "boost")
    if not no_turbo and not boost:
        return Finding("turbo", NOTE, "unknown")
    on = no_turbo == "0" if no_turbo else boost == "1"
    if not on:
        return Finding("turbo", GOOD, "off")
    return Finding(
        "turbo", NOTE, "on", "switching it off steadies clocks; blocks are paired in time either way"
    )


def smt() -> Finding:
    """Do two logical processors share a core?"""
    active = read(_CPU / "smt" / "active")
    if active not in ("0", "1"):
        return Finding("SMT", NOTE, "unknown")
    if active == "0":
        return Finding("SMT", GOOD, "off")
    return Finding(
        "SMT", NOTE, "on", "pin runs to one logical processor a core (taskset) if neighbours are busy"
    )


def stolen() -> Finding:
    """Time that the hypervisor gave to others in half a second."""
    before, start = _steal_s(), time.monotonic()
    time.sleep(_SAMPLE_S)
    after = _steal_s()
    if before is None or after is None:
        return Finding("stolen time", NOTE, "unknown")
    share = (after - before) / ((time.monotonic() - start) * (os.cpu_count() or 1))
    if share > 0.05:
        return Finding(
            "stolen time", POOR, f"{100 * share:.1f} %", "measure elsewhere, or when it is quieter"
        )
    return Finding("stolen time", GOOD, f"{100 * share:.1f} %")


def _steal_s() -> float | None:
    fields = read(Path("/proc/stat")).partition("\n")[0].split()
    return int(fields[8]) / float(os.sysconf("SC_CLK_TCK")) if len(fields) > 8 else None


def load() -> Finding:
    """The load average against the processors."""
    value = host.load()
    if value is None:
        return Finding("load", NOTE, "unknown")
    per = value / host.usable_cpus()
    if per > 3.5:
        advice = "blocks will be dropped as busy: stop other work, or wait"
        return Finding("load", POOR, f"{value:.2f}, {per:.1f} a processor", advice)
    if per > 1.0:
        return Finding(
            "load", NOTE, f"{value:.2f}, {per:.1f} a processor", "quieter machines need fewer blocks"
        )
    return Finding("load", GOOD, f"{value:.2f}")


def sessions() -> Finding:
    """Does low priority hold between sessions, so that other work can be kept out of the way?"""
    grouped = read(_AUTOGROUP)
    if grouped == "1":
        advice = "`sysctl kernel.sched_autogroup_enabled=0` lets `nice` and `chrt -i 0` keep other work away"
        return Finding("priorities", NOTE, "count within a session alone", advice)
    return Finding("priorities", GOOD if grouped == "0" else NOTE, "hold" if grouped == "0" else "unknown")


def pressure() -> Finding:
    """PSI: can contention be read at all?"""
    line = read(Path("/proc/pressure/cpu")).partition("\n")[0]
    if not line:
        return Finding(
            "pressure", NOTE, "unknown", "a kernel with PSI (psi=1) shows contention in every block"
        )
    return Finding("pressure", GOOD, line.partition(" total")[0])


def memory() -> Finding:
    """Is the machine swapping?"""
    rows = dict(line.split(":", 1) for line in read(Path("/proc/meminfo")).splitlines() if ":" in line)
    try:
        free, total, used = (
            int(rows[key].split()[0]) // 1024 for key in ("MemAvailable", "MemTotal", "SwapTotal")
        )
        used -= int(rows["SwapFree"].split()[0]) // 1024
    except (KeyError, ValueError, IndexError):
        return Finding("memory", NOTE, "unknown")
    found = f"{free} MiB available of {total}, {used} MiB swapped"
    return Finding("memory", POOR if free < 512 else GOOD, found, "free some memory" if free < 512 else "")


def disk() -> Finding:
    """Room for builds and blocks in the temporary folder."""
    free = shutil.disk_usage(tempfile.gettempdir()).free >> 20
    if free < 2048:
        return Finding("disk", POOR, f"{free} MiB free", "make room: builds need some gigabytes")
    return Finding("disk", GOOD, f"{free} MiB free")


def witnesses() -> Finding:
    """Second opinions that do not depend on the clock."""
    found = ["CPU time"]
    if host.counts_instructions():
        found.append("perf")
    if shutil.which("valgrind"):
        found.append("callgrind")
    missing = "" if len(found) > 1 else "install valgrind: instructions a step are a second opinion"
    return Finding("witnesses", GOOD if len(found) > 1 else NOTE, ", ".join(found), missing)


def others() -> Finding:
    """Does another controller measure now?"""
    try:
        with lease.hold(0.0):
            return Finding("other controllers", GOOD, "none measures now")
    except LeaseTimeout:
        return Finding(
            "other controllers", NOTE, f"{lease.holder(lease.path())} measures now", "runs will queue"
        )


ASKED: tuple[Callable[[], Finding], ...] = (
    processors, governor, turbo, smt, stolen, load, sessions, pressure, memory, disk, witnesses, others,
)  # fmt: skip


def report() -> list[Finding]:
    """Every finding, in the order of the table above; takes about a second."""
    return [ask() for ask in ASKED]
