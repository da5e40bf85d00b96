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
# Which quantile over slices is held against that, since waking up late is no tampering: the median where
# there are enough slices, the lower quartile in a block that is dropped anyway, the least where slices are
# few (none of a short dropped block). At a load of 10 on two processors honest workers had medians up to
# 0.5 ms over 50 slices (but 3.7 ms over 8) and lower quartiles up to 0.5 ms; a clock at half speed always
# exceeds by half a slice.
MANY_SLICES = 40
MEDIAN, LOWER_QUARTILE, LEAST = 0.5, 0.25, 0.0


def excess_ns(side: Side, quantile: float) -> int:
    """By how much the parent's clock exceeds the worker's, below 0 where the worker's is longer.

    Time that the parent spent waiting for a processor is taken off as far as it explains the excess.
    """
    found = sorted(
        max(parent - own - waited, min(parent - own, 0))
        for parent, own, waited in zip(side.parent_ns, side.ns, side.waited_ns, strict=True)
    )
    return found[int(quantile * (len(found) - 1))]


def check_clocks(sides: Mapping[str, Side], dropped: bool) -> None:
    """Tampered where a worker's clock and the parent's tell different times."""
    for name, side in sides.items():
        own = statistics.median(side.ns)
        many = len(side.ns) >= MANY_SLICES
        if dropped and not many:
            return
        quantile = LOWER_QUARTILE if dropped else MEDIAN if many else LEAST
        excess = excess_ns(side, quantile)
        if abs(excess) > CLOCK_SHARE * own + CLOCK_NS:
            raise Tampered(
                f"the {NAMES[name]}'s clock must agree with the controller's within 5 % + 1 ms; "
                f"its slices took {own / 1e6:.2f} ms by its own, {excess / 1e6:+.2f} ms more here",
                details={"side": name, "own_ns": own, "excess_ns": excess},
            )
