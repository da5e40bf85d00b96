"""The relink floor of a calibration: what layout alone can make of one ref measured against itself.

SPECS.md section 4: it may only raise a guard. A calibration's blocks compare one ref with itself, each
block with another pair of relinked variants. Blocks scatter more than their own slices explain: the excess
is layout (and what a pair of processes carries along). A claim averages over all variants of each side, so
what stays of it is the excess over the square root of their number.

A calibration on a busy machine measures the load, not the linker, so only calm blocks count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cartlab.model import Block
from cartlab.stats.robust import median, robust_sd

# The one-sided 1 % point of the normal distribution: alpha of the accept tiers.
Z = 2.326
AT_LEAST = 8
# Highest waited_share of a calm block; docs/findings.md has how blocks scatter by it.
CALM = 0.5
# The standard error of a median of normal values, times sqrt(n) / sd.
_MEDIAN_ERROR = 1.2533


def relink_floor(blocks: Sequence[Block]) -> float | None:
    """The floor as a share (0.004 = 0.4 %); None where fewer than eight calm blocks measured relinked
    variants of both sides: a machine that cannot relink, or is too busy, has no floor, and says so.
    """
    calm = [block for block in blocks if block.dropped is None and _relinked(block) and _calm(block)]
    if len(calm) < AT_LEAST:
        return None
    between = robust_sd([block.y for block in calm]) ** 2
    excess = max(0.0, between - median([_own_error(block) ** 2 for block in calm]))
    variants = len({number for block in calm for number in _layouts(block).values()})
    return math.exp(Z * math.sqrt(excess / variants)) - 1.0


def _own_error(block: Block) -> float:
    """The standard error of the block's value by the scatter of its own slices."""
    ratios = [math.log(base / cand) for base, cand in zip(block.base_ns, block.cand_ns, strict=True)]
    return _MEDIAN_ERROR * robust_sd(ratios) / math.sqrt(len(ratios))


def _layouts(block: Block) -> dict[str, object]:
    found = block.witness.get("layouts") or {}
    return {side: found.get(side) for side in ("base", "cand")}


def _relinked(block: Block) -> bool:
    return None not in _layouts(block).values()


def _calm(block: Block) -> bool:
    waited = (block.witness.get("contention") or {}).get("waited_share")
    return waited is None or waited <= CALM
