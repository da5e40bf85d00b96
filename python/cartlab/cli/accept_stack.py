"""`accept-stack BASE CAND`: prove a stack of candidates as one. The stack is the proof unit; its members
stay unjudged.
"""

from __future__ import annotations

import argparse

from cartlab.cli.accept import declare, run
from cartlab.cli.measuring import pair_request
from cartlab.pipeline.request import Request

__all__ = ["declare", "run", "translate"]


def translate(space: argparse.Namespace) -> Request:
    return pair_request(
        "accept-stack", space, full=space.full, checks=not space.no_checks, confirm=space.confirm
    )
