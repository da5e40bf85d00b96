"""Gather what a plan needs from the world, and freeze it. The sizes and budgets themselves are
cartlab.plan's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cartlab import plan as plans
from cartlab.ledger import Ledger
from cartlab.model import DIAGNOSIS_TIER, TIERS, Plan, Ref, Workload
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request


def freeze(
    request: Request, lab: Lab, repo: Path, base: Ref, cand: Ref, workload: Workload, past: Ledger | None
) -> Plan:
    """The plan of a request, complete before anything is built. `past` is None where there is no ledger
    yet.
    """
    runner = request.runner
    plans.refuse_legacy_flags(runner.legacy, runner.policy)
    stated = lab.statements(repo, cand)
    host_class = lab.host_class()
    made = plans.plan(
        plans.Request(
            attempt_id=lab.attempt_id(request.command, cand),
            tier=request.tier,
            base=base,
            cand=cand,
            workload=workload,
            harness_hash=lab.harness_hash(repo, workload),
            host_class=host_class,
            floor=past.floor_of(host_class) if past is not None else None,
            full=request.full,
            again=request.again,
            equal_only=request.equal_only,
            recorded=request.recorded,
            checks=request.checks,
            force_busy=runner.force_busy,
            approval=runner.approve,
            max_blocks=runner.max_blocks,
            max_minutes=runner.max_minutes,
            unit=runner.unit,
            design=runner.design,
            policy=runner.policy,
            lease_wait=runner.lease_wait,
            keep_sources=runner.keep_sources,
            mechanism=request.mechanism or stated.get("Mechanism"),
            falsify=request.falsify or stated.get("Falsified-by"),
            legacy_flags=runner.legacy,
            cpus=lab.cpus(),
        )
    )
    if request.command != TIERS[request.tier].command:
        # A script that borrows a tier's sizes proves nothing in the ledger.
        made = replace(made, command=request.command, benchmark_tier=DIAGNOSIS_TIER, warnings=())
    return made
