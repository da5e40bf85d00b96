"""The MAD confidence of three journal tools, bit for bit, so that old sessions read as they did.

It is advice and nothing here gates on it: on pure noise it says "likely real" in about half of all sessions,
it ignores direction, and a big win inflates it. Values are of the current segment; the noise is the median
absolute deviation from the median, not scaled; nothing below three values.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DIALECTS = ("pi", "factory", "greencedar")
LIKELY, MARGINAL = 2.0, 1.0
_FAILED = ("crash", "checks_failed")


@dataclass(frozen=True)
class Point:
    """One result: its metric (None where it has none) and its status word."""

    metric: float | None
    status: str


def confidence(points: Sequence[Point], direction: str, dialect: str = "pi") -> float | None:
    """|best - baseline| / MAD of one segment's results, in order; None where the tool says null.

    direction: "higher" | "lower" is better. dialect: a row of DIALECTS: which results count, and whether the
    answer is rounded to two digits.
    """
    green = dialect == "greencedar"
    counting = [p for p in points if p.metric is not None and _counts(p, green)]
    values = [float(p.metric) for p in counting if p.metric is not None]
    kept = [float(p.metric) for p in counting if p.metric is not None and p.status == "keep"]
    if len(values) < 3 or not kept:
        return None
    middle = statistics.median(values)
    noise = statistics.median(abs(value - middle) for value in values)
    first = points[0].metric if dialect == "pi" else values[0]
    best = max(kept) if direction == "higher" else min(kept)
    if noise == 0 or first is None or best == first:
        return None
    found = abs(best - first) / noise
    return round(found, 2) if dialect == "factory" else found


def _counts(point: Point, green: bool) -> bool:
    assert point.metric is not None
    if green:
        return math.isfinite(point.metric) and point.status not in _FAILED
    return point.metric > 0


def label(value: float | None) -> str:
    """The word for a confidence."""
    if value is None:
        return "n/a"
    if value >= LIKELY:
        return "likely real"
    return "marginal" if value >= MARGINAL else "within noise"
