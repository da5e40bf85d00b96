"""`publish [REF] --approve REASON`: the current branch, forward to an accepted candidate. The rules are
pipeline/publishing.py's.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.errors import UsageError
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    ref: str | None
    reason: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ref",
        nargs="?",
        metavar="REF",
        help="the accepted candidate; by default the newest",
    )
    parser.add_argument("--approve", metavar="REASON", help="why the branch may move; recorded")


def translate(space: argparse.Namespace) -> Request:
    reason = (space.approve or "").strip()
    if space.no_record:
        raise UsageError("publish is always recorded: --no-record cannot be given")
    return Request(space.ref, reason, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.pipeline.publishing import publish

    return publish(
        request.ref,
        request.reason,
        context.lab,
        context.repo,
        context.root.path,
        context.talk,
        dry_run=request.dry_run,
    )
