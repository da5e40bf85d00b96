"""Measuring two builds: equality first, then blocks.

    verify_equal(plan, base, cand, repo=...)             -> Equality, naming the first difference
    run_block(plan, index, coin, base, cand, repo=...)   -> model.Block
    count_instructions(plan, base, cand, repo=...)       -> Instructions, a witness
    harness_hash(repo, workload)                         -> what measures, as one digest

`repo` is the controller's own checkout: the adapter that `workload.command` names is read there, never from
a ref. Errors: WorkerCrashed, WorkerTimeout, Tampered, BehaviourChanged, MetricError, BadInput of
cartlab.errors. This package measures and compares; it knows no tier, no bound and no verdict.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from cartlab import config, sources
from cartlab.errors import BadInput, Tampered
from cartlab.measure import blocks, commands, equality, instructions, invocations, schedule, worker
from cartlab.measure.equality import Equality
from cartlab.measure.instructions import Instructions
from cartlab.measure.schedule import draw_coin
from cartlab.model import Block, Build, Plan, Workload

__all__ = [
    "Equality",
    "Instructions",
    "count_instructions",
    "draw_coin",
    "harness_hash",
    "run_block",
    "verify_equal",
]


def adapter_of(repo: Path, workload: Workload) -> Path:
    """The adapter file of a "slices" workload in the controller's checkout."""
    path = (repo / workload.command).resolve()
    if not path.is_file():
        raise BadInput(
            f"workload {workload.name} must name an adapter file in this checkout; not {workload.command}",
            "correct `command` in autoresearch.toml",
        )
    return path


# What of the rest of cartlab drives the measured window: how processes start and end, what of the machine
# they read, how variants are made and handed over, and what tells a bent clock.
_DRIVERS = (
    "processes.py",
    "landlock.py",
    "host.py",
    "sources/layouts.py",
    "sources/stamps.py",
    "sources/tools.py",
    "stats/signs.py",
)


def harness_files(repo: Path, workload: Workload) -> list[Path]:
    """Every file that takes part in measuring: the slice server, this package, what it drives the window
    with, and for "slices" the adapter with the files beside it that begin with its name (its tables), and
    the same for the adapters beside it that it names (one may build on another).
    """
    here = Path(__file__).resolve().parent
    own = [worker.SERVER, *sorted(here.glob("*.py")), *(here.parent / name for name in _DRIVERS)]
    if workload.kind != "slices":
        return own
    found: set[Path] = set()
    _take_adapter(adapter_of(repo, workload), found)
    return own + sorted(found)


def _take_adapter(adapter: Path, found: set[Path]) -> None:
    if adapter in found:
        return
    found |= {p for p in adapter.parent.glob(f"{adapter.stem}*") if p.is_file()} | {adapter}
    text = adapter.read_text(encoding="utf-8", errors="replace")
    for other in adapter.parent.glob("*.py"):
        if f'"{other.stem}"' in text:
            _take_adapter(other, found)


def harness_hash(repo: Path, workload: Workload) -> str:
    """sha256 over the names and bytes of the harness files and the [layout] command; blocks of two harnesses
    are never pooled.
    """
    digest = hashlib.sha256(f"layout:{config.load(repo).layout_command}:".encode())
    for path in harness_files(repo, workload):
        content = path.read_bytes()
        digest.update(f"{path.name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def verify_equal(plan: Plan, base: Build, cand: Build, *, repo: Path) -> Equality:
    """Do both builds do the same work? Measures nothing; equal trees are compared like any others."""
    builds = {"base": base, "cand": cand}
    if plan.workload.kind == "slices":
        return equality.run(plan, builds, adapter_of(repo, plan.workload))
    return commands.verify(plan, builds, repo)


def run_block(plan: Plan, index: int, coin: int, base: Build, cand: Build, *, repo: Path) -> Block:
    """Measure block `index` of the plan, `coin` drawn before it with draw_coin(); 2-5 s at 50 slices.

    Tampered where a build on disk, or the harness, is no longer what the plan was made with.
    """
    for build in (base, cand):
        sources.check(build)
    if plan.harness_hash != harness_hash(repo, plan.workload):
        raise Tampered(
            "the harness must stay as it was when the plan was made; its files changed since",
            "start again: blocks of two harnesses are not pooled",
        )
    if plan.legacy is not None:
        # The predecessor measured the one build that it had.
        same = {"base": base, "cand": cand}
        setting = blocks.Setting(plan, index, coin, same, adapter_of(repo, plan.workload))
        return invocations.run_pair(setting, plan.legacy)
    builds, layouts = layouts_of(plan, index, coin, {"base": base, "cand": cand}, repo)
    if plan.workload.kind != "slices":
        block = commands.run(plan, index, coin, builds, repo)
    else:
        setting = blocks.Setting(plan, index, coin, builds, adapter_of(repo, plan.workload))
        block = blocks.run_halves(setting) if plan.unit == "process" else blocks.run(setting)
    return replace(block, witness={**block.witness, "layouts": layouts})


def count_instructions(plan: Plan, base: Build, cand: Build, *, repo: Path) -> Instructions:
    """Instructions per step of both sides by perf or callgrind, or why there are none; a witness for accept
    tiers.
    """
    if plan.workload.kind != "slices":
        return Instructions(None, None, None, "only slices can be counted")
    builds = {"base": base, "cand": cand}
    return instructions.count(plan, builds, adapter_of(repo, plan.workload))


def layouts_of(
    plan: Plan, index: int, coin: int, builds: dict[str, Build], repo: Path
) -> tuple[dict[str, Build], dict[str, object]]:
    """The relinked variants that this block measures, and their numbers; the builds themselves and the reason
    where the repository or the linker cannot.
    """
    settings = config.load(repo)
    chosen: dict[str, object] = {}
    found = {}
    try:
        for role, side in enumerate(schedule.roles(coin), 1):
            seed = 1 + schedule.number(plan.attempt_id, index, f"variant-{role}", sources.VARIANTS)
            found[side], chosen[side] = sources.variant(settings, builds[side], seed), seed
    except sources.CannotRelink as error:
        return builds, {"base": None, "cand": None, "reason": error.message}
    return found, chosen
