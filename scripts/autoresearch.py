#!/usr/bin/env python3
"""The controller's command line over the package cartlab: `scripts/autoresearch.py --help`.

Runs with any Python: where cartlab cannot be imported, it starts itself again with the repository's own
`.venv`.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[1]
PYTHON = REPOSITORY / ".venv" / "bin" / "python"
AGAIN = "CARTLAB_STARTED_AGAIN"

try:
    from cartlab.cli import main
except ImportError as missing:
    if __name__ != "__main__":
        raise
    if PYTHON.exists() and not os.environ.get(AGAIN):
        os.environ[AGAIN] = "1"
        os.execv(str(PYTHON), [str(PYTHON), str(HERE), *sys.argv[1:]])
    sys.exit(f"cartlab cannot be imported ({missing}); run: make setup")
except KeyboardInterrupt:  # before there is anything to end; from here on main() answers Ctrl-C
    sys.exit(130)

__all__ = ["main"]


def __getattr__(name: str) -> object:
    # RESULTS_TSV_COLUMNS is importable from here; read late, because `next` needs no ledger and answers at
    # once.
    if name == "RESULTS_TSV_COLUMNS":
        from cartlab.ledger import RESULTS_TSV_COLUMNS

        return RESULTS_TSV_COLUMNS
    raise AttributeError(name)


if __name__ == "__main__":
    os.environ.pop(AGAIN, None)
    sys.exit(main(prog="scripts/autoresearch.py", repository=REPOSITORY))
