"""What a policy does, for people: returns beside a random policy's, a learning curve, a video.

Pictures need the extra `ppo` (matplotlib, Pillow, imageio-ffmpeg), imported when asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollcart import _extras
from rollcart.ppo import network
from rollcart.ppo.collector import LAST, Draw
from rollcart.ppo.features import Features
from rollcart.ppo.settings import Settings
from rollcart.ppo.trainer import make_env

Chooser = Callable[[NDArray[np.uint8]], NDArray[Any]]
Progress = Callable[[str], None]
_SECONDS_PER_FRAME = 1 / 60.0988


def random_policy(settings: Settings, actions: int) -> Chooser:
    """Every action equally likely."""
    rng = np.random.default_rng(settings.seed)
    return lambda obs: rng.integers(0, actions, len(obs))


def sampled(params: network.Params, see: Features, seed: int) -> Chooser:
    """Actions drawn from a network's policy."""
    draw = Draw(seed)
    return lambda obs: draw(np.asarray(network.forward(params, see(obs))[0]))[0]


def returns(
    settings: Settings,
    choose: Callable[[Any], Chooser],
    *,
    rom_path: str | None = None,
    progress: Progress = lambda _text: None,
) -> NDArray[np.float64]:
    """The returns of `LAST` episodes, each lane's first ones. choose: makes the policy for an environment."""
    lanes = min(settings.lanes, LAST)
    env = make_env(replace(settings, lanes=lanes, minibatches=1), rom_path)
    each = -(-LAST // lanes)
    found: list[list[float]] = [[] for _ in range(lanes)]
    try:
        policy = choose(env)
        obs, _ = env.reset(seed=settings.seed)
        total = np.zeros(lanes)
        while min(map(len, found)) < each:
            obs, rewards, terminated, truncated, _ = env.step(policy(obs))
            total += rewards
            for lane in np.flatnonzero(terminated | truncated):
                found[lane].append(float(total[lane]))
                total[lane] = 0.0
            progress(f"{min(map(len, found)) * lanes} of {LAST} episodes")
    finally:
        env.close()
    in_turn = [lane[number] for number in range(each) for lane in found]
    return np.array(in_turn[:LAST])


class Shown(NamedTuple):
    """A video's episode: its return, and those of all that it was the best of."""

    best: float
    all: list[float]
    pictures: int


def video(
    path: str | os.PathLike[str],
    settings: Settings,
    params: network.Params,
    see: Features,
    *,
    rom_path: str | None = None,
    episodes: int = 8,
    scale: int = 2,
) -> Shown:
    """Writes the best of some episodes of a policy to a .mp4 or .gif, at the console's speed.

    They are played without pictures first; then the best one's actions are played once more.
    """
    from rollcart.pictures import Video

    settings = replace(settings, lanes=episodes, minibatches=1)
    env = make_env(settings, rom_path)
    try:
        policy = sampled(params, see, settings.seed)
        obs, _ = env.reset(seed=settings.seed)
        played: list[NDArray[Any]] = []
        total, length = np.zeros(episodes), np.zeros(episodes, np.int64)
        while not length.all():
            played.append(policy(obs))
            obs, rewards, terminated, truncated, _ = env.step(played[-1])
            total += rewards * (length == 0)
            length[(terminated | truncated) & (length == 0)] = len(played)
        best = int(total.argmax())
        env.reset(seed=settings.seed)
        with Video(path, fps=1 / (_SECONDS_PER_FRAME * settings.frame_skip), scale=scale) as out:
            out.add(env.render_lane(best))
            for actions in played[: length[best]]:
                env.step(actions)
                out.add(env.render_lane(best))
            return Shown(float(total[best]), total.tolist(), out.pictures)
    finally:
        env.close()


def curve(
    path: str | os.PathLike[str], history: Sequence[dict[str, float]], random_mean: float | None
) -> None:
    """Writes a PNG of the mean return of the last 100 episodes over environment steps."""
    _extras.need("matplotlib", "ppo", "a learning curve").use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    rows = [row for row in history if row["episodes"]]
    axes.plot([row["steps"] for row in rows], [row["mean_return"] for row in rows], label="PPO")
    if random_mean is not None:
        axes.axhline(random_mean, color="grey", linestyle="--", label="random policy")
    axes.set_xlabel("environment steps")
    axes.set_ylabel(f"mean return of the last {LAST} episodes")
    axes.set_ylim(bottom=0 if all(row["mean_return"] >= 0 for row in rows) else None)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)
