"""Slices with workers that say what a test tells them: how a warm-up grows, who is asked what, and what both
sides' outputs are held against. No process is started.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cartlab.errors import BehaviourChanged
from cartlab.measure import schedule
from cartlab.measure.invocations import parts_of
from cartlab.measure.slices import MAX_STEPS, WARM_SLICES, Side, half, interleaved, warm_up, warm_up_as

MOST_RUNS = 80


class Told:
    """A worker whose step takes `step_ns` by its clock; `digest(slice, steps)` is what it answers."""

    def __init__(
        self,
        step_ns: int = 1000,
        digest: Callable[[int, Sequence[int]], str] = lambda number, steps: f"{number}{list(steps)}",
        spent_ns: int = 0,
    ) -> None:
        self.step_ns, self.answer, self.spent_ns = step_ns, digest, spent_ns
        self.pid = os.getpid()
        self.elapsed_ns = self.waited_ns = self.ending_ns = 0
        self.ran: list[int] = []
        self.said: list[tuple[str, Any]] = []

    def run(self, steps: int) -> tuple[int, int]:
        assert len(self.ran) < MOST_RUNS, "slices without end"
        self.ran.append(steps)
        self.said.append(("run", steps))
        self.elapsed_ns, self.waited_ns, self.ending_ns = 31, 32, 33
        return steps * self.step_ns, steps * self.step_ns + 5

    def ask(self, op: str, obs_steps: list[int]) -> dict[str, str]:
        self.said.append((op, tuple(obs_steps)))
        return {"digest": self.answer(len(self.ran) - 1, obs_steps)}


def both(base: Told, cand: Told) -> dict[str, Any]:
    return {"base": base, "cand": cand}


# --- warming up


def exact_unit() -> int:
    """A time of a step, in ns, of which eight pass a logarithm and back unchanged."""
    return next(
        unit
        for unit in range(1000, 9000)
        if math.exp(math.log(8 * unit)) == 8 * unit and 16 * unit / 1e6 * 1e6 == 16 * unit
    )


def test_steps_double_until_a_slice_is_half_as_long_as_wanted_and_are_fitted_then() -> None:
    unit = exact_unit()
    worker = Told(step_ns=unit)
    taken = warm_up({"base": worker}, 16 * unit / 1e6)  # type: ignore[dict-item]
    assert taken == [1, 2, 4, 8] + [16] * (4 + WARM_SLICES)
    assert worker.said == [said for steps in taken for said in (("run", steps), ("digest", (0,)))]


def test_both_sides_take_the_same_steps_and_their_geometric_mean_has_the_wanted_length() -> None:
    base, cand = Told(1000), Told(4000)
    taken = warm_up(both(base, cand), 1.0)
    assert base.ran == cand.ran == taken
    assert taken[-1] == 500


def test_a_clock_that_stands_still_does_not_make_slices_grow_without_end() -> None:
    stopped = Told(step_ns=0)
    taken = warm_up({"base": stopped}, 20.0)  # type: ignore[dict-item]
    assert taken[:21] == [1 << power for power in range(21)]
    assert set(taken[21:]) == {MAX_STEPS}
    # One that is merely much too slow is held against the time that passed outside.
    assert warm_up({"base": Told(step_ns=0, spent_ns=20 * 10**7)}, 20.0)[:2] == [1, 2]  # type: ignore[dict-item]


def test_a_second_process_is_warmed_up_with_the_first_ones_slices() -> None:
    worker = Told()
    warm_up_as(worker, [1, 2, 7])  # type: ignore[arg-type]
    assert worker.said == [said for steps in (1, 2, 7) for said in (("run", steps), ("digest", (0,)))]


# --- taking a slice


def test_a_slice_is_kept_by_all_its_clocks() -> None:
    side = Side()
    side.take(Told(step_ns=10), 3)  # type: ignore[arg-type]
    found = (side.ns, side.cpu_ns, side.parent_ns, side.waited_ns, side.ending_ns)
    assert found == ([30], [35], [31], [32], [33])


def test_interleaved_sides_take_turns_and_keep_what_they_answered() -> None:
    base, cand = Told(10), Told(20)
    sides = interleaved(both(base, cand), schedule.pairs(0, 4), 6)
    assert (sides["base"].ns, sides["cand"].ns) == ([60] * 4, [120] * 4)
    assert [len(side.awake_ns) for side in sides.values()] == [4, 4]
    asked = [steps for op, steps in base.said if op == "digest"]
    assert asked == [steps for op, steps in cand.said if op == "digest"]
    assert all(len(steps) == schedule.OBSERVED_STEPS for steps in asked)
    wanted = hashlib.sha256("".join(f"{k}{list(steps)}" for k, steps in enumerate(asked)).encode())
    assert {side.digest.hexdigest() for side in sides.values()} == {wanted.hexdigest()}


class Flips:
    """A digest that is another one from slice 1 on, as often as `times` it is asked for what `bad` names."""

    def __init__(self, bad: Callable[[Sequence[int]], bool], times: int) -> None:
        self.bad, self.left = bad, times

    def __call__(self, number: int, steps: Sequence[int]) -> str:
        if number < 1 or not self.bad(steps) or not self.left:
            return "same"
        self.left -= 1
        return "other"


@pytest.mark.parametrize(
    ("digest", "says"),
    [
        (Flips(lambda steps: True, 99), "rewards, terminations, truncations or infos"),
        (Flips(lambda steps: bool(steps), 99), "the observation of step "),
        (Flips(lambda steps: True, 1), "outputs that change after they were returned"),
    ],
)
def test_the_first_slice_whose_outputs_differ_is_named_with_what_differs(digest: Flips, says: str) -> None:
    with pytest.raises(BehaviourChanged, match=f"slice 1 differ while timing: {says}") as error:
        interleaved(both(Told(digest=lambda *_: "same"), Told(digest=digest)), schedule.pairs(0, 4), 6)
    assert error.value.details == {"slice": 1, "base": "same", "cand": "other"}


def test_the_second_half_is_asked_for_what_the_first_one_was_and_held_against_it() -> None:
    observed: list[list[int]] = []
    first, known = half(Told(10), 4, 6, observed, [])  # type: ignore[arg-type]
    drawn = [list(steps) for steps in observed]
    assert first.ns == [60] * 4 and len(drawn) == len(known) == 4
    assert known == [f"{k}{steps}" for k, steps in enumerate(drawn)]
    second, again = half(Told(20), 4, 6, observed, known)  # type: ignore[arg-type]
    assert (second.ns, again, observed) == ([120] * 4, known, drawn)
    wanted = hashlib.sha256("".join(known).encode()).hexdigest()
    assert first.digest.hexdigest() == second.digest.hexdigest() == wanted
    with pytest.raises(BehaviourChanged, match="slice 2 differ while timing: this half's outputs"):
        half(Told(20), 4, 6, observed, [*known[:2], "other", known[3]])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "parts"), [(250, [100, 100, 50]), (200, [100, 100]), (7, [7]), (101, [100, 1])]
)
def test_a_repeat_is_asked_for_in_parts(steps: int, parts: list[int]) -> None:
    assert parts_of(steps) == parts


def test_the_coin_alone_says_who_plays_role_1() -> None:
    assert [schedule.roles(coin) for coin in (0, 1)] == [("base", "cand"), ("cand", "base")]
