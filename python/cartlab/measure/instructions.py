"""Instructions per step: a witness that no other load and no clock can move.

Where valgrind is installed both sides run a few steps of the workload under callgrind, which counts only
while they run (its instrumentation is switched on and off from here). Where it is not, or a build cannot
run under it, there is no such witness, and that is said. It never decides: a speed-up may take more
instructions, and a report names it where the two point in opposite directions.

`params["witness"]` of the workload replaces params for this alone (fewer lanes: callgrind is some fifty
times slower).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cartlab.errors import CartlabError
from cartlab.measure import schedule
from cartlab.measure.slices import NAMES
from cartlab.measure.worker import LIMITS_S, Worker
from cartlab.model import Build, Plan, Workload

WARM_STEPS = 2
STEPS = 4
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
    if shutil.which("valgrind") is None or shutil.which("vgdb") is None:
        return Instructions(None, None, None, "valgrind is not installed")
    seed = schedule.number(plan.attempt_id, 0, "instructions", 2**31)
    workload = _small(plan.workload)
    found = {}
    for side in schedule.SIDES:
        try:
            found[side] = _count(side, builds[side], adapter, workload, seed)
        except CartlabError as error:
            return Instructions(None, None, None, error.message)
        except (OSError, subprocess.SubprocessError) as error:
            return Instructions(None, None, None, f"callgrind cannot be driven here: {error}")
    return Instructions("callgrind", found["base"], found["cand"])


def _small(workload: Workload) -> Workload:
    smaller = workload.params.get("witness") or {}
    params = {key: value for key, value in {**workload.params, **smaller}.items() if key != "witness"}
    return replace(workload, params=params)


def _count(side: str, build: Build, adapter: Path, workload: Workload, seed: int) -> float:
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
