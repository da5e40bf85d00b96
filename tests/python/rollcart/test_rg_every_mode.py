"""Gymnasium's clauses in each of the three autoreset modes, through ends of episodes.

What only one mode has (RG6-RG8), and what does not depend on modes (RG21-RG25), is tested elsewhere;
docs/vector-env.md names the test of every clause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from vec_common import LEVELS, MODES, RIGHT, equal, mk, random_actions

import rollcart

RANDOM = {"noop_reset_max": 12, "sticky_action_prob": 0.25}
every_mode = pytest.mark.parametrize("mode", MODES)


def plays(env: rollcart.NesVectorEnv, steps: int, seed: int = 1) -> Iterator[tuple[Any, ...]]:
    """Each step's result; where the mode does not reset finished lanes, they are reset in between."""
    for actions in random_actions(env, steps, seed):
        result = env.step(actions)
        yield result
        done = result[2] | result[3]
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and done.any():
            env.reset(options={"reset_mask": done})


def ended(result: tuple[Any, ...]) -> bool:
    return bool((result[2] | result[3]).any())


@every_mode
def test_rg1_spaces_are_gymnasiums_batches(mode: str) -> None:
    env = mk(3, mode)
    assert isinstance(env, VectorEnv) and not env.closed
    assert env.observation_space == batch_space(env.single_observation_space, 3)
    assert env.action_space == batch_space(env.single_action_space, 3)


@every_mode
@pytest.mark.parametrize("obs", ["image", "ram", "dict"])
def test_rg2_rg3_results_have_their_forms_through_ends(mode: str, obs: str) -> None:
    env = mk(2, mode, limit=4, obs=obs)
    first, infos = env.reset(seed=0)
    assert env.observation_space.contains(first) and isinstance(infos, dict)
    ends = 0
    for observation, reward, terminated, truncated, _ in plays(env, 14):
        assert env.observation_space.contains(observation)
        assert (reward.shape, reward.dtype) == ((2,), np.float64)
        assert [(flag.shape, flag.dtype) for flag in (terminated, truncated)] == [((2,), np.bool_)] * 2
        ends += int(truncated.sum())
    assert ends >= 4


@every_mode
def test_rg4_a_bad_action_moves_no_lane_even_where_an_episode_has_ended(mode: str) -> None:
    env, other = mk(2, mode, limit=3), mk(2, mode, limit=3)
    for e in (env, other):
        e.reset(seed=0)
        for _ in range(2):
            e.step([RIGHT, 0])
    for bad in ([36, 0], [0, -1], [0], [0.5, 0.0], None):
        with pytest.raises(ValueError, match="action"):
            env.step(bad)
    equal(env.step([RIGHT, 0]), other.step([RIGHT, 0]))
    with pytest.raises(ValueError, match="action"):
        env.step([0, 36])
    assert env.snapshot() == other.snapshot()


@every_mode
def test_rg5_rg10_the_mode_is_named_by_enum_or_text_and_nothing_else(mode: str) -> None:
    assert mk(1, AutoresetMode(mode)).metadata["autoreset_mode"] is AutoresetMode(mode)  # type: ignore[arg-type]
    for bad in (mode.upper(), "", None, 1):
        with pytest.raises(ValueError, match="NextStep"):
            mk(1, bad)  # type: ignore[arg-type]
    assert rollcart.NesVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


@every_mode
def test_rg9_a_full_reset_leaves_nothing_of_what_was(mode: str) -> None:
    env, fresh = mk(2, mode, limit=3, **RANDOM), mk(2, mode, limit=3, **RANDOM)
    env.reset(seed=9)
    for _ in range(3):
        result = env.step([RIGHT, RIGHT])
    assert result[3].all()
    equal(env.reset(seed=0), fresh.reset(seed=0))
    for a, b in zip(plays(env, 12), plays(fresh, 12), strict=True):
        equal(a, b)


