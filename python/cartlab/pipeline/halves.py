"""The two halves of a confirm run: the public workload, and a held-out draw of the same.

Contract: SPECS.md section 6. The draw's seed is noted in the round's `confirm` event, after the candidate was
fixed; nobody could have tuned for it. Blocks take turns, so that both halves end with the same number of
valid ones. Each block says in its witness to which half it belongs. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from cartlab.model import Block, Json, Plan
from cartlab.stats.evidence import used_values
from cartlab.stats.robust import hodges_lehmann

PUBLIC, DRAWN = "public", "held-out"


def next_half(plan: Plan, blocks: Sequence[Block]) -> tuple[str | None, Plan]:
    """(half, the plan that its next block follows); (None, plan) where the run has no halves. blocks: of the
    whole sequence, earlier runs' included.
    """
    if plan.workload.held_out is None:
        return None, plan
    had = {half: len(used_values(of(blocks, half))) for half in (PUBLIC, DRAWN)}
    if had[PUBLIC] <= had[DRAWN]:
        return PUBLIC, replace(plan, workload=plan.workload.public)
    return DRAWN, plan


def marked(block: Block, half: str | None) -> Block:
    """The block with its half in the witness."""
    return block if half is None else replace(block, witness={**block.witness, "half": half})


def of(blocks: Sequence[Block], half: str) -> list[Block]:
    """The blocks of one half."""
    return [block for block in blocks if block.witness.get("half") == half]


def estimates(plan: Plan, blocks: Sequence[Block]) -> Json | None:
    """Half -> {"used": valid blocks, "hl": Hodges-Lehmann ratio or None}; None where there are no halves."""
    if plan.workload.held_out is None:
        return None
    out: Json = {}
    for half in (PUBLIC, DRAWN):
        values = used_values(of(blocks, half))
        out[half] = {"used": len(values), "hl": math.exp(hodges_lehmann(values)) if values else None}
    return out


def lines(found: Json | None, same: bool | None) -> list[str]:
    """For people. same: did the draw leave every compared output as it was."""
    if found is None:
        return []
    shown = [
        f"{half} {one['hl']:.4f} ({one['used']} blocks)" if one["hl"] else f"{half} unknown"
        for half in (PUBLIC, DRAWN)
        for one in (found[half],)
    ]
    out = [f"  halves: {', '.join(shown)}"]
    if same:
        out.append("  the workload does not use the held-out draw: its public run was had twice")
    return out
