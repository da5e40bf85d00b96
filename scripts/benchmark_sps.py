#!/usr/bin/env python3
"""Environment steps per second of the working tree on the canonical workload: for learning, never evidence.

`--stable-retro-baseline` takes turns with stable-retro in the same run. What is run is in rollcart.bench; the
workload's params are autoresearch.toml's, its policy the one that cartlab measures with.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[1]
PYTHON = REPOSITORY / ".venv" / "bin" / "python"
AGAIN = "ROLLCART_STARTED_AGAIN"

try:
    from rollcart.bench.main import main
    from workloads import nes_batch

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
except ImportError as missing:
    if __name__ == "__main__" and PYTHON.exists() and not os.environ.get(AGAIN):
        os.environ[AGAIN] = "1"
        os.execv(str(PYTHON), [str(PYTHON), str(HERE), *sys.argv[1:]])
    sys.exit(f"rollcart cannot be imported ({missing}); run: make setup")
except KeyboardInterrupt:  # before there is anything to end
    sys.exit(130)

if __name__ == "__main__":
    os.environ.pop(AGAIN, None)
    config = tomllib.loads((REPOSITORY / "autoresearch.toml").read_text())
    params = config["workload"][config["default_workload"]]["params"]
    try:
        sys.exit(main(sys.argv[1:], nes_batch, params, REPOSITORY))
    except KeyboardInterrupt:  # its sides are closed by then
        sys.exit(130)
