"""The tuned baseline does the work it is measured for: all arrangements of processes give the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rollcart
from rollcart.bench.retro_peer import Arrangement, RetroVec, Workload

GAMES = str(Path(rollcart.__file__).parent / "data" / "stable")
WORK = Workload(
    GAMES, "CartRunner-Nes-v0", ("Level1", "Level2", "Level3", "Level4"), lanes=4, max_episode_steps=40
)
STEPS = 120


def played(arrangement: Arrangement) -> list[list[np.ndarray]]:
    actions = np.random.default_rng(5).integers(0, 36, (STEPS, WORK.lanes))
    side = RetroVec(WORK, arrangement)
    try:
        seen = []
        for row in actions:
            out = side.step(row)
            arrays = (out.obs, out.rewards, out.terminated, out.truncated, out.infos)
            seen.append([a.copy() for a in arrays])
        return seen
    finally:
        side.close()


def test_lanes_that_swap_states_and_lanes_with_a_process_each_see_the_same() -> None:
    alone, swapped = played(Arrangement(4, False)), played(Arrangement(2, True))
    for step, (a, b) in enumerate(zip(alone, swapped, strict=True)):
        for name, x, y in zip(("obs", "rewards", "terminated", "truncated", "infos"), a, b, strict=True):
            assert np.array_equal(x, y), f"{name} differ in step {step}"
    rewards = np.array([row[1] for row in alone])
    ends = np.array([row[2] | row[3] for row in alone])
    pictures = alone[-1][0][:, -1]
    assert np.any(rewards != 0) and ends.sum() >= 2 * WORK.lanes
    assert len({p.tobytes() for p in pictures}) == WORK.lanes, "lanes of different levels look different"
    assert not pictures[:, :12].any(), "masked rows are black"
