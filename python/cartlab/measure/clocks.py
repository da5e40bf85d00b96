"""Does the worker's clock tell the time? The parent's own clock runs around every slice.

A build that bends its clock would win every block; a parent that wakes up late must not look like one.
SPECS.md section 4 has the tolerance, this file what is held against it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from cartlab.errors import Tampered
from cartlab.measure.slices import NAMES, Side

# The parent's clock runs around the worker's: it may be longer by this much and no more (SPECS.md section 4).
CLOCK_SHARE = 0.05
CLOCK_NS = 1_000_000
# On a busy machine a slice's answer is late because somebody waits for a processor, which is no tampering.
# Two readings stand that, and the larger one counts:
# - the least of the slices, as it is: some answers are never late. Honest workers had 0.2 ms at most with the
#   canonical workload at a load of 7 on two processors, where the median was 0.4 and the highest tenth 4 ms;
# - the median without what the kernel says was waited, for a clock that is bent in most slices, not in all.
# Nothing is held against a short block that is dropped anyway.
MANY_SLICES = 40


def excess_ns(side: Side) -> int:
    """By how much the parent's clock exceeds the worker's, below 0 where the worker's is longer."""
    least = min(parent - own for parent, own in zip(side.parent_ns, side.ns, strict=True))
    unexplained = statistics.median(
        max(parent - own - waited, min(parent - own, 0))
        for parent, own, waited in zip(side.parent_ns, side.ns, side.waited_ns, strict=True)
    )
    return max(least, round(unexplained), key=abs)


def check_clocks(sides: Mapping[str, Side], dropped: bool) -> None:
    """Tampered where a worker's clock and the parent's tell different times."""
    for name, side in sides.items():
        if dropped and len(side.ns) < MANY_SLICES:
            return
        own, excess = statistics.median(side.ns), excess_ns(side)
        if abs(excess) > CLOCK_SHARE * own + CLOCK_NS:
            raise Tampered(
                f"the {NAMES[name]}'s clock must agree with the controller's within 5 % + 1 ms; "
                f"its slices took {own / 1e6:.2f} ms by its own, {excess / 1e6:+.2f} ms more here",
                details={"side": name, "own_ns": own, "excess_ns": excess},
            )
