"""A pytest plugin that runs inside a suite under measurement: the package comes from the build, or the
suite fails.

`python -m pytest` puts the folder it runs in first on sys.path, and that is the controller's checkout:
without this a repository with its package at the top would measure its own work tree twice. The file is
copied beside the suite's scratch and loaded by name; it imports nothing of cartlab.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

BUILD = Path(os.environ.get("CARTLAB_BUILD_DIR", ".")).resolve()

sys.path.insert(0, str(BUILD))


def strangers() -> list[str]:
    """Modules that the build provides and that were loaded from somewhere else."""
    names = {entry.name.partition(".")[0] for entry in BUILD.iterdir()}
    found = []
    for name in sorted(names & set(sys.modules)):
        file = getattr(sys.modules[name], "__file__", None)
        if file and not Path(file).resolve().is_relative_to(BUILD):
            found.append(name)
    return found


def pytest_sessionfinish(session: Any) -> None:
    """Fail the suite where it measured something else than the build."""
    wrong = strangers()
    if wrong:
        print(f"the suite must import {', '.join(wrong)} from the build; it came from elsewhere")
        session.exitstatus = 4
