"""What the live page shows of a root, as plain values: all loops' goals, their attempts, the newest events.

Pure over events, but for the logs and patches of an attempt's own folder, which are read within limits and
only where they are plain files in that folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.loops import goals
from cartlab.loops.commands import plain, tail
from cartlab.loops.goals import Goal, Try
from cartlab.report.facts import kind_of

Event = Mapping[str, Any]
PATCH_CAP = 200_000
NEWEST = 200


@dataclass(frozen=True)
class Entry:
    """One attempt of a goal. value: None while there is none; kind: the report's word for its status."""

    id: str
    round: int
    status: str
    kind: str
    value: float | None
    text: str
    tried: str
    why: str
    kept: bool
    open: bool


@dataclass(frozen=True)
class Standing:
    """A goal. direction: "higher" | "lower" is better; baseline: None where none is known."""

    id: str
    loop: str
    state: str
    reason: str
    metric: str
    direction: str
    baseline: float | None
    best: float | None
    changed: str
    entries: tuple[Entry, ...]


def standings(events: Sequence[Event]) -> list[Standing]:
    """All goals, the one that changed last first."""
    found = [_standing(goal) for goal in goals.fold(events).values()]
    return sorted(found, key=lambda one: one.changed, reverse=True)


def _standing(goal: Goal) -> Standing:
    journal = goal.body.get("journal")
    terms: Mapping[str, Any] = journal or goal.body.get("protocol") or {}
    entries = tuple(entry(one) for one in goal.tries)
    direction = str(terms.get("direction") or "higher")
    segment = [one for one, tried in zip(entries, goal.tries, strict=True) if tried.segment == goal.segment]
    kept = [one.value for one in segment if one.kept and one.value is not None]
    # A journal's baseline is its first experiment.
    first = next((one.value for one in segment if one.value is not None), None)
    baseline = first if journal else _number(terms.get("baseline"))
    known = [value for value in (*kept, baseline) if value is not None]
    best = (max(known) if direction == "higher" else min(known)) if known else None
    return Standing(
        goal.id,
        goal.loop,
        goal.state,
        goal.reason,
        str(terms.get("metric") or "value"),
        direction,
        baseline,
        best,
        goal.changed,
        entries,
    )


def entry(one: Try) -> Entry:
    """An attempt as a row."""
    decision = one.decision or {}
    proposed, submitted = one.steps.get("proposed", {}), one.steps.get("submitted", {})
    tried = submitted.get("strategy") or proposed.get("hypothesis") or ""
    if isinstance(tried, Mapping):
        # A campaign's hypothesis.
        tried = tried.get("change") or ""
    status = one.status or one.state or "new"
    value = _number(decision.get("value"))
    shown = decision.get("text") or ("" if value is None else f"{value:.9g}")
    why = decision.get("insight") or decision.get("note") or decision.get("reason") or ""
    return Entry(
        one.id,
        one.round,
        status,
        "undecided" if one.status is None else kind_of(status).name,
        value,
        str(shown),
        plain(str(tried), 300),
        plain(str(why), 600),
        one.kept,
        one.state != "closed",
    )


def _number(value: Any) -> float | None:
    try:
        found = None if value is None else float(value)
    except (TypeError, ValueError):
        return None
    return found if found is not None and math.isfinite(found) else None


@dataclass(frozen=True)
class Detail:
    """One attempt in full. runs: what the harness measured; patch: its difference, cut at a limit; logs:
    (name, end) of its commands' output, the newest first.
    """

    goal: str
    entry: Entry
    steps: tuple[tuple[str, str], ...]
    runs: tuple[tuple[int, str, str, str], ...]
    patch: str
    logs: tuple[tuple[str, str], ...]


def detail(events: Sequence[Event], root: Path, name: str) -> Detail | None:
    """The attempt of that exact id, None where there is none."""
    for goal in goals.fold(events).values():
        for one in goal.tries:
            if one.id == name:
                folder = root / "benchmarks" / "runs" / one.id
                return Detail(
                    goal.id,
                    entry(one),
                    tuple((state, _short(body)) for state, body in one.steps.items()),
                    tuple(_run(seq, body) for seq, body in one.measurements),
                    _patch(folder, root),
                    _logs(folder, root),
                )
    return None


def _run(seq: int, body: Mapping[str, Any]) -> tuple[int, str, str, str]:
    value = body.get("text") or ("" if body.get("value") is None else f"{body['value']:.9g}")
    seconds = body.get("seconds")
    return seq, str(body["role"]), str(value), "" if seconds is None else f"{seconds:.1f} s"


def _short(body: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in body.items() if key not in ("goal", "round", "state", "tasks")}
    return plain(json.dumps(kept, ensure_ascii=False), 400)


def _within(folder: Path, root: Path) -> list[Path]:
    """The plain files of an attempt's folder; none where a name leads elsewhere."""
    runs = (root / "benchmarks" / "runs").resolve()
    if not folder.is_dir() or folder.is_symlink() or folder.resolve().parent != runs:
        return []
    return [path for path in folder.iterdir() if path.is_file() and not path.is_symlink()]


def _patch(folder: Path, root: Path) -> str:
    for path in _within(folder, root):
        if path.name == "patch.diff":
            with path.open("rb") as file:
                data = file.read(PATCH_CAP + 1)
            cut = f"\n[cut after {PATCH_CAP} bytes]" if len(data) > PATCH_CAP else ""
            return data[:PATCH_CAP].decode("utf-8", "replace") + cut
    return ""


def _logs(folder: Path, root: Path) -> tuple[tuple[str, str], ...]:
    found = [path for path in _within(folder, root) if path.suffix in (".out", ".err", ".log")]
    found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    ends = ((path.name, tail(path)) for path in found)
    return tuple((name, end) for name, end in ends if end)[:8]


def newest(events: Sequence[Event], count: int = NEWEST) -> list[tuple[int, str, str, str, str]]:
    """The last events, newest first: seq, time, type, attempt, and what it says in a line."""
    rows = []
    for event in reversed(events[-count:]):
        body = event["body"]
        words = _short(body) if isinstance(body, Mapping) else ""
        rows.append((event["seq"], event["time"], event["type"], event["attempt"] or "", words))
    return rows
