"""The live pages: values to markup. Whatever came from a candidate, a log or a ledger is escaped by el()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cartlab.loops.live.facts import Detail, Entry, Standing, newest
from cartlab.loops.live.trend import trend
from cartlab.report.markup import Child, Html, el, join
from cartlab.report.style import STYLE
from cartlab.words import counted

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MORE = Html("""
nav { display:flex; gap:18px; margin:0 0 18px; font-size:14px; flex-wrap:wrap }
a { color:var(--accent) }
.dot { stroke:var(--card); stroke-width:1.5; fill:var(--undecided) }
.dot.kept,.word.kept { fill:var(--kept); color:var(--kept) }
.dot.small,.word.small { fill:var(--small); color:var(--small) }
.dot.slower,.word.slower { fill:var(--slower); color:var(--slower) }
.dot.failed,.word.failed { fill:var(--failed); color:var(--failed) }
.word { font-weight:600; white-space:nowrap }
.trend { padding:8px 8px 2px; margin-top:10px; overflow-x:auto }
.trend .chart { min-width:640px }
dl.steps dd { text-align:left }
pre.diff,pre.log {
  font:12.5px/1.45 ui-monospace,"SF Mono",Menlo,Consolas,monospace; background:var(--card);
  border:1px solid var(--line); border-radius:10px; padding:12px 14px; margin:6px 0 0;
}
pre.diff { white-space:pre; overflow-x:auto }
.add { color:var(--kept) } .cut { color:var(--failed) } .at { color:var(--soft) }
td.wide { overflow-wrap:anywhere; min-width:220px }
.now { border-left:4px solid var(--accent); padding-left:12px }
""")


def document(title: str, *parts: Child) -> str:
    """A whole page."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("title", title),
        el("style", STYLE, MORE),
    )
    links = el(
        "nav",
        el("a", "loops", href="/"),
        el("a", "ledger", href="/ledger"),
        el("a", "speed report", href="/report"),
        el("a", "data", href="/data.json"),
    )
    body = el("body", el("main", links, *parts))
    return f"<!doctype html>{el('html', head, body, lang='en')}"


def overview(goals: Sequence[Standing]) -> str:
    """The first page: the goal that changed last in full, the others as a list."""
    if not goals:
        words = "No loop was opened in this root yet. The ledger and the speed report have what there is."
        return document("loops", el("h1", "Loops"), el("p", words))
    first, *rest = goals
    others = [
        el(
            "li",
            el("a", one.id, href=f"/goal/{quote(one.id, safe='')}"),
            f" {one.loop}, {one.state}, {counted(len(one.entries), 'attempt')}",
        )
        for one in rest
    ]
    more = join(el("h2", "Other goals"), el("ul", *others)) if others else None
    return document(f"{first.id}: {first.state}", goal_part(first), more)


def goal_page(goal: Standing) -> str:
    """One goal."""
    return document(f"{goal.id}: {goal.state}", goal_part(goal))


def goal_part(goal: Standing) -> Html:
    """A goal's head, drawing and table."""
    kept = sum(one.kept for one in goal.entries)
    running = [one for one in goal.entries if one.open]
    drawing = trend(goal)
    tiles = [
        ("state", goal.state, goal.loop if goal.reason in ("", goal.state) else goal.reason),
        ("best so far", _value(goal.best), f"{goal.metric}, {goal.direction} is better"),
        ("baseline", _value(goal.baseline), goal.metric),
        ("attempts", str(len(goal.entries)), f"{kept} kept"),
    ]
    return join(
        el("h1", goal.id),
        el("p", f"last change {goal.changed}", class_="facts"),
        el("ul", *(el("li", el("span", n), el("b", v), el("small", w)) for n, v, w in tiles), class_="tiles"),
        el("h2", "Trend"),
        el("div", drawing, class_="card trend") if drawing else el("p", "No attempt has a value yet."),
        _running(running),
        el("h2", "Attempts"),
        _table(goal.entries),
    )


