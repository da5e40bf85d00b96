"""Numbers to places: scales, the ticks of an axis, and how a ratio is written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

# Steps that people read easily, per decade.
STEPS = (1.0, 2.0, 5.0)
# A bound farther than this (in ln) from all estimates is cut off: one wide interval would hide the others.
REACH = 0.12


class Scale(NamedTuple):
    """Linear from [low, high] to [start, end]; at() clamps."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value, inside [start, end]."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Is the value inside, so that nothing was cut off."""
        return self.low <= value <= self.high


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most `most` round values inside [low, high], evenly spaced."""
    span = high - low
    if not math.isfinite(span) or span <= 0.0:
        return [low]
    decade = 10.0 ** math.floor(math.log10(span / most))
    for step in (s * decade * ten for ten in (1.0, 10.0) for s in STEPS):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [round(i * step, 10) for i in range(first, last + 1)]
    return [low]


def ratio_scale(
    estimates: Iterable[float], bounds: Iterable[float], marks: Iterable[float], start: float, end: float
) -> Scale:
    """A scale for ratios that holds all estimates and marks, and bounds that are not far from them."""
    near = [v for v in (*estimates, *marks) if v > 0.0]
    low, high = min(near), max(near)
    within = [b for b in bounds if low * math.exp(-REACH) <= b <= high * math.exp(REACH)]
    low, high = min(low, *within, low), max(high, *within, high)
    room = max(0.004, 0.06 * (high - low))
    return Scale(low - room, high + room, start, end)


def ratio(value: float | None, digits: int = 3) -> str:
    """A ratio for people."""
    return "none yet" if value is None else f"{value:.{digits}f}"


def bounds(low: float | None, high: float | None) -> str:
    """An interval for people; an end that does not exist yet is open."""
    if low is None and high is None:
        return "no bounds yet"
    return f"{'…' if low is None else f'{low:.3f}'} to {'…' if high is None else f'{high:.3f}'}"


def percent(share: float | None, digits: int = 2) -> str:
    """A share as per cent."""
    return "unknown" if share is None else f"{100.0 * share:.{digits}f} %"


def e_value(value: float | None) -> str:
    """An e-value for people."""
    if value is None:
        return "none"
    if 0.01 <= value < 10_000.0:
        return f"{value:.0f}" if value >= 10.0 else f"{value:.2g}"
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def moment(time: str) -> str:
    """An RFC 3339 time to the minute."""
    return time[:16].replace("T", " ")
