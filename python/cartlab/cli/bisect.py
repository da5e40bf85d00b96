"""`bisect GOOD BAD`: the commit that made it slower, by measurements that are as sure as they say."""

from __future__ import annotations

import argparse

from cartlab.cli.context import Context
from cartlab.cli.options import declare_runner, positive, refuse_legacy, runner, two_refs
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.pipeline.bisecting import Asked


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("refs", nargs="*", metavar="GOOD BAD", help="an earlier and a later commit, or A..B")
    parser.add_argument("--faster", action="store_true", help="look for what made it faster")
    parser.add_argument(
        "--threshold",
        type=positive,
        metavar="R",
        help="a commit beyond R times GOOD's speed counts as changed (default: half of the whole effect)",
    )
    parser.add_argument(
        "--again", action="store_true", help="also try commits that an earlier bisect could not measure"
    )
    declare_runner(parser)


def translate(space: argparse.Namespace) -> Asked:
    refuse_legacy("bisect", space)
    good, bad = two_refs("bisect", space.refs)
    if space.no_record:
        raise UsageError("bisect goes on from its recorded blocks: --no-record cannot be given")
    if space.design != "betting":
        raise UsageError(
            "bisect decides by bounds that hold at any time; another design has none", "leave --design out"
        )
    return Asked(
        good=good,
        bad=bad,
        faster=space.faster,
        threshold=space.threshold,
        again=space.again,
        dry_run=space.dry_run,
        runner=runner(space),
    )


def run(context: Context, request: Asked) -> Outcome:
    from cartlab.pipeline.bisecting import bisect

    return bisect(request, context.lab, context.repo, context.root.path, context.talk)
