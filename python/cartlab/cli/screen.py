"""`screen BASE CAND`: six blocks that say whether a proof is worth its time. A filter, never evidence."""

from __future__ import annotations

import argparse

from cartlab.cli.context import Context
from cartlab.cli.measuring import declare_pair, measure, pair_request
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Request


def declare(parser: argparse.ArgumentParser) -> None:
    declare_pair(parser)
    parser.add_argument(
        "--again", action="store_true", help="add six blocks to a pair that was screened before"
    )
    parser.add_argument(
        "--equal-only", action="store_true", help="build and compare outputs; measure nothing"
    )


def translate(space: argparse.Namespace) -> Request:
    return pair_request("screen", space, again=space.again, equal_only=space.equal_only)


def run(context: Context, request: Request) -> Outcome:
    return measure(context, request)
