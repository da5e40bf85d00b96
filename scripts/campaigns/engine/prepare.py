#!/usr/bin/env python3
"""Open the engine's campaign: a clone, the baseline's build as the reference, the documents, the plan.

    prepare.py WORK [--policy paired] [--openings 5] [--cap '6 h'] [--seconds 30]

WORK is made outside the repository and holds the clone, the state root, the campaign's folder and the cache
of builds. Nothing is measured here but that the baseline builds. The last line is the command that runs it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
SLUG = "engine"
PROTOCOL = """\
# Autoresearch Protocol: engine

research_question: which of three small changes makes the engine faster
max_rounds: 8
target: none
baseline: speed = 1.0

## Fixed
- files: Cargo.toml, Cargo.lock, autoresearch.toml, python, scripts, tests, games
- time_limit: {seconds}
- epoch_limit: 1

## Variable
- files: src
- adjustable range: what the engine does the same, but faster

## Eval
- metric: speed
- direction: maximize
- command: {python} scripts/campaigns/engine/measure.py --cache {cache} --openings {openings}
"""
DOCUMENTS = {
    "TASK.md": "# Task\n\nMake the canonical workload faster by small changes of the engine.\n",
    "DATA.md": "source = none\nno_split = speed is measured; there is no data to learn from\n",
    "PREVIOUS_WORK.md": "## Current baseline\n- 1.0 by definition (scripts/campaigns/engine/measure.py:1)\n"
    "## What was tried and kept\n- see docs/findings.md:1\n"
    "## What was tried and dropped\n- see docs/findings.md:1\n"
    "## Open hypotheses / TODOs in the code\n- none\n## Known fragile areas\n- none\n",
    "DEEPRESEARCH.md": "# Survey\n\n- what was measured before: docs/findings.md:1\n",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, metavar="WORK", help="a new folder outside the repository")
    parser.add_argument("--cap", default="6 h", help="the campaign's compute_cap (6 h)")
    parser.add_argument("--seconds", type=int, default=30, help="of an evaluation; killed 30 s later (30)")
    parser.add_argument("--policy", default="paired", help="what keeps an idea (paired)")
    parser.add_argument("--openings", type=int, default=5, help="pairs of processes of an evaluation (5)")
    parser.add_argument("--ref", default="HEAD", help="the baseline (HEAD)")
    space = parser.parse_args()
    work = space.work.resolve()
    if work.exists() or REPOSITORY in work.parents:
        parser.error(f"expected a new folder outside {REPOSITORY}; found {work}")
    clone, cache, runs = work / "clone", work / "cache", work / "runs"
    cache.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "switch", "-q", "--detach", space.ref], check=True)
    if (REPOSITORY / "target" / "release").is_dir():  # what its dependencies compiled to is there already
        shutil.copytree(REPOSITORY / "target" / "release", cache / "target" / "release", symlinks=True)
    print("building the baseline; this takes minutes the first time", flush=True)
    measure = [sys.executable, "scripts/campaigns/engine/measure.py", "--cache", str(cache)]
    subprocess.run([*measure, "--reference"], cwd=clone, check=True)
    text = PROTOCOL.format(seconds=space.seconds, python=sys.executable, cache=cache, openings=space.openings)
    (clone / "autoresearch-protocol.md").write_text(text)
    environ = {**os.environ, "AUTORESEARCH_ROOT_PATH": str(work / "root"), "AUTORESEARCH_RUNS_DIR": str(runs)}
    command = [sys.executable, str(clone / "scripts" / "autoresearch.py")]

    def cartlab(*words: str) -> None:
        subprocess.run([*command, *words], cwd=clone, env=environ, check=True)

    cartlab(
        *("campaign", "init", SLUG, "--protocol", ".", "--compute", "local", "--policy", space.policy),
        *("--set", f"compute_cap={space.cap}", "--set", "parallelism=1"),
        # A single pass: it is complete once the matrix has run.
        *("--set", "max_generations=1", "--set", "ladder=off"),
    )
    for name, body in DOCUMENTS.items():
        (runs / SLUG / name).write_text(body)
    with (runs / SLUG / "IDEA_ANGLES.md").open("a") as file:
        file.write("\n## L: luck\n- none\n")
    cartlab("campaign", "plan", "--hypotheses", str(HERE / "matrix.json"))
    researcher = shlex.join([sys.executable, str(HERE / "researcher.py"), str(cache)])
    names = ("AUTORESEARCH_ROOT_PATH", "AUTORESEARCH_RUNS_DIR")
    print(
        f"cd {clone} && "
        + " ".join(f"{name}={environ[name]}" for name in names)
        + " "
        + shlex.join([*command, "campaign", "run", "--researcher", researcher, "--isolation", "process"])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
