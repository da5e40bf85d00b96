"""Advantages against a slow reference that knows episodes and nothing of masks and resets."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollcart.ppo import gae


def reference(rows: list[tuple[float, float]], after: float, gamma: float, lam: float) -> list[float]:
    """Of one episode's (reward, value) rows; after: the value of what follows, 0 where it ended for good.

    Written as the definition: the sum of discounted temporal differences ahead.
    """
    values = [value for _, value in rows] + [after]
    errors = [reward + gamma * values[i + 1] - values[i] for i, (reward, _) in enumerate(rows)]
    return [sum((gamma * lam) ** (j - i) * errors[j] for j in range(i, len(rows))) for i in range(len(rows))]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.9, 0.99, 1.0]),
    st.sampled_from([0.0, 0.5, 0.95, 1.0]),
    st.floats(0, 0.6),
)
def test_advantages_equal_those_of_each_episode_alone(
    seed: int, steps: int, lanes: int, gamma: float, lam: float, ending: float
) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(steps, lanes)).astype(np.float32)
    values = rng.normal(size=(steps + 1, lanes)).astype(np.float32)
    terminated, truncated, is_reset = (np.zeros((steps, lanes), bool) for _ in range(3))
    over = rng.random(lanes) < ending
    for t in range(steps):
        is_reset[t] = over
        rewards[t][over] = 0.0
        ends = (rng.random(lanes) < ending) & ~over
        terminated[t] = ends & (rng.random(lanes) < 0.5)
        truncated[t] = ends & ~terminated[t]
        over = ends
    found = gae.estimate(rewards, values, terminated, truncated, is_reset, gamma, lam)
    np.testing.assert_array_equal(found.mask, ~is_reset)
    for lane in range(lanes):
        episode: list[int] = []
        for t in range(steps):
            if not is_reset[t, lane]:
                episode.append(t)
            ended = terminated[t, lane] or truncated[t, lane]
            if episode and (ended or t == steps - 1):
                after = 0.0 if terminated[t, lane] else float(values[t + 1, lane])
                rows = [(float(rewards[i, lane]), float(values[i, lane])) for i in episode]
                expected = reference(rows, after, gamma, lam)
                np.testing.assert_allclose(found.advantages[episode, lane], expected, atol=2e-4)
                np.testing.assert_allclose(
                    found.returns[episode, lane], np.array(expected) + [v for _, v in rows], atol=2e-4
                )
                episode = []
    assert not found.advantages[is_reset].any() and not found.returns[is_reset].any()


def test_a_truncated_episode_counts_the_value_of_its_last_observation_and_a_terminated_one_does_not() -> None:
    one, no = np.ones((1, 1), np.float32), np.zeros((1, 1), bool)
    values = np.array([[0.0], [10.0]], np.float32)
    assert gae.estimate(one, values, no, ~no, no, 0.5, 0.95).advantages[0, 0] == 6.0
    assert gae.estimate(one, values, ~no, no, no, 0.5, 0.95).advantages[0, 0] == 1.0
