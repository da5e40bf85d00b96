"""Was the machine busy while a block was measured? Read inside the window, judged without seeing any ratio.

Sources: /proc/stat (steal), /proc/pressure/cpu (PSI), cgroup cpu.stat (throttling), and of the two workers
/proc/PID/task/*/{schedstat,status} (time runnable without a processor, involuntary switches). What a system
does not tell is None and cannot drop a block.

The rule sees sums over both sides and the whole window: no time of one side, no ratio, no earlier block. So
dropping a block cannot favour a side.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cartlab import host, processes
from cartlab.model import BUSY

# A block is dropped where one of these is exceeded. The first is what decides in practice; see
# docs/findings.md for the blocks that it was set on.
LIMITS: tuple[tuple[str, float], ...] = (
    ("waited_share", 0.70),
    ("steal_share", 0.10),
    ("throttled_share", 0.05),
)


@dataclass(frozen=True)
class Reading:
    """Counters at one moment; all only ever grow."""

    wall_ns: int
    steal_s: float | None
    psi_some_us: int | None
    throttled_us: int | None
    run_ns: int
    waited_ns: int
    switches: int


@dataclass(frozen=True)
class Contention:
    """What a block's window was like, both sides together.

    waited_share: of the time that the workers' threads wanted a processor, the part they waited for one.
    steal_share: of all processors' time, what the hypervisor gave to others. psi_some_share: of the window,
    the part in which some task waited for a processor. throttled_share: of the window, the part in which
    the control group was out of quota. cpu_per_wall: processors in use by the workers while slices ran.
    switches_per_s: involuntary ones.
    """

    waited_share: float | None
    steal_share: float | None
    psi_some_share: float | None
    throttled_share: float | None
    cpu_per_wall: float | None
    switches_per_s: float | None

    def to_json(self) -> dict[str, float | None]:
        """As it stands in a block's witness."""
        return {key: None if value is None else round(value, 4) for key, value in asdict(self).items()}


def read(pids: Sequence[int]) -> Reading:
    """The counters now; costs a fraction of a millisecond."""
    run = waited = switches = 0
    for pid in pids:
        usage = processes.usage(pid)
        run, waited, switches = run + usage.run_ns, waited + usage.waited_ns, switches + usage.switches
    return Reading(
        wall_ns=time.perf_counter_ns(),
        steal_s=_steal_s(),
        psi_some_us=_psi_some_us(),
        throttled_us=_throttled_us(),
        run_ns=run,
        waited_ns=waited,
        switches=switches,
    )


def over(readings: Sequence[tuple[Reading, Reading]], slices_ns: int, slices_cpu_ns: int) -> Contention:
    """The windows between pairs of readings, taken together; the sums over all slices give cpu_per_wall."""

    def grown(name: str) -> float | None:
        pairs = [(getattr(before, name), getattr(after, name)) for before, after in readings]
        if any(old is None or new is None for old, new in pairs):
            return None
        return float(sum(max(0, new - old) for old, new in pairs))

    def share(part: float | None, whole: float) -> float | None:
        return None if part is None or whole <= 0 else part / whole

    wall_s = (grown("wall_ns") or 0.0) / 1e9
    waited, ran = grown("waited_ns") or 0.0, grown("run_ns") or 0.0
    return Contention(
        waited_share=share(waited, waited + ran),
        steal_share=share(grown("steal_s"), wall_s * (os.cpu_count() or 1)),
        psi_some_share=share(grown("psi_some_us"), wall_s * 1e6),
        throttled_share=share(grown("throttled_us"), wall_s * 1e6),
        cpu_per_wall=slices_cpu_ns / slices_ns if slices_ns else None,
        switches_per_s=share(grown("switches"), wall_s),
    )


def reason_to_drop(found: Contention) -> str | None:
    """None, or "busy: ..." naming the first limit that was exceeded."""
    for name, limit in LIMITS:
        value = getattr(found, name)
        if value is not None and value > limit:
            return f"{BUSY}: {name} {value:.2f} is above {limit:.2f}"
    return None


def _steal_s() -> float | None:
    fields = host.read(Path("/proc/stat")).partition("\n")[0].split()
    if len(fields) < 9 or fields[0] != "cpu":
        return None
    return int(fields[8]) / float(os.sysconf("SC_CLK_TCK"))


def _psi_some_us() -> int | None:
    for line in host.read(Path("/proc/pressure/cpu")).splitlines():
        if line.startswith("some ") and "total=" in line:
            return int(line.rpartition("total=")[2])
    return None


def _throttled_us() -> int | None:
    for folder in host.cgroup_folders():
        for line in host.read(folder / "cpu.stat").splitlines():
            key, _, value = line.partition(" ")
            if key == "throttled_usec":
                return int(value)
            if key == "throttled_time":
                return int(value) // 1000
    return None
