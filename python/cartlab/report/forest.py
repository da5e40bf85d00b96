"""The forest plot's rows and axis, and the two meters of a round.

Places are percentages of the drawing's own width and sizes are pixels, so that the same drawing fits a phone
and a wide screen without a script and without shrinking its text.
"""

from __future__ import annotations

from collections.abc import Sequence

from cartlab.report.facts import KINDS, Candidate, Kind
from cartlab.report.markup import Html, el, join
from cartlab.report.scale import Scale, bounds, ratio, ratio_scale, ticks

START, END = 2.0, 98.0
_PATHS = {
    "circle": "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0z",
    "ring": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "diamond": "M0-7.2L7.2 0L0 7.2L-7.2 0z",
    "up": "M0-6.8L6.8 5.2H-6.8z",
    "down": "M0 6.8L6.8-5.2H-6.8z",
    "cross": "M-5-5L5 5M5-5L-5 5",
}


def pct(value: float) -> str:
    """A place as an attribute."""
    return f"{value:.3f}%"


def shape(kind: Kind) -> Html:
    """The mark of a status around the origin: its shape tells it apart without colour."""
    return el("path", d=_PATHS[kind.shape], class_=f"mark {kind.shape} {kind.name}")


def badge(kind: Kind) -> Html:
    """The mark as a drawing of its own, for legends and labels."""
    return el("svg", shape(kind), class_="badge", viewBox="-9 -9 18 18", aria_hidden="true")


def legend() -> Html:
    """What each shape means."""
    items = [el("li", badge(kind), " ", kind.word) for kind in KINDS]
    return el("ul", *items, class_="legend")


def scale_of(candidates: Sequence[Candidate]) -> Scale:
    """One scale for all rows, with 1, each guard and each margin on it."""
    marks = [1.0, 0.98, 1.05, *(v for c in candidates for v in (c.guard, c.margin))]
    ends = [b for c in candidates for b in (c.lcb, c.ucb) if b is not None]
    return ratio_scale([c.hl for c in candidates if c.hl is not None], ends, marks, START, END)


def upright(x: float, name: str, top: str = "0") -> Html:
    """A reference line over the full height."""
    return el("line", x1=pct(x), x2=pct(x), y1=top, y2="100%", class_=f"ref {name}")


def row(candidate: Candidate, scale: Scale) -> Html:
    """One candidate: reference lines, the bar from lower to upper bound, the estimate's mark."""
    lines = [
        upright(scale.at(1.0), "one"),
        upright(scale.at(candidate.guard), "guard"),
        upright(scale.at(candidate.margin), "margin"),
    ]
    parts = []
    if candidate.hl is not None:
        parts.append(_bar(candidate, scale))
        x = pct(scale.at(candidate.hl))
        parts.append(el("svg", shape(candidate.kind), x=x, y="50%", overflow="visible"))
    title = (
        f"{candidate.commit[:10]} {candidate.name}: {candidate.status}, estimate {ratio(candidate.hl)}, "
        f"bounds {bounds(candidate.lcb, candidate.ucb)}"
    )
    return el("svg", el("title", title), *lines, *parts, class_="row", role="img")


def _bar(candidate: Candidate, scale: Scale) -> Html:
    """Solid between the bounds; dashed where there is no bound yet; an arrow where the scale ends first."""
    low, high = candidate.lcb, candidate.ucb
    name = f"bar {candidate.kind.name}"
    x1, x2 = scale.at(scale.low if low is None else low), scale.at(scale.high if high is None else high)
    if low is None and high is None:
        return el("line", x1=pct(x1), x2=pct(x2), y1="50%", y2="50%", class_=f"{name} open")
    assert candidate.hl is not None
    middle = min(max(scale.at(candidate.hl), x1), x2)
    halves = [
        el("line", x1=pct(a), x2=pct(b), y1="50%", y2="50%", class_=name + (" open" if bound is None else ""))
        for a, b, bound in ((x1, middle, low), (middle, x2, high))
    ]
    ends = [_end(bound, scale, candidate.kind) for bound in (low, high) if bound is not None]
    return el("g", *halves, *ends, class_="interval")


def _end(bound: float, scale: Scale, kind: Kind) -> Html:
    if scale.holds(bound):
        path, name = "M0-5V5", "end"
    elif bound < scale.low:
        path, name = "M6-5L0 0L6 5", "end cut"
    else:
        path, name = "M-6-5L0 0L-6 5", "end cut"
    inner = el("path", d=path, class_=f"{name} {kind.name}")
    return el("svg", inner, x=pct(scale.at(bound)), y="50%", overflow="visible")


def axis(scale: Scale, guard: float, margin: float) -> Html:
    """The scale above the rows, with the names of its three lines."""
    parts = [
        el("title", "The scale of all rows"),
        el(
            "desc", f"Ratios from {ratio(scale.low)} to {ratio(scale.high)}; lines at 1, {guard} and {margin}"
        ),
    ]
    for value in ticks(scale.low, scale.high, 7):
        x = scale.at(value)
        parts.append(el("line", x1=pct(x), x2=pct(x), y1="20", y2="26", class_="tick"))
        parts.append(el("text", f"{value:.2f}", x=pct(x), y="15", text_anchor="middle"))
    parts += [
        upright(scale.at(1.0), "one", "26"),
        upright(scale.at(guard), "guard", "26"),
        upright(scale.at(margin), "margin", "26"),
    ]
    return el("svg", *parts, class_="axis", role="img")


def meter(label: str, value: float | None, goal: float, goal_word: str, best: float) -> Html:
    """How far from 1.00 to a goal. best: the scale's other end."""
    scale = Scale(1.0, best, 0.0, 100.0)
    reached = value is not None and value >= goal
    width = 0.0 if value is None else scale.at(value)
    word = f"{label} {ratio(value)}, {goal_word} {ratio(goal)}: {'reached' if reached else 'not reached'}"
    drawing = el(
        "svg",
        el("title", word),
        el("rect", x="0", y="5", width="100%", height="10", rx="5", class_="track"),
        el(
            "rect",
            x="0",
            y="5",
            width=pct(width),
            height="10",
            rx="5",
            class_="fill" + (" full" if reached else ""),
        ),
        el("line", x1=pct(scale.at(goal)), x2=pct(scale.at(goal)), y1="0", y2="20", class_="goal"),
        class_="meter",
        role="img",
    )
    caption = el(
        "div",
        el("span", label, " ", el("strong", ratio(value, 4))),
        el("span", f"{goal_word} {goal:.3f}", " ", el("em", "reached" if reached else "not reached")),
        class_="caption",
    )
    return join(caption, drawing)
