"""`init`: make the root's files where they are missing. A file that is there is never changed."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.errors import BadRoot
from cartlab.outcome import Outcome

FILES = ("events.jsonl", "results.tsv", "current.json", "ideas.md", "scratchpad.md")


@dataclass(frozen=True)
class Request:
    dry_run: bool = False


def declare(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def translate(space: argparse.Namespace) -> Request:
    return Request(space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    root = context.root.path
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = [f"root {root} ({context.root.source})"]
    out.report.next = context.line("status")
    if request.dry_run:
        missing = [name for name in FILES if not (root / name).exists()]
        out.status = "planned"
        out.text = [f"would make in {root}: {', '.join(missing) or 'nothing, all is there'}"]
        return out
    from cartlab.ledger import Ledger
    from cartlab.round import round_part

    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRoot(f"expected to make {root}, found: {error.strerror}", "name another folder") from None
    ledger = Ledger.open(root, round_part=round_part)
    made = ledger.init()
    out.report.outputs = made or ["nothing new"]
    out.details = {"made": made}
    out.text = [
        f"root: {root} ({context.root.source})",
        f"made: {', '.join(made) or 'nothing, all was there'}",
    ]
    return out
