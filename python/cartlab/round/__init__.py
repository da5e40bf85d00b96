"""The improvement round: a fixed baseline, a target, and rules that are code.

Contract: SPECS.md section 6. states: the transition table and the values; fold: events to the round;
rules: target, completion and pauses; actions: what is legal and what `next` proposes; session: what is told
at the end; acts: the only functions that append to a ledger. All but acts are pure.
"""

from cartlab.round.actions import Action, NextFacts, next_actions, require_legal
from cartlab.round.acts import (
    abandon,
    complete,
    open_round,
    pause,
    resume,
    settle,
    start_confirm,
)
from cartlab.round.fold import fold, history, round_part
from cartlab.round.rules import (
    CandidateFacts,
    completes,
    confirm_bar,
    confirm_candidate,
    confirm_obstacles,
    pause_due,
)
from cartlab.round.session import lesson, session_lines, session_report
from cartlab.round.states import PAUSE_RULES, STATES, Candidate, Round, transition

__all__ = [
    "PAUSE_RULES",
    "STATES",
    "Action",
    "Candidate",
    "CandidateFacts",
    "NextFacts",
    "Round",
    "abandon",
    "complete",
    "completes",
    "confirm_bar",
    "confirm_candidate",
    "confirm_obstacles",
    "fold",
    "history",
    "lesson",
    "next_actions",
    "open_round",
    "pause",
    "pause_due",
    "require_legal",
    "resume",
    "round_part",
    "session_lines",
    "session_report",
    "settle",
    "start_confirm",
    "transition",
]
