"""Instructions per step: a witness that no other load and no clock can move.

Where the processor's counters can be read both sides run some steps of the workload under perf; else, where
valgrind is installed, a few of a smaller one under callgrind. Both count only while the steps run. Where
neither works, or a build cannot run under it, there is no such witness, and that is said. It never decides: a
speed-up may take more instructions, and a report names it where the two point in opposite directions.

`params["witness"]` of the workload replaces params under callgrind alone (fewer lanes: it is some fifty times
slower).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cartlab import host
from cartlab.errors import CartlabError
from cartlab.measure import counters, schedule
from cartlab.measure.slices import NAMES
from cartlab.measure.worker import LIMITS_S, Worker
from cartlab.model import Build, Plan, Workload

WARM_STEPS = 2
STEPS = 4
COUNTED_STEPS = 64
# Names relative to the worker's own folder, where vgdb finds it.
TOOL = (
    "valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=callgrind.out",
    "--vgdb-prefix=vgdb",
)  # fmt: skip
_SLOWER = 20.0
_SWITCH_S = 30.0
_COLLECTED = re.compile(r"Collected\s*:\s*([0-9,]+)")


@dataclass(frozen=True)
class Instructions:
    """Per step of each side, and ln(base / cand); None with a reason where they could not be counted."""

    tool: str | None
    base: float | None
    cand: float | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it stands in an aggregate."""
        return asdict(self)


def count(plan: Plan, builds: Mapping[str, Build], adapter: Path) -> Instructions:
    """Count both sides one after the other; never raises for a build that does not run under the tool."""
    if host.counts_instructions():
        tool, one_side, workload = "perf", _by_perf, plan.workload
    elif shutil.which("valgrind") is None or shutil.which("vgdb") is None:
        return Instructions(None, None, None, "valgrind is not installed")
    else:
        tool, one_side, workload = "callgrind", _by_callgrind, _small(plan.workload)
    seed = schedule.number(plan.attempt_id, 0, "instructions", 2**31)
    found = {}
    for side in schedule.SIDES:
        try:
            found[side] = one_side(side, builds[side], adapter, workload, seed)
        except CartlabError as error:
            return Instructions(None, None, None, error.message)
        except (OSError, subprocess.SubprocessError) as error:
            return Instructions(None, None, None, f"{tool} cannot be driven here: {error}")
    return Instructions(tool, found["base"], found["cand"])


def _small(workload: Workload) -> Workload:
    smaller = workload.params.get("witness") or {}
    params = {key: value for key, value in {**workload.params, **smaller}.items() if key != "witness"}
    return replace(workload, params=params)


def _by_perf(side: str, build: Build, adapter: Path, workload: Workload, seed: int) -> float:
    with Worker(NAMES[side], build, adapter) as worker:
        worker.open(workload, seed, 0)
        for _ in range(2):
            worker.run(COUNTED_STEPS)
            worker.ask("digest", obs_steps=[])
        with counters.attached(worker.pid, worker.scratch / "perf.out") as counter:
            counter.on()
            worker.run(COUNTED_STEPS)
            counter.off()
            total = counter.total()
        worker.close()
    return total / COUNTED_STEPS


def _by_callgrind(side: str, build: Build, adapter: Path, workload: Workload, seed: int) -> float:
    limits = {op: _SLOWER * limit for op, limit in LIMITS_S.items()}
    with Worker(NAMES[side], build, adapter, limits=limits, under=TOOL) as worker:
        worker.open(workload, seed, 0)
        worker.run(WARM_STEPS)
        worker.ask("digest", obs_steps=[])
        worker.run(STEPS)
        worker.ask("digest", obs_steps=[])
        _switch(worker, "on")
        worker.run(STEPS)
        _switch(worker, "off")
        worker.close()
        found = _COLLECTED.search(worker.stderr_tail())
    if found is None:
        raise OSError("no count in its output")
    return int(found[1].replace(",", "")) / STEPS


def _switch(worker: Worker, state: str) -> None:
    subprocess.run(
        ["vgdb", "--vgdb-prefix=vgdb", f"--pid={worker.pid}", "instrumentation", state],
        cwd=worker.scratch,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=_SWITCH_S,
    )
