"""`checks [REF]`: run the surfaces' tests, and remember the result for the tree they ran on.

Without REF the working tree is tested as it lies there, and the result counts for the tree that it would be
as a commit; with REF a clean checkout is.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import declare_lease_wait
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    ref: str | None = None
    surface: str = "auto"
    quick: bool = False
    dry_run: bool = False
    recorded: bool = True
    lease_wait: float | None = None


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="?", metavar="REF", help="test this revision in a clean checkout")
    parser.add_argument(
        "--quick", action="store_true", help="the quick commands; acceptance needs the full ones"
    )
    parser.add_argument(
        "--surface", default="auto", metavar="S", help="a [surfaces.S] of autoresearch.toml, or auto"
    )
    declare_lease_wait(parser)


def translate(space: argparse.Namespace) -> Request:
    return Request(
        space.ref, space.surface, space.quick, space.dry_run, not space.no_record, space.lease_wait
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.pipeline.checking import check

    return check(
        request.ref,
        request.surface,
        request.quick,
        context.lab,
        context.repo,
        context.root.path,
        context.talk,
        dry_run=request.dry_run,
        recorded=request.recorded,
        lease_wait=request.lease_wait,
    )
