"""A goal's values as a drawing: each attempt a mark, the best so far a line, the baseline a dashed one."""

from __future__ import annotations

from collections.abc import Callable

from cartlab.loops.live.facts import Entry, Standing
from cartlab.report.markup import Html, el, shown
from cartlab.report.scale import ticks

WIDTH, HEIGHT = 960.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 16.0, 14.0, 28.0


def trend(goal: Standing) -> Html | None:
    """The drawing, None where nothing has a value yet."""
    valued = [one for one in goal.entries if one.value is not None]
    numbers = [one.value for one in valued if one.value is not None]
    if not numbers:
        return None
    ends = [*numbers, *([goal.baseline] if goal.baseline is not None else [])]
    low, high = min(ends), max(ends)
    margin = (high - low) * 0.08 or abs(high) * 0.01 or 1.0
    low, high = low - margin, high + margin
    count = len(goal.entries)

    def x(at: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((at + 0.5) / count)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    parts = [
        el("title", f"{goal.metric} by attempt, {goal.direction} is better"),
        *_scale(low, high, y),
    ]
    if goal.baseline is not None:
        level = y(goal.baseline)
        parts.append(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=level, y2=level, class_="guard"))
        parts.append(el("text", "baseline", x=WIDTH - RIGHT - 4, y=level - 5, text_anchor="end"))
    parts.append(el("path", d=_best(goal, x, y), class_="path for"))
    parts += [_mark(one, x(at), y(one.value)) for at, one in enumerate(goal.entries) if one.value is not None]
    step = max(1, count // 16)
    parts += [
        el("text", str(one.round), x=x(at), y=HEIGHT - 8, text_anchor="middle")
        for at, one in enumerate(goal.entries)
        if at % step == 0
    ]
    return el("svg", *parts, class_="chart", viewBox=f"0 0 {shown(WIDTH)} {shown(HEIGHT)}", role="img")


def _scale(low: float, high: float, y: Callable[[float], float]) -> list[Html]:
    rows: list[Html] = []
    for value in ticks(low, high, 5):
        if low <= value <= high:
            at = y(value)
            rows.append(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
            rows.append(el("text", f"{value:.6g}", x=LEFT - 8, y=at + 4, text_anchor="end"))
    return rows


def _best(goal: Standing, x: Callable[[int], float], y: Callable[[float], float]) -> str:
    """The line of the best so far: level, and a step where an attempt was kept."""
    path, best = "", goal.baseline
    if best is not None:
        path = f"M{shown(LEFT)} {shown(y(best))}"
    for at, one in enumerate(goal.entries):
        if one.kept and one.value is not None:
            best = one.value
            path += f"H{shown(x(at))}V{shown(y(best))}" if path else f"M{shown(x(at))} {shown(y(best))}"
    return f"{path}H{shown(WIDTH - RIGHT)}" if path else ""


def _mark(one: Entry, x: float, y: float) -> Html:
    words = f"{one.id}: {one.status}, {one.text}"
    return el("circle", el("title", words), cx=x, cy=y, r=5.0, class_=f"dot {one.kind}")
