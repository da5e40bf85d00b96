"""What is held against a worker's clock: not late answers on a busy machine, but every kind of bending."""

from __future__ import annotations

import random

import pytest

from cartlab.errors import Tampered
from cartlab.measure.clocks import check_clocks, excess_ns, gap_share
from cartlab.measure.slices import Side
from cartlab.model import BUSY
from cartlab.stats import sign_chance

MS = 1_000_000
SLICES = 50


def side(own_ms: list[float], late_ms: list[float], waited_ms: list[float] | None = None) -> Side:
    """Slices of 20 ms by the parent's clock when nothing is late."""
    return Side(
        ns=[round(ms * MS) for ms in own_ms],
        parent_ns=[round((20 + late) * MS) for late in late_ms],
        waited_ns=[round(ms * MS) for ms in (waited_ms or [0.0] * len(own_ms))],
    )


HONEST = side([20.0] * SLICES, [0.2] * SLICES)


def check(cand: Side, base: Side = HONEST, paired: bool = True) -> str | None:
    return check_clocks({"base": base, "cand": cand}, paired)


def late(rng: random.Random, mean_ms: float, slices: int = SLICES) -> list[float]:
    return [0.2 + rng.expovariate(1 / mean_ms) for _ in range(slices)]


@pytest.mark.parametrize("paired", [True, False])
def test_answers_that_come_late_while_somebody_waits_are_no_tampering(paired: bool) -> None:
    slow = [0.2] + [4.0] * 49
    both = side([20.0] * SLICES, slow, waited_ms=slow)
    assert check(both, both, paired) is None


def test_lateness_that_both_sides_share_and_nothing_explains_drops_the_block_at_most() -> None:
    """Honest workers on a machine whose hypervisor takes the processors away: the kernel sees no waiting."""
    rng = random.Random(1)
    ends = []
    for _ in range(2000):
        mean_ms = rng.choice([0.5, 2.0, 6.0, 20.0])
        base, cand = (side([20.0] * SLICES, late(rng, mean_ms)) for _ in range(2))
        ends.append((mean_ms, check(cand, base)))
    assert all(end is None for mean_ms, end in ends if mean_ms == 0.5)
    told = [end for mean_ms, end in ends if mean_ms == 20.0]
    assert all(end is not None and end.startswith(f"{BUSY}: the ") and "late" in end for end in told)


def test_what_is_dropped_follows_from_lateness_alone_whichever_side_is_faster() -> None:
    rng = random.Random(2)
    shared = late(rng, 20.0)
    for own_ms in (10.0, 40.0):
        fast = Side(
            [round(own_ms * MS)] * SLICES, [], [round((own_ms + ms) * MS) for ms in shared], [0] * SLICES
        )
        assert check(fast, side([20.0] * SLICES, shared)) is not None


@pytest.mark.parametrize("cheat", ["cand", "base"])
@pytest.mark.parametrize("mean_ms", [0.1, 3.0])
@pytest.mark.parametrize("bent", [1.0, 0.9])
def test_a_slow_clock_is_tampering_on_a_busy_machine_too(cheat: str, mean_ms: float, bent: float) -> None:
    rng = random.Random(3)
    own = [14.0] * round(bent * SLICES) + [20.0] * (SLICES - round(bent * SLICES))
    # All of its lateness is said to be waiting: that covers nothing, for the other side waited as much.
    one = side(own, late(rng, mean_ms), waited_ms=[30.0] * SLICES)
    two = side([20.0] * SLICES, late(rng, mean_ms), waited_ms=[30.0] * SLICES)
    cand, base = (one, two) if cheat == "cand" else (two, one)
    name = {"cand": "candidate", "base": "baseline"}
    other = {"cand": "baseline", "base": "candidate"}
    with pytest.raises(
        Tampered, match=f"the {name[cheat]}'s clock must agree .*the {other[cheat]}'s answers"
    ):
        check(cand, base)


