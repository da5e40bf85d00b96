"""`calibrate REF`: one revision against itself. What it finds is this host's noise floor; it is context, no
comparison.
"""

from __future__ import annotations

import argparse

from cartlab.cli.context import Context
from cartlab.cli.measuring import declare_full, measure
from cartlab.cli.options import declare_runner, runner
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Request


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="branch, tag, short or full SHA, HEAD~3")
    declare_full(parser)
    declare_runner(parser)


def translate(space: argparse.Namespace) -> Request:
    return Request(
        command="calibrate",
        tier="calibrate",
        base=space.ref,
        cand=space.ref,
        full=space.full,
        dry_run=space.dry_run,
        recorded=not space.no_record,
        pool=False,
        runner=runner(space),
    )


def run(context: Context, request: Request) -> Outcome:
    return measure(context, request)
