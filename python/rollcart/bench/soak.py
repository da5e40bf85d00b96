"""Plays an environment for a long time, twice: memory must not grow, and both runs must come to the same.

The work: random actions held for a while, limits, autoresets, masked resets, snapshots, restores and forks,
all drawn from one seed. What comes out (observations, rewards, ends, infos, snapshots) goes into a checksum.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from rollcart.vector_env import NesVectorEnv

MOST_GROWTH = 8 << 20
_LIMITS = (40, 400, None, 150)
# Calls between two of each kind; primes, so that they meet in every order.
_MASKED_RESET, _SNAPSHOT, _RESTORE, _FORK, _CHECK = 97, 61, 89, 127, 13


@dataclass
class Run:
    """What one run came to. growth: bytes of resident memory from a tenth of the run to its end."""

    steps: int
    resets: int
    checksum: str
    growth: int
    resident: int
    seconds: float


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def at_rest(env: NesVectorEnv) -> int:
    """resident() with nothing being translated, and what was freed given back.

    The compiler takes tens of MiB for a moment and the C library keeps them: that is no growth.
    """
    env._settle()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it (man 3 malloc_trim)
    if trim is not None:
        trim(0)
    return resident()


def play(steps: int, lanes: int, seed: int, say: Callable[[str], None] = lambda _: None) -> Run:
    """Plays `steps` steps, rounded up to whole calls of `lanes` lanes."""
    began, calls = time.monotonic(), -(-steps // lanes)
    rng = np.random.default_rng(seed)
    env = NesVectorEnv(
        num_envs=lanes,
        autoreset_mode="SameStep",
        max_episode_steps=[_LIMITS[lane % len(_LIMITS)] for lane in range(lanes)],
        state_catalog=["Level1", "Level2", "Level3", "Level4"],
        noop_reset_max=8,
        sticky_action_prob=0.1,
    )
    digest = hashlib.blake2b(digest_size=16)
    env.reset(seed=seed)
    saved = env.snapshot()
    actions = env.action_space.sample() * 0
    first, told = 0, began
    for call in range(calls):
        changed = rng.random(lanes) < 1 / 8
        actions = np.where(changed, rng.integers(36, size=lanes), actions)
        observation, reward, terminated, truncated, infos = env.step(actions)
        digest.update(reward.tobytes() + terminated.tobytes() + truncated.tobytes() + infos["xpos"].tobytes())
        mask = rng.random(lanes) < 0.1
        mask[rng.integers(lanes)] = True
        if call % _CHECK == 0:
            digest.update(observation.tobytes())
        if call % _MASKED_RESET == 0:
            env.reset(options={"reset_mask": mask})
        if call % _SNAPSHOT == 0:
            fresh = env.snapshot(mask)
            saved = [new or old for new, old in zip(fresh, saved, strict=True)]
            for state in fresh:
                digest.update(state or b"")
        if call % _RESTORE == 0:
            env.restore([saved[lane] for lane in rng.permutation(lanes)], mask)
        if call % _FORK == 0:
            env.fork(int(rng.integers(lanes)), mask)
        if call == calls // 10:
            first = at_rest(env)
        if time.monotonic() - told > 2:
            told = time.monotonic()
            left = (told - began) / max(call, 1) * (calls - call)
            say(f"{call * lanes:,} of {calls * lanes:,} steps, {resident() >> 20} MiB, {left:.0f} s to go")
    now = at_rest(env)
    done = env.profile()
    env.close()
    return Run(
        steps=calls * lanes,
        resets=int(done["resets"]),
        checksum=digest.hexdigest(),
        growth=now - first,
        resident=now,
        seconds=round(time.monotonic() - began, 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0: flat and equal; 1: memory grew, or the runs differ; 130: stopped by Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m rollcart.bench.soak",
        description="Plays the bundled game for a long time, twice, and compares memory and checksums.",
    )
    parser.add_argument("--steps", type=int, default=20_000_000, help="steps a run (default 20 million)")
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one object")
    chosen = parser.parse_args(arguments)
    if chosen.steps < 1 or chosen.lanes < 1:
        parser.error(f"--steps and --lanes: expected 1 or more, found {chosen.steps} and {chosen.lanes}")
    runs: list[Run] = []
    told = ["it had just begun"]

    def say(text: str) -> None:
        told.append(text)
        print(f"run {len(runs) + 1}: {text}", file=sys.stderr, flush=True)

    try:
        for _ in (1, 2):
            runs.append(play(chosen.steps, chosen.lanes, chosen.seed, say))
    except KeyboardInterrupt:
        say(f"stopped ({told[-1]}): nothing was compared")
        return 130
    flat = all(run.growth < MOST_GROWTH for run in runs)
    equal = runs[0].checksum == runs[1].checksum
    if chosen.json:
        print(json.dumps({"runs": [asdict(run) for run in runs], "flat": flat, "equal": equal}))
    else:
        for run in runs:
            print(
                f"{run.steps:,} steps, {run.resets:,} resets in {run.seconds} s; memory grew by "
                f"{run.growth / 2**20:.2f} MiB to {run.resident >> 20} MiB; checksum {run.checksum}"
            )
        print(
            f"memory {'flat' if flat else 'GREW'} (below {MOST_GROWTH >> 20} MiB), "
            f"runs {'equal' if equal else 'DIFFER'}"
        )
    return 0 if flat and equal else 1


if __name__ == "__main__":
    sys.exit(main())