def _running(entries: Sequence[Entry]) -> Html | None:
    if not entries:
        return None
    one = entries[-1]
    link = el("a", one.id, href=_link(one.id))
    return join(el("h2", "Now"), el("p", link, f": {one.status}. {one.tried}", class_="now"))


def _value(value: float | None) -> str:
    return "none yet" if value is None else f"{value:.9g}"


def _link(name: str) -> str:
    return f"/attempt/{quote(name, safe='')}"


def _table(entries: Sequence[Entry]) -> Html:
    columns = ("round", "attempt", "verdict", "value", "tried", "why")
    head = el("tr", *(el("th", n, class_="num" if n in ("round", "value") else None) for n in columns))
    rows = [
        el(
            "tr",
            el("td", str(one.round), class_="num"),
            el("td", el("a", one.id, href=_link(one.id))),
            el("td", el("span", one.status, class_=f"word {one.kind}")),
            el("td", one.text, class_="num"),
            el("td", one.tried, class_="wide"),
            el("td", one.why, class_="wide"),
        )
        for one in reversed(entries)
    ]
    return el("div", el("table", el("thead", head), el("tbody", *rows)), class_="wrap")


def attempt_page(found: Detail) -> str:
    """One attempt: verdict, difference, runs, the ends of its logs, its steps."""
    one = found.entry
    runs = [
        el("tr", *(el("td", str(cell), class_="num" if at != 1 else None) for at, cell in enumerate(run)))
        for run in found.runs
    ]
    titles = el(
        "tr", *(el("th", n, class_=None if n == "run" else "num") for n in ("event", "run", "value", "time"))
    )
    logs = [join(el("h3", name), el("pre", end, class_="log")) for name, end in found.logs]
    steps = [join(el("dt", name), el("dd", words)) for name, words in found.steps]
    return document(
        f"{one.id}: {one.status}",
        el("h1", one.id),
        el(
            "p",
            el("span", one.status, class_=f"word {one.kind}"),
            f" {one.text} · round {one.round} of ",
            el("a", found.goal, href=f"/goal/{quote(found.goal, safe='')}"),
        ),
        el("p", one.tried) if one.tried else None,
        el("p", one.why, class_="soft") if one.why else None,
        el("h2", "Difference"),
        diff(found.patch) if found.patch else el("p", "Nothing was handed in yet.", class_="soft"),
        el("h2", "Runs"),
        el("div", el("table", el("thead", titles), el("tbody", *runs)), class_="wrap"),
        el("h2", "Logs, the newest first"),
        *(logs or [el("p", "No output yet.", class_="soft")]),
        el("h2", "Steps"),
        el("dl", *steps, class_="steps"),
    )


def diff(patch: str) -> Html:
    """A difference with its lines told apart."""
    names = {"+": "add", "-": "cut", "@": "at"}
    lines = [el("span", line + "\n", class_=names.get(line[:1])) for line in patch.split("\n")]
    return el("pre", *lines, class_="diff")


def ledger_page(events: Sequence[Mapping[str, Any]]) -> str:
    """The newest events."""
    head = el("tr", *(el("th", name) for name in ("event", "time", "type", "attempt", "what")))
    rows = [
        el("tr", el("td", str(seq), class_="num"), *(el("td", cell) for cell in cells[:-1]), _code(cells[-1]))
        for seq, *cells in newest(events)
    ]
    table = el("div", el("table", el("thead", head), el("tbody", *rows)), class_="wrap")
    return document(
        "ledger", el("h1", "Ledger"), el("p", f"{counted(len(events), 'event')}, newest first"), table
    )


def _code(words: str) -> Html:
    return el("td", el("code", words), class_="wide")


def message(title: str, words: str) -> str:
    """A page that says why there is none."""
    return document(title, el("h1", title), el("p", words))
