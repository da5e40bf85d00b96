"""`scripts/run_git_ref_benchmark.py BASE CAND` or `--single REF`: the pipeline without the ledger's opinion.

Its blocks are kept as unrecorded ones; no earlier block is pooled and no earlier verdict is given back.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cartlab.cli.context import Context
from cartlab.cli.measuring import declare_full, measure
from cartlab.cli.options import declare_refs, declare_runner, runner, two_refs
from cartlab.cli.table import Row
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.pipeline.request import Request

ROW = Row(
    "",
    "ref_benchmark",
    "diagnose",
    "measure two revisions, or one alone, with the controller's pipeline and without the ledger's opinion",
    ("HEAD~1 HEAD", "--single HEAD", "HEAD~1 HEAD --max-blocks 12 --json"),
)


def declare(parser: argparse.ArgumentParser) -> None:
    declare_refs(parser)
    parser.add_argument("--single", metavar="REF", help="measure one revision alone")
    declare_full(parser)
    declare_runner(parser)


def translate(space: argparse.Namespace) -> Request:
    if space.single is not None and space.refs:
        raise UsageError(
            "--single measures one revision, found further ones", hint="give BASE CAND or --single REF"
        )
    if space.single is not None:
        tier, base, cand = "single", space.single, space.single
    else:
        tier, (base, cand) = "accept", two_refs("run_git_ref_benchmark.py", space.refs)
    return Request(
        command="run_git_ref_benchmark",
        tier=tier,
        base=base,
        cand=cand,
        full=space.full,
        checks=False,
        dry_run=space.dry_run,
        recorded=False,
        pool=False,
        runner=runner(space),
    )


def run(context: Context, request: Request) -> Outcome:
    return measure(context, request)


def main(argv: list[str] | None = None, *, prog: str, repository: Path | None = None) -> int:
    """The script's command line; everything but its one row is the controller's."""
    from cartlab.cli import run_row

    return run_row(ROW, argv, prog=prog, repository=repository)
