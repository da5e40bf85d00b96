"""The relink floor of a calibration: what one ref seems to gain over itself when both sides are laid out
anew.

SPECS.md section 4: it may only raise a guard. A calibration's blocks compare one ref with itself, each
block with another pair of relinked variants; the middle of n such blocks strays from 0 by about sd /
sqrt(n). A gain below what that reaches once in a hundred calibrations is not told from layout here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cartlab.model import Block
from cartlab.stats.robust import robust_sd

# The one-sided 1 % point of the normal distribution: alpha of the accept tiers.
Z = 2.326
AT_LEAST = 8


def relink_floor(blocks: Sequence[Block]) -> float | None:
    """The floor as a share (0.004 = 0.4 %) from the valid blocks that measured relinked variants of both
    sides.

    None where fewer than eight did: a machine that cannot relink has no floor, and says so.
    """
    values = [block.y for block in blocks if block.dropped is None and _relinked(block)]
    if len(values) < AT_LEAST:
        return None
    return math.exp(Z * robust_sd(values) / math.sqrt(len(values))) - 1.0


def _relinked(block: Block) -> bool:
    layouts = block.witness.get("layouts") or {}
    return layouts.get("base") is not None and layouts.get("cand") is not None