@every_mode
def test_rg11_rg12_a_mask_touches_its_lanes_alone_also_when_an_autoreset_is_pending(mode: str) -> None:
    env = mk(3, mode, limit=[3, 3, 50], **RANDOM)
    env.reset(seed=0)
    for _ in range(3):
        observation = env.step([RIGHT, 0, 9])[0]
    before = env.snapshot()
    mask = np.array([True, False, False])
    options = {"reset_mask": mask}
    now, infos = env.reset(options=options)
    assert options == {"reset_mask": mask} and mask.tolist() == [True, False, False]
    assert [a == b for a, b in zip(before, env.snapshot(), strict=True)] == [False, True, True]
    assert np.array_equal(now[1:], observation[1:])
    assert all((infos[key] == mask).all() for key in infos if key.startswith("_"))
    if mode == "Disabled":
        with pytest.raises(ResetNeeded, match="lane 1"):
            env.step([0, 0, 0])
        return
    _, reward, _, _, infos = env.step([RIGHT, RIGHT, RIGHT])
    # Lane 0 plays; lane 1 is reset by this step in the NextStep mode, and was reset before in SameStep.
    assert infos["elapsed_steps"].tolist() == ([1, 0, 4] if mode == "NextStep" else [1, 1, 4])
    assert mode != "NextStep" or reward[1] == 0


@every_mode
def test_rg13_rg14_a_seed_replays_and_no_seed_goes_on(mode: str) -> None:
    env = mk(2, mode, limit=5, **RANDOM)
    runs = []
    for _ in range(2):
        runs.append([env.reset(seed=7), *plays(env, 25), env.reset(), *plays(env, 25)])
    equal(runs[0], runs[1])
    assert env.np_random_seed == 7
    equal(runs[0][0], env.reset(seed=[7, 8]))
    # Episodes that follow one another are not the same one.
    assert len({env.reset()[0].tobytes() for _ in range(6)}) > 1


@every_mode
def test_rg15_a_lane_depends_on_its_seed_and_actions_alone(mode: str) -> None:
    many, alone = mk(4, mode, limit=6, num_threads=2, **RANDOM), mk(1, mode, limit=6, **RANDOM)
    many.reset(seed=10)
    alone.reset(seed=12)
    tape = random_actions(many, 30, seed=4)
    for actions in tape:
        a, b = many.step(actions), alone.step(actions[2:3])
        equal([part[2:3] for part in a[:4]], list(b[:4]))
        equal(
            {k: v[2:3] for k, v in a[4].items() if not k.lstrip("_").startswith("final_")},
            {k: v for k, v in b[4].items() if not k.lstrip("_").startswith("final_")},
        )
        if mode == "Disabled":
            for env, done in ((many, a[2] | a[3]), (alone, b[2] | b[3])):
                if done.any():
                    env.reset(options={"reset_mask": done})


@every_mode
def test_rg16_rg17_infos_keep_keys_dtypes_and_masks(mode: str) -> None:
    env = mk(2, mode, limit=4)
    _, first = env.reset(seed=0)
    kinds = {key: value.dtype for key, value in first.items()}
    seen: set[int] = set()
    kept = []
    for *_, infos in plays(env, 14):
        own = {k: v for k, v in infos.items() if not k.lstrip("_").startswith("final_")}
        assert {key: value.dtype for key, value in own.items()} == kinds
        assert all(f"_{key}" in own for key in own if not key.startswith("_"))
        assert all(value.dtype != object for value in own.values())
        assert id(infos) not in seen
        seen.add(id(infos))
        kept.append(infos)


@every_mode
def test_rg18_nothing_that_was_handed_out_is_written_again(mode: str) -> None:
    env = mk(2, mode, limit=4)
    held = [env.reset(seed=0)[:1]]
    held += [result[:4] for result in plays(env, 16)]
    copies = [[part.copy() for part in result] for result in held]
    for _ in plays(env, 16, seed=2):
        pass
    for result, copy in zip(held, copies, strict=True):
        equal(list(result), copy)


@every_mode
def test_rg19_rendering_changes_nothing(mode: str) -> None:
    shown = mk(2, mode, limit=5, render_mode="rgb_array", state_catalog=LEVELS, **RANDOM)
    quiet = mk(2, mode, limit=5, state_catalog=LEVELS, **RANDOM)
    equal(shown.reset(seed=3), quiet.reset(seed=3))
    for a, b in zip(plays(shown, 12), plays(quiet, 12), strict=True):
        pictures = shown.render()
        assert isinstance(pictures, tuple) and [p.shape for p in pictures] == [(224, 240, 3)] * 2
        assert quiet.render() is None
        equal(a, b)


@every_mode
def test_rg20_a_closed_environment_says_so(mode: str) -> None:
    env = mk(2, mode)
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step([0, 0])):
        with pytest.raises(ClosedEnvironmentError):
            call()
