"""The page's sections of evidence: the forest plot, a card a candidate, noise, refusals, checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cartlab.report import blockcharts, forest
from cartlab.report.facts import FAILED, SLOWER, Candidate, Diagnostics, Noise, Together
from cartlab.report.markup import Html, el, join
from cartlab.report.scale import bounds, e_value, moment, percent, ratio
from cartlab.words import counted

# More rows than this are folded away: the newest are what one looks for.
OPEN_ROWS = 40
# Drops for one reason differ in their numbers alone.
_NUMBERS = re.compile(r"[0-9.]+")


def candidates(found: Sequence[Candidate]) -> Html:
    """The forest plot. Its rows are a table, so that the numbers are there without the drawing."""
    heading = el("h2", "Candidates", id="candidates")
    if not found:
        return join(heading, el("p", "No candidate was measured in this root yet.", class_="soft"))
    scale = forest.scale_of(found)
    guard, margin = found[-1].guard, found[-1].margin
    key = el(
        "p",
        el("span", el("i", class_="k-one"), "1.0, no change"),
        el("span", el("i", class_="k-guard"), f"guard {guard:.3f}, worth a commit"),
        el("span", el("i", class_="k-margin"), f"margin {margin:.3f}, a full keep"),
        class_="key",
    )
    words = (
        "Speed as candidate / baseline, oldest first; of each pair of revisions the newest attempt. The mark "
        "is the Hodges-Lehmann estimate, the bar reaches from the lower to the upper bound; each bound errs "
        f"at most {found[-1].alpha:.0%} of the time however often one looks. A dotted half has no bound yet."
    )
    parts = [heading, el("p", words, class_="soft"), forest.legend(), key]
    old, new = found[:-OPEN_ROWS], found[-OPEN_ROWS:]
    parts.append(_forest_table(new, scale, guard, margin))
    if old:
        more = el("summary", f"{counted(len(old), 'older candidate')}")
        parts.append(el("details", more, _forest_table(old, scale, guard, margin)))
    return join(*parts)


def _forest_table(found: Sequence[Candidate], scale: Any, guard: float, margin: float) -> Html:
    # The roles stand there because a narrow screen shows the rows as blocks: no table, but for them.
    head = el(
        "tr",
        el("th", "candidate", scope="col", role="columnheader", class_="who"),
        el("th", forest.axis(scale, guard, margin), scope="col", role="columnheader", class_="plot"),
        el("th", "verdict", scope="col", role="columnheader", class_="says"),
        role="row",
    )
    rows = [_forest_row(candidate, scale) for candidate in found]
    parts = el("thead", head, role="rowgroup"), el("tbody", *rows, role="rowgroup")
    return el("table", *parts, role="table", class_="forest")


def _forest_row(one: Candidate, scale: Any) -> Html:
    kind = one.kind
    who = el(
        "th",
        el("code", one.commit[:10]),
        f" {one.name}" if one.name not in ("HEAD", one.commit) else "",
        el("small", one.title) if one.title else None,
        el("small", f"{moment(one.at)}, {one.command}" + (f", {', '.join(one.marks)}" if one.marks else "")),
        scope="row",
        role="rowheader",
        class_="who",
    )
    drawing = forest.row(one, scale)
    empty = el("span", "no estimate", class_="none") if one.hl is None else None
    numbers = (
        f"{ratio(one.hl)}, {bounds(one.lcb, one.ucb)}; {counted(one.used, 'block')}"
        if one.hl is not None
        else (one.reasons[0] if one.reasons else "nothing was measured")
    )
    says = el(
        "td",
        forest.badge(kind),
        " ",
        el("span", one.status, class_="status"),
        el("small", numbers),
        role="cell",
        class_="says",
    )
    return el("tr", who, el("td", drawing, empty, role="cell", class_="plot"), says, role="row")


def evidence_cards(found: Sequence[Candidate]) -> Html:
    """One card a candidate that has blocks: wealth, values, witnesses; newest first."""
    shown = [c for c in reversed(found) if c.diagnostics is not None and c.diagnostics.points]
    if not shown:
        return Html("")
    alpha = shown[0].alpha
    key = el(
        "p",
        el("span", el("i", class_="k-for"), "wealth of the bet that it is faster than the guard"),
        el("span", el("i", class_="k-against"), "of the bet that it is not"),
        el("span", el("i", class_="k-alpha"), f"1/alpha = {1.0 / alpha:g}: decided"),
        class_="key",
    )
    words = (
        "Above, how much evidence there is after each block (log scale). Below, what each block said: discs "
        "where the baseline ran first, squares where the candidate did, crosses for dropped blocks; left of "
        "a dotted line are blocks of earlier attempts. Drift, sides and the BCa interval decide nothing."
    )
    measured = sum(c.used > 0 for c in found)
    rest = measured - len(shown)
    more = (
        el("p", f"{rest} candidates without a card are in the table above.", class_="soft")
        if rest > 0
        else None
    )
    cards = [_card(candidate) for candidate in shown]
    return join(
        el("h2", "Evidence of each candidate", id="evidence"),
        el("p", words, class_="soft"),
        key,
        el("div", *cards, class_="cards"),
        more,
    )


def _card(one: Candidate) -> Html:
    found = one.diagnostics
    assert found is not None
    label = f"{one.commit[:10]} {one.name}".strip()
    head = el("h3", forest.badge(one.kind), " ", el("code", one.commit[:10]), f" {one.status}")
    title = el("div", one.title or one.name, class_="facts")
    charts = [
        el("figure", blockcharts.wealth(found, one.alpha, one.guard, label)),
        el("figure", blockcharts.values(found, one.hl, label)),
    ]
    rows = [
        ("estimate (Hodges-Lehmann)", ratio(one.hl, 4)),
        ("bounds, at any time", bounds(one.lcb, one.ucb)),
        (f"BCa {found.bca_level:.0%}, if planned", "none" if found.bca is None else bounds(*found.bca)),
        (f"e-value against ≤ {one.guard:.3f}", e_value(one.e_value)),
        *_block_rows(one),
        *((f"{half} half ({count})", ratio(hl, 4)) for half, count, hl in one.halves),
        *_side_rows(found),
        *_witness_rows(one),
        *([("checks", one.checks.replace("_", " "))] if one.checks else []),
    ]
    notes = [*one.disagree, *_notes(found)]
    return el(
        "article",
        head,
        title,
        *charts,
        _definitions(rows),
        el("ul", *(el("li", note, class_="warn" if note in one.disagree else None) for note in notes))
        if notes
        else None,
        class_="card evidence",
    )


def _definitions(rows: Sequence[tuple[str, str]]) -> Html:
    return el("dl", *(join(el("dt", name), el("dd", value)) for name, value in rows))


def _block_rows(one: Candidate) -> list[tuple[str, str]]:
    rows = [("blocks", f"{one.used}" + ("" if one.faster is None else f", {one.faster} faster"))]
    if one.pooled:
        rows.append(("of these from earlier runs", str(one.pooled)))
    return [*rows, ("dropped", str(one.dropped))]


def _side_rows(found: Diagnostics) -> list[tuple[str, str]]:
    (n0, hl0), (n1, hl1) = found.by_coin
    drift = "unknown"
    if found.drift_rho is not None and found.drift_p is not None:
        drift = f"rho {found.drift_rho:+.2f}, p {found.drift_p:.2f}"
    return [
        ("spread of a block", percent(found.sd)),
        (f"baseline first ({n0})", ratio(hl0, 4)),
        (f"candidate first ({n1})", ratio(hl1, 4)),
        ("going first gains", percent(found.role_effect)),
        ("drift (Spearman)", drift),
    ]


def _witness_rows(one: Candidate) -> list[tuple[str, str]]:
    return [
        ("witness: CPU time", "none" if one.cpu is None else ratio(one.cpu)),
        ("witness: instructions", "none" if one.instructions is None else ratio(one.instructions)),
    ]


def _notes(found: Diagnostics) -> list[str]:
    """Disturbed blocks by their kind of reason, a drift that stands out, and what could not be computed."""
    kinds: dict[tuple[str, bool], list[int]] = {}
    for at, point in enumerate(found.points, 1):
        if point.dropped is not None:
            kinds.setdefault((_NUMBERS.sub("", point.dropped), point.counts), []).append(at)
    out = []
    for (_, counts), places in kinds.items():
        word = "disturbed, yet counted by a forced run" if counts else "dropped"
        where = f"block {places[0]}" if len(places) == 1 else f"blocks {', '.join(map(str, places))}"
        first = found.points[places[0] - 1].dropped
        out.append(f"{where} {word}: {first}" if len(places) == 1 else f"{where} {word}; the first: {first}")
    if found.drift_p is not None and found.drift_p < 0.01:
        out.append("the blocks drift: values later in the sequence differ from earlier ones")
    return [*out, *found.missing]


def noise_floor(found: Sequence[Noise]) -> Html:
    """What this machine makes of a revision against itself."""
    heading = el("h2", "Noise floor", id="noise")
    if not found:
        words = "No calibration is recorded: this machine's noise is not known, and the guard stays at 1.01."
        return join(heading, el("p", words, class_="soft"))
    words = "Calibrations compare a revision with itself: what they show is the machine, not the code."
    return join(
        heading,
        el("p", words, class_="soft"),
        el("div", *(_noise_card(one) for one in found), class_="cards"),
    )


def _noise_card(one: Noise) -> Html:
    label = f"calibration of {one.commit[:10]}"
    age = f"{one.age_days:.1f} days" + (", a week or more: calibrate again" if one.age_days > 7.0 else "")
    rows = [
        ("host class", f"{one.host_class}{' (this one)' if one.this_host else ''}"),
        ("age", age),
        ("A/A estimate", ratio(one.hl, 4)),
        ("A/A spread of a block (sd)", percent(one.diagnostics.sd)),
        ("relink floor", "not measured" if one.relink_floor is None else percent(one.relink_floor)),
        ("blocks", str(one.used)),
        *_side_rows(one.diagnostics)[1:],
    ]
    notes = _notes(one.diagnostics)
    return el(
        "article",
        el("h3", label),
        el("div", moment(one.at), class_="facts"),
        el("figure", blockcharts.values(one.diagnostics, one.hl, label)),
        _definitions(rows),
        el("ul", *(el("li", note) for note in notes)) if notes else None,
        class_="card noise",
    )


def together(found: Together | None) -> Html:
    """e-BH over the round's candidates."""
    if found is None or not found.rows:
        return Html("")
    stand = sum(row[2] for row in found.rows)
    words = (
        f"{stand} of the round's {len(found.rows)} candidates stand at once: among those named so, the "
        f"expected share of wrong ones is at most {found.alpha:.0%} (e-BH). A run stops once it has proven "
        "its own claim, so that among many candidates a single keep often does not reach this stricter bar."
    )
    head = el("tr", el("th", "candidate", scope="col"), el("th", "e-value", scope="col", class_="num"),
              el("th", "stands", scope="col"))  # fmt: skip
    rows = [
        el(
            "tr",
            el("th", name, scope="row"),
            el("td", e_value(value), class_="num"),
            el("td", "yes" if stands else "no"),
        )
        for name, value, stands in found.rows
    ]
    table = el("div", el("table", el("thead", head), el("tbody", *rows)), class_="wrap")
    return join(
        el("h2", "The round's candidates together", id="together"), el("p", words, class_="soft"), table
    )


