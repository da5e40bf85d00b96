"""Steps per second of one or more sides of the same workload, timed in turns, and the report of it.

A side is anything that steps a batch. Sides take turns in mirrored order (A B, B A, ...), the idle one
parked, so that a machine that slows down or speeds up does so for all of them. A rate is lanes x batch steps
/ wall time. What comes out is for learning: evidence of a speed-up needs cartlab's blocks.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVIDENCE = "evidence: learning"
REBUILD = ".venv/bin/python -m maturin develop --release"


SLICE_STEPS = 32


@dataclass(frozen=True)
class Side:
    """One environment: `prepare(n)` draws actions outside the clock, `run()` takes those n steps.

    cores: how many processors it uses at most.
    """

    name: str
    lanes: int
    prepare: Callable[[int], None]
    run: Callable[[], None]
    close: Callable[[], None]
    note: str = ""
    cores: int = 1


def timed(side: Side, seconds: float) -> float:
    """Environment steps per second over at least `seconds` of running."""
    spent, steps = 0.0, 0
    while steps == 0 or spent < seconds:
        side.prepare(SLICE_STEPS)
        start = time.perf_counter()
        side.run()
        spent += time.perf_counter() - start
        steps += SLICE_STEPS
    return side.lanes * steps / spent


def in_turns(
    sides: Sequence[Side],
    seconds: float,
    repeats: int,
    warm_up: float = 0.5,
    progress: Callable[[str], object] = str,
) -> dict[str, list[float]]:
    """The rates of `repeats` turns of each side. progress: gets a text before each."""
    rates: dict[str, list[float]] = {side.name: [] for side in sides}
    for side in sides:
        progress(f"warming up {side.name}")
        timed(side, warm_up)
    for turn in range(repeats):
        for side in sides if turn % 2 == 0 else list(reversed(sides)):
            progress(f"turn {turn + 1} of {repeats}: {side.name}")
            rates[side.name].append(timed(side, seconds))
    return rates


def report(sides: Sequence[Side], rates: dict[str, list[float]], workload: dict[str, Any]) -> dict[str, Any]:
    """One JSON object: medians and spreads, and each side's ratio of the first side to it."""
    first = sides[0]
    rows = {}
    for side in sides:
        values = rates[side.name]
        rows[side.name] = {
            "env_steps_per_sec": statistics.median(values),
            "env_steps_per_sec_per_core": statistics.median(values) / side.cores,
            "frames_per_sec": statistics.median(values) * workload["frame_skip"],
            "lowest": min(values),
            "highest": max(values),
            "turns": len(values),
            "note": side.note,
        }
    ratios = {}
    for side in sides[1:]:
        pairs = [a / b for a, b in zip(rates[first.name], rates[side.name], strict=True)]
        medians = [statistics.median(rates[s.name]) for s in (first, side)]
        ratios[side.name] = {
            "ratio_of_medians": medians[0] / medians[1],
            "median_of_turn_ratios": statistics.median(pairs),
        }
    return {
        "schema": 1,
        "evidence": "learning",
        "env_steps_per_sec": rows[first.name]["env_steps_per_sec"],
        "workload": workload,
        "sides": rows,
        "ratios": ratios,
    }


def lines(result: dict[str, Any]) -> list[str]:
    """The report for people."""
    out = []
    for name, row in result["sides"].items():
        spread = f"{row['lowest']:,.0f} to {row['highest']:,.0f} over {row['turns']} turns"
        out.append(f"{name:13} {row['env_steps_per_sec']:>12,.0f} env steps/s  ({spread})")
        out.append(f"{'':13} {row['env_steps_per_sec_per_core']:>12,.0f} a core")
        if row["note"]:
            out.append(f"{'':13} {row['note']}")
    for name, ratio in result["ratios"].items():
        by_turn = f"{ratio['median_of_turn_ratios']:.1f} by turns"
        out.append(f"ratio to {name}: {ratio['ratio_of_medians']:.1f} (of medians; {by_turn})")
    out.append(EVIDENCE)
    return out


def stale_module(native: Path, sources: Path) -> bool:
    """Whether the native module is older than a source of the checkout it lies in (False outside one)."""
    if not (sources / "Cargo.toml").is_file():
        return False
    files = [sources / "Cargo.toml", sources / "Cargo.lock", *(sources / "src").rglob("*.rs")]
    return any(f.stat().st_mtime > native.stat().st_mtime for f in files if f.exists())
