"""`gc`: free the root's builds and target folders by age and size. What may go is garbage.py's to say."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import not_negative, whole
from cartlab.garbage import Wish
from cartlab.outcome import Outcome

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Request:
    wish: Wish
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", type=not_negative, metavar="DAYS", help="free what no run used for so long (14)"
    )
    parser.add_argument("--keep", type=whole, metavar="N", help="the N builds used last stay in any case")
    parser.add_argument(
        "--max-size", type=_size, metavar="SIZE", help="free the longest unused until SIZE is left: 500M, 2G"
    )


def translate(space: argparse.Namespace) -> Request:
    # Without a wish the usual one; a size alone is a wish of its own.
    days = 14.0 if space.older_than is None and space.max_size is None else space.older_than
    return Request(Wish(days, space.keep, space.max_size), space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    import time

    from cartlab.pipeline.freeing import gc

    return gc(request.wish, context.root.path, time.time(), context.talk, dry_run=request.dry_run)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"expected bytes or a size such as 500M or 2G, found {text!r}")
    return int(float(found[1]) * UNITS[found[2]])
