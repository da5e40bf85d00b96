"""The controller's command line with blocks of a tenth of a second; everything else is the real thing.

Run as a script: `python small_controller.py [--ref-benchmark] COMMAND ...`. The plan, its sizes and its
hashes are the real ones: only the worker driver is told to take fewer and shorter slices.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_project import PLAN_SIZES

from cartlab.cli import main, run_row
from cartlab.errors import Tampered
from cartlab.model import BUSY
from cartlab.pipeline.lab import Lab, no_count

TRIES = 20


def small_lab() -> Lab:
    """The real laboratory with small blocks."""
    real = Lab.real()

    def run_block(plan: Any, *rest: Any) -> Any:
        for _ in range(TRIES):
            try:
                block = real.run_block(replace(plan, **PLAN_SIZES), *rest)
                break
            except Tampered as error:
                # On a busy machine all answers of such short slices can be late; a bent clock stays bent.
                if "own_ns" not in error.details:
                    raise
                late = error
        else:
            raise late
        # These tests are of order and records: how busy the machine is must not decide them. The rule that
        # drops busy blocks has its own tests.
        busy = block.dropped is not None and block.dropped.startswith(BUSY)
        return replace(block, dropped=None) if busy else block

    return replace(real, run_block=run_block, instructions=no_count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ref-benchmark"]:
        from cartlab.cli.ref_benchmark import ROW

        sys.exit(
            run_row(ROW, sys.argv[2:], prog="run_git_ref_benchmark.py", repository=None, lab=small_lab())
        )
    sys.exit(main(sys.argv[1:], prog="scripts/autoresearch.py", repository=Path.cwd(), lab=small_lab()))
