"""What `note` and `idea` have in common: one stamped block below what people wrote, and its event."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartlab.cli.context import Context
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.root import make_folder

if TYPE_CHECKING:
    from cartlab.ledger import Ledger


@dataclass(frozen=True)
class Request:
    text: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to append")


def translate(space: argparse.Namespace) -> Request:
    text = " ".join(space.text).strip()
    if not text:
        raise UsageError("expected a text, found none", 'give it in quotes: "what was learned"')
    return Request(text, space.dry_run)


def append(context: Context, request: Request, file: str, kind: str) -> Outcome:
    """Append to `file`; no byte that is there changes."""
    from cartlab.ledger import Ledger
    from cartlab.round import round_part

    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    if request.dry_run:
        out.status, out.text = "planned", [f"would append to {root / file}"]
        return out
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    attempt = _open_attempt(ledger) if kind == "note" else None
    event = ledger.note(file, request.text, attempt, kind=kind)
    ledger.project()
    out.recorded = True
    out.report.outputs = [file]
    out.details = {"seq": event["seq"], "file": str(root / file)}
    out.text = [f"appended to {root / file} as event {event['seq']}"]
    if attempt is not None:
        out.attempt_id = attempt
        out.text.append(f"and to the Note of the round that runs, {attempt}")
    return out


def _open_attempt(ledger: Ledger) -> str | None:
    """The attempt that a running research loop is at, the newest loop's: a note is guidance for its round."""
    from cartlab.loops.desk import going

    at = [goal.last for goal in going(ledger.events())]
    return next((one.id for one in reversed(at) if one is not None and one.state != "closed"), None)
