"""Does the worker's clock tell the time? The parent's own clock runs around every slice.

Physics is one-sided: what the parent saw contains what the worker timed, so a worker that claims more time
than passed is lying, while one that claims less may only have answered late. Who was late because somebody
waited for a processor was late on both sides of a block, for the sides take turns; a clock that runs slow is
late on its own side, in most slices. So

- a claim above what passed is tampering, in whichever slice;
- lateness of one side alone, by the sign test over pairs of slices, is tampering;
- lateness that the kernel does not explain and both sides share drops the block: no side gains by it;
- sides that did not take turns have no pairs. There tampering is lateness beyond what the kernel explains in
  every slice, and less of it drops the block.

SPECS.md section 4 has the tolerance. What stays below it in each block is summed up over blocks by
stats/witnesses.py, from `gap_share`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from cartlab.errors import Tampered
from cartlab.measure.slices import NAMES, Side
from cartlab.model import BUSY
from cartlab.stats.signs import sign_chance

# The parent's clock runs around the worker's: it may be longer by this much and no more (SPECS.md section 4).
CLOCK_SHARE = 0.05
CLOCK_NS = 1_000_000
# Chance of the sign test to call the late answers of an honest block one-sided: one block in ten thousand,
# of those whose median lateness is beyond the tolerance at all.
ONE_SIDED = 1e-4
OTHER = {"base": "cand", "cand": "base"}


def late_ns(side: Side) -> list[int]:
    """By how much the parent's clock exceeds the worker's, slice by slice; below 0 where less passed."""
    return [parent - own for parent, own in zip(side.parent_ns, side.ns, strict=True)]


def unexplained_ns(side: Side) -> list[int]:
    """The same without what somebody waited for a processor meanwhile, by the kernel's count."""
    return [max(ns - waited, min(ns, 0)) for ns, waited in zip(late_ns(side), side.waited_ns, strict=True)]


def excess_ns(side: Side) -> int:
    """How late a side's median answer is beyond what the kernel explains."""
    return round(statistics.median(unexplained_ns(side)))


def gap_ns(side: Side, other: Side) -> list[int]:
    """Lateness of a side beyond the other's, pair of slices by pair, without what its slices waited for a
    processor beyond the other's by the median: one side may live on the busier processor all the block
    long. Who waits on purpose to hide behind that loses the time that it hides.
    """
    waited = statistics.median(m - t for m, t in zip(side.waited_ns, other.waited_ns, strict=True))
    more = max(0, round(waited))
    return [mine - theirs - more for mine, theirs in zip(late_ns(side), late_ns(other), strict=True)]


def gap_share(base: Side, cand: Side) -> float:
    """The candidate's median lateness beyond the baseline's, as a share of its slices: what a clock that is
    bent a little gains in each block. Near 0 for honest sides at any load.
    """
    return statistics.median(gap_ns(cand, base)) / statistics.median(cand.ns)


def check_clocks(sides: Mapping[str, Side], paired: bool = True) -> str | None:
    """None, or why the block is dropped; Tampered where a worker's clock tells another time than passed.

    sides: "base" and "cand". paired: they took turns, so that slice k of both was taken at the same time.
    """
    for name, side in sides.items():
        if (early := min(late_ns(side))) < -tolerance_ns(side):
            raise _tampered(name, side, early, "it claims more time than passed")
    for name, side in sides.items():
        most = tolerance_ns(side)
        if paired:
            gaps = gap_ns(side, sides[OTHER[name]])
            gap = round(statistics.median(gaps))
            # Of a few pairs all must be later.
            if gap > most and sign_chance(gaps) <= max(ONE_SIDED, 0.5 ** len(gaps)):
                raise _tampered(name, side, gap, f"the {NAMES[OTHER[name]]}'s answers were not late")
        elif (least := min(unexplained_ns(side))) > most:
            raise _tampered(name, side, least, "every answer was late")
    for name, side in sides.items():
        if (excess := excess_ns(side)) > tolerance_ns(side):
            return f"{BUSY}: the {NAMES[name]}'s answers were {excess / 1e6:.1f} ms late"
    return None


def tolerance_ns(side: Side) -> float:
    """What a side's clock may differ by in a slice."""
    return CLOCK_SHARE * statistics.median(side.ns) + CLOCK_NS


def _tampered(name: str, side: Side, excess: int, why: str) -> Tampered:
    own = statistics.median(side.ns)
    return Tampered(
        f"the {NAMES[name]}'s clock must agree with the controller's within 5 % + 1 ms; "
        f"its slices took {own / 1e6:.2f} ms by its own, {excess / 1e6:+.2f} ms more here: {why}",
        details={"side": name, "own_ns": own, "excess_ns": excess},
    )
