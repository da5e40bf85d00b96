"""Make campaign.md again: a real campaign over a tiny experiment, with a scripted researcher.

    python docs/transcripts/campaign.py

The experiment descends to a slope in 16 steps of a tenth of a second. Three generations are planned, the run
is killed once with signal 9, and the budget ends before the last experiments. It takes about a minute. Paths,
hashes and dates are shortened in the transcript; nothing else is changed.
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
import textwrap
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_suffix(".md")
SLUG = "slope"

TRAIN = """\
import json, os, random, time
from pathlib import Path

config = json.loads(Path("config.json").read_text())
random.seed(int(os.environ["AR_SEED"]))
began, a, speed = time.monotonic(), random.uniform(-0.001, 0.001), 0.0
for step in range(config["steps"]):
    slope = 2 * (a - 3.0) + config["decay"] * a
    speed = config["momentum"] * speed - config["rate"] * slope
    a += speed
    time.sleep(max(0.0, began + 0.1 * (step + 1) - time.monotonic()))
    print(f"step={step} loss={(a - 3.0) ** 2:.6f}", flush=True)
Path("out").mkdir(exist_ok=True)
Path("out/model.json").write_text(json.dumps({"a": a}))
"""
EVAL = """\
import json
from pathlib import Path

print(f"error: {abs(json.loads(Path('out/model.json').read_text())['a'] - 3.0):.4f}")
"""
CONFIG = {"rate": 0.01, "momentum": 0.0, "decay": 0.0, "steps": 16}
PROTOCOL = f"""\
# Autoresearch Protocol: slope

research_question: how near to the slope do 16 steps come
max_rounds: 8
target: none
baseline: error = 2.17

## Fixed
- files: eval.py
- time_limit: 2
- epoch_limit: 1

## Variable
- files: train.py, config.json
- adjustable range: anything in the two files

## Eval
- metric: error
- direction: minimize
- command: {sys.executable} eval.py

## Train
- command: {sys.executable} train.py
- checkpoint: out/model.json
"""
DOCUMENTS = {
    "DATA.md": "# Data\n\nsource = none\nno_split = the slope is a formula in the evaluation\n",
    "PREVIOUS_WORK.md": "\n".join(
        [
            "## Current baseline",
            "- error 2.17 (source: slope/eval.py)",
            "## What was tried and kept",
            "- none",
            "## What was tried and dropped",
            "- none",
            "## Open hypotheses / TODOs in the code",
            "- the rate was never tuned (slope/config.json:1)",
            "## Known fragile areas",
            "- none",
            "",
        ]
    ),
    "DEEPRESEARCH.md": "# Survey\n\n- gradient descent and momentum: https://distill.pub/2017/momentum/\n",
}


def idea(angle: str, change: str, delta: float, **settings: Any) -> dict[str, Any]:
    """A hypothesis of the script's."""
    return {
        "id": f"{angle}-{'-'.join(settings) or 'code'}",
        "angle": angle,
        "change": change,
        "mechanism": "16 steps leave an error of (1 - 2 rate)^16 or so, and this changes that factor",
        "expected_delta": delta,
        "falsification": "the error stays where it was",
        "source": "https://distill.pub/2017/momentum/",
        "builds_on": "baseline",
        "settings": settings or None,
    }


SEED = [
    idea("A", "five times the rate", -1.6, rate=0.05),
    idea("F", "half the steps, which is half the compute", -0.1, steps=8),
    idea("K", "a larger model first", -0.5),
]
# What the scripted proposers say, by angle; the others have no idea.
PROPOSED = {
    "B": idea("B", "a decay of 0.1", -0.1, decay=0.1),
    "C": idea("C", "momentum of 0.5", -0.4, momentum=0.5),
    "D": idea("D", "five times the rate", -0.1, rate=0.05),
    "E": idea("E", "an absolute loss, which breaks the code", -0.1),
    "G": idea("G", "twice the champion's rate, as in adaptive filters", -0.01, rate=0.1),
    "H": idea("H", "momentum of 0.6", -0.01, momentum=0.6),
}
RESEARCHER = """\
import json, os, sys
from pathlib import Path

proposed = json.loads(Path(__file__).with_name("proposed.json").read_text())
role, out = os.environ["AR_ROLE"], Path(os.environ["AR_SUBMISSION"])
if role == "propose":
    found = proposed.get(os.environ["AR_ANGLE"])
    out.write_text(json.dumps({"hypotheses": [found] if found else []}))
elif role == "critique":
    text = Path(os.environ["AR_PROMPT"]).read_text()
    ideas = json.loads(text.split("```json")[1].split("```")[0])
    worth = {one["exp_id"]: 5 if "decay" in one["change"] else 7 for one in ideas}
    scores = [{"id": name, "quality": quality, "novel": True} for name, quality in worth.items()]
    out.write_text(json.dumps({"scores": scores}))
elif role == "experiment":
    idea = json.loads(Path(os.environ["AR_HYPOTHESIS"]).read_text())
    work = Path(os.environ["AR_WORK"])
    if idea["settings"]:
        old = json.loads((work / "config.json").read_text())
        (work / "config.json").write_text(json.dumps({**old, **idea["settings"]}))
    elif idea["angle"] == "E":
        (work / "train.py").write_text("raise RuntimeError('no gradient at zero')")
    out.write_text(json.dumps({"strategy": idea["change"]}))
else:
    out.write_text("{}")
"""


