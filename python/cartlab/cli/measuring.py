"""What screen, accept, accept-stack and calibrate have in common: flags, refs, and the one call into the
pipeline.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cartlab.cli.options import declare_refs, declare_runner, runner, two_refs
from cartlab.pipeline.request import Request

if TYPE_CHECKING:
    from cartlab.cli.context import Context
    from cartlab.outcome import Outcome


def declare_pair(parser: argparse.ArgumentParser) -> None:
    """BASE CAND, the candidate's two statements, and the measurement's flags."""
    declare_refs(parser)
    parser.add_argument("--mechanism", metavar="TEXT", help="why the candidate should be faster")
    parser.add_argument("--falsify", metavar="TEXT", help="what would show that it is not")
    declare_runner(parser)


def declare_full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="four times the blocks, and every workload")


def declare_confirm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--confirm", action="store_true", help="have the round's confirm run at once where it is due"
    )


def declare_checks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-checks", action="store_true", help="measure without the checks; such a run cannot keep"
    )


def pair_request(
    command: str,
    space: argparse.Namespace,
    *,
    again: bool = False,
    equal_only: bool = False,
    full: bool = False,
    checks: bool = True,
    confirm: bool = False,
) -> Request:
    """Translate the command line of a two-ref command, whose name is its tier's."""
    base, cand = two_refs(command, space.refs)
    return Request(
        command=command,
        tier=command,
        base=base,
        cand=cand,
        again=again,
        equal_only=equal_only,
        full=full,
        checks=checks,
        confirm=confirm,
        dry_run=space.dry_run,
        recorded=not space.no_record,
        mechanism=space.mechanism,
        falsify=space.falsify,
        runner=runner(space),
    )


def measure(context: Context, request: Request) -> Outcome:
    """Hand the request to the pipeline."""
    from cartlab.cli.report import after_completion
    from cartlab.pipeline.confirming import then
    from cartlab.pipeline.run import run

    place = (context.lab, context.repo, context.root.path, context.talk)
    with context.telling():
        return after_completion(context, then(request, run(request, *place), *place))
