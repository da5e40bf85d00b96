"""A goal as the tables of two other tools: karpathy's results.tsv and leo's. Views of the ledger; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cartlab.loops.goals import Goal, Try
from cartlab.loops.states import VIEWS
from cartlab.loops.tsv import Karpathy, KarpathyTable, Leo, LeoTable

FORMATS = ("karpathy", "leo")
_GUARD_FAILS = ("checks_failed", "behaviour_changed", "parity_violation")


def terms_of(goal: Goal) -> Mapping[str, Any]:
    """Metric, direction and baseline of a goal of any loop."""
    found: Mapping[str, Any] = goal.body.get("journal") or goal.body.get("protocol") or {}
    return found


def _tried(one: Try) -> str:
    return str(one.steps.get("submitted", {}).get("strategy") or "")


def _commit(one: Try) -> str:
    return str(one.steps.get("accepted", {}).get("commit") or one.commit or "")[:7]


def _value(one: Try) -> str:
    decision = one.decision or {}
    return str(decision.get("text") or ("" if decision.get("value") is None else decision["value"]))


def karpathy(goal: Goal) -> KarpathyTable:
    """Five columns. A crash has the metric 0 and nobody measured memory, as in the original."""
    rows = []
    for one in goal.closed_rounds():
        word = VIEWS[str(one.status)].karpathy
        value = "0.000000" if word == "crash" else _value(one) or "0.000000"
        rows.append(Karpathy(_commit(one), value, "0.0", word, _tried(one)))
    return KarpathyTable(str(terms_of(goal).get("metric") or "metric"), tuple(rows))


def leo(goal: Goal) -> LeoTable:
    """Seven columns; iteration 0 is the baseline where the goal has one, delta is against the best before."""
    terms = terms_of(goal)
    baseline = terms.get("baseline")
    best = None if baseline in (None, "") else float(baseline)
    rows = [] if best is None else [Leo("0", "-", str(baseline), "0.0", "-", "baseline", "baseline")]
    for number, one in enumerate(goal.closed_rounds(), 1):
        value = (one.decision or {}).get("value")
        delta = "-" if value is None or best is None else f"{float(value) - best:+.6g}"
        guard = "fail" if one.status in _GUARD_FAILS else "pass" if one.kept else "-"
        word = VIEWS[str(one.status)].leo
        commit = _commit(one) if one.kept else "-"
        rows.append(Leo(str(number), commit or "-", _value(one) or "-", delta, guard, word, _tried(one)))
        if value is not None and (one.kept or one.status == "baseline"):
            best = float(value)
    return LeoTable(str(terms.get("direction") or "higher"), tuple(rows))
