"""The report as one HTML page that needs nothing else: no script, no font, no picture, no network.

Its policy (default-src 'none') forbids a browser to fetch or run anything, whatever a ledger holds. Sections
of evidence are in sections.py; here are the frame, what comes first and the round.
"""

from __future__ import annotations

from cartlab.report import sections
from cartlab.report.facts import KEPT, SCHEMA, SMALL, Page, Round
from cartlab.report.forest import meter
from cartlab.report.markup import Html, el, join
from cartlab.report.scale import moment, percent, ratio
from cartlab.report.style import STYLE
from cartlab.words import counted

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_page(page: Page) -> str:
    """The whole file."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="generator", content=SCHEMA),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", f"{page.root}: speed report"),
        el("style", STYLE),
    )
    parts = [
        _top(page),
        _remarks(page),
        _next(page),
        _round(page.round),
        sections.candidates(page.candidates),
        sections.evidence_cards(page.candidates),
        sections.noise_floor(page.noise),
        sections.together(page.together),
        sections.not_kept(page.candidates),
        sections.checks(page.checks),
        sections.session(page.session_text),
        sections.how_to_read(),
    ]
    return "<!doctype html>\n" + el("html", head, el("body", el("main", *parts)), lang="en") + "\n"


def _top(page: Page) -> Html:
    facts = [
        f"root {page.root}",
        f"branch {page.branch or 'none (detached HEAD)'}",
        *([f"HEAD {page.commit[:10]}"] if page.commit else []),
        f"{counted(page.events, 'event')}, {counted(page.attempts, 'attempt')}",
        f"written {moment(page.written_at)} UTC",
    ]
    goal = page.round.title if page.round else ""
    return join(
        el("h1", f"{page.project}: {goal or 'speed report'}"),
        el("div", *(el("span", fact) for fact in facts), class_="facts"),
        el("ul", *_tiles(page), class_="tiles"),
    )


def _tiles(page: Page) -> list[Html]:
    pairs: dict[tuple[str, str], bool] = {}
    for one in (c for c in page.candidates if c.own):
        pair = one.baseline, one.commit
        pairs[pair] = pairs.get(pair, False) or one.kind in (KEPT, SMALL)
    noise = next((n for n in page.noise if n.this_host), None)
    out = [_tile("round", page.round.state if page.round else "none open", _round_words(page.round))]
    best = page.round.best_estimate if page.round else None
    if best is not None and page.round is not None:
        words = f"lower bound {ratio(page.round.best_lcb)}, target {page.round.target:.2f}"
        out.append(_tile("best against the baseline", ratio(best, 4), words))
    out.append(
        _tile(
            "candidates",
            f"{sum(pairs.values())} kept of {len(pairs)}",
            "pairs of revisions that were measured",
        )
    )
    if noise is None:
        out.append(_tile("noise of this host", "not measured", "run calibrate"))
    else:
        floor = (
            "no relink floor" if noise.relink_floor is None else f"relink floor {percent(noise.relink_floor)}"
        )
        out.append(
            _tile("noise of a block", percent(noise.diagnostics.sd), f"{floor}, {_age(noise.age_days)}")
        )
    return out


def _tile(name: str, value: str, words: str) -> Html:
    return el("li", el("span", name), el("b", value), el("small", words))


def _round_words(found: Round | None) -> str:
    return "every command works as typed" if found is None else f"baseline {found.baseline[:10]}, fixed"


def _age(days: float) -> str:
    return "measured today" if days < 1.0 else f"{counted(round(days), 'day')} old"


def _remarks(page: Page) -> Html:
    if not page.remarks:
        return Html("")
    return el("div", *(el("p", remark) for remark in page.remarks), class_="card remarks", role="note")


def _next(page: Page) -> Html:
    items = [
        el("li", str(one["reason"]), el("code", str(one["command"]), class_="line")) for one in page.next
    ]
    body = el("ol", *items, class_="actions") if items else el("p", "Nothing is proposed.", class_="soft")
    return join(el("h2", "What to do next"), el("div", body, class_="card next"))


def _round(found: Round | None) -> Html:
    if found is None:
        words = "No round was opened in this root: there is no baseline to add up against."
        return join(el("h2", "The round"), el("p", words, class_="soft"))
    best = max(found.target, found.best_estimate or 1.0, found.best_lcb or 1.0)
    best = 1.0 + 1.15 * (best - 1.0)
    strict = ", strict" if found.strict else ""
    facts = [
        f"round {found.id}",
        f"state {found.state}{strict}",
        f"baseline {found.baseline[:12]}, which does not move",
        *([found.why] if found.why else []),
    ]
    parts = [
        el("div", *(el("span", fact) for fact in facts), class_="facts"),
        meter("best estimate", found.best_estimate, found.target, "target", best),
        meter("best lower bound", found.best_lcb, found.confirm_bar, "bar of the confirm run", best),
    ]
    if found.accepted:
        rows = [
            el(
                "tr",
                el("th", el("code", one.commit[:10]), scope="row"),
                el("td", one.status),
                el("td", ratio(one.estimate, 4), class_="num"),
                el("td", ratio(one.lcb), class_="num"),
            )
            for one in found.accepted
        ]
        head = el(
            "tr",
            *(el("th", name, scope="col") for name in ("accepted", "status")),
            *(el("th", name, scope="col", class_="num") for name in ("estimate", "lower bound")),
        )
        parts.append(el("div", el("table", el("thead", head), el("tbody", *rows)), class_="wrap"))
    else:
        parts.append(el("p", "Nothing was accepted against this baseline yet.", class_="soft"))
    return join(el("h2", "The round"), el("div", *parts, class_="card"))
