"""Proof of equal work before anything is timed: the workload's `verify` list on both sides, compared item
by item.

SPECS.md section 4 has the list (observations, rewards, flags, infos, masked resets, save and restore,
one lane alone, public surface); the adapter carries it out, the slice server hashes it, this file compares.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cartlab.measure import schedule
from cartlab.measure.blocks import check_leftovers, nothing_strays
from cartlab.measure.slices import NAMES
from cartlab.measure.worker import Worker
from cartlab.model import Build, Plan


@dataclass(frozen=True)
class Equality:
    """equal: did all digests agree. items: how many were compared. first_difference: its label, or None."""

    equal: bool
    steps: int
    items: int
    seed: int
    base_digest: str
    cand_digest: str
    first_difference: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is stored in aggregates and `--json`."""
        return asdict(self)


def run(plan: Plan, builds: dict[str, Build], adapter: Path) -> Equality:
    """Compare both builds over `verify_steps` steps; raises what a worker raises (crash, timeout,
    tampered).
    """
    seed = schedule.number(plan.attempt_id, 0, "verify", 2**31)
    steps = plan.workload.verify_steps
    with nothing_strays(), contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(Worker(NAMES[side], builds[side], adapter)) for side in schedule.SIDES
        }
        # Nothing is timed here, so both sides work at once; the baseline is heard first all the same.
        for worker in workers.values():
            worker.start_opening(plan.workload, seed, 0)
        for worker in workers.values():
            worker.opened()
        for worker in workers.values():
            worker.send("verify", steps=steps)
        answers = {side: worker.receive("verify") for side, worker in workers.items()}
        for worker in workers.values():
            worker.start_closing()
        left = {side: worker.closed() for side, worker in workers.items()}
    check_leftovers(left)
    base, cand = answers["base"], answers["cand"]
    return Equality(
        equal=base["digest"] == cand["digest"] and base["per_step"] == cand["per_step"],
        steps=steps,
        items=len(base["per_step"]),
        seed=seed,
        base_digest=base["digest"],
        cand_digest=cand["digest"],
        first_difference=first_difference(base["per_step"], cand["per_step"]),
    )


def first_difference(base: list[list[str]], cand: list[list[str]]) -> str | None:
    """The label of the first item whose digest differs; items that one side alone has differ too."""
    for ours, theirs in zip(base, cand, strict=False):
        if ours[0] != theirs[0]:
            return f"the baseline gave {ours[0]!r} where the candidate gave {theirs[0]!r}"
        if ours[1] != theirs[1]:
            return ours[0]
    if len(base) != len(cand):
        longer = base if len(base) > len(cand) else cand
        return f"{longer[min(len(base), len(cand))][0]}, which only one side gave"
    return None
