"""The callables through which the pipeline touches the world: git, builds, workers, checks, host, coin,
clocks.

Tests hand in others; scheduling, recording and deciding are then exact to the digit and need no compiler.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cartlab.host import load
from cartlab.model import Block, Build, Plan, Ref, Workload
from cartlab.pipeline.request import Runner


def no_lease(_wait_s: float | None, _progress: Callable[[str], None]) -> AbstractContextManager[Any]:
    """For tests: nobody else measures."""
    return nullcontext()


def no_count(_plan: Plan, _base: Build, _cand: Build, _repo: Path) -> Any:
    """For tests: nothing counts instructions."""
    return None


def none_missing(_repo: Path, _commits: list[str]) -> list[str]:
    """For tests: every commit is there."""
    return []


def no_toolchain(_repo: Path, _memory: Path | None = None) -> str | None:
    """For tests: nothing compiles."""
    return None


def fresh_draw() -> str:
    """The seed of a held-out draw, from the system's entropy: nobody knows it before it is drawn."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Lab:
    """One callable a question to the world. All raise cartlab.errors only."""

    load_config: Callable[[Path], Any]
    resolve: Callable[[Path, str], Ref]
    dirty: Callable[[Path], list[str]]
    compliance: Callable[[Path, Ref, Ref, Any, tuple[str, ...]], Any]
    patch_id: Callable[[Path, Ref, Ref], str | None]
    build: Callable[..., Build]
    check_build: Callable[[Build], None]
    build_log: Callable[[Build], Path]
    verify_equal: Callable[[Plan, Build, Build, Path], Any]
    run_block: Callable[[Plan, int, int, Build, Build, Path], Block]
    workload: Callable[[Any, Path, Runner], tuple[Workload, str]]
    statements: Callable[[Path, Ref], Mapping[str, str]]
    changed: Callable[[Path, str, str], list[str]]
    surfaces: Callable[..., Any]
    run_checks: Callable[..., Any]
    is_ancestor: Callable[[Path, str, str], bool]
    strangers: Callable[..., list[str]]
    protected: Callable[..., list[str]]
    harness_hash: Callable[[Path, Workload], str]
    host_class: Callable[[], str]
    coin: Callable[[], int]
    attempt_id: Callable[[str, Ref], str]
    lease: Callable[..., AbstractContextManager[Any]] = no_lease
    instructions: Callable[[Plan, Build, Build, Path], Any] = no_count
    missing: Callable[[Path, list[str]], list[str]] = none_missing
    toolchain: Callable[..., str | None] = no_toolchain
    draw: Callable[[], str] = fresh_draw
    clock: Callable[[], float] = time.monotonic
    cpus: Callable[[], int] = lambda: os.cpu_count() or 1
    load: Callable[[], float | None] = load
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def real(cls) -> Lab:
        """The world itself. What only a run needs is imported when it is first called: `next` asks this lab
        too, and is to answer at once.
        """
        from cartlab import config, host, sources

        return cls(
            load_config=config.load,
            resolve=sources.resolve,
            dirty=sources.dirty,
            compliance=lambda repo, base, cand, loaded, waived: sources.check_compliance(
                repo, base.commit, cand.commit, loaded.protected, waived
            ),
            patch_id=patch_id,
            build=_build,
            check_build=_check_build,
            build_log=_build_log,
            verify_equal=_verify_equal,
            run_block=_run_block,
            workload=_workload,
            statements=statements,
            changed=sources.changed,
            surfaces=_surfaces,
            run_checks=_run_checks,
            is_ancestor=sources.is_ancestor,
            strangers=sources.strangers,
            missing=sources.missing,
            protected=sources.protected_changes,
            harness_hash=_harness_hash,
            host_class=host.host_class,
            coin=_coin,
            attempt_id=new_attempt_id,
            lease=_lease,
            toolchain=sources.toolchain_id,
            instructions=_instructions,
        )


def _build(*args: Any, **options: Any) -> Build:
    from cartlab import sources

    return sources.build(*args, **options)


def _check_build(build: Build) -> None:
    from cartlab import sources

    sources.check(build)


def _build_log(build: Build) -> Path:
    from cartlab import sources

    return sources.log_of(build)


def _verify_equal(plan: Plan, base: Build, cand: Build, repo: Path) -> Any:
    from cartlab import measure

    return measure.verify_equal(plan, base, cand, repo=repo)


def _run_block(plan: Plan, index: int, coin: int, base: Build, cand: Build, repo: Path) -> Block:
    from cartlab import measure

    return measure.run_block(plan, index, coin, base, cand, repo=repo)


def _instructions(plan: Plan, base: Build, cand: Build, repo: Path) -> Any:
    from cartlab import measure

    return measure.count_instructions(plan, base, cand, repo=repo)


def _harness_hash(repo: Path, workload: Workload) -> str:
    from cartlab import measure

    return measure.harness_hash(repo, workload)


def _coin() -> int:
    from cartlab import measure

    return measure.draw_coin()


def _workload(loaded: Any, repo: Path, runner: Runner) -> tuple[Workload, str]:
    from cartlab.pipeline.inputs import workload_of

    return workload_of(loaded, repo, runner, os.environ)


def _surfaces(*args: Any, **options: Any) -> Any:
    from cartlab import checks

    return checks.choose(*args, **options)


def _run_checks(*args: Any, **options: Any) -> Any:
    from cartlab import checks

    return checks.run(*args, **options)


def _lease(wait_s: float | None, progress: Callable[[str], None]) -> AbstractContextManager[Any]:
    from cartlab import lease

    return lease.hold(wait_s, progress)


def new_attempt_id(command: str, cand: Ref) -> str:
    """A name that sorts by time and is unique on any machine; also the run folder's name."""
    from cartlab.plan import attempt_id

    now = datetime.now(timezone.utc).isoformat()
    return attempt_id(now, command, f"{cand.commit}{secrets.token_hex(8)}")


def statements(repo: Path, cand: Ref) -> dict[str, str]:
    """The candidate's commit trailers: its mechanism, and what would falsify it."""
    from cartlab.sources import git

    found = {}
    for name in ("Mechanism", "Falsified-by"):
        text = git.line(repo, "log", "-1", f"--format=%(trailers:key={name},valueonly)", cand.commit)
        if text:
            found[name] = " ".join(text.split())
    return found


def patch_id(repo: Path, base: Ref, cand: Ref) -> str | None:
    """The stable id of the change, the same for the same change elsewhere; None where nothing changes."""
    import subprocess

    from cartlab.sources import git

    change = git.tell(repo, "diff-tree", "-p", "--no-ext-diff", "--no-textconv", base.commit, cand.commit)
    if not change:
        return None
    done = subprocess.run(
        git.command(repo, ["patch-id", "--stable"]), input=change, capture_output=True, env=git.environment()
    )
    return done.stdout.decode().partition(" ")[0].strip() or None
