"""`plan [BASE CAND] [--effect R]`: the blocks and minutes that a true effect would take on this host, tier by
tier. Measures and records nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import declare_refs, declare_runner, refuse_legacy, runner, two_refs
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Runner

LEAST, MOST = 0.5, 2.0


@dataclass(frozen=True)
class Request:
    """refs: None where no pair is named. effects: true ratios, empty for the usual ones."""

    refs: tuple[str, str] | None
    effects: tuple[float, ...]
    runner: Runner


def declare(parser: argparse.ArgumentParser) -> None:
    declare_refs(parser)
    parser.add_argument(
        "--effect",
        type=float,
        action="append",
        metavar="R",
        help="true candidate speed / baseline speed, such as 1.03; may be given again",
    )
    declare_runner(parser)


def translate(space: argparse.Namespace) -> Request:
    refuse_legacy("plan", space)
    effects = tuple(space.effect or ())
    for effect in effects:
        if not LEAST <= effect <= MOST:
            raise UsageError(
                f"expected --effect of {LEAST} to {MOST}, found {effect:g}",
                "it is a ratio: 3 % faster is 1.03",
            )
    return Request(two_refs("plan", space.refs) if space.refs else None, effects, runner(space))


def run(context: Context, request: Request) -> Outcome:
    from cartlab.ledger import Ledger
    from cartlab.pipeline.predicting import predict

    root = context.root.path
    ledger = Ledger.open(root, mend=False) if (root / "events.jsonl").exists() else None
    out = predict(context.lab, context.repo, ledger, request.runner, request.refs, request.effects)
    out.ledger = str(root / "events.jsonl")
    return out
