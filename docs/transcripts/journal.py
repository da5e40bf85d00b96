"""Play a journal session with a scripted researcher and write docs/transcripts/journal.md from what was said.

    .venv/bin/python docs/transcripts/journal.py

Everything runs in a temporary folder, with the command line of this checkout. Times, ids and places are
shortened, so that two runs differ in nothing else.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_suffix(".md")
CARTLAB = "import sys; from cartlab.cli import main; sys.exit(main())"
PROGRAM = """\
import json, time

config = json.load(open("config.json"))
work = sum(i * i for i in range(config["terms"]))
print("METRIC rows=1000")
print("cost:", config["terms"] + config["padding"])
"""
RESEARCHER = """\
import json, os, pathlib, time

number, work = int(os.environ["AR_ROUND"]), pathlib.Path(os.environ["AR_WORK"])
config = json.loads((work / "config.json").read_text())
told = {}
if number == 2:
    config["terms"] = 80
    told = {"description": "Fewer terms", "hypothesis": "the tail adds nothing"}
elif number == 3:
    config["terms"] = 95
    told = {"description": "More terms", "hypothesis": "the tail matters after all",
            "next_action_hint": "leave the terms alone"}
elif number == 4:
    (work / "bench.py").write_text("import nowhere\\n")
    told = {"description": "Another library", "hypothesis": "it is faster"}
elif number == 5:
    (work / "test.sh").write_text("exit 0\\n")
    told = {"description": "Quicker checks", "hypothesis": "nobody looks"}
elif number == 6:
    (work / "layout.txt").write_text("packed\\n")
    bench = (work / "bench.py").read_text()
    (work / "bench.py").write_text(bench.replace(' + config["padding"]', ""))
    told = {"description": "No padding", "hypothesis": "the layout needs none"}
else:
    config["terms"] = 70
    told = {"description": "Fewer terms still", "hypothesis": "there is more to cut"}
(work / "config.json").write_text(json.dumps(config) + "\\n")
pathlib.Path(os.environ["AR_SUBMISSION"]).write_text(json.dumps(told))
if number == 6 and not os.environ.get("QUICK"):
    time.sleep(3)
"""


class Stage:
    """The temporary repository, and all that was typed and said."""

    def __init__(self, place: Path) -> None:
        self.place, self.repo, self.root = place, place / "bench", place / "state"
        self.lines: list[str] = []
        self.repo.mkdir()
        files = {
            "bench.py": PROGRAM,
            "config.json": '{"terms": 100, "padding": 12}\n',
            "test.sh": "grep -q terms config.json\n",
        }
        for name, text in files.items():
            (self.repo / name).write_text(text)
        (place / "researcher.py").write_text(RESEARCHER)
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "The program"]):
            self._git(*words)

    def _git(self, *words: str) -> str:
        line = ["git", "-c", "user.name=researcher", "-c", "user.email=r@example.com", *words]
        return subprocess.run(line, cwd=self.repo, capture_output=True, text=True, check=True).stdout

    def _start(self, words: list[str], **more: str) -> subprocess.Popen[str]:
        env = {**os.environ, "AUTORESEARCH_ROOT_PATH": str(self.root), **more}
        env["PYTHONPATH"] = str(REPOSITORY / "python")
        return subprocess.Popen(
            [sys.executable, "-c", CARTLAB, *words],
            cwd=self.repo,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def say(self, text: str) -> None:
        """A sentence of the page."""
        self.lines += ["", text, ""]

    def type(self, *words: str, **more: str) -> int:
        """Type a command line and keep what it says."""
        ran = self._start(list(words), **more)
        said, _ = ran.communicate()
        self._keep(words, said, f"exit code {ran.returncode}")
        return ran.returncode

    def kill(self, *words: str) -> None:
        """The same, ended with kill -9 while its researcher works at experiment 6."""
        ran = self._start(list(words))
        events = self.root / "events.jsonl"
        while '"attempt":"bench-' not in (text := events.read_text()) or "-r6" not in text:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(ran.pid, signal.SIGKILL)
        said, _ = ran.communicate()
        self._keep(words, said, "killed")

    def show(self, *words: str) -> None:
        """What git says."""
        self.lines += ["```console", f"$ git {' '.join(words)}", *self._git(*words).splitlines(), "```"]

    def _keep(self, words: tuple[str, ...], said: str, ended: str) -> None:
        typed = " ".join(word if re.fullmatch(r"[\w./=<>-]+", word) else f'"{word}"' for word in words)
        kept = [line for line in said.splitlines() if not line.startswith(("... ", "root: "))]
        self.lines += ["```console", f"$ cartlab {typed}", *kept, f"[{ended}]", "```"]

    def page(self) -> str:
        """The page, with everything shortened that differs from run to run."""
        text = "\n".join(self.lines)
        for old, new in ((str(self.root), "STATE"), (str(self.place), "..")):
            text = text.replace(old, new)
        text = re.sub(r"\b\d{8}-\d{6}\b", "DATE-TIME", text)
        text = re.sub(r"\b\d{4}-\d{2}-\d{2}\b|(?<=bench-)\d{8}\b", "DATE", text)
        text = re.sub(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b", "HASH", text)
        return re.sub(r"\b\d{7,40}\b(?= )", "HASH", text)


def main() -> int:
    """Play and write; 1 where something did not come out as the page says."""
    with tempfile.TemporaryDirectory(prefix="journal-") as name:
        stage = Stage(Path(name))
        codes = [_play(stage)]
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(stage.page() + "\n", encoding="utf-8")
    print(json.dumps({"page": str(PAGE.relative_to(REPOSITORY)), "as_expected": codes == [True]}))
    return 0 if codes == [True] else 1


def _play(stage: Stage) -> bool:
    researcher = f"{sys.executable} {stage.place}/researcher.py"
    stage.lines = [
        "# A journal session",
        "",
        "Written by `docs/transcripts/journal.py`; run it again for the same.",
    ]
    stage.say("A program whose cost is to fall, its checks off limits, seven experiments at most.")
    codes = [
        stage.type(
            *("journal", "init", "--name", "bench", "--metric-name", "cost", "--command", "python3 bench.py"),
            *("--checks-command", "bash test.sh", "--off-limits", "test.sh", "--guard", "rows>=1000"),
            *("--max-experiments", "7", "--locale", "en", "--approve", "agreed"),
        )
    ]
    stage.say("A researcher's command makes one change an experiment. It is killed in its sixth.")
    run = ("journal", "run", "--researcher", researcher)
    stage.kill(*run)
    stage.say("The same line goes on: the experiment that had no verdict is made again.")
    codes.append(stage.type(*run, QUICK="1"))
    stage.say("Where things stand, from the ledger:")
    codes += [stage.type("journal", "status"), stage.type("journal", "summary")]
    stage.say("The keeps as branches. The two that share a file are one group.")
    codes += [stage.type("journal", "finalize", "plan")]
    codes += [stage.type("journal", "finalize", "create", "--approve", "reviewed the plan")]
    codes += [stage.type("journal", "finalize", "verify")]
    stage.show("branch", "--list", "--all")
    stage.show("log", "-1", "--format=%B", "autoresearch/finalize/fewer-terms")
    stage.show("status", "--short", "--branch")
    stage.say("Every decision again from the recorded runs:")
    codes.append(stage.type("verify"))
    for index, line in enumerate(stage.lines):
        stage.lines[index] = line.replace(researcher, "python3 researcher.py")
    return set(codes) == {0}


if __name__ == "__main__":
    sys.exit(main())
