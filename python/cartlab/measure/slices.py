"""Slices: what is timed, alike on both sides, with the outputs compared outside the clock.

Both sides take exactly the same numbers of steps from the first one on, so slice k is the same work on
both. Which side takes its slice when is schedule's business, what a block is made of, blocks'.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cartlab import processes
from cartlab.errors import BehaviourChanged
from cartlab.measure import schedule
from cartlab.measure.worker import BASELINE, Worker

NAMES = {"base": BASELINE, "cand": "candidate"}
WARM_SLICES = 4
# A clock that stands still would have slices grow without end: no claim counts that is so much too short.
FAR = 20
MAX_STEPS = 1_000_000

Workers = Mapping[str, Worker]


@dataclass
class Side:
    """What one side's slices gave, in slice order."""

    ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)
    parent_ns: list[int] = field(default_factory=list)
    waited_ns: list[int] = field(default_factory=list)
    # From the first byte of the answer to its last: until the threads sleep.
    ending_ns: list[int] = field(default_factory=list)
    # On a processor while the other side had its slice.
    awake_ns: list[int] = field(default_factory=list)
    digest: Any = field(default_factory=hashlib.sha256)

    def take(self, worker: Worker, steps: int) -> None:
        """Run one slice and keep what both clocks say of it."""
        ns, cpu_ns = worker.run(steps)
        self.ns.append(ns)
        self.cpu_ns.append(cpu_ns)
        self.parent_ns.append(worker.elapsed_ns)
        self.waited_ns.append(worker.waited_ns)
        self.ending_ns.append(worker.ending_ns)


def warm_up(workers: Workers, slice_ms: float) -> list[int]:
    """Run all workers alike until code is compiled and caches are warm; returns the steps of every slice
    taken, the last being those of the slices to come.

    The steps are doubled until a slice is half as long as wanted, then fitted so that the sides' geometric
    mean has the wanted length.
    """
    want = slice_ms * 1e6
    taken: list[int] = []

    def once(steps: int) -> float:
        taken.append(steps)
        times = [max(worker.run(steps)[0], worker.spent_ns // FAR) for worker in workers.values()]
        for worker in workers.values():
            worker.ask("digest", obs_steps=[0])
        return math.exp(sum(math.log(max(ns, 1)) for ns in times) / len(times))

    steps, ns = 1, once(1)
    while ns < want / 2 and steps < MAX_STEPS:
        steps *= 2
        ns = once(steps)
    for _ in range(2):
        steps = _fitted(steps, ns, want)
        ns = min(once(steps), once(steps))
    steps = _fitted(steps, ns, want)
    for _ in range(WARM_SLICES):
        once(steps)
    return taken


def warm_up_as(worker: Worker, taken: Sequence[int]) -> None:
    """The same slices as another worker's warm-up."""
    for steps in taken:
        worker.run(steps)
        worker.ask("digest", obs_steps=[0])


def _fitted(steps: int, ns: float, want: float) -> int:
    return max(1, min(MAX_STEPS, round(steps * want / max(ns, 1.0))))


def interleaved(workers: Workers, pairs: Sequence[tuple[str, str]], steps: int) -> dict[str, Side]:
    """Time every pair of slices and compare its outputs; raises BehaviourChanged at the first that differ."""
    sides = {"base": Side(), "cand": Side()}
    for number, pair in enumerate(pairs):
        for name, idle in (pair, pair[::-1]):
            before = processes.run_ns(workers[idle].pid)
            sides[name].take(workers[name], steps)
            sides[idle].awake_ns.append(max(0, processes.run_ns(workers[idle].pid) - before))
        observed = schedule.observed_steps(steps)
        found = {name: digest(workers[name], observed) for name in pair}
        if found["base"] != found["cand"]:
            raise differs(number, _what_differs(workers, observed), found)
        for name in pair:
            sides[name].digest.update(found[name].encode())
    return sides


def half(
    worker: Worker, slices: int, steps: int, observed: list[list[int]], known: Sequence[str]
) -> tuple[Side, list[str]]:
    """One side's slices in a row: (times, digests). observed: the steps to hash, drawn here after each
    slice for the first side and the same again for the second, which is compared with `known`, the first
    side's digests.
    """
    side, digests = Side(), []
    for number in range(slices):
        side.take(worker, steps)
        if number == len(observed):
            observed.append(schedule.observed_steps(steps))
        digests.append(digest(worker, observed[number]))
        if known and known[number] != digests[-1]:
            raise differs(number, "this half's outputs from the other half's", {})
        side.digest.update(digests[-1].encode())
    return side, digests


def digest(worker: Worker, observed: Sequence[int]) -> str:
    """The digest of the newest slice's outputs."""
    return str(worker.ask("digest", obs_steps=list(observed))["digest"])


def differs(number: int, what: str, found: Mapping[str, str]) -> BehaviourChanged:
    """The error for slice `number`."""
    return BehaviourChanged(
        f"the outputs of slice {number} differ while timing: {what}",
        "equal in `verify` but not here: look for work that is put off, shared or left out",
        details={"slice": number, **found},
    )


def _what_differs(workers: Workers, observed: Sequence[int]) -> str:
    """Ask both sides again for less, to name the part that differs."""

    def same(steps: list[int]) -> bool:
        return digest(workers["base"], steps) == digest(workers["cand"], steps)

    if not same([]):
        return "rewards, terminations, truncations or infos"
    wrong = [step for step in observed if not same([step])]
    return f"the observation of step {wrong[0]}" if wrong else "outputs that change after they were returned"
