"""From a request to a frozen plan: sizes, budgets and what a run is called, before anything is built or
measured.

Contract: SPECS.md sections 5 and 6. Pure: the caller resolves
refs, hashes the harness and reads the ledger's floor; a dry run prints what this gives and stops. Nothing
recognises a tier by its sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cartlab import legacy
from cartlab.errors import UsageError
from cartlab.model import DIAGNOSIS_TIER, POLICY, TIERS, Plan, Policy, Ref, Workload

UNITS = ("block", "process")
DESIGNS = ("betting", "groupseq")
POLICIES = ("anytime", "legacy")
# One ref alone: the legacy policy counts its invocations, two a block.
SINGLE_TIERS = ("calibrate", "single")
SLICES = 50
SLICE_MS = 20.0

LEGACY_FLAGS = ("--steps", "--repeats", "--warmups", "--max-load", "--max-measured-invocations")


@dataclass(frozen=True)
class Request:
    """What was asked for, with everything resolved that needs a disk or a process.

    tier: a name in TIERS. floor: the ledger's floor for this host, None where no calibration measured one.
    max_blocks, max_minutes: None = the tier's budget, no limit. approval: the reason behind --approve.
    """

    attempt_id: str
    tier: str
    base: Ref
    cand: Ref
    workload: Workload
    harness_hash: str
    host_class: str
    floor: float | None = None
    full: bool = False
    again: bool = False
    equal_only: bool = False
    recorded: bool = True
    checks: bool = True
    force_busy: bool = False
    approval: str | None = None
    max_blocks: int | None = None
    max_minutes: float | None = None
    slices: int | None = None
    slice_ms: float | None = None
    unit: str = "block"
    design: str = "betting"
    policy: str = "anytime"
    lease_wait: float | None = None
    keep_sources: bool = False
    mechanism: str | None = None
    falsify: str | None = None
    round_id: str | None = None
    legacy_flags: Mapping[str, str] = field(default_factory=dict)
    cpus: int = 1


def plan(request: Request, policy: Policy = POLICY) -> Plan:
    """The frozen plan of a request. UsageError for what does not fit together."""
    row = TIERS.get(request.tier)
    if row is None:
        raise UsageError(f"expected a tier of {', '.join(TIERS)}; found {request.tier!r}")
    _one_of("--unit", request.unit, UNITS)
    _one_of("--design", request.design, DESIGNS)
    _one_of("--policy", request.policy, POLICIES)
    if request.full and row.full_blocks == row.blocks:
        raise UsageError(f"{row.command} has one size: --full changes nothing", "leave --full out")
    if request.again and request.tier != "screen":
        raise UsageError(
            f"--again adds blocks to a screen, found {row.command}", "run it again: it continues its blocks"
        )
    if request.equal_only and request.tier != "screen":
        raise UsageError(f"--equal-only belongs to screen, found {row.command}")
    if request.force_busy and not request.approval:
        raise UsageError("--force-busy waives a rule and needs a reason", "add --approve 'why'")
    if request.max_blocks is not None and request.max_blocks < 1:
        raise UsageError(f"expected --max-blocks of 1 or more, found {request.max_blocks}")
    if request.max_minutes is not None and request.max_minutes <= 0:
        raise UsageError(f"expected --max-wall-clock-minutes above 0, found {request.max_minutes}")
    budget = row.full_blocks if request.full else row.blocks
    slices = SLICES if request.slices is None else request.slices
    slice_ms = SLICE_MS if request.slice_ms is None else request.slice_ms
    if slices < 2 or slices % 2 or slice_ms <= 0:
        raise UsageError(
            f"expected an even number of slices and a length above 0, found {slices} of {slice_ms:g} ms"
        )
    max_blocks = budget if request.max_blocks is None else request.max_blocks
    changed = (max_blocks, slices, slice_ms) != (budget, SLICES, SLICE_MS)
    made = Plan(
        attempt_id=request.attempt_id,
        command=row.command,
        tier=row.name,
        benchmark_tier=DIAGNOSIS_TIER if changed else row.benchmark_tier,
        base=request.base,
        cand=request.cand,
        workload=request.workload,
        policy=request.policy,
        unit=request.unit,
        design=request.design,
        max_blocks=max_blocks,
        max_seconds=None if request.max_minutes is None else request.max_minutes * 60.0,
        slices=slices,
        slice_ms=slice_ms,
        harness_hash=request.harness_hash,
        policy_hash=policy.hash,
        host_class=request.host_class,
        alpha=policy.alpha,
        floor=1.0 if request.floor is None else max(1.0, request.floor),
        floor_known=request.floor is not None,
        full=request.full,
        recorded=request.recorded,
        again=request.again,
        equal_only=request.equal_only,
        checks=request.checks,
        fresh_build=row.fresh_build,
        forced=request.force_busy,
        approval=request.approval,
        keep_sources=request.keep_sources,
        lease_wait=request.lease_wait,
        sizes_changed=changed,
        mechanism=request.mechanism,
        falsify=request.falsify,
        round_id=request.round_id,
        warnings=tuple(_warnings(request)),
    )
    return _legacy(request, made) if request.policy == "legacy" else made


def _legacy(request: Request, made: Plan) -> Plan:
    """The same run by the predecessor's sizes: one process a half, its pairs as blocks, no checks."""
    if request.workload.kind != "slices":
        raise UsageError(
            f"--policy legacy counts steps, which a {request.workload.kind} workload has none of",
            "leave it out, or name a workload of kind slices",
        )
    for flag, given in (
        ("--max-blocks", request.max_blocks is not None),
        ("--again", request.again),
        ("--design", request.design != "betting"),
        ("--unit", request.unit != "block"),
    ):
        if given:
            raise UsageError(
                f"{flag} means nothing to the legacy policy", "its own: --max-measured-invocations"
            )
    sizes, changed = legacy.sizes_of(request.tier, request.full, request.legacy_flags, request.cpus)
    last = sizes.checkpoints[-1]
    return replace(
        made,
        unit="process",
        max_blocks=-(-last // 2) if request.tier in SINGLE_TIERS else last,
        slices=sizes.repeats,
        benchmark_tier=DIAGNOSIS_TIER if changed else TIERS[request.tier].benchmark_tier,
        sizes_changed=changed,
        policy_hash=legacy.policy_hash(),
        checks=False,
        legacy=sizes.to_json(),
        warnings=("legacy policy: for comparison only; it proves nothing and completes no round",),
    )


def refuse_legacy_flags(flags: Iterable[str], policy: str) -> None:
    """UsageError where one of the predecessor's size flags comes without its policy."""
    found = sorted({flag.split("=")[0] for flag in flags} & set(LEGACY_FLAGS))
    if found and policy != "legacy":
        raise UsageError(
            f"{', '.join(found)} belong to the predecessor's tiers",
            "use --max-blocks or --full; or add --policy legacy, for comparison only",
        )


def attempt_id(time: str, command: str, salt: str) -> str:
    """An attempt's name: when (UTC), what, and six hex digits of `salt` that tell apart runs of the same
    second.
    """
    stamp = "".join(c for c in time[:19] if c.isdigit())
    word = command.replace(" ", "-")
    return f"{stamp[:8]}-{stamp[8:]}-{word}-{hashlib.sha256(salt.encode()).hexdigest()[:6]}"


def seconds_per_block(slices: int, slice_ms: float, overhead: float = 1.0) -> float:
    """What a block of these sizes takes, where none was measured yet."""
    return 2 * slices * slice_ms / 1000.0 + overhead


def _one_of(flag: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"expected {flag} {' | '.join(allowed)}, found {value!r}")


def _warnings(request: Request) -> list[str]:
    out = []
    if request.floor is None and TIERS[request.tier].proves:
        out.append("no calibration of this host measured a relink floor: the floor is 1.00")
    if request.tier == "screen" and not (request.mechanism and request.falsify):
        out.append("no mechanism and falsification stated: a confirm run will refuse this candidate")
    return out
