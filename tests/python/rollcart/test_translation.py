"""Translated code as users meet it: on by default, shared, off by a switch, and never seen in a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_common import equal, mk, random_actions

import rollcart

ROOT = Path(__file__).parents[3]
COLOURS = ROOT / "tests/roms/colours.nes"
LEVELS = ["Level1", "Level2", "Level3", "Level4"]
STEPS = 120


def play(env: Any, seed: int = 0) -> list[Any]:
    """What a reset and STEPS random steps give; translated from the middle on."""
    out: list[Any] = [env.reset(seed=seed)]
    for number, actions in enumerate(random_actions(env, STEPS)):
        if number == STEPS // 2:
            env._settle()
        out.append(env.step(actions))
    return [*out, env.ram()]


def test_it_is_on_by_default_and_gives_what_the_interpreter_gives() -> None:
    options = {"state_catalog": LEVELS, "noop_reset_max": 9}
    plain = mk(4, engine_options={"jit": False, "idle_skip": False, "poll_skip": False}, **options)
    expected = play(plain)
    assert plain.profile()["jit_generations"] == 0
    for switches in (
        {},
        {"jit_links": False},
        {"jit_dead_flags": False},
        {"jit_polls": False},
        {"jit_registers": False},
        {"jit_returns": False},
        {"kept_deadlines": False},
        {"layout_seed": 9},
    ):
        env = mk(4, engine_options=switches, **options)
        equal(play(env), expected)
        assert env.profile()["jit_generations"] >= 1, switches


def test_nearly_everything_runs_translated_once_settled() -> None:
    env = mk(4, state_catalog=LEVELS)
    play(env)
    env._settle()
    before = env.profile()
    for actions in random_actions(env, STEPS):
        env.step(actions)
    after = env.profile()
    frames = after["frames"] - before["frames"]
    # Some 2,200 instructions a frame are executed.
    assert (after["jit_interpreted"] - before["jit_interpreted"]) / frames < 66


def test_lanes_environments_and_threads_share_one_translation() -> None:
    options = {"engine_options": {"layout_seed": 1234}}
    first, second = mk(4, num_threads=2, **options), mk(3, num_threads=3, **options)
    play(first)
    first._settle()
    second.reset(seed=0)
    mine, other = first.profile(), second.profile()
    assert other["jit_generations"] == mine["jit_generations"] >= 1
    assert other["jit_instructions"] == mine["jit_instructions"] > 0


def test_another_rom_in_the_process_changes_nothing() -> None:
    options = {"engine_options": {"layout_seed": 77}}
    expected = play(mk(2, **options))
    other = rollcart.Console(COLOURS)
    alone = rollcart.Console(COLOURS)
    alone.step(0, STEPS)
    env = mk(2, **options)
    out: list[Any] = [env.reset(seed=0)]
    for number, actions in enumerate(random_actions(env, STEPS)):
        if number == STEPS // 2:
            env._settle()
        out.append(env.step(actions))
        other.step()
    equal([*out, env.ram()], expected)
    assert np.array_equal(other.rgb(), alone.rgb())


def test_the_environment_variable_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLCART_SWITCHED_OFF", "jit")
    env = mk(1)
    play(env)
    assert env.profile()["jit_generations"] == 0
