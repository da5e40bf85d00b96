"""One block of kind "slices": fresh workers for both sides, interleaved slices, one value y.

SPECS.md section 4. Outputs are compared while timing, outside the clock; clocks are compared after
it. The block never sees a verdict, an earlier block or a bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.errors import BehaviourChanged, MetricError, Tampered, UsageError
from cartlab.measure import contention, schedule
from cartlab.measure.worker import BASELINE, Worker
from cartlab.model import Block, Build, Plan

NAMES = {"base": BASELINE, "cand": "candidate"}
WARM_SLICES = 4
MAX_STEPS = 1_000_000

# The parent's clock runs around the worker's: it may be longer by this much and no more (SPECS.md section 4).
CLOCK_SHARE = 0.05
CLOCK_NS = 1_000_000
# Which quantile over slices is held against that, since waking up late is no tampering: the median where
# there are enough slices, the lower quartile in a block that is dropped anyway, the least where slices are
# few. At a load of 10 on two processors honest workers had medians up to 0.5 ms over 50 slices (but 3.7 ms
# over 8) and lower quartiles up to 0.5 ms; a clock at half speed always exceeds by half a slice.
MANY_SLICES = 40
MEDIAN, LOWER_QUARTILE, LEAST = 0.5, 0.25, 0.0


@dataclass
class Side:
    """What one side's slices gave, in slice order."""

    ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)
    parent_ns: list[int] = field(default_factory=list)
    waited_ns: list[int] = field(default_factory=list)
    digest: Any = field(default_factory=hashlib.sha256)


def log_ratio(base_ns: Sequence[int], cand_ns: Sequence[int]) -> float:
    """The block value: median over slice pairs of ln(t_base / t_cand), above 0 where the candidate is
    faster.
    """
    if len(base_ns) != len(cand_ns) or not base_ns or min(*base_ns, *cand_ns) <= 0:
        raise MetricError("a block needs the same number of positive slice times on both sides")
    return statistics.median(math.log(b / c) for b, c in zip(base_ns, cand_ns, strict=True))


def run(plan: Plan, index: int, coin: int, builds: dict[str, Build], adapter: Path) -> Block:
    """Measure one block; builds: {"base": Build, "cand": Build}."""
    if plan.slices < 2 or plan.slices % 2:
        raise UsageError(
            f"slices a side must be even and at least 2, so that orders balance; found {plan.slices}"
        )
    seed = schedule.number(plan.attempt_id, index, "seed", 2**31)
    layout = schedule.number(plan.attempt_id, index, "layout", 2**31)
    first, second = schedule.roles(coin)
    pads = {
        side: schedule.number(plan.attempt_id, index, f"pad-{role}", schedule.MAX_PAD)
        for role, side in enumerate((first, second), 1)
    }
    with contextlib.ExitStack() as stack:
        workers = {}
        for side in (first, second):
            workers[side] = stack.enter_context(Worker(NAMES[side], builds[side], adapter, pads[side]))
        for side in (first, second):
            workers[side].open(plan.workload, seed, layout)
        steps = warm_up(workers, (first, second), plan.slice_ms)
        pids = [worker.pid for worker in workers.values()]
        before = contention.read(pids)
        sides = measure(workers, schedule.pairs(coin, plan.slices), steps)
        after = contention.read(pids)
        left = {side: workers[side].close() for side in (first, second)}
    check_leftovers(left)
    busy = contention.between(
        before,
        after,
        sum(sum(side.ns) for side in sides.values()),
        sum(sum(side.cpu_ns) for side in sides.values()),
    )
    dropped = contention.reason_to_drop(busy)
    check_clocks(sides, dropped is not None)
    witness = {
        "seed": seed,
        "layout_seed": layout,
        "pad_bytes": pads,
        "cpu_ns_per_step": {name: sum(side.cpu_ns) / (steps * plan.slices) for name, side in sides.items()},
        "wall_ns_per_step": {name: sum(side.ns) / (steps * plan.slices) for name, side in sides.items()},
        "contention": busy.to_json(),
        "parent_excess_ns": {name: excess_ns(side, MEDIAN) for name, side in sides.items()},
    }
    return Block(
        index=index,
        coin=coin,
        order=schedule.order(coin, plan.slices),
        base_ns=tuple(sides["base"].ns),
        cand_ns=tuple(sides["cand"].ns),
        steps=steps,
        y=log_ratio(sides["base"].ns, sides["cand"].ns),
        dropped=dropped,
        witness=witness,
        digests={name: side.digest.hexdigest() for name, side in sides.items()},
    )