def test_a_claim_above_what_passed_is_tampering_in_whichever_slice() -> None:
    one = side([20.0] * 49 + [22.3], [0.2] * SLICES)
    with pytest.raises(Tampered, match="claims more time than passed"):
        check(one)
    with pytest.raises(Tampered, match=r"the candidate's clock.*claims more time"):
        # Not the baseline, whose answers are late beside that.
        check(side([80.0] * SLICES, [0.2] * SLICES))
    assert check(side([20.0] * 49 + [22.1], [0.2] * SLICES)) is None
    with pytest.raises(Tampered, match="the baseline's clock"):
        check(HONEST, one, paired=False)


def test_the_tolerance_is_a_twentieth_and_a_millisecond() -> None:
    prompt = side([20.0] * SLICES, [0.0] * SLICES)
    assert check(side([20.0] * SLICES, [1.9] * SLICES), prompt) is None
    with pytest.raises(Tampered):
        check(side([20.0] * SLICES, [2.1] * SLICES), prompt)


@pytest.mark.parametrize("paired", [True, False])
def test_what_is_just_within_the_tolerance_is_believed(paired: bool) -> None:
    prompt = side([20.0] * SLICES, [0.0] * SLICES)
    assert check(side([20.0] * SLICES, [2.0] * SLICES), prompt, paired) is None
    assert check(side([20.0] * 49 + [22.0], [0.0] * SLICES), prompt, paired) is None


def test_one_side_on_the_busier_processor_all_the_block_long_is_no_tampering() -> None:
    rng = random.Random(5)
    slow = late(rng, 6.0)
    busy = side([20.0] * SLICES, slow, [ms + rng.expovariate(0.2) for ms in slow])
    assert check(busy) is None and check(HONEST, busy) is None


def test_lateness_of_half_the_pairs_is_not_one_sided() -> None:
    mixed = [9.5, 0.0] * 25
    cand = side([20.0] * SLICES, [9.1] * SLICES, [9.0] * SLICES)
    assert check(cand, side([20.0] * SLICES, mixed, mixed)) is None


def test_of_a_few_pairs_all_must_be_later() -> None:
    short = side([20.0] * 8, [0.2] * 8)
    with pytest.raises(Tampered):
        check(side([10.0] * 8, [0.2] * 8), short)
    assert str(check(side([10.0] * 7 + [20.1], [0.2] * 8), short)).startswith(BUSY)


def test_sides_that_took_no_turns_are_held_against_what_the_kernel_explains() -> None:
    """One side's machine was busy, the other's was not; a clock that is bent shows in every slice."""
    busy = [0.2] + [9.0] * 49
    assert check(side([20.0] * SLICES, busy, busy), paired=False) is None
    assert str(check(side([20.0] * SLICES, busy), paired=False)).startswith(BUSY)
    with pytest.raises(Tampered, match="every answer was late"):
        check(side([10.0] * SLICES, [0.2] * SLICES, [3.0] * SLICES), paired=False)


def test_excess_is_the_median_of_what_the_kernel_does_not_explain() -> None:
    assert excess_ns(side([20.0] * 3, [3.0, 5.0, 9.0], [0.0, 4.0, 9.0])) == 1 * MS
    assert excess_ns(side([20.0] * 3, [0.0, 5.0, 9.0], [0.0, 1.0, 1.0])) == 4 * MS
    assert excess_ns(side([20.0] * 3, [-2.0, -2.0, -2.0], [9.0, 9.0, 9.0])) == -2 * MS


def test_the_gap_is_the_candidates_lateness_beyond_the_baselines() -> None:
    shared = late(random.Random(4), 5.0)
    assert gap_share(side([20.0] * SLICES, shared), side([19.0] * SLICES, shared)) == pytest.approx(1 / 19)
    assert gap_share(HONEST, HONEST) == 0.0


def test_the_sign_test_is_the_binomial_tail() -> None:
    assert sign_chance([]) == 1.0
    assert sign_chance([1.0] * 8) == 1 / 256
    assert sign_chance([1.0] * 7 + [0.0]) == 9 / 256
    assert sign_chance([-1.0] * 5) == 1.0
