"""`probe`: time the working tree's package for about five seconds. Learning evidence only."""

from __future__ import annotations

import argparse

from cartlab.cli import learn
from cartlab.cli.context import Context
from cartlab.outcome import Outcome

SECONDS = 5.0


def declare(parser: argparse.ArgumentParser) -> None:
    learn.declare(parser)


def translate(space: argparse.Namespace) -> learn.Request:
    return learn.request(space, seconds=SECONDS, file="local-probe.json", split=False)


def run(context: Context, request: learn.Request) -> Outcome:
    return learn.run(context, request)
