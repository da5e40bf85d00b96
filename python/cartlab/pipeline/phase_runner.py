"""Where a step's time goes, as one workload's adapter tells it: `python -I phase_runner.py ADAPTER
BUILD_DIR`.

Runs by path in a process of its own and imports the standard library alone. One JSON line in: {"workload":
{}, "seed": S, "steps": N, "engine": bool}; one out: {"phases": {name: seconds} or null}. It is apart from
the slice server, whose protocol times and compares; nothing that is learned here reaches a measurement.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys


def main(adapter_path: str, build_dir: str) -> None:
    """Open the session as the slice server does, and ask its optional profile(steps, engine)."""
    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, os.path.realpath(build_dir))
    spec = importlib.util.spec_from_file_location("cartlab_adapter", adapter_path)
    assert spec is not None and spec.loader is not None
    adapter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(adapter)
    session = adapter.open(request["workload"], request["seed"], 0)
    tell = getattr(session, "profile", None)
    phases = tell(request["steps"], request["engine"]) if tell is not None else None
    answers.write(json.dumps({"phases": phases}) + "\n")
    answers.flush()
    session.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
