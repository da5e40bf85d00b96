"""The life of an attempt and of a session, and what each verdict is called in the documents' own files.

Source: docs/loops.md. To add a verdict: a row in model.STATUSES and one in VIEWS; test_loops_states.py fails
when one is missing.
"""

from __future__ import annotations

from typing import NamedTuple

from cartlab.errors import NotLegalNow

# From -> to. Whatever is not closed can be interrupted; an interrupted attempt may take up any step again,
# because the process that took the last one is gone.
_STEPS: dict[str, tuple[str, ...]] = {
    "proposed": ("critiqued", "queued", "dispatched", "closed"),
    "critiqued": ("queued", "dispatched", "closed"),
    "queued": ("dispatched", "closed"),
    "dispatched": ("submitted", "decided"),
    "submitted": ("screened", "decided"),
    "screened": ("building", "checking", "measuring", "decided"),
    "building": ("checking", "measuring", "decided"),
    "checking": ("measuring", "decided"),
    "measuring": ("checking", "decided"),
    "decided": ("accepted", "rolled_back"),
    "accepted": ("closed",),
    "rolled_back": ("closed",),
    "closed": (),
}
ATTEMPT_STATES = (*_STEPS, "interrupted")
FIRST = "proposed"

SESSION_STATES = (
    "not_started",
    "running",
    "paused",
    "blocked",
    "target_reached",
    "completed",
    "budget_exhausted",
    "converged",
    "stopped_by_user",
    "design_only",
)
ENDED = ("target_reached", "completed")
# States in which no loop has a next step of its own.
OVER = (*ENDED, "budget_exhausted", "converged", "design_only")


def step(now: str | None, to: str) -> str:
    """The next state of an attempt; NotLegalNow where that step does not exist. None: it has none yet."""
    if now is None:
        allowed: tuple[str, ...] = (FIRST,)
    elif now == "interrupted":
        allowed = tuple(state for state in _STEPS if state != FIRST)
    else:
        allowed = _STEPS[now] if now == "closed" else (*_STEPS[now], "interrupted")
    if to not in allowed:
        raise NotLegalNow(
            f"an attempt that is {now or 'new'} can become {', '.join(allowed) or 'nothing else'}; "
            f"asked for {to}",
            "`show ID` tells what happened to it",
        )
    return to


class Words(NamedTuple):
    """One verdict in each document's words. supervisor: verdict and compliance; journal: status; campaign:
    status and verified; the last three are the `status` columns of tables that people bring along.
    """

    supervisor: tuple[str, str]
    journal: str
    campaign: tuple[str, str]
    karpathy: str
    speed: str
    leo: str


_OK, _NO = "✅", "❌"
_NOT = ("not_improved", _OK)

VIEWS: dict[str, Words] = {
    "baseline": Words(("—", _OK), "keep", ("passed", "n/a"), "keep", "baseline", "baseline"),
    "keep": Words(("improved", _OK), "keep", ("passed", "yes"), "keep", "keep", "keep"),
    "keep_small_gain": Words(("improved", _OK), "keep", ("passed", "yes"), "keep", "keep_small_gain", "keep"),
    "keep_stack": Words(("improved", _OK), "keep", ("passed", "yes"), "keep", "keep_stack", "keep"),
    "triage_promote": Words(("—", "—"), "—", ("queued", "—"), "—", "triage_promote", "—"),
    "triage_discard": Words(_NOT, "discard", ("passed", "no"), "discard", "triage_discard", "discard"),
    "discard": Words(_NOT, "discard", ("passed", "no"), "discard", "discard", "discard"),
    "discard_stack": Words(_NOT, "discard", ("passed", "no"), "discard", "discard_stack", "discard"),
    "inconclusive": Words(("", _OK), "discard", ("passed", "no"), "discard", "inconclusive", "drift/blocked"),
    "unverified": Words(_NOT, "discard", ("dropped", "no"), "discard", "unverified", "discard"),
    "no_change": Words(_NOT, "discard", ("failed", ""), "discard", "no_change", "no-op"),
    "crashed": Words(_NOT, "crash", ("failed", ""), "crash", "crashed", "crash"),
    "timeout": Words(_NOT, "crash", ("failed", ""), "crash", "timeout", "crash"),
    "build_failed": Words(_NOT, "crash", ("failed", ""), "crash", "build_failed", "crash"),
    "metric_error": Words(_NOT, "crash", ("failed", ""), "crash", "metric_error", "crash"),
    "checks_failed": Words(
        _NOT, "checks_failed", ("failed", ""), "discard", "checks_failed", "discard (guard fail)"
    ),
    "behaviour_changed": Words(
        _NOT, "checks_failed", ("failed", ""), "discard", "behaviour_changed", "discard (guard fail)"
    ),
    "compliance_failed": Words(
        ("not_improved", f"{_NO} files"), "discard", ("failed", ""), "discard", "compliance_failed", "discard"
    ),
    "parity_violation": Words(
        ("parity_violation", f"{_NO} parity"),
        "checks_failed",
        ("failed", ""),
        "discard",
        "parity_violation",
        "discard",
    ),
    "tampered": Words(("not_improved", _NO), "crash", ("failed", ""), "crash", "tampered", "blocked"),
    "busy_invalid": Words(("", _OK), "discard", ("queued", ""), "discard", "busy_invalid", "blocked"),
    "interrupted": Words(("", _OK), "discard", ("queued", ""), "discard", "interrupted", "blocked"),
}