def warm_up(workers: dict[str, Worker], names: tuple[str, str], slice_ms: float) -> int:
    """Run both sides alike until code is compiled and caches are warm; returns the steps of a slice.

    Both sides take exactly the same numbers of steps, so that slice k is the same work on both. The steps
    are doubled until a slice is half as long as wanted, then fitted so that the two sides' mean has the
    wanted length.
    """
    want = slice_ms * 1e6
    steps, taken = 1, 0.0
    while steps < MAX_STEPS:
        taken = _both(workers, names, steps)
        if taken >= want / 2:
            break
        steps *= 2
    for _ in range(2):
        steps = max(1, min(MAX_STEPS, round(steps * want / max(taken, 1.0))))
        taken = min(_both(workers, names, steps), _both(workers, names, steps))
    steps = max(1, min(MAX_STEPS, round(steps * want / max(taken, 1.0))))
    for _ in range(WARM_SLICES):
        _both(workers, names, steps)
    return steps


def _both(workers: dict[str, Worker], names: tuple[str, str], steps: int) -> float:
    times = [workers[name].run(steps)[0] for name in names]
    for name in names:
        workers[name].ask("digest", obs_steps=[0])
    return math.sqrt(max(times[0], 1) * max(times[1], 1))


def measure(workers: dict[str, Worker], pairs: list[tuple[str, str]], steps: int) -> dict[str, Side]:
    """Time every pair of slices and compare its outputs; raises BehaviourChanged at the first that differ."""
    sides = {"base": Side(), "cand": Side()}
    for number, pair in enumerate(pairs):
        for name in pair:
            ns, cpu_ns = workers[name].run(steps)
            sides[name].ns.append(ns)
            sides[name].cpu_ns.append(cpu_ns)
            sides[name].parent_ns.append(workers[name].elapsed_ns)
            sides[name].waited_ns.append(workers[name].waited_ns)
        observed = schedule.observed_steps(steps)
        found = {name: str(workers[name].ask("digest", obs_steps=observed)["digest"]) for name in pair}
        if found["base"] != found["cand"]:
            raise BehaviourChanged(
                f"the outputs of slice {number} differ while timing: {_what_differs(workers, observed)}",
                "equal in `verify` but not here: look for work that is put off, shared or left out",
                details={"slice": number, "base": found["base"], "cand": found["cand"]},
            )
        for name in pair:
            sides[name].digest.update(found[name].encode())
    return sides


def _what_differs(workers: dict[str, Worker], observed: list[int]) -> str:
    """Ask both sides again for less, to name the part that differs."""

    def same(steps: list[int]) -> bool:
        return bool(
            workers["base"].ask("digest", obs_steps=steps) == workers["cand"].ask("digest", obs_steps=steps)
        )

    if not same([]):
        return "rewards, terminations, truncations or infos"
    wrong = [step for step in observed if not same([step])]
    return f"the observation of step {wrong[0]}" if wrong else "outputs that change after they were returned"


def excess_ns(side: Side, quantile: float) -> int:
    """By how much the parent's clock exceeds the worker's, below 0 where the worker's is longer.

    Time that the parent spent waiting for a processor is taken off as far as it explains the excess.
    """
    found = sorted(
        max(parent - own - waited, min(parent - own, 0))
        for parent, own, waited in zip(side.parent_ns, side.ns, side.waited_ns, strict=True)
    )
    return found[int(quantile * (len(found) - 1))]


def check_clocks(sides: dict[str, Side], dropped: bool) -> None:
    """Tampered where a worker's clock and the parent's tell different times."""
    for name, side in sides.items():
        own = statistics.median(side.ns)
        quantile = LEAST if len(side.ns) < MANY_SLICES else LOWER_QUARTILE if dropped else MEDIAN
        excess = excess_ns(side, quantile)
        if abs(excess) > CLOCK_SHARE * own + CLOCK_NS:
            raise Tampered(
                f"the {NAMES[name]}'s clock must agree with the controller's within 5 % + 1 ms; "
                f"its slices took {own / 1e6:.2f} ms by its own, {excess / 1e6:+.2f} ms more here",
                details={"side": name, "own_ns": own, "excess_ns": excess},
            )


def check_leftovers(left: dict[str, int]) -> None:
    """Tampered where a worker left processes running: they would slow the other side."""
    for name, count in left.items():
        if count:
            raise Tampered(
                f"the {NAMES[name]}'s worker must leave no process behind; {count} still ran and were killed",
                details={"side": name, "left_behind": count},
            )
