"""Two drawings of one block sequence: its wealth on a log scale, and its values over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cartlab.report.facts import Diagnostics, Point
from cartlab.report.markup import Html, el
from cartlab.report.scale import Scale, ratio, ticks
from cartlab.words import counted

WIDTH, HEIGHT = 360.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 350.0, 10.0, 128.0
# Decades of wealth that are drawn: what has lost this much, or won this much, is at the edge.
LEAST, MOST = -3.0, 8.0


def frame(title: str, desc: str, name: str, *parts: Html) -> Html:
    """A drawing of the common size, with its words."""
    box = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return el(
        "svg", el("title", title), el("desc", desc), *parts, viewBox=box, class_=f"chart {name}", role="img"
    )


def _level(y: float, name: str, word: str = "") -> list[Html]:
    out = [el("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_=name)]
    if word:
        out.append(el("text", word, x=LEFT - 6.0, y=y + 4.0, text_anchor="end"))
    return out


def _numbers(count: int, x: Scale) -> list[Html]:
    """Block numbers below the drawing: the first, the last, and round ones between."""
    marks = [t for t in ticks(1.0, float(max(count, 2)), 5) if t == int(t) and 1 < t < count]
    if count > 1:
        first, last = x.at(1.0), x.at(float(count))
        marks = [1.0, *(t for t in marks if min(x.at(t) - first, last - x.at(t)) > 22.0), float(count)]
    else:
        marks = [1.0]
    return [
        el("text", f"{int(t)}", x=x.at(t), y=BOTTOM + 16.0, text_anchor="middle", class_="number")
        for t in marks
    ]


def wealth(found: Diagnostics, alpha: float, guard: float, label: str) -> Html:
    """The e-value path: solid against "not faster than the guard", dashed against the opposite."""
    bar = math.log10(1.0 / alpha)
    logs = [*found.wealth_for, *found.wealth_against]
    low = max(LEAST, min([-1.0, *logs]))
    high = min(MOST, max([bar + 0.6, *logs]))
    x = Scale(1.0, float(max(2, len(found.wealth_for))), LEFT, RIGHT)
    y = Scale(low, high, BOTTOM, TOP)
    parts: list[Html] = []
    for power in ticks(math.ceil(low), math.floor(high), 5):
        if power == int(power) and abs(power - bar) > 0.3:
            parts += _level(y.at(power), "grid", _power(int(power)))
    parts += _level(y.at(0.0), "one")
    parts += _level(y.at(bar), "alpha", f"{1.0 / alpha:g}")
    parts.append(el("text", "1/alpha", x=LEFT + 3.0, y=y.at(bar) - 4.0, class_="word"))
    parts.append(_line(found.wealth_against, x, y, "path against"))
    parts.append(_line(found.wealth_for, x, y, "path for"))
    parts += _numbers(len(found.wealth_for), x)
    last = found.wealth_for[-1] if found.wealth_for else 0.0
    other = found.wealth_against[-1] if found.wealth_against else 0.0
    desc = (
        f"After {counted(len(found.wealth_for), 'block')} the wealth against a ratio of at most {guard:g} is "
        f"10 to the {last:.1f}, against a ratio of at least {guard:g} 10 to the {other:.1f}; "
        f"a bound needs {1.0 / alpha:g}."
    )
    return frame(f"e-value path of {label}", desc, "wealth", *parts)


def _power(exponent: int) -> str:
    if -2 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"


def _line(values: Sequence[float], x: Scale, y: Scale, name: str) -> Html:
    spots = [f"{x.at(i):.1f} {y.at(v):.1f}" for i, v in enumerate(values, 1)]
    if len(spots) == 1:
        spots *= 2
    return el("path", d="M" + "L".join(spots) if spots else "M0 0", class_=name)


def values(found: Diagnostics, hl: float | None, label: str) -> Html:
    """Block values over time as ratios: a disc where the baseline ran first, a square where the candidate
    did, a cross where the block was dropped.
    """
    ratios = [math.exp(p.y) for p in found.points if p.counts]
    low, high = min([0.995, *ratios]), max([1.005, *ratios])
    room = 0.08 * (high - low)
    y = Scale(low - room, high + room, BOTTOM, TOP)
    count = len(found.points)
    x = Scale(0.5, count + 0.5 if count else 1.5, LEFT, RIGHT)
    parts: list[Html] = []
    marks = ticks(y.low, y.high, 5)
    digits = 2 if len(marks) < 2 or marks[1] - marks[0] >= 0.01 else 3
    for value in marks:
        parts += _level(y.at(value), "one" if value == 1.0 else "grid", f"{value:.{digits}f}")
    earlier = sum(p.earlier for p in found.points)
    if 0 < earlier < count:
        edge = x.at(earlier + 0.5)
        parts.append(el("line", x1=edge, x2=edge, y1=TOP, y2=BOTTOM, class_="seam"))
    if hl is not None:
        parts += _level(y.at(hl), "estimate")
    parts += [_dot(p, x.at(i), y) for i, p in enumerate(found.points, 1)]
    parts += _numbers(count, x)
    dropped = sum(not p.counts for p in found.points)
    desc = (
        f"{counted(count, 'block')}, {dropped} of them not counted; estimate {ratio(hl)}. "
        f"{sum(p.coin == 0 for p in found.points)} with the baseline first, "
        f"{sum(p.coin == 1 for p in found.points)} with the candidate first."
    )
    return frame(f"block values of {label}", desc, "values", *parts)


def _dot(point: Point, x: float, scale: Scale) -> Html:
    y = scale.at(math.exp(point.y))
    words = f"{math.exp(point.y):.4f}, {'candidate' if point.coin else 'baseline'} first"
    title = el("title", words if point.counts else f"{words}; dropped, {point.dropped}")
    if not point.counts:
        path = f"M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0-7l-7 7"
        return el("path", title, d=path, class_="block dropped")
    if point.coin:
        return el("rect", title, x=x - 3.0, y=y - 3.0, width=6.0, height=6.0, class_="block second")
    return el("circle", title, cx=x, cy=y, r=3.3, class_="block first")
