"""Where a campaign's training runs: here, or through a launcher command of the user's.

COMPUTE.md is people's, so its launcher counts only as the one that was approved: the approval in the ledger
holds the command's hash. A launcher takes `{command}`, runs it elsewhere with the working directory's files,
waits, and brings back what training left; the evaluation runs here all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops.campaign.folder import Folder, keys_of
from cartlab.loops.campaign.records import Campaign
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
    approved = any(
        event["type"] == "approval"
        and event["body"].get("goal") == campaign.goal.id
        and event["body"].get("command") == digest_of(found)
        for event in events
    )
    if not approved:
        raise NotLegalNow(
            "COMPUTE.md's launcher must be one that was approved, for nothing confines it; this one was not",
            f"`campaign init {campaign.slug} --compute command --launcher CMD --approve REASON` approves it",
        )
    return found