class Stage:
    """The folders of one performance, and what was said on it."""

    def __init__(self, place: Path) -> None:
        self.place, self.clone, self.said = place, place / "clone", list[str]()
        self.environ = {
            **os.environ,
            "AUTORESEARCH_ROOT_PATH": str(place / "root"),
            "AUTORESEARCH_RUNS_DIR": str(place / "runs"),
        }
        folder = self.clone / "slope"
        folder.mkdir(parents=True)
        for name, text in (
            ("train.py", TRAIN),
            ("eval.py", EVAL),
            ("config.json", json.dumps(CONFIG)),
            ("autoresearch-protocol.md", PROTOCOL),
        ):
            (folder / name).write_text(text)
        (place / "researcher.py").write_text(RESEARCHER)
        (place / "proposed.json").write_text(json.dumps(PROPOSED))
        (place / "matrix.json").write_text(json.dumps(SEED))
        git = ["git", "-C", str(self.clone), "-c", "user.name=t", "-c", "user.email=t@example.com"]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "base code"]):
            subprocess.run([*git, *words], check=True)

    def write(self, text: str) -> None:
        """Prose between the commands."""
        self.said += ["", *textwrap.wrap(text, 110), ""]

    def command(self, line: str, *, die_after: str = "") -> None:
        """Run one command line and keep what it says; die_after: signal 9 once the ledger has this."""
        words = [sys.executable, str(REPOSITORY / "scripts/autoresearch.py"), *shlex.split(line)]
        self.said += ["```console", f"$ scripts/autoresearch.py {line}"]
        running = subprocess.Popen(
            words,
            cwd=self.clone,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if die_after:
            ledger = self.place / "root/events.jsonl"
            while running.poll() is None and die_after not in ledger.read_text():
                time.sleep(0.05)
            time.sleep(0.5)
            running.send_signal(signal.SIGKILL)
        told, beside = running.communicate()
        self.said += [self.short(told).rstrip()]
        if running.returncode > 0:
            self.said += [self.short(beside).rstrip()]
        if running.returncode:
            code = -running.returncode if running.returncode < 0 else running.returncode
            self.said.append(f"({'signal' if running.returncode < 0 else 'exit code'} {code})")
        self.said.append("```")

    def file(self, name: str) -> None:
        """A document of the campaign's folder, as it stands."""
        text = (self.place / "runs" / SLUG / name).read_text()
        self.said += ["", f"`{name}`:", "", "````markdown", self.short(text).rstrip(), "````"]

    def short(self, text: str) -> str:
        """Without what is this machine's: paths, hashes, dates."""
        text = (
            text.replace(str(REPOSITORY), ".").replace(str(self.place), "~").replace(sys.executable, "python")
        )
        text = re.sub(r"\b([0-9a-f]{7})[0-9a-f]{5,57}\b", r"\1", text)
        return re.sub(r"\b(\w+)-20\d{6}-\d{6}\b", r"\1-DATE", text)


def main() -> None:
    """Perform it, and write the page."""
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        stage = Stage(Path(folder))
        stage.said += [
            "# A campaign, from its opening to its end",
            "",
            "A real run, made by `python docs/transcripts/campaign.py`: three generations over a tiny",
            "experiment, a scripted researcher, one kill by signal 9, and a budget that runs out. What",
            "commands say on stderr is left out; paths, hashes and dates are shortened.",
        ]
        stage.write(
            "The budget: 2 s of training each, 106 s in all. One launch may cost 84 s: two trainings that "
            "are killed at 32 s, each with an evaluation of at most 10 s."
        )
        stage.command(
            f"campaign init {SLUG} --protocol slope --compute local --set 'compute_cap=106 s' "
            "--set parallelism=1 --task 'Come nearer to the slope in 16 steps.'"
        )
        runs = stage.place / "runs" / SLUG
        for name, text in DOCUMENTS.items():
            (runs / name).write_text(text)
        with (runs / "IDEA_ANGLES.md").open("a") as file:
            file.write("\n## L: luck\n- none\n")
        stage.command(f"campaign plan --hypotheses {stage.place}/matrix.json")
        researcher = f"{sys.executable} {stage.place}/researcher.py"
        run = f"campaign run --researcher '{researcher}' --propose --eval-limit 10"
        stage.write(
            "The researcher makes each change in a copy; the harness trains, evaluates, and repeats a win."
        )
        stage.command(f"{run} --generations 1")
        stage.write(
            "The next generation is proposed and criticised first. This run is killed by signal 9 while the "
            "first of its experiments trains."
        )
        stage.command(run, die_after='"phase":"critiqued"')
        stage.write("The same command goes on where it was, until the budget covers no further launch.")
        stage.command(run)
        stage.command("campaign ladder")
        stage.command("campaign done")
        stage.command("verify")
        for name in ("RESULTS.md", "FINDINGS.md", "BUDGET.md"):
            stage.file(name)
        text = "\n".join(stage.said)
        PAGE.write_text(stage.short(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
