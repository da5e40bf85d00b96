"""A tiny program whose cost a script prints, in a git repository, and journal sessions on it.

`bench.py` holds `X = 10`; the script prints that number as METRIC cost and, where METRIC lines stand in
`extra.txt`, those too. It runs nothing but sed, so an experiment takes a tenth of a second.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from small_experiment import git

from cartlab.cli import main
from cartlab.ledger import Ledger
from cartlab.loops import goals, journal_file
from cartlab.loops.journal import session

SCRIPT = """\
set -euo pipefail
value=$(sed -n 's/^X = \\([^ ]*\\).*/\\1/p' bench.py)
[ -n "$value" ] || { echo "no X" >&2; exit 3; }
echo "METRIC cost=$value"
cat extra.txt 2>/dev/null || true
"""
BENCH = "# the program\nX = 10\n\n\ndef helper():\n    a = 1\n    b = 2\n    return a + b\n"


@dataclass
class Session:
    """The repository and the state root; a session's places once it was opened."""

    repo: Path
    root: Path

    def cartlab(self, *words: str) -> int:
        """Run one command line; its exit code."""
        return main([*words, "--autoresearch-root", str(self.root)], repository=self.repo)

    def init(self, *words: str, name: str = "cost", approve: str = "agreed") -> int:
        """Open a session (or a new segment) with the script above."""
        script = self.repo.parent / "script.sh"
        if not script.exists():
            script.write_text(SCRIPT)
        more = ("--approve", approve) if approve else ()
        return self.cartlab(
            "journal", "init", "--name", name, "--metric-name", "cost", "--script", str(script), *more, *words
        )

    def log(self, what: str = "a try", *words: str) -> int:
        """Record what the worktree holds."""
        return self.cartlab("journal", "log", "--description", what, "--hypothesis", f"{what} helps", *words)

    def x(self, value: str, folder: Path | None = None) -> None:
        """Write a value into the program."""
        path = (folder or self.worktree) / "bench.py"
        path.write_text(re.sub(r"^X = .*$", f"X = {value}", path.read_text(), flags=re.M))

    @property
    def events(self) -> list[Any]:
        """The ledger's events."""
        return list(Ledger.open(self.root, mend=False).events())

    @property
    def goal(self) -> goals.Goal:
        """The newest session."""
        return list(goals.fold(self.events).values())[-1]

    @property
    def worktree(self) -> Path:
        """The session's worktree."""
        return Path(self.goal.body["worktree"])

    @property
    def files(self) -> Path:
        """Where the session's files are."""
        goal = self.goal
        return self.worktree if session.terms_of(goal).commit else self.root / "journal" / goal.id

    def results(self) -> list[journal_file.Result]:
        """The rendered journal's results."""
        return journal_file.parse((self.files / "autoresearch.jsonl").read_text(encoding="utf-8")).results

    def decisions(self) -> list[str | None]:
        """The ledger's words, attempt by attempt."""
        return [one.status for one in self.goal.tries]

    def researcher(self, body: str) -> str:
        """A researcher's command line. Its script knows `number`, `work`, `x(value)`, `say(**submission)`."""
        head = (
            "import json, os, re, sys\n"
            "from pathlib import Path\n"
            "number = int(os.environ['AR_ROUND'])\n"
            "work = Path(os.environ['AR_WORK'])\n"
            "def say(**told):\n"
            "    Path(os.environ['AR_SUBMISSION']).write_text(json.dumps(told))\n"
            "def x(value):\n"
            "    path = work / 'bench.py'\n"
            "    path.write_text(re.sub(r'^X = .*$', f'X = {value}', path.read_text(), flags=re.M))\n"
        )
        path = self.root.parent / "researcher.py"
        path.write_text(head + body, encoding="utf-8")
        import sys

        return f"{sys.executable} {path}"


def make(tmp_path: Path, **files: str) -> Session:
    """A repository with the program committed. files: further files, `__` for a dot."""
    repo = tmp_path / "clone"
    repo.mkdir(parents=True)
    (repo / "bench.py").write_text(BENCH)
    (repo / "other.py").write_text("Y = 1\n")
    for name, text in files.items():
        (repo / name.replace("__", ".")).write_text(text)
    git(tmp_path, "init", "-q", "-b", "main", str(repo))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "base code")
    return Session(repo, tmp_path / "root")


def lines(one: Session) -> list[dict[str, Any]]:
    """autoresearch.jsonl as JSON."""
    text = (one.files / "autoresearch.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
