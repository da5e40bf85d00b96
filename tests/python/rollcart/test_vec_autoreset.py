"""The three autoreset modes, step limits, and what a reset clears."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from vec_common import LEVELS, MODES, RIGHT, equal, game_with, mk, quick_end, random_actions

import rollcart


@pytest.mark.parametrize("mode", MODES)
def test_rg5_rg10_the_mode_is_the_instances_own_metadata_and_comes_as_enum_or_text(mode: str) -> None:
    for given in (mode, AutoresetMode(mode)):
        env = mk(mode=given)
        assert env.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert rollcart.NesVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


def test_rg6_u05_next_step_shows_the_last_frame_then_resets_without_reward() -> None:
    env, single = mk(2, limit=5), mk(1, "Disabled", limit=5)
    env.reset(seed=0)
    single.reset(seed=0)
    for _ in range(5):
        last, _, terminated, truncated, infos = env.step([RIGHT, RIGHT])
        alone = single.step([RIGHT])
    assert truncated.tolist() == [True, True] and not terminated.any()
    assert not any("final" in key for key in infos)
    assert np.array_equal(last[0], alone[0][0])
    observation, reward, terminated, truncated, infos = env.step([RIGHT, 3])
    assert not reward.any() and not terminated.any() and not truncated.any()
    fresh, reset_infos = mk(2).reset(seed=0)
    assert np.array_equal(observation, fresh)
    equal(infos, reset_infos)


def test_rg7_u05_same_step_hands_out_the_last_frame_apart_with_masks() -> None:
    env, single = mk(3, "SameStep", limit=5), mk(1, "Disabled", limit=5)
    env.reset(seed=0)
    single.reset(seed=0)
    env.step([RIGHT] * 3)
    env.reset(seed=0, options={"reset_mask": np.array([False, True, False])})
    single.step([RIGHT])
    for _ in range(4):
        observation, _, _, truncated, infos = env.step([RIGHT] * 3)
        alone = single.step([RIGHT])
    assert truncated.tolist() == [True, False, True]
    assert infos["final_obs"].dtype == object and infos["final_obs"][1] is None
    assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == [True, False, True]
    assert np.array_equal(infos["final_obs"][0], alone[0][0])
    final = infos["final_info"]
    assert final["elapsed_steps"].tolist() == [5, 0, 5]
    for key, values in final.items():
        if not key.startswith("_"):
            assert final[f"_{key}"].tolist() == [True, False, True]
            assert values[0] == alone[4][key][0] and values.dtype == alone[4][key].dtype
    assert infos["elapsed_steps"].tolist() == [0, 4, 0]
    fresh, _ = mk(1).reset(seed=0)
    assert np.array_equal(observation[0], fresh[0])
    assert env.step([0, 0, 0])[4]["_final_obs"].tolist() == [False, True, False]
    assert not any("final" in key for key in env.step([0, 0, 0])[4])


def test_rg8_disabled_refuses_to_step_a_finished_lane_until_it_is_reset() -> None:
    env = mk(2, "Disabled", limit=3)
    env.reset(seed=0)
    env.step([0, 0])
    env.reset(options={"reset_mask": np.array([False, True])})
    env.step([0, 0])
    _, _, _, truncated, _ = env.step([0, 0])
    assert truncated.tolist() == [True, False]
    before = env.snapshot()
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.step([0, 0])
    assert env.snapshot() == before
    env.reset(options={"reset_mask": truncated})
    assert env.step([0, 0])[3].tolist() == [False, True]


def test_re3_stepping_before_the_first_reset_is_refused() -> None:
    env = mk(2)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step([0, 0])
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.reset(seed=0, options={"reset_mask": np.array([False, True])})


@pytest.mark.parametrize("mode", MODES)
def test_rg9_u04_a_manual_reset_clears_a_pending_autoreset(mode: str) -> None:
    env, fresh = mk(2, mode, limit=5), mk(2, mode, limit=5)
    env.reset(seed=4)
    while not env.step([RIGHT, RIGHT])[3].any():
        pass
    equal(env.reset(seed=0), fresh.reset(seed=0))
    equal(env.step([RIGHT, 9]), fresh.step([RIGHT, 9]))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_u03_every_reported_episode_has_the_length_of_the_limit(mode: str) -> None:
    env = RecordEpisodeStatistics(mk(2, mode, limit=5))
    env.reset(seed=0)
    lengths = []
    for _ in range(30):
        infos = env.step([0, RIGHT])[4]
        if "episode" in infos:
            lengths += infos["episode"]["l"][infos["_episode"]].tolist()
    assert len(lengths) >= 8 and set(lengths) == {5}


def test_u06_a_reset_clears_the_step_count() -> None:
    env = mk(2, limit=6)
    env.reset(seed=0)
    for _ in range(3):
        env.step([0, 0])
    env.reset(seed=0)
    assert not any(env.step([0, 0])[3].any() for _ in range(5))
    assert env.step([0, 0])[3].all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("skip", [1, 4])
def test_u10_the_limit_counts_steps_of_each_lane(skip: int, mode: str) -> None:
    env = mk(3, mode, limit=6, frame_skip=skip)
    env.reset(seed=0)
    for _ in range(2):
        env.step([0, 0, 0])
    env.reset(options={"reset_mask": np.array([True, False, False])})
    for _ in range(4):
        _, _, terminated, truncated, _ = env.step([0, 0, 0])
    assert truncated.dtype == np.bool_ and truncated.tolist() == [False, True, True]
    assert not terminated.any()


@pytest.mark.parametrize("mode", MODES)
def test_u10_every_lane_may_have_a_limit_of_its_own(mode: str) -> None:
    env = mk(3, mode, limit=[2, None, 3])
    env.reset(seed=0)
    cut = [env.step([0, 0, 0])[3].tolist() for _ in range(2)]
    if mode == "Disabled":
        env.reset(options={"reset_mask": np.array([True, False, False])})
    cut.append(env.step([0, 0, 0])[3].tolist())
    assert cut == [[False] * 3, [True, False, False], [False, False, True]]
    with pytest.raises(rollcart.errors.ConfigError, match=r"max_episode_steps.*3 of them.*\[5,6\]"):
        mk(3, mode, limit=[5, 6])


def test_u10_an_end_wins_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = game_with(tmp_path, monkeypatch, quick_end())
    env = mk(1, "Disabled", game=game)
    env.reset()
    steps = 1
    while not env.step([RIGHT])[2].any():
        steps += 1
    limited = mk(1, "Disabled", limit=steps, game=game)
    limited.reset()
    for _ in range(steps):
        _, _, terminated, truncated, _ = limited.step([RIGHT])
    assert terminated.all() and not truncated.any()


def test_u06_a_new_episode_begins_with_the_values_of_its_start() -> None:
    env = mk(4, "NextStep", state_catalog=LEVELS)
    _, first = env.reset(seed=0)
    played = random_actions(env, 400, seed=2)
    ends = 0
    done = np.zeros(4, bool)
    for actions in played:
        _, reward, terminated, truncated, infos = env.step(actions)
        for lane in np.flatnonzero(done):
            ends += 1
            assert reward[lane] == 0
            for key, values in first.items():
                assert infos[key][lane] == values[lane], key
        done = terminated | truncated
    assert ends > 3, "the actions were meant to end episodes"


def test_u15_all_modes_give_the_same_transitions_once_reset_rows_are_gone() -> None:
    """10,000 steps of random play with ends and limits: equal episode by episode."""
    lanes, steps = 4, 2500
    options = {"limit": 60, "noop_reset_max": 12, "sticky_action_prob": 0.1, "state_catalog": LEVELS}
    tapes = random_actions(mk(lanes), steps, seed=9).T

    def play(mode: str) -> list[list[tuple[bytes, ...]]]:
        env = mk(lanes, mode, **options)
        observation, _ = env.reset(seed=21)
        taken = [0] * lanes
        out: list[list[tuple[bytes, ...]]] = [[(observation[lane].tobytes(),)] for lane in range(lanes)]
        done = np.zeros(lanes, bool)
        while min(taken) < steps:
            if mode == "Disabled" and done.any():
                observation, _ = env.reset(options={"reset_mask": done})
                for lane in np.flatnonzero(done):
                    out[lane].append((observation[lane].tobytes(),))
                done = np.zeros(lanes, bool)
            actions = np.array([tapes[lane][min(taken[lane], steps - 1)] for lane in range(lanes)])
            resets = done if mode == "NextStep" else np.zeros(lanes, bool)
            observation, reward, terminated, truncated, infos = env.step(actions)
            done = terminated | truncated
            for lane in range(lanes):
                if resets[lane]:
                    out[lane].append((observation[lane].tobytes(),))
                    continue
                taken[lane] += 1
                last, info = observation[lane], infos
                if mode == "SameStep" and done[lane]:
                    last, info = infos["final_obs"][lane], infos["final_info"]
                facts = np.array([reward[lane], terminated[lane], truncated[lane], info["xpos"][lane]])
                out[lane].append((last.tobytes(), facts.tobytes()))
                if mode == "SameStep" and done[lane]:
                    out[lane].append((observation[lane].tobytes(),))
        return out

    tapes_out = {mode: play(mode) for mode in MODES}
    for mode in MODES[1:]:
        for lane in range(lanes):
            a, b = tapes_out["NextStep"][lane], tapes_out[mode][lane]
            length = min(len(a), len(b))
            assert length > steps - 100
            assert a[:length] == b[:length], f"{mode}, lane {lane}"
