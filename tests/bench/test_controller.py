"""How long the controller's `next` takes, as typed: the process included. `make bench` runs it.

The goal is 150 ms on a quiet machine, with a round open as without one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python" / "cartlab"))

from quick_desk import make_desk, to_stacked  # noqa: E402


def test_next(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    script = [sys.executable, "scripts/autoresearch.py"]
    root = ["--autoresearch-root", str(tmp_path / "root")]
    subprocess.run([*script, "init", *root], cwd=ROOT, check=True, capture_output=True)
    benchmark(lambda: subprocess.run([*script, "next", *root], cwd=ROOT, check=True, capture_output=True))


def test_next_in_a_round(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = make_desk(tmp_path, monkeypatch, capsys)
    to_stacked(desk)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    script = [sys.executable, str(ROOT / "scripts" / "autoresearch.py"), "next"]
    benchmark(lambda: subprocess.run(script, cwd=desk.project.path, check=True, capture_output=True))
