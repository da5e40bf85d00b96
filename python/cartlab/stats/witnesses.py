"""Second opinions on a claim: CPU time per step and instructions per step, next to wall time, and the
controller's own clock.

SPECS.md section 4: wall throughput carries the claim; where a witness points the other way the report says
so. A witness never decides: code can be faster with more instructions, or use more processors to be faster
by the wall. The controller's clock is held against each block with a tolerance (measure/clocks); a clock that
is bent by less than that in each block shows in all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cartlab.model import Block
from cartlab.stats.robust import median
from cartlab.stats.signs import sign_chance

# Smaller differences than this are no opinion.
OPINION = math.log(1.01)
# The candidate's answers come later than its clock says, by more than the baseline's do: in at least all of
# ten blocks, or in so many that chance gives them as seldom.
BENT_BLOCKS = 10
BENT_CHANCE = 0.5**BENT_BLOCKS


@dataclass(frozen=True)
class Witnesses:
    """Ratios as candidate speed / baseline speed, like the claim's; None where there is no such witness.

    clock_gap: what of the candidate's time its own clock leaves out and the controller's does not, as a share
    and beyond the baseline's.
    """

    cpu: float | None
    instructions: float | None
    disagree: tuple[str, ...] = ()
    clock_gap: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As it stands in an aggregate."""
        return {
            "cpu": self.cpu,
            "instructions": self.instructions,
            "clock_gap": self.clock_gap,
            "disagree": list(self.disagree),
        }

    def line(self) -> str:
        """For people."""
        rows = [("CPU time", self.cpu), ("instructions", self.instructions)]
        shown = [f"{name} {ratio:.3f}" for name, ratio in rows if ratio is not None]
        text = f"  witnesses: {', '.join(shown) or 'none'}"
        return f"{text}; {'; '.join(self.disagree)}" if self.disagree else text


def witnesses(
    blocks: Sequence[Block], hl: float | None, instructions: Mapping[str, Any] | None = None
) -> Witnesses:
    """From the blocks' CPU times and a count of instructions per step of both sides, if there is one."""
    cpu = _cpu(blocks)
    counted = instructions or {}
    base, cand = counted.get("base"), counted.get("cand")
    ratio = base / cand if base and cand else None
    disagree = [
        f"wall time says {hl:.3f}, {name} {found:.3f}: they disagree"
        for name, found in (("CPU time", cpu), ("instructions", ratio))
        if hl is not None and found is not None and _opposed(hl, found)
    ]
    gaps = [
        float(block.witness["clock_gap"])
        for block in blocks
        if block.dropped is None and "clock_gap" in block.witness
    ]
    gap = median(gaps) if gaps else None
    if gap is not None and gap >= OPINION and sign_chance(gaps) <= BENT_CHANCE:
        disagree.append(
            f"by the controller's clock the candidate's slices take {gap:.1%} longer than by its own: they "
            "disagree"
        )
    return Witnesses(cpu, ratio, tuple(disagree), gap)


def _cpu(blocks: Sequence[Block]) -> float | None:
    values = []
    for block in blocks:
        sides = block.witness.get("cpu_ns_per_step") or block.witness.get("cpu_ns_per_run") or {}
        base, cand = sides.get("base"), sides.get("cand")
        if block.dropped is None and base and cand:
            values.append(math.log(base / cand))
    return math.exp(median(values)) if values else None


def _opposed(one: float, other: float) -> bool:
    a, b = math.log(one), math.log(other)
    return a * b < 0 and min(abs(a), abs(b)) >= OPINION
