"""The goals in numbers that rollcart alone can show: each measured here and now, beside what it should be.

`python -m rollcart.bench.goals [--json]`, part of `make bench`. Things that are compared take turns, so that
a machine that slows down does so for all of them; still a busy machine shows lower numbers, and its load is
printed.
Learning, never evidence. The canonical workload beside stable-retro is scripts/benchmark_sps.py's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import rollcart

TURNS = 9
LEVELS = ["Level1", "Level2", "Level3", "Level4"]


@dataclass(frozen=True)
class Row:
    """One goal: what was measured, its unit, the goal in words, and whether it is met (None: no goal)."""

    what: str
    value: float
    unit: str
    goal: str
    met: bool | None


class Player:
    """An environment of the bundled game and random actions for it."""

    def __init__(self, lanes: int, threads: int = 1) -> None:
        self.env: Any = rollcart.NesVectorEnv(
            num_envs=lanes,
            num_threads=threads,
            state_catalog=LEVELS,
            noop_reset_max=30,
            max_episode_steps=512,
        )
        self.env.reset(seed=0)
        rng = np.random.default_rng(0)
        self._actions = rng.integers(0, 36, (256, lanes))
        self._at = 0

    def steps(self, count: int) -> float:
        """Seconds of wall time that `count` steps of the batch take."""
        began = time.perf_counter()
        for _ in range(count):
            self.env.step(self._actions[self._at % 256])
            self._at += 1
        return time.perf_counter() - began

    def settled(self) -> Player:
        """After some steps, with everything translated that they reached."""
        self.steps(200)
        self.env._settle()
        return self


def in_turns(measures: list[Callable[[], float]], turns: int = TURNS) -> list[list[float]]:
    """The values of each measure, taken in mirrored order."""
    values: list[list[float]] = [[] for _ in measures]
    for turn in range(turns):
        order = list(range(len(measures)))
        for at in order if turn % 2 == 0 else reversed(order):
            values[at].append(measures[at]())
    return values


def ratio(values: list[list[float]]) -> float:
    """The median over turns of the first measure's value over the second's."""
    return statistics.median(a / b for a, b in zip(values[0], values[1], strict=True))


def thread_us(call: Callable[[], object], calls: int) -> float:
    """Microseconds of this thread's processor time a call: the median of some runs."""
    runs = []
    for _ in range(TURNS):
        began = time.thread_time()
        for _ in range(calls):
            call()
        runs.append((time.thread_time() - began) / calls * 1e6)
    return statistics.median(runs)


def rate(lanes: int) -> Row:
    player = Player(lanes).settled()
    values = in_turns([lambda: lanes * 32 / player.steps(32)])[0]
    return Row(f"{lanes} lanes, one thread", statistics.median(values), "env steps/s", "", None)


def two_threads() -> Row:
    one, two = Player(64).settled(), Player(64, threads=2).settled()
    gain = ratio(in_turns([lambda: one.steps(16), lambda: two.steps(16)]))
    return Row("2 threads against 1, 64 lanes", gain, "x", ">= 1.8", gain >= 1.8)


def many_lanes() -> Row:
    many, few = Player(1024).settled(), Player(16).settled()
    cost = ratio(in_turns([lambda: many.steps(2) / 2048, lambda: few.steps(64) / 1024]))
    return Row("cost a step at 1,024 lanes against 16, one thread", cost, "x", "<= 1.15", cost <= 1.15)


def memory() -> Row:
    player = Player(16).settled()
    size = player.env.profile()["memory_per_lane"] / 1024
    return Row("memory a lane, observations aside", size, "KiB", "<= 16", size <= 16)


class Null:
    """A batch in which no lane moves: what is left of a step is everything around the lanes."""

    def __init__(self, batch: Any, lanes: int) -> None:
        self._batch = batch
        self._nobody = np.zeros(lanes, np.bool_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def step(self, actions: Any, image: Any, ram: Any, mask: Any = None) -> Any:
        return self._batch.step(actions, image, ram, self._nobody)


def pythons_part() -> Row:
    player = Player(16).settled()
    player.env._batch = Null(player.env._batch, 16)
    actions = np.zeros(16, np.int64)
    spent = thread_us(lambda: player.env.step(actions), 2000)
    return Row("Python's part of a step, 16 lanes", spent, "us", "<= 15", spent <= 15)


def snapshots() -> Row:
    player = Player(64).settled()
    batch, everyone = player.env._batch, [True] * 64
    spent = thread_us(lambda: batch.recall(batch.keep(everyone)), 100) / 64
    return Row("snapshot + restore of one lane, in batches of 64", spent, "us", "<= 5", spent <= 5)


def beginning() -> list[Row]:
    def construct() -> float:
        began = time.perf_counter()
        Player(16)
        return time.perf_counter() - began

    first = statistics.median(construct() for _ in range(5))
    player = Player(16)
    early = player.steps(1000)
    player.settled()
    more = early - player.steps(1000)
    return [
        Row("construct + first reset, 16 lanes", first, "s", "<= 0.3", first <= 0.3),
        Row("first 1,000 steps against 1,000 steady ones", more, "s more", "<= 0.5", more <= 0.5),
    ]


def rows() -> list[Row]:
    """All of them; takes about half a minute on a quiet machine."""
    out = [rate(1), rate(16)]
    for measure in (two_threads, many_lanes, memory, pythons_part, snapshots):
        print(f"measuring: {measure.__name__.replace('_', ' ')}", file=sys.stderr)
        out.append(measure())
    return out + beginning()


def main(argv: list[str] | None = None) -> int:
    """Print the table, or with --json one object; exit code 0 whatever is met."""
    parser = argparse.ArgumentParser(
        prog="python -m rollcart.bench.goals",
        description="rollcart's goals in numbers, measured on this machine now. Learning, never evidence.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    args = parser.parse_args(argv)
    load = os.getloadavg()[0]
    found = rows()
    if args.json:
        print(json.dumps({"evidence": "learning", "load": load, "rows": [asdict(row) for row in found]}))
        return 0
    for row in found:
        mark = {None: "", True: "met", False: "not met here"}[row.met]
        print(f"{row.what:52} {row.value:>10,.2f} {row.unit:12} {row.goal:8} {mark}")
    print(f"load {load:.1f} at the beginning; evidence: learning")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
