"""One block of kind "slices": fresh workers for both sides, one coin, one value y.

SPECS.md section 4. Outputs are compared while timing, outside the clock; clocks are compared after it. The
block never sees a verdict, an earlier block or a bound.

    run           the resident block: both workers live, their slices interleaved
    run_halves    `--unit process`: one process a half, as older tools measure; a check of the resident block,
                  with the same work, so that only the pairing in time differs
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cartlab import processes
from cartlab.errors import MetricError, Tampered, UsageError
from cartlab.measure import contention, footing, schedule
from cartlab.measure.clocks import check_clocks, excess_ns, gap_share
from cartlab.measure.contention import Contention
from cartlab.measure.slices import NAMES, Side, half, interleaved, warm_up, warm_up_as
from cartlab.measure.worker import Worker
from cartlab.model import Block, Build, Plan


@dataclass(frozen=True)
class Setting:
    """What both sides of a block share or are given by the coin; all of it follows from the plan."""

    plan: Plan
    index: int
    coin: int
    builds: Mapping[str, Build]
    adapter: Path

    @property
    def seed(self) -> int:
        """Of the workload: other actions in every block."""
        return schedule.number(self.plan.attempt_id, self.index, "seed", 2**31)

    @property
    def layout_seed(self) -> int:
        """Of generated code's layout."""
        return schedule.number(self.plan.attempt_id, self.index, "layout", 2**31)

    @property
    def pads(self) -> dict[str, int]:
        """Bytes of environment padding a side."""
        return schedule.pads(self.plan.attempt_id, self.index, self.coin)

    @contextlib.contextmanager
    def workers(self, sides: Sequence[str]) -> Iterator[dict[str, Worker]]:
        """Fresh workers with the workload open, spawned in this order; gone afterwards."""
        with nothing_strays(), contextlib.ExitStack() as stack:
            found = {
                side: stack.enter_context(
                    Worker(NAMES[side], self.builds[side], self.adapter, self.pads[side])
                )
                for side in sides
            }
            for worker in found.values():
                worker.open(self.plan.workload, self.seed, self.layout_seed)
            yield found


@contextlib.contextmanager
def nothing_strays() -> Iterator[None]:
    """Tampered where, in the end, something still ran that had dropped its session and its mark."""
    with processes.adopting():
        try:
            yield
        finally:
            count = processes.end_strays()
    if count:
        raise Tampered(
            f"the workers must leave no process behind; {count} that hid still ran and were killed",
            "look for code that forks, takes a session of its own and empties its environment",
            details={"left_behind": count},
        )


def log_ratio(base_ns: Sequence[int], cand_ns: Sequence[int]) -> float:
    """The block value: median over slice pairs of ln(t_base / t_cand), above 0 where the candidate is
    faster.
    """
    if len(base_ns) != len(cand_ns) or not base_ns or min(*base_ns, *cand_ns) <= 0:
        raise MetricError("a block needs the same number of positive slice times on both sides")
    return statistics.median(math.log(b / c) for b, c in zip(base_ns, cand_ns, strict=True))


def run(setting: Setting) -> Block:
    """Measure one resident block."""
    plan, coin = setting.plan, setting.coin
    _check_slices(plan)
    with setting.workers(schedule.roles(coin)) as workers:
        steps = warm_up(workers, plan.slice_ms)[-1]
        pids = [worker.pid for worker in workers.values()]
        before = contention.read(pids)
        sides = interleaved(workers, schedule.pairs(coin, plan.slices), steps)
        after = contention.read(pids)
        footing.check({side: worker.pid for side, worker in workers.items()})
        left = {side: worker.close() for side, worker in workers.items()}
    check_leftovers(left)
    busy = window([(before, after)], sides)
    return record(setting, schedule.order(coin, plan.slices), steps, sides, busy, paired=True)


def run_halves(setting: Setting) -> Block:
    """Measure one block of two processes, one after the other."""
    plan = setting.plan
    _check_slices(plan)
    sides: dict[str, Side] = {}
    taken: list[int] = []
    observed: list[list[int]] = []
    known: list[str] = []
    windows = []
    for name in schedule.roles(setting.coin):
        with setting.workers((name,)) as workers:
            worker = workers[name]
            if taken:
                warm_up_as(worker, taken)
            else:
                taken = warm_up(workers, plan.slice_ms)
            before = contention.read([worker.pid])
            sides[name], known = half(worker, plan.slices, taken[-1], observed, known)
            windows.append((before, contention.read([worker.pid])))
            check_leftovers({name: worker.close()})
    order = "".join(schedule.LETTERS[name] * plan.slices for name in schedule.roles(setting.coin))
    return record(setting, order, taken[-1], sides, window(windows, sides))


def record(
    setting: Setting,
    order: str,
    steps: int,
    sides: Mapping[str, Side],
    busy: Contention,
    requests: Mapping[str, Side] | None = None,
    paired: bool = False,
) -> Block:
    """Put a block together; Tampered where clocks disagree. requests: what was timed at once, where a slice
    is the sum of several. paired: the sides took turns.
    """
    timed = sides if requests is None else requests
    late = check_clocks(timed, paired)
    # Turns are judged last: where the block is dropped anyway, nobody has to be accused.
    dropped = contention.reason_to_drop(busy) or late or (footing.check_turns(sides) if paired else None)
    base, cand = sides["base"], sides["cand"]

    def per_step(values: Sequence[int]) -> float:
        return sum(values) / (steps * len(values))

    witness = {
        "seed": setting.seed,
        "layout_seed": setting.layout_seed,
        "pad_bytes": setting.pads,
        "cpu_ns_per_step": {name: per_step(side.cpu_ns) for name, side in sides.items()},
        "wall_ns_per_step": {name: per_step(side.ns) for name, side in sides.items()},
        "contention": busy.to_json(),
        "parent_excess_ns": {name: excess_ns(side) for name, side in timed.items()},
    }
    if paired:
        witness["clock_gap"] = gap_share(base, cand)
    return Block(
        index=setting.index,
        coin=setting.coin,
        order=order,
        base_ns=tuple(base.ns),
        cand_ns=tuple(cand.ns),
        steps=steps,
        y=log_ratio(base.ns, cand.ns),
        dropped=dropped,
        witness=witness,
        digests={name: side.digest.hexdigest() for name, side in sides.items()},
    )


def window(
    readings: Sequence[tuple[contention.Reading, contention.Reading]], sides: Mapping[str, Side]
) -> Contention:
    slices_ns = sum(sum(side.ns) for side in sides.values())
    slices_cpu_ns = sum(sum(side.cpu_ns) for side in sides.values())
    return contention.over(readings, slices_ns, slices_cpu_ns)


def _check_slices(plan: Plan) -> None:
    if plan.slices < 2 or plan.slices % 2:
        raise UsageError(
            f"slices a side must be even and at least 2, so that orders balance; found {plan.slices}"
        )


def check_leftovers(left: dict[str, int]) -> None:
    """Tampered where a worker left processes running: they would slow the other side."""
    for name, count in left.items():
        if count:
            raise Tampered(
                f"the {NAMES[name]}'s worker must leave no process behind; {count} still ran and were killed",
                details={"side": name, "left_behind": count},
            )
