"""The shared board: board.jsonl, FINDINGS.md, leaderboard.md, PLAN.md and RESULTS.md from the ledger. Pure.

board.jsonl only grows: each verdict adds one object, in the order of the verdicts. The Markdown files'
rendered parts are made anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cartlab.errors import BadInput
from cartlab.loops.campaign import tables
from cartlab.loops.campaign.hypotheses import ANGLES
from cartlab.loops.campaign.records import Campaign, Experiment
from cartlab.loops.campaign.tables import number
from cartlab.loops.states import VIEWS
from cartlab.model import parsed_json

UNBEATEN = "baseline unbeaten"
ENDED = ("target_reached", "completed", "budget_exhausted", "converged", "stopped_by_user")
SECTIONS = (
    "Champion",
    "What works",
    "What does NOT work",
    "Open directions",
    "Stagnation log",
    "Next levers",
)
_KEYS = ("gen", "exp_id", "metric", "delta", "keep", "verified", "note")


@dataclass(frozen=True)
class Entry:
    """One line of board.jsonl. metric, delta: None where nothing was measured; other: further keys."""

    gen: int
    exp_id: str
    metric: float | None
    delta: float | None
    keep: bool
    verified: bool
    note: str = ""
    other: Mapping[str, Any] = field(default_factory=dict)


class Leader(NamedTuple):
    """One row of leaderboard.md, as its cells; value's column has the metric's name."""

    rank: str
    exp_id: str
    angle: str
    change: str
    value: str
    delta: str
    gen: str


def render(entries: Sequence[Entry]) -> str:
    """The file's text."""
    out = []
    for one in entries:
        body = {key: getattr(one, key) for key in _KEYS} | dict(one.other)
        out.append(json.dumps(body, ensure_ascii=False, allow_nan=False) + "\n")
    return "".join(out)


