#!/usr/bin/env python3
"""How fast PPO plays and trains over the working tree's build: `rollcart rollout` by another name."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
PYTHON = HERE.parents[1] / ".venv" / "bin" / "python"
AGAIN = "ROLLCART_STARTED_AGAIN"

try:
    from rollcart.cli import main
except ImportError as missing:
    if __name__ == "__main__" and PYTHON.exists() and not os.environ.get(AGAIN):
        os.environ[AGAIN] = "1"
        os.execv(str(PYTHON), [str(PYTHON), str(HERE), *sys.argv[1:]])
    sys.exit(f"rollcart cannot be imported ({missing}); run: make setup")
except KeyboardInterrupt:  # before there is anything to end
    sys.exit(130)

if __name__ == "__main__":
    os.environ.pop(AGAIN, None)
    sys.exit(main(["rollout", *sys.argv[1:]]))
