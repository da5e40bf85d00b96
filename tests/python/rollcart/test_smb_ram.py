"""gym-super-mario-bros' reward, infos and ends (RM4-RM6, RM10, U30, U32), on RAM images: no ROM is needed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from rollcart.compat.gym_super_mario_bros import ram as rules


def image(changes: dict[int, int] | None = None, **named: int) -> np.ndarray:
    """A RAM image of a player who walks: alive, on the screen, 400 on the clock, at x=40."""
    ram = np.zeros(2048, np.uint8)
    ram[[0x0E, 0xB5, 0x7F8, 0x86, 0x3B8, 0x75A]] = [8, 1, 4, 40, 176, 2]
    for address, value in (changes or {}).items():
        ram[address] = value
    if "x" in named:
        ram[0x6D], ram[0x86] = divmod(named["x"], 256)
    if "clock" in named:
        ram[0x7F8:0x7FB] = [int(digit) for digit in f"{named['clock']:03}"]
    return ram


@pytest.mark.parametrize(
    ("before", "now", "reward"),
    [
        ({"x": 40}, {"x": 43}, 3.0),
        ({"x": 43}, {"x": 40}, -3.0),
        ({"x": 254}, {"x": 258}, 4.0),
        ({"x": 258}, {"x": 254}, -4.0),
        ({"x": 40}, {"x": 45}, 5.0),
        ({"x": 40}, {"x": 46}, 0.0),
        ({"x": 2000}, {"x": 40}, 0.0),
        ({"clock": 400}, {"clock": 399}, -1.0),
        ({"clock": 399}, {"clock": 400}, 0.0),
        ({"clock": 400}, {"clock": 0}, -15.0),
        ({"clock": 400}, {"clock": 399, "x": 42}, 1.0),
    ],
)
def test_rm4_reward_is_movement_and_clock_within_limits(
    before: dict[str, int], now: dict[str, int], reward: float
) -> None:
    got = rules.reward(image(**before), image(**now))
    assert got == reward and type(got) is float


@pytest.mark.parametrize("death", [{0x0E: 0x0B}, {0x0E: 6}, {0xB5: 2}, {0xB5: 255}])
def test_rm4_death_costs_to_the_limit(death: dict[int, int]) -> None:
    assert rules.reward(image(), image(death)) == -15.0
    assert rules.reward(image(x=40), image({**death}, x=45)) == -15.0
    assert rules.done(image(death), stage=True) and not rules.done(image(death), stage=False)


def test_rm4_the_limit_is_fifteen_whatever_adds_up() -> None:
    assert rules.reward(image(x=40, clock=400), image({0x0E: 11}, x=45)) == -15.0
    assert -15.0 <= rules.reward(image(x=45, clock=999), image({0x0E: 11}, x=40, clock=0)) == -15.0


def test_rm5_a_stage_ends_with_death_or_flag_and_the_game_with_its_last_life() -> None:
    assert not rules.done(image(), stage=True) and not rules.done(image(), stage=False)
    over = image({0x75A: 0xFF})
    assert rules.done(over, stage=False) and not rules.done(over, stage=True)
    assert rules.done(image({0x770: 2}), stage=True) and not rules.done(image({0x770: 2}), stage=False)


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({}, False),
        ({0x770: 2}, True),
        ({0x770: 1}, False),
        ({0x16: 0x2D, 0x1D: 3}, True),
        ({0x1A: 0x31, 0x1D: 3}, True),
        ({0x18: 0x31, 0x1D: 3}, True),
        ({0x1B: 0x31, 0x1D: 3}, False),
        ({0x15: 0x31, 0x1D: 3}, False),
        ({0x16: 0x31, 0x1D: 0}, False),
    ],
)
def test_rm5_flag(changes: dict[int, int], flag: bool) -> None:
    assert rules.flag_get(image(changes)) is flag
    assert rules.info(image(changes))["flag_get"] is flag


@pytest.mark.parametrize("float_state", [0, 1, 2, 3])
def test_rm10_u30_a_flag_that_is_touched_while_falling_is_not_missed(float_state: int) -> None:
    assert rules.flag_get(image({0x0E: 4, 0x1D: float_state}))
    assert rules.flag_get(image({0x0E: 5, 0x1D: float_state, 0x16: 0x31}))
    # Falling past it is no flag.
    assert not rules.flag_get(image({0x0E: 8, 0x1D: 2, 0x16: 0x31}))


@pytest.mark.parametrize("routine", [1, 8])
def test_rm10_u30_a_vine_is_no_flag(routine: int) -> None:
    assert not rules.flag_get(image({0x0E: routine, 0x1D: 3}))
    assert not rules.flag_get(image({0x0E: routine, 0x1D: 3, 0x16: 0x2F}))


def test_rm6_infos_by_name() -> None:
    ram = image({0x75C: 2, 0x75F: 6, 0x75A: 1, 0x756: 1, 0x7ED: 4, 0x7EE: 2}, x=3266, clock=287)
    ram[0x7DE : 0x7DE + 6] = [0, 1, 2, 3, 5, 0]
    assert rules.info(ram) == {
        "coins": 42,
        "flag_get": False,
        "life": 1,
        "score": 12350,
        "stage": 3,
        "status": "tall",
        "time": 287,
        "world": 7,
        "x_pos": 3266,
        "y_pos": 79,
    }
    assert {key: type(value) for key, value in rules.info(ram).items()} == {
        **dict.fromkeys(("coins", "life", "score", "stage", "time", "world", "x_pos", "y_pos"), int),
        "flag_get": bool,
        "status": str,
    }


@pytest.mark.parametrize(("power", "status"), [(0, "small"), (1, "tall"), (2, "fireball"), (3, "fireball")])
def test_rm6_status(power: int, status: str) -> None:
    assert rules.info(image({0x756: power}))["status"] == status


def test_rm6_height_goes_on_above_the_screen() -> None:
    assert rules.y_pos(image({0x3B8: 0})) == 255
    assert rules.y_pos(image({0x3B8: 250, 0xB5: 0})) == 260
    assert rules.y_pos(image({0x3B8: 255, 0xB5: 1})) == 0


@pytest.mark.parametrize("seed", range(50))
def test_u32_no_image_overflows_or_leaves_the_ranges(seed: int) -> None:
    arrays = np.random.default_rng(seed).integers(256, size=(2, 2048), dtype=np.uint8)
    a, b = (each.tobytes() for each in arrays)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert -15.0 <= rules.reward(*arrays) <= 15.0
        info = rules.info(arrays[1])
    assert rules.reward(a, b) == rules.reward(*arrays) and rules.info(b) == info
    assert 0 <= info["x_pos"] <= 65535 and 0 <= info["y_pos"] <= 510
    assert 1 <= info["stage"] <= 256 and 0 <= info["life"] <= 255


def test_u32_a_player_left_of_the_screens_edge() -> None:
    ram = image({0x86: 3, 0x71C: 250, 0x6D: 1})
    assert rules.x_pos(ram) == 259 and rules.info(ram)["x_pos"] == 259
