"""How long the controller's `next` takes, as typed: the process included. `make bench` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def test_next(benchmark: Any, tmp_path: Path) -> None:
    script = [sys.executable, "scripts/autoresearch.py"]
    root = ["--autoresearch-root", str(tmp_path / "root")]
    subprocess.run([*script, "init", *root], cwd=ROOT, check=True, capture_output=True)
    benchmark(lambda: subprocess.run([*script, "next", *root], cwd=ROOT, check=True, capture_output=True))
