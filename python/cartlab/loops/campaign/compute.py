"""Where a campaign's training runs: here, or through a launcher command of the user's.

COMPUTE.md is people's, so its launcher counts only as the one that was approved: the approval in the ledger
holds the command's hash. Where the command itself holds something dangerous, each run needs an approval of
its own. A launcher takes `{command}`, runs it elsewhere with the working directory's files, waits, and brings
back what training left; the evaluation runs here all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import approvals
from cartlab.loops.campaign.folder import Folder, keys_of
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk
from cartlab.model import digest_of

PLACE = "{command}"


def launcher_of(events: Iterable[Mapping[str, Any]], campaign: Campaign) -> str:
    """The launcher that COMPUTE.md names, "" where training runs here. NotLegalNow where nobody approved it,
    BadInput where it has no place for the command.
    """
    keys = keys_of(Folder(Path(campaign.folder)).read("COMPUTE.md"))
    found = keys.get("launcher", "")
    if keys.get("provider", "local") in ("local", "none"):
        return ""
    if not found:
        raise BadInput(
            f"COMPUTE.md: provider {keys['provider']} needs `launcher = CMD {PLACE}`; it has none",
            "write it there, and approve it: `campaign init SLUG --launcher CMD --approve REASON`",
        )
    if PLACE not in found:
        raise BadInput(f"COMPUTE.md: the launcher must hold {PLACE}; found {found!r}", "say where it goes")
    given, used = _words(events, campaign, found)
    if not given:
        raise NotLegalNow(
            "COMPUTE.md's launcher must be one that was approved, for nothing confines it; this one was not",
            f"`campaign init {campaign.slug} --compute command --launcher CMD --approve REASON` approves it",
        )
    danger = approvals.danger(found)
    if danger is not None and used >= given:
        raise NotLegalNow(
            f"COMPUTE.md's launcher contains {danger}: its approval held for one run, which was made",
            'add --approve "why" to `campaign run`; it is recorded',
        )
    return found


def renew(desk: Desk, campaign: Campaign) -> None:
    """At the start of a run that a person gave a reason for: it also holds for a launcher with something
    dangerous in it, where that was approved before.
    """
    found = keys_of(Folder(Path(campaign.folder)).read("COMPUTE.md")).get("launcher", "")
    given, used = _words(desk.ledger.events(), campaign, found)
    if desk.options.approve and approvals.danger(found) and given and used >= given:
        approvals.record(desk.ledger, desk.goal_id, found, desk.options.approve)


def spend(desk: Desk) -> None:
    """A run has begun: the word for a launcher with something dangerous in it is used."""
    launcher = desk.options.launcher
    if approvals.danger(launcher):
        desk.tell(_USED, command=digest_of(launcher))


_USED = "launcher_used"


def _words(events: Iterable[Mapping[str, Any]], campaign: Campaign, launcher: str) -> tuple[int, int]:
    """How often this launcher was approved, and for how many runs that was used."""
    given = used = 0
    for event in events:
        body = event["body"]
        if body.get("goal") == campaign.goal.id and body.get("command") == digest_of(launcher):
            given += event["type"] == "approval"
            used += body.get("op") == _USED
    return given, used
