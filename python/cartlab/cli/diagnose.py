"""`diagnose [--quick] [--profile]`: where the working tree's time goes. Learning evidence only."""

from __future__ import annotations

import argparse

from cartlab.cli import learn
from cartlab.cli.context import Context
from cartlab.outcome import Outcome

SECONDS = 10.0
QUICK_SECONDS = 2.0


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_SECONDS:g} seconds instead of {SECONDS:g}"
    )
    parser.add_argument("--profile", action="store_true", help="the engine's own split as well")
    learn.declare(parser)


def translate(space: argparse.Namespace) -> learn.Request:
    return learn.request(
        space,
        seconds=QUICK_SECONDS if space.quick else SECONDS,
        file="local-profile.json" if space.profile else "local-diagnosis.json",
        split=True,
        profile=space.profile,
    )


def run(context: Context, request: learn.Request) -> Outcome:
    return learn.run(context, request)
