"""A tiny training experiment in a git repository, and researchers for it: shell lines that edit one round.

Training fits `y = a x` by a few steps of gradient descent at the rate that config.json names, and saves `a`;
the evaluation prints the error of what was saved. All of it is the standard library's arithmetic, so a
round takes a tenth of a second.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cartlab.cli import main
from cartlab.ledger import Ledger
from cartlab.loops import goals, isolation

TRAIN = """\
import json, os, time
from pathlib import Path

config = json.loads(Path("config.json").read_text())
print("step=0", flush=True)
limit = float(os.environ["AR_TIME_LIMIT"])
began = time.monotonic()
a, loss = 0.0, 0.0
for step in range(config["steps"]):
    loss = (a - 3.0) ** 2
    a -= config["rate"] * 2 * (a - 3.0)
    if time.monotonic() - began > 0.8 * limit:
        break
Path("out").mkdir(exist_ok=True)
Path("out/model.json").write_text(json.dumps({"a": a}))
print(f"loss={loss}")
print("error: 0.0")
"""
EVAL = """\
import json
from pathlib import Path

a = json.loads(Path("out/model.json").read_text())["a"]
print(f"error: {abs(a - 3.0):.6f}")
"""
CONFIG = {"rate": 0.01, "steps": 10}
DESIGN = """\
# Design: slope

## Autoresearch Protocol
- research_question: how fast can the slope be found
- max_rounds: {rounds}
- target: {target}
- fixed files: eval.py
- time_limit: 20
- epoch_limit: 1
- variable files: train.py, config.json
- range: anything in the two files
- metric: error
- direction: minimize
- eval_command: {python} eval.py
- train_command: {python} train.py
- checkpoint: out/model.json
- first_step_max_s: 20
{more}
"""
PYTHON = sys.executable


@dataclass
class Experiment:
    """The repository, the experiment's folder in it, and the state root."""

    repo: Path
    folder: Path
    root: Path

    def cartlab(self, *words: str) -> int:
        """Run one command line; its exit code."""
        return main([*words, "--autoresearch-root", str(self.root)], repository=self.repo)

    def handoff(self, *words: str) -> int:
        """Hand off with VP L1 run now."""
        return self.cartlab("handoff", str(self.folder / "DESIGN.md"), "--run-vp", *words)

    def researcher(self, body: str) -> str:
        """A researcher's command line from the body of a Python script. The script knows `round`, `work`,
        `say(strategy)` and `config(**changes)`.
        """
        head = (
            "import json, os, sys, time\n"
            "from pathlib import Path\n"
            "round = int(os.environ['AR_ROUND'])\n"
            "work = Path(os.environ['AR_WORK'])\n"
            "def say(text):\n"
            "    Path(os.environ['AR_SUBMISSION']).write_text(json.dumps({'strategy': text}))\n"
            "def config(**changes):\n"
            "    old = json.loads((work / 'config.json').read_text())\n"
            "    (work / 'config.json').write_text(json.dumps({**old, **changes}))\n"
        )
        path = self.root.parent / "researcher.py"
        path.write_text(head + body, encoding="utf-8")
        return f"{PYTHON} {path}"

    def supervise(self, body: str, *words: str) -> int:
        """Run the loop with such a researcher."""
        return self.cartlab("supervise", str(self.folder), "--researcher", self.researcher(body), *words)

    @property
    def worktree(self) -> Path:
        """The harness's worktree."""
        return self.repo.parent / f"autoresearch-{self.folder.name}"

    def table(self) -> list[list[str]]:
        """The rows of experiences.md in the worktree."""
        text = (self.worktree / self.folder.name / "experiences.md").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def git(repo: Path, *words: str) -> str:
    """A git call of the test's own."""
    done = subprocess.run(
        ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@example.com", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def make(
    tmp_path: Path, *, rounds: int = 3, target: str = "none", more: str = "", **files: str
) -> Experiment:
    """A repository with the experiment committed. files: further files of the experiment, `__` for a dot."""
    repo, root = tmp_path / "clone", tmp_path / "root"
    folder = repo / "slope"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "eval.py").write_text(EVAL)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "DESIGN.md").write_text(DESIGN.format(rounds=rounds, target=target, python=PYTHON, more=more))
    (repo / "README").write_text("nothing of the experiment's\n")
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(text)
    git(tmp_path, "init", "-q", "-b", "main", str(repo))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "base code")
    return Experiment(repo, folder, root)


BARE = """\
# Autoresearch Protocol: slope

research_question: which rate
max_rounds: {rounds}
target: none
baseline: rate = 0.01

## Fixed
- files: eval.py
- time_limit: 20
- epoch_limit: 1

## Variable
- files: config.json
- adjustable range: all of it

## Eval
- metric: rate
- direction: maximize
- command: {python} eval.py
"""


def make_bare(tmp_path: Path, rounds: int = 2) -> Experiment:
    """The same without training and without a handoff: the metric is the rate that config.json names."""
    made = make(tmp_path, eval__py="import json\nprint('rate:', json.load(open('config.json'))['rate'])\n")
    text = BARE.format(rounds=rounds, python=PYTHON)
    (made.folder / "autoresearch-protocol.md").write_text(text, encoding="utf-8")
    return made


LANDLOCK = pytest.mark.skipif(
    isolation.available() != "landlock", reason="this kernel has no Landlock: nothing can be hidden"
)


def goal_of(one: Experiment) -> goals.Goal:
    """The newest goal."""
    return list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]


def words(one: Experiment) -> list[str | None]:
    """The verdicts of its closed rounds."""
    return [found.status for found in goal_of(one).closed_rounds()]


def insight(one: Experiment, number: int) -> str:
    """A round's reason."""
    return str((goal_of(one).closed_rounds()[number - 1].decision or {})["insight"])


def prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, more: str = "", **files: str
) -> Experiment:
    """The bare experiment with further files (`__` a dot, `_slash_` a slash) and lines of its protocol."""
    one = make_bare(tmp_path, rounds=count)
    for name, text in files.items():
        path = one.folder / name.replace("_slash_", "/").replace("__", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    protocol = one.folder / "autoresearch-protocol.md"
    text = protocol.read_text(encoding="utf-8").replace(
        "files: config.json", "files: config.json, work.py, tests/"
    )
    protocol.write_text(text + more, encoding="utf-8")
    git(one.repo, "add", "-A")
    git(one.repo, "commit", "-q", "-m", "more")
    monkeypatch.chdir(one.repo)
    return one
