"""Make supervise.md again: ten real rounds over a tiny experiment, with a scripted researcher.

    python docs/transcripts/supervise.py [FOLDER]

Among them one true gain, two rounds that change nothing, one that edits the evaluation, one that crashes, one
that does not end, and one that hides a file from git. The run is killed once with signal 9 and goes on. It
takes about half a minute. Paths, hashes, times and dates are shortened in the transcript, nothing else.
FOLDER keeps the repository and the state (to look at them with `serve`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_suffix(".md")
sys.path.insert(0, str(REPOSITORY / "tests" / "python" / "cartlab"))

import small_experiment  # noqa: E402
from small_experiment import git  # noqa: E402

COMMAND = "import sys; from cartlab.cli import main; sys.exit(main())"  # what the installed `cartlab` is
RESEARCHER = """\
import json, os, time
from pathlib import Path

round, work = int(os.environ["AR_ROUND"]), Path(os.environ["AR_WORK"])

def say(text):
    Path(os.environ["AR_SUBMISSION"]).write_text(json.dumps({"strategy": text}))

def config(**changes):
    old = json.loads((work / "config.json").read_text())
    (work / "config.json").write_text(json.dumps({**old, **changes}))

if round == 1:
    config(rate=0.1); say("ten times the rate: the step is far too small")
elif round == 2:
    (work / "eval.py").write_text("print('error: 0.0')"); say("a better evaluation")
elif round == 3:
    say("the code is fine as it is")
elif round == 4:
    (work / "train.py").write_text("raise RuntimeError('shapes (3,) and (4,)')"); say("a new layer")
elif round == 5:
    text = (work / "train.py").read_text()
    (work / "train.py").write_text("# a tidy beginning\\n" + text); say("tidy up, same work")
elif round == 6:
    say("think for a long time"); time.sleep(3600)
elif round == 7:
    (work / "out").mkdir(); (work / "out/model.json").write_text('{"a": 3.0}')
    say("a checkpoint by hand, hidden from git")
elif round == 8:
    text = (work / "train.py").read_text()
    (work / "train.py").write_text(text + "\\nprint('METRIC error=0.0')\\n"); say("a better log")
elif round == 9:
    config(rate=0.02); say("a smaller rate is safer")
else:
    config(rate=0.01); say("back to where we came from")
"""


class Session:
    """A console: each command is run as typed, and printed with what it says on stdout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = small_experiment.make(folder, rounds=10)
        design = self.made.folder / "DESIGN.md"
        design.write_text(design.read_text().replace("time_limit: 20", "time_limit: 2"))
        git(self.made.repo, "commit", "-q", "-am", "short rounds")
        self.script = folder / "researcher.py"
        self.script.write_text(RESEARCHER, encoding="utf-8")
        self.lines: list[str] = []
        self.env = {
            **os.environ,
            "AUTORESEARCH_ROOT_PATH": str(self.made.root),
            "PYTHONPATH": str(REPOSITORY / "python"),
        }

    def tell(self, text: str) -> None:
        """A paragraph between two commands."""
        self.lines += [text, ""]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The command line, running."""
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words],
            cwd=self.made.repo,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *words: str, keep: int = 60, ends: int = 0) -> None:
        """Run it to its end, which has to be the code `ends`."""
        process = self.start(*words)
        said, _ = process.communicate(timeout=600)
        if process.returncode != ends:
            raise SystemExit(f"{words} ended with {process.returncode}, expected {ends}:\n{said}")
        self.show(f"cartlab {shlex.join(words)}", said, ends, keep)

    def shell(self, line: str) -> None:
        """A shell line in the repository."""
        done = subprocess.run(
            line, shell=True, cwd=self.made.repo, capture_output=True, text=True, check=True
        )
        self.show(line, done.stdout, 0, 60)

    def show(self, command: str, said: str, code: int, keep: int) -> None:
        """One command and its output, shortened; a code that is not 0 is told as a shell would ask for it."""
        out = self.short(said).rstrip("\n").split("\n")
        if len(out) > keep:
            out = [*out[:keep], f"[{len(out) - keep} more lines]"]
        asked = ["$ echo $?", str(code)] if code else []
        self.lines += ["```console", f"$ {self.short(command)}", *filter(None, out), *asked, "```", ""]

    def short(self, text: str) -> str:
        """Without this machine's paths, hashes, dates and times."""
        text = text.replace(str(self.folder / "clone"), "~/clone").replace(str(self.folder), "~")
        text = text.replace(sys.executable, "python").replace(str(REPOSITORY), "~/rollcart")
        text = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", text)
        text = re.sub(r"\b([0-9a-f]{7})[0-9a-f]{5,33}\b", r"\1", text)
        text = re.sub(r"slope-\d{8}-\d{6}", "slope-DATE", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "TIME", text)
        return re.sub(r"\b\d+\.\d+ ?s\b", "T s", text)

    def kill_in_round(self, number: int, *words: str) -> None:
        """Start the command, and end it by signal 9 as soon as this round's researcher works."""
        process = self.start(*words)
        events = self.made.root / "events.jsonl"
        wanted = f'"round":{number},"state":"dispatched"'
        deadline = time.monotonic() + 300
        while wanted not in (events.read_text() if events.exists() else ""):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the run did not come to round {number}")
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        said, _ = process.communicate()
        self.show(f"cartlab {shlex.join(words)}", said + "Killed\n", 137, 60)


def record(folder: Path) -> list[str]:
    """All of the session; the transcript's lines."""
    session = Session(folder)
    design = str(session.made.folder / "DESIGN.md")
    researcher = f"{sys.executable} {session.script}"
    loop = ("supervise", str(session.made.folder), "--researcher", researcher)
    session.tell(
        "The experiment fits a slope by ten steps of gradient descent, and the evaluation prints its error."
    )
    session.run("handoff", design, "--run-vp")
    session.tell("Ten rounds. In the sixth the researcher does not end, and there the supervisor is killed.")
    session.kill_in_round(6, *loop)
    session.tell(
        "The same command goes on: the cut round is closed as interrupted and run again, now to its deadline "
        "of twice the time limit."
    )
    session.run(*loop)
    session.tell("Every attempt, its verdict and why:")
    session.run("show")
    session.tell("The cheat in full. What was handed in is kept; nothing of it was run.")
    session.run("show", f"{_goal(session)}-r2")
    session.tell("The gain, run again from its commit:")
    session.run("audit", f"{_goal(session)}-r1")
    session.tell("Every verdict derived again from the recorded runs:")
    session.run("verify")
    session.tell("One commit for the gain, in the harness's worktree; the checkout is what it was.")
    session.shell("git -C ../autoresearch-slope log --format='%h %s' -3")
    session.shell("git status --short --branch")
    return session.lines


def _goal(session: Session) -> str:
    events = [json.loads(line) for line in (session.made.root / "events.jsonl").read_text().splitlines()]
    opened = [e["body"]["goal"] for e in events if e["type"] == "goal" and e["body"]["op"] == "opened"]
    return str(opened[-1])


def main() -> None:
    """Record and write the page."""
    head = [
        "# Ten supervised rounds",
        "",
        "A real run, made by `python docs/transcripts/supervise.py`. Paths, hashes, times and dates are",
        "shortened; what commands say on stderr is left out.",
        "",
    ]
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1]).resolve()
        folder.mkdir(parents=True)
        lines = record(folder)
    else:
        with tempfile.TemporaryDirectory(prefix="cartlab-transcript-") as name:
            lines = record(Path(name).resolve())
    PAGE.write_text("\n".join([*head, *lines]).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
