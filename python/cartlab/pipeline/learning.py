"""The working tree's package, timed to learn from: probe and diagnose. Never evidence, never a results row.

The package is the one that lies in the working tree, so it must be what the sources there say: a native
module that is older than one of them is refused, with the line that builds it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab import sources
from cartlab.artefacts import sha256_of
from cartlab.errors import BadInput, NotLegalNow, WorkerCrashed, WorkerTimeout
from cartlab.ledger.rows import units_per_step
from cartlab.measure import adapter_of
from cartlab.measure.worker import Worker
from cartlab.model import Build, Ref, Workload

# Where a repository's package can lie, as Python projects are laid out.
HOMES = ("python", "src", ".")
RUNNER = Path(__file__).resolve().parent / "phase_runner.py"
SEED = 1
SLICE_SECONDS = 0.05


@dataclass(frozen=True)
class Package:
    """The working tree's package: home goes first on sys.path, artifact is the native file in it."""

    home: Path
    artifact: Path


def package_of(config: Any, repo: Path) -> Package:
    """The package, or NotLegalNow with the line that builds it where it is missing or out of date."""
    line = build_line(config, repo)
    pattern = config.build.artifact
    package = _lying(pattern, repo)
    if package is None:
        raise NotLegalNow(f"expected a built native module ({pattern}) in the working tree, found none", line)
    newer = newer_source(config, repo, package)
    if newer is not None:
        raise NotLegalNow(
            f"the native module is older than {newer}: it would time other code than this", line
        )
    return package


def stale_source(config: Any, repo: Path) -> str | None:
    """The source that the working tree's native module is older than; None where there is none such."""
    package = _lying(config.build.artifact, repo)
    return None if package is None else newer_source(config, repo, package)


def _lying(pattern: str, repo: Path) -> Package | None:
    for home in HOMES:
        for path in sorted((repo / home).glob(pattern)):
            if path.is_file():
                return Package(repo / home, path)
    return None


def build_line(config: Any, repo: Path) -> str:
    """The command that builds the working tree's package."""
    project = repo / "pyproject.toml"
    if project.is_file() and "maturin" in project.read_text(encoding="utf-8"):
        return ".venv/bin/python -m maturin develop --release"
    return f"CARTLAB_BUILD_DIR=. sh -c {config.build.command.strip()!r}"


def newer_source(config: Any, repo: Path, package: Package) -> str | None:
    """The newest build input that is younger than the native module, or None.

    What lies in the package's own folder is used as it is and needs no build.
    """
    built = package.artifact.stat().st_mtime
    newest: tuple[float, str] | None = None
    for name in sources.git.tell(repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(
        b"\0"
    ):
        path = repo / name.decode(errors="surrogateescape")
        relative = path.relative_to(repo).as_posix()
        inside = package.home != repo and path.is_relative_to(package.home)
        if not name or inside or not path.is_file():
            continue
        if config.build.inputs and not sources.matches(relative, config.build.inputs):
            continue
        changed = path.stat().st_mtime
        if changed > built and (newest is None or changed > newest[0]):
            newest = (changed, relative)
    return newest[1] if newest else None


def as_build(package: Package, repo: Path) -> Build:
    """The package as a worker wants it."""
    tree = sources.tree_of_worktree(repo)
    name = package.artifact.relative_to(package.home).as_posix()
    return Build(
        Ref("the working tree", "", tree), "", str(package.home), name, sha256_of(package.artifact), 0.0, True
    )


def probe(
    build: Build, workload: Workload, repo: Path, seconds: float, *, split: bool, engine: bool
) -> dict[str, Any]:
    """Time one worker over `seconds`; speeds are in the workload's unit, times in seconds.

    split: ask the adapter where a step's time goes; engine: with the engine's own parts.
    """
    if workload.kind != "slices":
        raise BadInput(f"probe times workloads of kind slices; {workload.name} is of kind {workload.kind}")
    began = time.monotonic()
    with Worker("working tree", build, adapter_of(repo, workload)) as worker:
        started = time.monotonic()
        worker.open(workload, SEED, 0)
        opened = time.monotonic()
        first_ns, _ = worker.run(1)
        worker.ask("digest", obs_steps=[0])
        steps = 1
        while (taken := worker.run(steps)[0]) < SLICE_SECONDS * 5e8 and steps < 1 << 20:
            worker.ask("digest", obs_steps=[0])
            steps *= 2
        steps = max(1, round(steps * SLICE_SECONDS * 1e9 / max(1, taken)))
        slices: list[tuple[int, int]] = []
        outputs = 0.0
        while time.monotonic() - opened < seconds:
            slices.append(worker.run(steps))
            mark = time.monotonic()
            worker.ask("digest", obs_steps=[0])
            outputs += time.monotonic() - mark
    speeds = [steps * units_per_step(workload) * 1e9 / ns for ns, _ in slices]
    return {
        "evidence": "learning",
        "workload": workload.name,
        "workload_hash": workload.hash,
        "tree": build.ref.tree,
        "native_sha256": build.artifact_sha256,
        "unit": workload.unit,
        "median_speed": statistics.median(speeds),
        "slowest_speed": min(speeds),
        "fastest_speed": max(speeds),
        "slices": len(slices),
        "steps_a_slice": steps,
        "cpu_share": sum(cpu for _, cpu in slices) / max(1, sum(ns for ns, _ in slices)),
        "seconds": {
            "spawn": round(started - began, 4),
            "import_and_open": round(opened - started, 4),
            "first_step": round(first_ns / 1e9, 4),
            "stepping": round(sum(ns for ns, _ in slices) / 1e9, 4),
            "hashing_outputs": round(outputs, 4),
        },
        "phases": phases_of(build, workload, repo, steps, engine) if split else None,
    }


def phases_of(
    build: Build, workload: Workload, repo: Path, steps: int, engine: bool
) -> dict[str, float] | None:
    """{part of a step: seconds} from the adapter's optional profile(steps, engine), else None."""
    request = {
        "workload": {"name": workload.name, "params": dict(workload.params)},
        "seed": SEED,
        "steps": steps,
        "engine": engine,
    }
    words = [sys.executable, "-I", "-B", str(RUNNER), str(adapter_of(repo, workload)), build.path]
    try:
        done = subprocess.run(
            words, input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        raise WorkerTimeout("the phase split must end within 120 s; it was killed") from None
    if done.returncode != 0:
        raise WorkerCrashed("the adapter's phase split failed", details={"stderr": done.stderr[-3000:]})
    phases: dict[str, float] | None = json.loads(done.stdout)["phases"]
    return phases


def phase_lines(found: Mapping[str, Any]) -> list[str]:
    """The split of one run as lines, largest first."""
    shares = found.get("phases")
    if not shares:
        return ["  this workload's adapter tells no phases"]
    total = sum(shares.values()) or 1.0
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [f"  {name:<24} {100 * value / total:5.1f} %" for name, value in ordered]
