"""Commands of others that need a person's word before we run them, and how that word is recorded.

Ours never push by force and never delete outside their own folders; a researcher's or launcher's command line
that says so itself needs `--approve REASON`, which holds for the one run it was given to.
"""

from __future__ import annotations

import re

from cartlab.errors import NotLegalNow
from cartlab.ledger import Ledger
from cartlab.model import digest_of

_DANGERS = {
    "a forced push": re.compile(
        r"\bgit\b.*\bpush\b.*(?:\s--force\b|\s--force-with-lease\b|\s--mirror\b|\s-\w*f\w*\b|\s\+\S)"
    ),
    "a recursive delete": re.compile(
        r"\brm\b.*\s(?:-\w*[rR]\w*|--recursive)\b|\bfind\b.*\s-delete\b|\bfind\b.*\s-exec(?:dir)?\s+rm\b"
    ),
    "a git clean": re.compile(r"\bgit\b.*\bclean\b.*\s-\w*f"),
    "a kill of processes by name": re.compile(r"\b(?:pkill|killall)\b"),
    "a kill by signal 9": re.compile(r"\bkill\b.*\s-(?:s\s*)?(?:9|(?:SIG)?KILL)\b", re.IGNORECASE),
}


def danger(command: str) -> str | None:
    """What in a command line needs an approval, or None."""
    return next((name for name, pattern in _DANGERS.items() if pattern.search(command)), None)


def require(command: str, reason: str | None) -> None:
    """NotLegalNow where the command needs an approval and none was given."""
    found = danger(command)
    if found is not None and not (reason or "").strip():
        raise NotLegalNow(
            f"the command contains {found}, which needs an approval", 'add --approve "why"; it is recorded'
        )


def admit(ledger: Ledger, goal: str, command: str, reason: str | None) -> None:
    """Before a run calls a command: NotLegalNow where it needs a word that was not given; a word that was
    given is recorded, and holds for this run.
    """
    require(command, reason)
    if reason and reason.strip():
        record(ledger, goal, command, reason.strip())


def record(ledger: Ledger, goal: str, command: str, reason: str) -> None:
    """The approval, bound to the command by its hash (a command line may hold secrets)."""
    ledger.append(
        "approval",
        None,
        {
            "goal": goal,
            "what": danger(command) or "researcher",
            "command": digest_of(command),
            "reason": reason,
        },
    )
