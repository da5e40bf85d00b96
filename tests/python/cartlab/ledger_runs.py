"""Runs recorded as the pipeline records them, from made-up block values: for tests of whatever reads a
ledger.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cartlab import stats
from cartlab.decide import decide
from cartlab.ledger import Ledger
from cartlab.model import (
    POLICY,
    TIERS,
    Block,
    Plan,
    Ref,
    Validity,
    Verdict,
    Workload,
    canonical_json,
    digest_of,
)
from cartlab.pipeline import halves

WORKLOAD = Workload("w", "slices", "w.py", "ops", "higher", "ops/s", 10, {"lanes": 4, "rom_path": "/x/y.nes"})


def ref(name: str) -> Ref:
    """A revision with made-up ids of its name."""
    return Ref(name, digest_of([name, "commit"])[:40], digest_of([name, "tree"])[:40])


def a_plan(
    attempt: str, tier: str = "accept", base: str = "main", cand: str = "topic", **changes: Any
) -> Plan:
    row = TIERS[tier]
    made = Plan(
        attempt_id=attempt,
        command=row.command,
        tier=tier,
        benchmark_tier=row.benchmark_tier,
        base=ref(base),
        cand=ref(cand),
        workload=WORKLOAD,
        policy="anytime",
        unit="block",
        design="betting",
        max_blocks=row.blocks,
        max_seconds=None,
        slices=2,
        slice_ms=20.0,
        harness_hash="h" * 64,
        policy_hash=POLICY.hash,
        host_class="x86-2",
        fresh_build=row.fresh_build,
    )
    return dataclasses.replace(made, **changes)


def a_block(index: int, y: float, dropped: str | None = None) -> Block:
    base, cand = 20_000_000, round(20_000_000 * math.exp(-y))
    times = ((base, base + 1000), (cand, cand + 1000))
    return Block(index, index % 2, "BCCB", *times, 100, stats.block_value(*times), dropped, {"cpu": 1.5}, {})


def record(
    ledger: Ledger,
    plan: Plan,
    values: Sequence[float | Block],
    validity: Validity | None = None,
    **finished: Any,
) -> Verdict:
    """One whole run: started, its blocks until the verdict is final, the decision, the end."""
    held = validity or Validity(checks="passed" if TIERS[plan.tier].proves else "not_run", forced=plan.forced)
    name = plan.attempt_id
    ledger.append("attempt_started", name, plan.to_json())
    pooling = plan.recorded and plan.tier not in ("calibrate", "single")
    earlier = ledger.blocks_of(plan.pair, plan.unit, before=name) if pooling else []
    own: list[Block] = []
    seq = 0
    ended = not values
    while True:
        found = stats.evidence(
            [*earlier, *own],
            floor=plan.floor,
            alpha=plan.alpha,
            pooled=len(earlier),
            forced=plan.forced,
            design=plan.design,
        )
        verdict = decide(plan.tier, found if earlier or own else None, held, ended)
        if ended or (own and verdict.final):
            break
        value = values[len(own)]
        block = value if isinstance(value, Block) else a_block(len(own), value)
        block = halves.marked(block, halves.next_half(plan, [*earlier, *own])[0])
        body = block.to_json() if plan.recorded else {**block.to_json(), "unrecorded": True}
        seq = ledger.append("block", name, body)["seq"]
        own.append(block)
        ended = len(own) >= min(len(values), plan.max_blocks)
    body = {
        **verdict.to_json(),
        "tier": plan.tier,
        "pair": plan.pair.to_json(),
        "validity": held.to_json(),
        "budget_ended": ended,
        "pooled_through": seq,
        "halves": halves.estimates(plan, [*earlier, *own]),
    }
    ledger.append("decision", name, body)
    ledger.append("attempt_finished", name, {"status": verdict.status, **finished})
    return verdict


def forge(root: Path, change: Any) -> None:
    """Rewrite the events with `change(events)` and hash the chain anew, as a forger with the file in hand
    would.
    """
    path = root / "events.jsonl"
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    events = change(events) or events
    previous = "0" * 64
    lines = []
    for seq, event in enumerate(events, start=1):
        bare = {**{k: v for k, v in event.items() if k != "hash"}, "seq": seq, "prev": previous}
        previous = digest_of(bare)
        lines.append(canonical_json({**bare, "hash": previous}) + b"\n")
    path.write_bytes(b"".join(lines))
