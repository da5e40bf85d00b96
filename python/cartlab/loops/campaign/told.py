"""What the user's notifier is told of a campaign: an event of the ledger first, then the command once.

`notify` of autoresearch.toml is called as `CMD EVENT MESSAGE`. Without a configuration or a notifier nothing
is called; what it does, or fails to do, changes nothing else.
"""

from __future__ import annotations

from cartlab import config
from cartlab.errors import CartlabError
from cartlab.loops.commands import plain
from cartlab.loops.desk import Desk
from cartlab.pipeline import notices

EVENTS = (
    "plan_ready",
    "code_ready",
    "train_started",
    "train_done",
    "error",
    "blocker",
    "approval_required",
    "research_ready",
    "compute_ready",
    "experiment_kept",
)


def tell(desk: Desk, event: str, message: str) -> None:
    """Record and tell. ValueError for an event that is none of EVENTS."""
    if event not in EVENTS:
        raise ValueError(f"expected one of {', '.join(EVENTS)}, found {event}")
    message = plain(message, 300)
    desk.tell("told", event=event, message=message)
    try:
        command = config.notifier(desk.repo)
    except CartlabError as error:
        desk.voice.warn(f"notify: {error.message}")
        return
    if command is not None and (why := notices.call(command, desk.repo, event, message)) is not None:
        desk.voice.warn(f"notify: {why}; {event} is recorded all the same")
