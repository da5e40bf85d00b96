"""Environment steps per second of a game, by lanes and threads: for `rollcart bench` and `rollcart doctor`.

Random actions, each held for eight steps, the environment's default observations. The cells of the grid take
turns (as `sps` does it), so that a machine that slows down does so for all. For learning, never evidence.
"""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollcart import games
from rollcart.bench import sps
from rollcart.errors import ConfigError

HELD_STEPS = 8
EPISODE_STEPS = 1000
_BUSY = 0.5  # other processes that run, for each usable CPU


@dataclass(frozen=True)
class Workload:
    """What is measured. `options` go to `NesVectorEnv`. threads 0 is what the environment chooses itself."""

    game: str = games.BUNDLED
    rom_path: str | None = None
    state: str | None = None
    lanes: Sequence[int] = (1, 16, 64)
    threads: Sequence[int] = (1, 0)
    seconds: float = 1.0
    repeats: int = 3
    seed: int = 1
    options: dict[str, Any] = field(default_factory=dict)


def run(work: Workload, progress: Callable[[str], object] = str) -> dict[str, Any]:
    """Measures all cells; one JSON object with a row a cell: median, lowest and highest of the turns.

    Raises ConfigError for lanes or threads below 1 and times that are none.
    """
    _check(work)
    load = busy()
    sides: list[sps.Side] = []
    rows: list[dict[str, Any]] = []
    skip = 0
    try:
        seen = set()
        for lanes in work.lanes:
            for threads in work.threads:
                side, used, skip = _side(work, lanes, threads)
                if (lanes, used) in seen:
                    side.close()
                    continue
                seen.add((lanes, used))
                sides.append(side)
                rows.append({"lanes": lanes, "threads": used})
        rates = sps.in_turns(sides, work.seconds, work.repeats, min(0.5, work.seconds), progress)
    finally:
        for side in sides:
            side.close()
    for row, side in zip(rows, sides, strict=True):
        values = rates[side.name]
        row |= {
            "env_steps_per_sec": statistics.median(values),
            "frames_per_sec": statistics.median(values) * skip,
            "lowest": min(values),
            "highest": max(values),
        }
    best = max(row["env_steps_per_sec"] for row in rows)
    return {
        "game": work.game,
        "evidence": "learning",
        "frame_skip": skip,
        "best": best,
        "load": load,
        "rows": rows,
    }


def busy() -> dict[str, float]:
    """The machine's load of the last minute, the CPUs this process may use, and whether others need them."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {"load": load, "cpus": cpus, "busy": load > _BUSY * cpus}


def _check(work: Workload) -> None:
    for name, values, least in (("lanes", work.lanes, 1), ("threads", work.threads, 0)):
        if not values or min(values) < least:
            raise ConfigError(f"{name}: expected numbers from {least} on, found {list(values)}")
    if not 0 < work.seconds <= 600 or work.repeats < 1:
        raise ConfigError(
            f"seconds: expected above 0 and at most 600, found {work.seconds}; "
            f"repeats: expected 1 or more, found {work.repeats}"
        )


def _side(work: Workload, lanes: int, threads: int) -> tuple[sps.Side, int, int]:
    """A cell of the grid, its threads, and frames a step."""
    from rollcart.vector_env import NesVectorEnv

    # Every level of the game, where nothing else is said: they cost differently.
    catalog = None
    if work.state is None and work.rom_path is None:
        catalog = games.find(work.game).state_names() or None
    options = {"max_episode_steps": EPISODE_STEPS, "frame_skip": 4, **work.options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the game's files; whoever asked has read them
        env = NesVectorEnv(
            work.game,
            lanes,
            rom_path=work.rom_path,
            state=work.state,
            state_catalog=catalog,
            num_threads=threads or None,
            **options,
        )
    env.reset(seed=work.seed)
    env.action_space.seed(work.seed)
    drawn: list[Any] = []

    def prepare(steps: int) -> None:
        drawn.clear()
        for at in range(steps):
            drawn.append(env.action_space.sample() if at % HELD_STEPS == 0 else drawn[-1])

    def play() -> None:
        for actions in drawn:
            env.step(actions)

    name = f"{lanes} lanes, {env.num_threads} threads"
    return sps.Side(name, lanes, prepare, play, env.close), env.num_threads, options["frame_skip"]
