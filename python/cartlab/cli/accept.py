"""`accept BASE CAND`: the strongest evidence, for one candidate."""

from __future__ import annotations

import argparse

from cartlab.cli.context import Context
from cartlab.cli.measuring import (
    declare_checks,
    declare_confirm,
    declare_full,
    declare_pair,
    measure,
    pair_request,
)
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Request


def declare(parser: argparse.ArgumentParser) -> None:
    declare_pair(parser)
    declare_full(parser)
    declare_checks(parser)
    declare_confirm(parser)


def translate(space: argparse.Namespace) -> Request:
    return pair_request("accept", space, full=space.full, checks=not space.no_checks, confirm=space.confirm)


def run(context: Context, request: Request) -> Outcome:
    return measure(context, request)
