"""The report as Markdown lines: the page's numbers without its drawings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cartlab.report.facts import SCHEMA, Candidate, Page
from cartlab.report.scale import bounds, e_value, moment, percent, ratio
from cartlab.words import counted

_ACTIVE = re.compile(r"([\\`*_\[\]<>|])")


def plain(value: str) -> str:
    """A text on one line in which nothing is markup."""
    return _ACTIVE.sub(r"\\\1", " ".join(value.split()))


def markdown_lines(page: Page) -> list[str]:
    """The whole report."""
    goal = page.round.title if page.round else ""
    out = [
        f"<!-- {SCHEMA} -->",
        f"# {plain(page.project)}: {plain(goal) or 'speed report'}",
        "",
        f"root {plain(page.root)}, branch {plain(page.branch or 'none')}, {counted(page.events, 'event')}, "
        f"{counted(page.attempts, 'attempt')}, written {moment(page.written_at)} UTC",
        *(f"\n> {plain(remark)}" for remark in page.remarks),
        "",
        "## What to do next",
        "",
        *(f"{at}. {plain(str(one['reason']))}: `{one['command']}`" for at, one in enumerate(page.next, 1)),
        "",
        "## The round",
        "",
        *_round(page),
        "",
        "## Candidates",
        "",
        *_table(page.candidates),
        "",
        "## Noise floor",
        "",
        *_noise(page),
    ]
    if page.together and page.together.rows:
        out += ["", f"## Together (e-BH at {page.together.alpha:.0%})", ""]
        out += [
            f"- {plain(name)}: e-value {e_value(value)}, {'stands' if stands else 'does not stand'}"
            for name, value, stands in page.together.rows
        ]
    out += ["", "## Checks", "", *([f"- {plain(line)}" for line in page.checks] or ["none recorded"])]
    return out


def _round(page: Page) -> list[str]:
    found = page.round
    if found is None:
        return ["No round was opened."]
    return [
        f"- {found.id}: {found.state}{', strict' if found.strict else ''}, baseline {found.baseline[:12]}",
        *([f"- {plain(found.why)}"] if found.why else []),
        f"- best estimate {ratio(found.best_estimate, 4)}, target {found.target:.3f}",
        f"- best lower bound {ratio(found.best_lcb, 4)}, bar of the confirm run {found.confirm_bar:.3f}",
        *(f"- accepted {one.commit[:12]}: {one.status}, {one.estimate:.4f}" for one in found.accepted),
    ]


def _table(found: Sequence[Candidate]) -> list[str]:
    if not found:
        return ["No candidate was measured."]
    head = [
        "time",
        "candidate",
        "command",
        "status",
        "estimate",
        "bounds",
        "e-value",
        "blocks",
        "witnesses",
        "reasons",
    ]
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for c in found:
        seen = [f"CPU {ratio(c.cpu)}"] if c.cpu is not None else []
        seen += [f"instructions {ratio(c.instructions)}"] if c.instructions is not None else []
        seen += ["**disagree**"] if c.disagree else []
        cells = [
            moment(c.at),
            f"{c.commit[:10]} {plain(c.title or c.name)}",
            plain(c.command + "".join(f", {mark}" for mark in c.marks)),
            plain(c.status),
            ratio(c.hl, 4),
            bounds(c.lcb, c.ucb),
            e_value(c.e_value),
            f"{c.used} ({c.dropped} dropped)",
            ", ".join(seen) or "none",
            plain("; ".join((*c.reasons, *c.disagree))),
        ]
        out.append("| " + " | ".join(cells) + " |")
    return out


def _noise(page: Page) -> list[str]:
    return [
        f"- {moment(one.at)} {one.commit[:10]} on {one.host_class}{' (this host)' if one.this_host else ''}: "
        f"A/A estimate {ratio(one.hl, 4)}, spread of a block {percent(one.diagnostics.sd)}, relink floor "
        f"{percent(one.relink_floor)}, {counted(one.used, 'block')}, {one.age_days:.1f} days old"
        for one in page.noise
    ] or ["No calibration is recorded."]
