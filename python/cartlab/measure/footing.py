"""Do both workers stand on equal footing? Read beside the slices, never in them.

A build runs as the same user as the other side's worker. It can be kept from writing and from signals
(landlock.py), and not from giving the other one a lower priority or a single processor, nor from waking up
while the other one has its slice. So both are looked at:

- the threads of both sides are scheduled alike: the same policies, priorities and sets of processors;
- neither side takes longer to end its answers, by the same test: the controller's clock stops at an answer's
  first byte, so that putting threads to sleep does not count, and work must not hide there;
- neither side is on a processor during the other's slices more than the other is during its own, by the sign
  test over pairs of slices. What both do alike (the end of an answer, an allocator's own thread) favours no
  side.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from cartlab.errors import Tampered
from cartlab.measure.clocks import ONE_SIDED, OTHER, tolerance_ns
from cartlab.measure.slices import NAMES, Side
from cartlab.model import BUSY
from cartlab.stats.signs import sign_chance

# A share of the other side's slice, and what the end of an answer may take.
AWAKE_SHARE = 0.01
AWAKE_NS = 50_000
# Beyond so many times what is tolerated no busy machine is the reason.
FAR = 5

Footing = set[tuple[int, int, frozenset[int]]]


def of(pid: int) -> Footing:
    """How the threads of a process are scheduled: policy, priority and processors; empty where the system
    does not tell.
    """
    found: Footing = set()
    if not hasattr(os, "sched_getscheduler"):
        return found
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            thread = int(task.name)
            nice = os.getpriority(os.PRIO_PROCESS, thread)
            found.add((os.sched_getscheduler(thread), nice, frozenset(os.sched_getaffinity(thread))))
    return found


def check(pids: Mapping[str, int]) -> None:
    """Tampered where the sides' threads are scheduled in other ways. pids: "base" and "cand"."""
    base, cand = of(pids["base"]), of(pids["cand"])
    if base != cand:
        raise Tampered(
            "both sides' threads must be scheduled alike; "
            f"the baseline's are at {_shown(base)}, the candidate's at {_shown(cand)}",
            "a build that changes priorities or processors changes the machine and not the work",
            details={"base": _shown(base), "cand": _shown(cand)},
        )


def _shown(footing: Footing) -> str:
    rows = sorted((policy, nice, sorted(processors)) for policy, nice, processors in footing)
    return "; ".join(f"policy {policy}, nice {nice}, CPUs {cpus}" for policy, nice, cpus in rows)


def check_turns(sides: Mapping[str, Side]) -> str | None:
    """None, or why the block is dropped; Tampered where one side alone worked in the other's turns."""
    for name, side in sides.items():
        other, whose = sides[OTHER[name]], NAMES[OTHER[name]]
        gap = _one_sided(side.ending_ns, other.ending_ns, _waited_more(side, other))
        most = tolerance_ns(side)
        if gap > most:
            # Never an accusation: on a busy machine threads go to sleep late, and on one side more so.
            later = f"{gap / 1e6:.2f} ms later after their first byte than the {whose}'s"
            return f"{BUSY}: the {NAMES[name]}'s answers ended {later}"
        gap = _one_sided(side.awake_ns, other.awake_ns)
        most = AWAKE_SHARE * statistics.median(other.ns) + AWAKE_NS
        if gap > most:
            what = f"worker was on a processor in the {whose}'s slices, {gap / 1e6:.2f} ms more in each"
            if gap <= FAR * most:
                return f"{BUSY}: the {NAMES[name]}'s {what}"
            raise Tampered(
                f"the {NAMES[name]}'s worker must sleep while the {whose}'s has its slice; its {what}",
                "look for threads that wake up by themselves",
                details={"side": name, "awake_ns": gap},
            )
    return None


def _waited_more(side: Side, other: Side) -> int:
    """What a side's slices waited for a processor beyond the other's, by the median: it may live on the
    busier one all the block long.
    """
    pairs = zip(side.waited_ns, other.waited_ns, strict=True)
    return max(0, round(statistics.median(mine - theirs for mine, theirs in pairs)))


def _one_sided(mine: Sequence[int], theirs: Sequence[int], explained: int = 0) -> int:
    """The median gap over pairs beyond what is explained, where it is too regular for chance; else 0."""
    gaps = [one - other - explained for one, other in zip(mine, theirs, strict=True)]
    regular = sign_chance(gaps) <= max(ONE_SIDED, 0.5 ** len(gaps))
    return round(statistics.median(gaps)) if regular else 0
