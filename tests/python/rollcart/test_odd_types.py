"""Arguments of types that nobody expects: one error that says what was expected, and no lane moves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rollcart
from rollcart import NesVectorEnv
from rollcart.errors import ConfigError, StateError

ODD: list[Any] = [
    5, -1, 2**70, float("nan"), float("inf"), b"x", object(), [None], [[1]], {"a": 1}, np.array([1, 2]),
    np.array([], object), np.zeros((3, 3)), 1 + 1j, int, range(2**40),
]  # fmt: skip
OPTIONS = [
    "info_keys", "copy", "signals", "players", "render_mode", "scenario", "info", "state", "frame_skip",
    "crop", "resize", "engine_options", "state_catalog", "batch_size", "episodic_life",
]  # fmt: skip
# By place in ODD, what is right after all: five frames, a picture of one pixel by two, another wrapper's
# option, two seeds.
RIGHT = {("frame_skip", 0), ("resize", 10), ("options", 9), ("seed", 10)}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_of_an_odd_type_is_a_config_error(option: str) -> None:
    for number, value in enumerate(ODD):
        if (option, number) in RIGHT:
            continue
        with pytest.raises((ConfigError, StateError, TypeError), match=r"expected|found|has no") as refused:
            NesVectorEnv(num_envs=2, num_threads=1, **{option: value}).reset()
        assert len(str(refused.value)) < 1000, value


CALLS: dict[str, Callable[[NesVectorEnv, Any], Any]] = {
    "seed": lambda env, value: env.reset(seed=value),
    "options": lambda env, value: env.reset(options=value),
    "snapshot": lambda env, value: env.restore(value),
    "lane": lambda env, value: env.render_lane(value),
    "src_lane": lambda env, value: env.fork(value, np.array([True, True])),
}


@pytest.mark.parametrize("what", CALLS)
def test_an_argument_of_an_odd_type_is_named_and_nothing_moves(what: str) -> None:
    env = rollcart.NesVectorEnv(num_envs=2, num_threads=1, obs="ram")
    env.reset(seed=1)
    before = env.snapshot()
    for number, value in enumerate([*ODD, "x", itertools.count()]):
        if isinstance(value, int) or (what, number) in RIGHT:
            continue
        with pytest.raises((ValueError, TypeError), match=rf"{what}.*expected"):
            CALLS[what](env, value)
    assert env.snapshot() == before