def not_kept(found: Sequence[Candidate]) -> Html:
    """What was rejected or failed, each with its reasons."""
    rejected = [c for c in reversed(found) if c.kind in (SLOWER, FAILED)]
    heading = el("h2", "Not kept, and why", id="rejects")
    if not rejected:
        return join(heading, el("p", "Nothing was rejected.", class_="soft"))
    head = el("tr", *(el("th", name, scope="col") for name in ("candidate", "status", "reasons")))
    rows = [
        el(
            "tr",
            el("th", el("code", c.commit[:10]), f" {c.title or c.name}", scope="row"),
            el("td", forest.badge(c.kind), " ", c.status),
            el("td", "; ".join(c.reasons) or "none given"),
        )
        for c in rejected
    ]
    return join(heading, el("div", el("table", el("thead", head), el("tbody", *rows)), class_="wrap"))


def checks(found: Sequence[str]) -> Html:
    """The recorded runs of checks, newest first."""
    heading = el("h2", "Checks", id="checks")
    if not found:
        return join(heading, el("p", "No run of checks is recorded.", class_="soft"))
    return join(heading, el("ul", *(el("li", line) for line in reversed(found))))


def session(lines: Sequence[str]) -> Html:
    """The lines of `report --session`, folded away."""
    if not lines:
        return Html("")
    folded = el(
        "details", el("summary", "Repository, artefacts, limits"), el("pre", "\n".join(lines), class_="mono")
    )
    return join(el("h2", "The session", id="session"), folded)


def how_to_read() -> Html:
    """What the numbers promise, in short."""
    lines = (
        "A block is the sample: both revisions in fresh processes, slices in mirrored order, a recorded coin "
        "for which side goes first. Its value is the ratio of their speeds.",
        "The bounds hold at any time, over any number of looks: a rerun continues the sequence and is no new "
        "ticket. For a ratio other than 1 this supposes noise that is symmetric around the true log ratio.",
        "A keep needs a lower bound at the margin, a small gain one at the guard, and checks that pass. "
        "The estimate alone never decides. Screens promote a no-op now and then: they are a filter.",
        "Witnesses (CPU time, instructions) decide nothing; a card says where they point the other way.",
    )
    return join(el("h2", "How to read this"), el("ul", *(el("li", line) for line in lines)))
