"""What is held against a worker's clock: not late answers on a busy machine, but every kind of bending."""

from __future__ import annotations

import pytest

from cartlab.errors import Tampered
from cartlab.measure.clocks import check_clocks
from cartlab.measure.slices import Side

MS = 1_000_000


def side(own_ms: list[float], late_ms: list[float], waited_ms: list[float] | None = None) -> Side:
    """Slices of 20 ms by the parent's clock when nothing is late."""
    return Side(
        ns=[round(ms * MS) for ms in own_ms],
        parent_ns=[round((20 + late) * MS) for late in late_ms],
        waited_ns=[round(ms * MS) for ms in (waited_ms or [0.0] * len(own_ms))],
    )


HONEST = side([20.0] * 50, [0.2] * 50)


def check(cand: Side, dropped: bool = False) -> None:
    check_clocks({"base": HONEST, "cand": cand}, dropped)


def test_answers_that_come_late_while_somebody_waits_are_no_tampering() -> None:
    late = [0.2] + [4.0] * 49
    check(side([20.0] * 50, late, waited_ms=late))


@pytest.mark.parametrize("own_ms", [10.0, 40.0])
def test_a_clock_at_another_speed_is_tampering_on_a_busy_machine_too(own_ms: float) -> None:
    late = [0.2] + [4.0] * 49
    with pytest.raises(Tampered, match="the candidate's clock must agree"):
        check(side([own_ms] * 50, late, waited_ms=[30.0] * 50))


def test_a_clock_that_is_bent_in_most_slices_is_tampering() -> None:
    with pytest.raises(Tampered):
        check(side([10.0] * 40 + [20.0] * 10, [0.2] * 50))


def test_nothing_is_held_against_a_short_block_that_is_dropped_anyway() -> None:
    short = side([10.0] * 8, [0.2] * 8)
    check(short, dropped=True)
    with pytest.raises(Tampered):
        check(short)
