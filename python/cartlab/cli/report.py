"""`report [--session] [--format md|json]`: what a session did and what comes next, for people or for
programs.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.outcome import Outcome

FORMATS = ("md", "json")


@dataclass(frozen=True)
class Request:
    format: str


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", action="store_true", help="the session's report (the only one so far)")
    parser.add_argument("--format", choices=FORMATS, default="md", help="json: the same as --json's details")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.format)


def run(context: Context, request: Request) -> Outcome:
    import json

    from cartlab.cli.next import proposals
    from cartlab.ledger import Ledger
    from cartlab.round import fold
    from cartlab.round.session import SessionFacts, session_lines, session_report
    from cartlab.sources import branch, changed, dirty, resolve

    repo, root = context.repo, context.root.path
    ledger = Ledger.open(root, mend=False)
    events = ledger.events()
    found, head = fold(events), resolve(repo, "HEAD")
    checks = tuple(
        e["body"]["text"] for e in events if e["type"] == "note" and e["body"].get("kind") == "checks"
    )
    facts = SessionFacts(
        branch=branch(repo),
        head_commit=head.commit,
        changed_files=tuple(changed(repo, found.baseline_commit, head.commit)) if found else (),
        dirty_files=tuple(dirty(repo)),
        left_behind=tuple(one.id for one in ledger.abandoned()),
        checks=checks,
    )
    body = session_report(events, facts, proposals(context))
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = ["events.jsonl"]
    out.details = body
    out.text = [json.dumps(body, indent=1)] if request.format == "json" else session_lines(body)
    return out