def parse(text: str) -> tuple[Entry, ...]:
    """The lines again; a blank one is nothing, BadInput names one that cannot be read."""
    out = []
    for at, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            body = parsed_json(line)
            verified = body.get("verified")
            out.append(
                Entry(
                    int(body["gen"]),
                    str(body["exp_id"]),
                    _finite(body.get("metric")),
                    _finite(body.get("delta")),
                    bool(body.get("keep")),
                    # A verdict that is missing counts as none.
                    verified is True or verified == "yes",
                    str(body.get("note") or ""),
                    {key: value for key, value in body.items() if key not in _KEYS},
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(
                f"board.jsonl line {at}: expected an object with gen and exp_id; {error}"
            ) from None
    return tuple(out)


def _finite(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    found = float(value)
    return found if found - found == 0 else None


def entries_of(campaign: Campaign) -> tuple[Entry, ...]:
    """An entry a verdict, in the order in which they were given."""
    decided = sorted(
        (one for one in campaign.experiments if one.decision), key=lambda one: one.one.decided_seq
    )
    return tuple(
        Entry(
            one.gen,
            one.exp_id,
            one.value,
            one.delta,
            one.one.kept,
            one.verified == "yes",
            str(one.decision.get("note") or ""),
        )
        for one in decided
    )


def merged(old: str | None, ours: Sequence[Entry]) -> str:
    """board.jsonl with our entries: lines of others stay where they are, ours are as the ledger has them."""
    wanted = {(one.gen, one.exp_id): one for one in ours}
    out: list[str] = []
    for line in (old or "").split("\n"):
        try:
            [found] = parse(line)
        except (BadInput, ValueError):
            found = None
        if found is None or (found.gen, found.exp_id) not in wanted:
            if line.strip():
                out.append(line + "\n")
            continue
        out.append(render([wanted.pop((found.gen, found.exp_id))]))
    return "".join(out) + render(list(wanted.values()))


# --- the Markdown files ---------------------------------------------------------------------------


def leaders(campaign: Campaign) -> tuple[Leader, ...]:
    """Verified winners alone, best first."""
    return tuple(
        Leader(
            str(rank),
            one.exp_id,
            one.hypothesis.angle,
            one.hypothesis.change,
            str(one.decision["text"]),
            number(one.delta, signed=True),
            str(one.gen),
        )
        for rank, one in enumerate(campaign.leaderboard(), 1)
    )


def leaderboard(campaign: Campaign) -> str:
    """leaderboard.md."""
    rows = leaders(campaign)
    if not rows:
        return f"No verified winner yet{_baseline(campaign)}.\n"
    head = f"{campaign.direction} is better{_baseline(campaign)}."
    columns = [campaign.metric if name == "value" else name for name in Leader._fields]
    return "\n".join([head, "", *tables.lines(columns, rows)]) + "\n"


def _baseline(campaign: Campaign) -> str:
    return f"; the baseline is {campaign.baseline}" if campaign.baseline else ""


def findings(campaign: Campaign) -> dict[str, str]:
    """FINDINGS.md's rendered parts by section."""
    worked = [one for one in campaign.experiments if one.kept]
    failed = [one for one in campaign.experiments if one.decision and not one.kept]
    return {
        "Champion": _champion(campaign),
        "What works": _bullets(
            f"{_name(one)}: {number(one.delta, signed=True)} "
            f"(generation {one.gen}, {one.hypothesis.source}). "
            f"{one.decision.get('audit') or ''}".rstrip()
            for one in worked
        ),
        "What does NOT work": _bullets(
            f"{_name(one)}: {VIEWS[one.decision['status']].campaign[0]}, {one.decision['status']}"
            f"{', ' + number(one.delta, signed=True) if one.delta is not None else ''}. "
            f"{one.decision.get('note') or ''}".rstrip()
            for one in failed
        ),
        "Open directions": _bullets(_open(campaign)),
        "Stagnation log": _bullets(_stagnation(campaign)),
        "Next levers": _bullets(
            f"{lever.title} (rung {lever.rung}, {lever.source or 'no source'})"
            for lever in campaign.levers
            if lever.state == "queued"
        ),
    }


def _champion(campaign: Campaign) -> str:
    champion = campaign.champion
    if champion is None:
        return f"- the baseline stands{_baseline(campaign)}\n"
    return (
        f"- {_name(champion)}: {campaign.metric} = {champion.decision['text']} "
        f"({number(champion.delta, signed=True)}), generation {champion.gen}{_baseline(campaign)}\n"
    )


def _name(one: Experiment) -> str:
    return f"experiment {one.exp_id} ({one.hypothesis.angle}) {one.hypothesis.change}"


def _open(campaign: Campaign) -> list[str]:
    counts = campaign.angle_counts()
    missing = [f"{letter} ({name})" for letter, name in ANGLES.items() if letter not in counts]
    waiting = [f"queued: {_name(one)}" for one in campaign.queued()]
    return [*waiting, *([f"angles without a hypothesis: {', '.join(missing)}"] if missing else [])]


def _stagnation(campaign: Campaign) -> list[str]:
    out = []
    for one in campaign.generations:
        if one.closed:
            brought = f"experiment {one.champion} is champion" if one.champion else "no new champion"
            out.append(f"generation {one.number} (lever {one.lever}, rung {one.rung}): {brought}")
    if out:
        out.append(f"stagnant generations now: {campaign.stagnation} of {campaign.budget.stagnation}")
    return out


def _bullets(texts: Any) -> str:
    found = [" ".join(str(text).split()) for text in texts]
    return "\n".join(f"- {text}" for text in found or ["none yet"]) + "\n"


def plan(campaign: Campaign) -> str:
    """PLAN.md: every generation's hypotheses with their mechanism, size and falsification."""
    head = (
        "exp_id",
        "angle",
        "change",
        "mechanism",
        "expected",
        "falsification",
        "source",
        "builds_on",
        "state",
    )
    out: list[str] = []
    for generation in campaign.generations:
        rows = []
        for one in campaign.of_generation(generation.number):
            idea = one.hypothesis
            spun = (
                f"{idea.builds_on}; {idea.transformation} of {idea.parent}" if idea.parent else idea.builds_on
            )
            expected = f"{idea.expected_delta:+g} {campaign.metric}"
            state = f"{one.status}: {one.pruned}" if one.pruned else one.status
            texts = (idea.angle, idea.change, idea.mechanism, expected, idea.falsification, idea.source)
            rows.append((one.exp_id, *texts, spun, state))
        seed = " (seed matrix)" if generation.seed else ""
        out += [f"## Generation {generation.number}{seed}", "", *tables.lines(head, rows), ""]
        out += [f"- rejected: {' '.join(text.split())}" for text in generation.rejected]
    return "\n".join(out).rstrip() + "\n" if out else "Nothing is planned yet.\n"


def coverage(campaign: Campaign) -> str:
    """IDEA_ANGLES.md's rendered part: how far each angle was explored."""
    counts: dict[str, list[Experiment]] = {letter: [] for letter in ANGLES}
    for one in campaign.experiments:
        counts.setdefault(one.hypothesis.angle, []).append(one)
    rows = [
        (
            letter,
            ANGLES.get(letter, ""),
            str(len(found)),
            str(sum(one.planned for one in found)),
            str(sum(one.kept for one in found)),
            "; ".join(
                f"{one.exp_id} is {one.hypothesis.transformation} of {one.hypothesis.parent}"
                for one in found
                if one.hypothesis.parent
            ),
        )
        for letter, found in counts.items()
    ]
    head = ("angle", "name", "proposed", "to compute", "kept", "spun")
    return "\n".join(["## Coverage", "", *tables.lines(head, rows)]) + "\n"


def results(campaign: Campaign) -> str:
    """RESULTS.md: the best verified configuration, or that the baseline is unbeaten; then all of it."""
    champion, counts = campaign.champion, campaign.angle_counts()
    if campaign.mode == "design_only":
        first = ["Design only: nothing was measured.", "", plan(campaign).rstrip()]
        return "\n".join([*first, "", *_covered(counts)]) + "\n"
    if champion is None:
        over = campaign.goal.state in ENDED or any(one.decision for one in campaign.experiments)
        first = [f"**{UNBEATEN}**{_baseline(campaign)}." if over else "Nothing was measured yet."]
    else:
        commit = str(champion.one.steps.get("accepted", {}).get("commit") or champion.one.commit or "")
        first = [
            f"Best verified configuration: experiment {champion.exp_id}, {campaign.metric} = "
            f"{champion.decision['text']} ({number(champion.delta, signed=True)}){_baseline(campaign)}.",
            "",
            f"- change: {champion.hypothesis.change}",
            f"- {champion.decision.get('audit') or 'its mechanism was not audited'}",
            f"- against the baseline: `git diff {campaign.base[:12]} {commit[:12]}`",
        ]
    first = [f"State: {campaign.goal.state}.", "", *first]
    table = tables.render(tables.rows_of(campaign)).rstrip()
    return "\n".join([*first, "", "## Comparison", "", table, "", *_covered(counts)]) + "\n"


def _covered(counts: Mapping[str, int]) -> list[str]:
    have = ", ".join(f"{letter} ({counts[letter]})" for letter in sorted(counts)) or "none"
    missing = ", ".join(letter for letter in ANGLES if letter not in counts) or "none"
    return ["## Angles", "", f"- covered: {have}", f"- not covered: {missing}"]
