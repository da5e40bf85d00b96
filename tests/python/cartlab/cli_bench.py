"""What the command line's tests share: a tiny repository, a root beside it, and the real script in its own
process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_project import CONFIG, Project, make

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
SCRIPT = SCRIPTS / "autoresearch.py"

SMALL = Path(__file__).resolve().parent / "small_controller.py"


@dataclass
class Answer:
    """One command's end: its exit code, what it printed, and with --json the object."""

    code: int
    out: str
    err: str
    json: dict[str, Any] = field(default_factory=dict)

    @property
    def report(self) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self.out.splitlines()[-5:])


@dataclass
class Bench:
    """A repository that can be measured and a root that is not in it."""

    project: Project
    root: Path

    def environment(self) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("AUTORESEARCH", "RETRO", "GIT_"))
        }
        own = {"AUTORESEARCH_ROOT_PATH": str(self.root), "CARTLAB_LEASE_DIR": str(self.root.parent)}
        return {**kept, **own, "PYTHONDONTWRITEBYTECODE": "1"}

    def start(
        self, *words: str, script: Path = SMALL, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), *words],
            cwd=self.project.path,
            env={**self.environment(), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, script: Path = SMALL, env: dict[str, str] | None = None) -> Answer:
        process = self.start(*words, script=script, env=env)
        out, err = process.communicate(timeout=300)
        found = json.loads(out) if "--json" in words and out.strip() else {}
        return Answer(process.returncode, out, err, found)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "events.jsonl").read_text().splitlines()]


def make_bench(folder: Path, config: str = CONFIG) -> Bench:
    return Bench(make(folder / "repo", config), folder / "root")
