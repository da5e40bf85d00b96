"""Random sequences of calls, against the slow model with one `Console` a lane: equal in all that is told.

Hypothesis draws the calls: resets, masked resets, steps, snapshots, restores, forks, and bad calls, which
must change nothing. ROLLCART_SEQUENCES says how many sequences are played (`make sequences`: 10,000).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from vec_common import LEVELS, MODES, RIGHT, game_with, quick_end
from vec_model import BUTTONS, GAME, Lane, Options

import rollcart

SEQUENCES = int(os.environ.get("ROLLCART_SEQUENCES", "12"))
LANES = 3
IMAGE: dict[str, Any] = {"resize": (5, 4), "frame_stack": 2, "frame_skip": 2, "crop": (32, 0, 0, 0)}
RANDOM: dict[str, Any] = {"noop_reset_max": 4, "sticky_action_prob": 0.25}
LIMITS = [3, 6, None]
STARTS = LEVELS[:LANES]
# What counts as a life here gets less every few steps.
LIFE: dict[str, Any] = {"episodic_life": "xspeed", "stack_start": "zero"}
KEPT = ("stack", "life_lost", "held", "elapsed", "episode_return", "values", "start", "pictures")

actions = st.lists(st.sampled_from([RIGHT, RIGHT, RIGHT, 0, 3, 9, 24, 33]), min_size=LANES, max_size=LANES)
masks = st.lists(st.booleans(), min_size=LANES, max_size=LANES).filter(any).map(np.array)
seeds = (
    st.none() | st.integers(0, 99) | st.lists(st.none() | st.integers(0, 99), min_size=LANES, max_size=LANES)
)


class SlowLane(Lane):
    """A lane of the model that knows whether its episode has ended, and can be copied."""

    ended = False

    def copied(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in KEPT}
        return {**own, "ended": self.ended, "rng": list(self.rng.s), "console": self.console.save()}

    def become(self, state: dict[str, Any]) -> None:
        for name in (*KEPT, "ended"):
            setattr(self, name, state[name])
        self.rng.s = list(state["rng"])
        self.console.load(state["console"])


class Sequences(RuleBasedStateMachine):
    folder: ClassVar[Path]
    game: ClassVar[str]
    saved = Bundle("saved")

    @initialize(
        mode=st.sampled_from(MODES),
        seed=st.integers(0, 999),
        threads=st.integers(1, 2),
        life=st.sampled_from([{}, LIFE]),
    )
    def begin(self, mode: str, seed: int, threads: int, life: dict[str, Any]) -> None:
        self.mode = mode
        self.env = rollcart.NesVectorEnv(
            self.game,
            LANES,
            autoreset_mode=mode,
            max_episode_steps=LIMITS,
            state=list(STARTS),
            num_threads=threads,
            **IMAGE,
            **RANDOM,
            **life,
        )
        files = [(GAME / f"{state}.state").read_bytes() for state in STARTS]
        self.lanes = [
            SlowLane(Options(max_episode_steps=limit, **IMAGE, **RANDOM, **life), start, self.folder)
            for limit, start in zip(LIMITS, files, strict=True)
        ]
        self.reset(np.ones(LANES, bool), seed, whole=True)

    @rule(mask=masks, seed=seeds, whole=st.booleans())
    def reset(self, mask: np.ndarray, seed: Any, whole: bool) -> None:
        chosen = np.ones(LANES, bool) if whole else mask
        observations, infos = self.env.reset(seed=seed, options={} if whole else {"reset_mask": mask})
        for index in np.flatnonzero(chosen):
            lane = self.lanes[index]
            lane.reset(seed + int(index) if isinstance(seed, int) else seed and seed[index])
            lane.ended = False
        self.compare(observations, infos, chosen)

    @rule(actions=actions)
    def step(self, actions: list[int]) -> None:
        if self.mode == "Disabled" and any(lane.ended for lane in self.lanes):
            with pytest.raises(ResetNeeded):
                self.env.step(actions)
            return
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        for index, (lane, action) in enumerate(zip(self.lanes, actions, strict=True)):
            told = (rewards[index], terminated[index], truncated[index])
            if lane.ended:
                lane.reset()
                lane.ended = False
                assert told == (0.0, False, False)
                continue
            last, reward, done, cut = lane.step(BUTTONS[action])
            assert told == (reward, done, cut), f"lane {index}"
            lane.ended = done or cut
            if lane.ended and self.mode == "SameStep":
                assert np.array_equal(infos["final_obs"][index], last)
                final = {key: infos["final_info"][key][index] for key in self.told(lane)}
                assert final == self.told(lane)
                lane.reset()
                lane.ended = False
        self.compare(observations, infos, np.ones(LANES, bool))

    @rule(target=saved, mask=masks)
    def snapshot(self, mask: np.ndarray) -> Any:
        states = self.env.snapshot(mask)
        assert [state is not None for state in states] == mask.tolist()
        pairs = [(s, lane.copied()) for s, lane in zip(states, self.lanes, strict=True) if s is not None]
        return multiple(*pairs)

    @rule(states=st.lists(st.none() | saved, min_size=LANES, max_size=LANES), mask=masks)
    def restore(self, states: list[Any], mask: np.ndarray) -> None:
        observations = self.env.restore([None if s is None else s[0] for s in states], mask)
        for lane, state, chosen in zip(self.lanes, states, mask, strict=True):
            if chosen and state is not None:
                lane.become(state[1])
        self.compare(observations, None, np.ones(LANES, bool))

    @rule(state=consumes(saved))
    def forget(self, state: Any) -> None:
        del state

    @rule(source=st.integers(0, LANES - 1), mask=masks)
    def fork(self, source: int, mask: np.ndarray) -> None:
        observations = self.env.fork(source, mask)
        state = self.lanes[source].copied()
        for index in np.flatnonzero(mask):
            self.lanes[index].become(state)
        self.compare(observations, None, np.ones(LANES, bool))

    @rule(which=st.integers(0, 9))
    def a_bad_call_changes_nothing(self, which: int) -> None:
        env, good = self.env, self.env.snapshot()
        calls: list[Any] = [
            lambda: env.step([0] * (LANES - 1)),
            lambda: env.step([0, 36, 0]),
            lambda: env.step([0.5] * LANES),
            lambda: env.reset(seed=-1),
            lambda: env.reset(seed=[1]),
            lambda: env.reset(options={"reset_mask": [True] * LANES}),
            lambda: env.reset(options={"state": "NoSuchState"}),
            lambda: env.restore([good[0], b"RCLN", good[2]]),
            lambda: env.fork(LANES, np.ones(LANES, bool)),
            lambda: env.step([0] * LANES, out=np.zeros(3, np.uint8)),
        ]
        with pytest.raises((ValueError, TypeError)):
            calls[which]()

    @invariant()
    def memory_and_pictures_are_equal(self) -> None:
        if not hasattr(self, "lanes"):
            return
        memory = self.env.ram()
        for index, lane in enumerate(self.lanes):
            assert np.array_equal(memory[index], lane.console.ram), f"RAM of lane {index}"
        assert np.array_equal(self.env.render_lane(1), self.lanes[1].pictures[-1])

    def told(self, lane: SlowLane) -> dict[str, Any]:
        return {**lane.values, "elapsed_steps": lane.elapsed, "episode_return": lane.episode_return}

    def compare(self, observations: Any, infos: dict[str, Any] | None, mask: np.ndarray) -> None:
        for index, lane in enumerate(self.lanes):
            assert np.array_equal(observations[index], lane.observation), f"observation of lane {index}"
            if infos is not None and mask[index]:
                assert {key: infos[key][index] for key in self.told(lane)} == self.told(lane), f"lane {index}"

    def teardown(self) -> None:
        if hasattr(self, "env"):
            self.env.close()


@pytest.mark.timeout(0 if SEQUENCES > 100 else 600)
def test_random_sequences_of_calls_equal_the_slow_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sequences.game = game_with(tmp_path, monkeypatch, quick_end())
    Sequences.folder = tmp_path / "stable" / Sequences.game
    run_state_machine_as_test(
        Sequences,
        settings=settings(
            max_examples=SEQUENCES,
            stateful_step_count=16,
            deadline=None,
            database=None,
            derandomize=SEQUENCES < 100,
            suppress_health_check=list(HealthCheck),
        ),
    )
