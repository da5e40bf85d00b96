"""The command line in this process over a laboratory without compilers, workers and waiting.

    desk = make_desk(tmp_path, monkeypatch, capsys)
    desk.commit("half", work=50)      a commit whose steps take half as long as those of work=100
    desk.run("screen", "HEAD~1", "HEAD", "--json")

Refs, trees, checks' records, plans, ledger and rounds are real; a block's value follows from the `work` that
engine.c has in each of the two trees, with a little noise of its own.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from cli_bench import Answer
from fake_project import CONFIG, Project, make
from ledger_runs import a_block

from cartlab.checks import Check, CheckRun
from cartlab.cli import main
from cartlab.measure import Equality
from cartlab.model import Block, Build, Plan, Ref, digest_of
from cartlab.pipeline.lab import Lab, no_count, no_lease
from cartlab.sources import tree_of_worktree

NOISE = 0.002


@dataclass
class Desk:
    """A repository, a root beside it, and a laboratory whose answers a test can change."""

    project: Project
    root: Path
    capsys: pytest.CaptureFixture[str]
    lab: Lab = field(init=False)
    equal: Callable[[Plan], bool] = lambda plan: True
    passes: Callable[[str], bool] = lambda tree: True
    change: Callable[[Plan, Block], Block] = lambda plan, block: block
    gain: Callable[[Plan], float] | None = None

    def __post_init__(self) -> None:
        self.lab = replace(
            Lab.real(),
            build=lambda config, ref, root, **_: Build(ref, ref.tree[:12], "", "", ref.tree, 0.0, True),
            check_build=lambda build: None,
            verify_equal=self._verify,
            run_block=self._block,
            run_checks=self._checks,
            lease=no_lease,
            instructions=no_count,
        )

    def run(self, *words: str) -> Answer:
        """One command line; `--json` gives the object."""
        self.capsys.readouterr()
        code = main(list(words), prog="scripts/autoresearch.py", repository=self.project.path, lab=self.lab)
        out, err = self.capsys.readouterr()
        return Answer(code, out, err, json.loads(out) if "--json" in words else {})

    def commit(self, message: str, **engine: Any) -> str:
        """A commit that states its mechanism and what would falsify it."""
        text = f"{message}\n\nMechanism: {message}\nFalsified-by: no change"
        return self.project.commit(text, **engine)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in (self.root / "events.jsonl").read_text().splitlines()]
        return [event for event in found if kind in (None, event["type"])]

    def state(self) -> str:
        return str(json.loads((self.root / "current.json").read_text())["state"])

    def work(self, ref: Ref) -> int:
        """The work that engine.c of this revision does."""
        found = re.search(r"work \* (\d+) / 100", self.project.git("show", f"{ref.tree}:engine.c"))
        assert found is not None
        return int(found.group(1))

    def _verify(self, plan: Plan, base: Build, cand: Build, repo: Path) -> Equality:
        digest = digest_of([plan.workload.hash])
        if self.equal(plan):
            return Equality(True, 20, 40, 1, digest, digest)
        return Equality(False, 20, 40, 1, digest, "f" * 64, "step 0 observations")

    def _block(self, plan: Plan, index: int, coin: int, base: Build, cand: Build, repo: Path) -> Block:
        gain = self.gain(plan) if self.gain else math.log(self.work(plan.base) / self.work(plan.cand))
        noise = random.Random(f"{plan.pair}{index}").gauss(0.0, NOISE)
        block = replace(a_block(index, gain + noise), coin=coin)
        return self.change(plan, block)

    def _checks(
        self, config: Any, surfaces: Any, *, quick: bool, ref: Ref | None = None, **_: Any
    ) -> CheckRun:
        tree = ref.tree if ref else tree_of_worktree(self.project.path)
        done = tuple(
            Check(one.name, command, passed := self.passes(tree), 0 if passed else 1, 0.1, "")
            for one in surfaces
            for command in (one.quick if quick else one.full)
        )
        names = tuple(one.name for one in surfaces)
        return CheckRun(tree, ref.commit if ref else None, quick, names, done)


def make_desk(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: str = CONFIG,
) -> Desk:
    """A desk whose repository and root lie in `folder`."""
    project = make(folder / "repo", config)
    project.write(".gitignore", "libengine.so\n")
    project.commit("ignore")
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("AUTORESEARCH_ROOT_PATH", str(folder / "root"))
    return Desk(project, folder / "root", capsys)


def open_round(desk: Desk, *more: str) -> str:
    """Calibrate HEAD and open a round on it; returns the baseline."""
    assert desk.run("calibrate", "HEAD").code == 0
    answer = desk.run("round", "open", "--goal", "half the time", *more, "--json")
    assert answer.code == 0, answer.err
    return str(answer.json["details"]["baseline_commit"])


def to_stacked(desk: Desk) -> tuple[str, str]:
    """A round whose one candidate reaches the target and waits for its confirm run: (baseline, candidate)."""
    base = open_round(desk)
    cand = desk.commit("half", work=50)
    assert desk.run("screen", base, cand).code == 0
    assert desk.run("accept-stack", base, cand).code == 0
    assert desk.state() == "stacked"
    return base, cand
