"""Real workers without git or a compiler: builds written by hand, and an adapter that runs a part of these.

    lab = bare_lab.make(tmp_path)
    base, cand = lab.build("base"), lab.build("cand", "Session.step = lambda self, action: 5")
    lab.plan(slices=12)                   of the workload that `lab.adapter` carries out
    lab.setting(base, cand, slices=12)    the same as blocks and invocations take it

A build's part is Python text that the adapter runs, with its own names at hand, before it makes a session.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ledger_runs import a_plan, ref

from cartlab import measure
from cartlab.measure.blocks import Setting
from cartlab.model import Build, Plan, Workload
from cartlab.sources import stamps

ADAPTER = '''\
import os
import random
import sys
from pathlib import Path


class Session:
    """A number that every step mixes with an action."""

    def __init__(self, native, seed):
        self.native, self.random, self.state = native, random.Random(seed), 1
        self.actions, self.kept = [], []

    def prepare(self, steps):
        self.actions = [self.random.randrange(8) for _ in range(steps)]

    def forget(self):
        self.kept = []

    def run(self):
        for action in self.actions:
            self.kept.append(self.step(action))

    def step(self, action):
        self.state = (31 * self.state + action + 0 * sum(range(WORK))) % 2**61
        return self.state

    def results(self):
        return [value % 1024 for value in self.kept]

    def observation(self, step):
        return self.kept[step]

    def verify(self, steps):
        self.prepare(steps)
        for number, action in enumerate(self.actions):
            yield f"step {number}", self.step(action)

    def close(self):
        pass


WORK = 100


def open(workload, seed, layout_seed):
    exec((Path(sys.path[0]) / "part").read_text(), globals())
    return Session(str(Path(sys.path[0]) / "native"), seed)
'''

SETTINGS = """\
schema = 1
[project]
name = "bare"
[build]
command = "true"
artifact = "native"
[workload.bare]
kind = "slices"
command = "harness/bare.py"
metric = "steps_per_sec"
unit = "steps/s"
verify = 10
"""

# A child in a session of its own that keeps its mark: of the side that left it.
LEAVES_A_CHILD = """
if not os.fork():
    os.setsid()
    for fd in range(3): os.close(fd)
    os.execv("/bin/sleep", ["sleep", "60"])
"""


@dataclass
class Lab:
    """`repo` has the settings and the adapter, `builds` what was built."""

    repo: Path
    builds: Path

    @property
    def adapter(self) -> Path:
        return self.repo / "harness" / "bare.py"

    @property
    def workload(self) -> Workload:
        return Workload("bare", "slices", "harness/bare.py", "steps_per_sec", "higher", "steps/s", 10)

    def build(self, name: str, part: str = "") -> Build:
        """A finished build, stamped as they are."""
        out = self.builds / name / "out"
        out.mkdir(parents=True)
        (out / "native").write_text(f"of {name}\n")
        (out / "part").write_text(part)
        files = stamps.manifest(out)
        (out.parent / stamps.STAMP).write_text(json.dumps({"files": files}))
        return Build(ref(name), name, str(out), "native", files["native"], 0.0, False)

    def plan(self, **changes: Any) -> Plan:
        """Blocks of a tenth of a second, of enough pairs that no busy machine accuses a side."""
        sizes = {"slices": 12, "slice_ms": 2.0, "workload": self.workload, **changes}
        plan = a_plan("bare", "screen", **sizes)
        return replace(plan, harness_hash=measure.harness_hash(self.repo, plan.workload))

    def setting(self, base: Build, cand: Build, coin: int = 0, **changes: Any) -> Setting:
        return Setting(self.plan(**changes), 0, coin, {"base": base, "cand": cand}, self.adapter)


def make(folder: Path) -> Lab:
    lab = Lab(folder / "repo", folder / "builds")
    lab.adapter.parent.mkdir(parents=True)
    lab.adapter.write_text(ADAPTER)
    (lab.repo / "autoresearch.toml").write_text(SETTINGS)
    return lab


def nothing() -> str:
    """The digest of a side that kept no outputs."""
    return hashlib.sha256().hexdigest()
