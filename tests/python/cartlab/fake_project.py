"""A tiny git repository that cartlab can measure: one C file, built by `cc` in milliseconds.

    project = make(tmp_path)                      a repository with one commit
    slower = project.commit("slower", work=20)    an engine that does 20 % more work a step (100 = the same)
    project.commit("pixel", observe="value ^ 1")  an engine whose observations differ
    project.write("extension.py", "...")          a Python part, imported by the worker with the library
    project.build(root), project.plan()           what measure takes; sizes as in PLAN_SIZES

The workload is fake_workload.py, copied in as `harness/workload.py`. PLAN_SIZES are sizes that make a block
take about 0.1 s.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab import config, host, measure, sources
from cartlab.model import Block, Build, Plan

HERE = Path(__file__).resolve().parent

PLAN_SIZES = {"slices": 12, "slice_ms": 1.5}

ENGINE = """\
#include <stdint.h>
#include <string.h>
{before}
void step(uint64_t *state, int lanes, int work, const uint8_t *actions,
          uint8_t *seen, double *rewards, uint8_t *flags)
{{
    {at_step}
    for (int lane = 0; lane < lanes; lane++) {{
        uint64_t value = state[lane] + actions[lane];
        volatile uint64_t sink = value;
        for (int turn = 0; turn < work * {work} / 100; turn++) sink = sink * 6364136223846793005ULL + 1;
        value ^= value << 13; value ^= value >> 7; value ^= value << 17;
        state[lane] = value;
        uint32_t shown = (uint32_t)({observe});
        memcpy(seen + 4 * lane, &shown, 4);
        rewards[lane] = {reward};
        flags[lane] = value % 64 == 0;
    }}
}}
"""

CONFIG = """\
schema = 1
default_workload = "fake"

[project]
name = "fake"

[build]
command = '''
cc -O1 -shared -fPIC -pthread -o $CARTLAB_BUILD_DIR/libengine.so engine.c || exit 1
for part in *.py *.pth; do test -f $part && cp $part $CARTLAB_BUILD_DIR; done; true
'''
artifact = "libengine.so"
inputs = ["engine.c"]
timeout_s = 60

[workload.fake]
kind = "slices"
command = "harness/workload.py"
metric = "env_steps_per_sec"
direction = "higher"
unit = "steps/s"
verify = 20
params = { lanes = 4, work = 2000 }

[checks]
timeout_s = 60

[surfaces.native]
paths = ["engine.c"]
quick = ["cc -fsyntax-only engine.c"]
full = ["cc -fsyntax-only -Wall engine.c"]

[protected]
paths = ["harness/**", "autoresearch.toml"]

[contract]
paths = []
"""

_GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.invalid",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.invalid",
}


def gain(block: Block) -> float:
    """ln of the speed ratio by each side's shortest slice: other load cannot move it."""
    return math.log(min(block.base_ns) / min(block.cand_ns))


@dataclass
class Project:
    """A repository under `path`; every method returns what git prints, stripped."""

    path: Path

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env={**os.environ, **_GIT_ENV}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def engine(
        self,
        work: int = 100,
        observe: str = "value",
        reward: str = "(double)(value % 8)",
        before: str = "",
        at_step: str = "",
    ) -> None:
        """Write engine.c: work in per cent, the observed and the rewarded expression, further C text."""
        self.write(
            "engine.c",
            ENGINE.format(work=work, observe=observe, reward=reward, before=before, at_step=at_step),
        )

    def build(self, root: Path, text: str = "HEAD") -> Build:
        """The built package of a ref, cached under `root`."""
        return sources.build(config.load(self.path), sources.resolve(self.path, text), root)

    def plan(self, attempt_id: str = "attempt", **changes: Any) -> Plan:
        """A small screen plan of HEAD against HEAD; `changes` replace fields."""
        ref = sources.resolve(self.path, "HEAD")
        workload = config.load(self.path).workload()
        fields: dict[str, Any] = {
            "attempt_id": attempt_id, "command": "screen", "tier": "screen", "benchmark_tier": "local_triage",
            "base": ref, "cand": ref, "workload": workload, "policy": "anytime", "unit": "block",
            "design": "betting",
            "max_blocks": 6, "max_seconds": None, "policy_hash": "0" * 64, "host_class": host.host_class(),
            "harness_hash": measure.harness_hash(self.path, workload), **PLAN_SIZES,
        }  # fmt: skip
        return Plan(**{**fields, **changes})

    def commit(self, message: str, **engine: object) -> str:
        """Commit everything, after writing an engine if arguments name one; returns the commit id."""
        if engine:
            self.engine(**engine)  # type: ignore[arg-type]
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


def make(folder: Path, config: str = CONFIG) -> Project:
    """A repository with one commit, "base", on branch main; `folder` is created."""
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder)
    project.git("init", "-q", "-b", "main")
    project.write("autoresearch.toml", config)
    project.write("README", "fake\n")
    project.engine()
    (folder / "harness").mkdir()
    shutil.copy(HERE / "fake_workload.py", folder / "harness" / "workload.py")
    project.commit("base")
    return project
