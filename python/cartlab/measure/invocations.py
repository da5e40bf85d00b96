"""A pair of invocations as the predecessor measured them: one process a side, one after the other.

An invocation is a fresh process that plays `repeats` times `steps` steps. Its outputs would fill the
memory, so that a repeat is asked for in parts; its time is the sum of theirs, and between them, outside
the clock, the outputs are hashed and compared with the other side's. The pair is stored as a block whose
slices are the repeats. No coin is drawn: the caller says who is first. Nothing is dropped for contention:
the predecessor knew no such rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cartlab.measure import contention, schedule
from cartlab.measure.blocks import Setting, check_leftovers, record, window
from cartlab.measure.slices import Side, differs, digest
from cartlab.measure.worker import Worker
from cartlab.model import Block

PART_STEPS = 100


def run_pair(setting: Setting, sizes: Mapping[str, Any]) -> Block:
    """Measure one pair; role 1 of the coin goes first. sizes: `steps` and `repeats` of each invocation."""
    sides: dict[str, Side] = {}
    requests: dict[str, Side] = {}
    windows = []
    seen: list[tuple[list[int], str]] = []
    for name in schedule.roles(setting.coin):
        with setting.workers((name,)) as workers:
            worker = workers[name]
            before = contention.read([worker.pid])
            requests[name] = _invocation(worker, sizes["steps"], sizes["repeats"], seen)
            sides[name] = _repeats(requests[name], sizes["repeats"])
            windows.append((before, contention.read([worker.pid])))
            check_leftovers({name: worker.close()})
    order = "".join(schedule.LETTERS[name] * sizes["repeats"] for name in schedule.roles(setting.coin))
    block = record(setting, order, sizes["steps"], sides, window(windows, sides), requests)
    return replace(block, dropped=None)


def _invocation(worker: Worker, steps: int, repeats: int, seen: list[tuple[list[int], str]]) -> Side:
    """One process's parts, all repeats in a row. seen: the steps that were hashed of each part and their
    digest; filled by the first side, compared by the second.
    """
    side, second = Side(), bool(seen)
    for number, part in enumerate(parts_of(steps) * repeats):
        side.take(worker, part)
        if second:
            observed, expected = seen[number]
            if digest(worker, observed) != expected:
                raise differs(number, "this invocation's outputs from the other side's", {})
        else:
            observed = schedule.observed_steps(part)
            expected = digest(worker, observed)
            seen.append((observed, expected))
        side.digest.update(expected.encode())
    return side


def _repeats(parts: Side, repeats: int) -> Side:
    """The same times summed over each repeat."""
    size = len(parts.ns) // repeats

    def summed(values: list[int]) -> list[int]:
        return [sum(values[at : at + size]) for at in range(0, len(values), size)]

    return Side(
        summed(parts.ns),
        summed(parts.cpu_ns),
        summed(parts.parent_ns),
        summed(parts.waited_ns),
        summed(parts.ending_ns),
        digest=parts.digest,
    )


def parts_of(steps: int) -> list[int]:
    """The steps of a repeat in requests of at most PART_STEPS."""
    whole, rest = divmod(steps, PART_STEPS)
    return [PART_STEPS] * whole + ([rest] if rest else [])
