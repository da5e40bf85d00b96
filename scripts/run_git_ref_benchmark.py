#!/usr/bin/env python3
"""Measure `BASE CAND`, or `--single REF`, with the controller's pipeline and without the ledger's opinion.

Builds, verifies and measures exactly as `scripts/autoresearch.py` does; the blocks are kept as unrecorded
ones, earlier blocks are not pooled, and nothing is written to results.tsv.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[1]
PYTHON = REPOSITORY / ".venv" / "bin" / "python"
AGAIN = "CARTLAB_STARTED_AGAIN"

try:
    from cartlab.cli.ref_benchmark import main
except ImportError as missing:
    if __name__ != "__main__":
        raise
    if PYTHON.exists() and not os.environ.get(AGAIN):
        os.environ[AGAIN] = "1"
        os.execv(str(PYTHON), [str(PYTHON), str(HERE), *sys.argv[1:]])
    sys.exit(f"cartlab cannot be imported ({missing}); run: make setup")
except KeyboardInterrupt:  # before there is anything to end; from here on main() answers Ctrl-C
    sys.exit(130)

if __name__ == "__main__":
    os.environ.pop(AGAIN, None)
    sys.exit(main(prog="scripts/run_git_ref_benchmark.py", repository=REPOSITORY))
