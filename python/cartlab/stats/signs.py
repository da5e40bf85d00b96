"""The sign test: how often chance alone would put so many of so many differences on one side.

Dixon and Mood, "The statistical sign test", J. Am. Stat. Assoc. 41 (1946). Exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def sign_chance(differences: Sequence[float]) -> float:
    """P(at least as many above 0 as here) where each is above or below with one half; 1.0 for none. A
    difference of 0 counts as below.
    """
    total, above = len(differences), sum(one > 0 for one in differences)
    return float(sum(math.comb(total, k) for k in range(above, total + 1)) / 2**total)
