"""What a measuring command asks for, as plain values; the command line translates into these and decides
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Runner:
    """Flags of the measuring commands; None leaves the choice to the tier, workload or host."""

    rom_path: str | None = None
    game: str | None = None
    state_dir: str | None = None
    workload: str | None = None
    max_blocks: int | None = None
    max_minutes: float | None = None
    unit: str = "block"
    design: str = "betting"
    policy: str = "anytime"
    lease_wait: float | None = None
    force_busy: bool = False
    approve: str | None = None
    keep_sources: bool = False
    legacy: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One measurement. `tier` is a row of model.TIERS; base and cand are refs as typed.

    pool: may earlier blocks of the pair take part, and may the ledger answer (run_git_ref_benchmark asks
    for neither). any_paths: protected paths may differ, for what cannot keep anything (bisect). held_out: the
    seed of a confirm run's draw. confirm: have the confirm run at once where this makes it due.
    """

    command: str
    tier: str
    base: str
    cand: str
    again: bool = False
    equal_only: bool = False
    full: bool = False
    checks: bool = True
    dry_run: bool = False
    recorded: bool = True
    pool: bool = True
    mechanism: str | None = None
    falsify: str | None = None
    any_paths: bool = False
    held_out: str | None = None
    confirm: bool = False
    runner: Runner = field(default_factory=Runner)
