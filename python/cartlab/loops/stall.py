"""Is a loop that says it runs really running: the stall detector, for loops that agents drive.

A supervisor of ours blocks on its child and needs no timer. An agent that drives the loop itself may have
gone away: then nobody holds the goal's lock, an attempt stands open, and nothing was closed for a heartbeat.
The document's timers are data here; what reads the clock is the caller.
"""

from __future__ import annotations

import fcntl
from datetime import datetime
from pathlib import Path

from cartlab.loops.goals import Goal

RESEARCHER_CHECK_S = 120.0
TRAIN_CHECK_SHARE = 0.8
HEARTBEAT_S = 1800.0


def timers(time_limit_s: float) -> dict[str, float]:
    """Seconds after which who drives a loop should look at it again, by what is being waited for."""
    return {
        "researcher": RESEARCHER_CHECK_S,
        "training": TRAIN_CHECK_SHARE * time_limit_s,
        "heartbeat": HEARTBEAT_S,
    }


def held(root: Path, goal_id: str) -> bool:
    """Does a process of ours hold the goal's lock."""
    path = root / "tmp" / "loops" / f"{goal_id}.lock"
    if not path.is_file():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def stalled(goal: Goal, now: datetime, alive: bool) -> str | None:
    """Why a goal counts as stalled, or None."""
    if goal.state != "running" or alive:
        return None
    quiet = (now - datetime.fromisoformat(goal.changed.replace("Z", "+00:00"))).total_seconds()
    if quiet < HEARTBEAT_S:
        return None
    at = goal.last.id if goal.last is not None else goal.id
    return f"stalled: nobody works on {goal.id} and no round was closed for {quiet / 60:.0f} min (at {at})"
