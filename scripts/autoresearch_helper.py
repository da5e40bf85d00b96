#!/usr/bin/env python3
"""The journal document's helper with its own flags, over the package cartlab: every number is measured again.

`init|log|evaluate|summary|status --jsonl FILE`; docs/loops.md says what is different from typing results.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
PYTHON = HERE.parents[1] / ".venv" / "bin" / "python"
AGAIN = "CARTLAB_STARTED_AGAIN"

try:
    from cartlab.cli.helper import main
except ImportError as missing:
    if __name__ != "__main__":
        raise
    if PYTHON.exists() and not os.environ.get(AGAIN):
        os.environ[AGAIN] = "1"
        os.execv(str(PYTHON), [str(PYTHON), str(HERE), *sys.argv[1:]])
    sys.exit(f"cartlab cannot be imported ({missing}); run: make setup")

if __name__ == "__main__":
    os.environ.pop(AGAIN, None)
    sys.exit(main())
