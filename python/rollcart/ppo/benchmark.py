"""What `rollcart rollout` measures: one cell is one environment, one policy and its sizes.

Three rates of the same work. `rollout` plays the policy and computes advantages; `env_only` takes the very
actions of that rollout again without a network; `training` adds the updates. Before them one whole iteration
runs unmeasured, so that nothing compiles inside a measurement. A step is one action of one lane; frames are
steps x frame skip. For learning where time goes, never evidence of a speed-up: that is cartlab's workload
`ppo-rollout`.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rollcart.ppo import network
from rollcart.ppo.collector import Rollout
from rollcart.ppo.features import Features
from rollcart.ppo.settings import Settings
from rollcart.ppo.stopwatch import Stopwatch
from rollcart.ppo.trainer import Trainer

PERCENTILES = (50, 95, 99)
Progress = Callable[[str], None]


class Meter:
    """Wall and processor time of some stretches; `stopwatch` splits the same stretches by its laps."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self.stopwatch = stopwatch
        self.wall = self.cpu = 0.0
        stopwatch.start()

    def __enter__(self) -> Meter:
        self._began = time.perf_counter(), time.process_time()
        self.stopwatch.skip()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stopwatch.lap("other")
        self.wall += time.perf_counter() - self._began[0]
        self.cpu += time.process_time() - self._began[1]

    def report(self, steps: int, frame_skip: int) -> dict[str, Any]:
        """Rates, the split in shares of the laps' sum, and that sum over the wall time."""
        spent = {name: ns / 1e9 for name, ns in self.stopwatch.spent.items()}
        total = sum(spent.values())
        inside = spent.get("env", 0.0)
        return {
            "steps_per_second": steps / self.wall,
            "frames_per_second": steps * frame_skip / self.wall,
            "seconds": self.wall,
            "cpu_over_wall": self.cpu / self.wall,
            "split": {name: seconds / total for name, seconds in spent.items()},
            "split_over_wall": total / self.wall,
            "env_share": inside / total,
            "steps_per_second_if_env_took_no_time": steps / max(total - inside, 1e-9),
        }


def measure(
    settings: Settings,
    env: Any,
    iterations: int,
    *,
    params: network.Params | None = None,
    see: Features | None = None,
    progress: Progress = lambda _text: None,
) -> dict[str, Any]:
    """One cell; closes the environment. params and see: a trained policy; without them the initial one."""
    stopwatch = Stopwatch()
    trainer = Trainer(settings, env=env, stopwatch=stopwatch, params=params, see=see)
    try:
        return _measured(trainer, iterations, progress)
    finally:
        trainer.close()


def host_policy(
    settings: Settings, env: Any, params: network.Params | None, see: Features | None
) -> tuple[dict[str, Any], Features]:
    """Weights as host arrays, and what the network sees: of a trained policy, or the initial one.

    Closes the environment.
    """
    trainer = Trainer(settings, env=env, params=params, see=see)
    try:
        weights = {name: np.asarray(value) for name, value in trainer.params.items()}
        return weights, trainer.collector.see
    finally:
        trainer.close()


def _measured(trainer: Trainer, iterations: int, progress: Progress) -> dict[str, Any]:
    settings, collector, stopwatch = trainer.settings, trainer.collector, trainer.stopwatch
    policy = trainer.params
    progress("warming up")
    trainer.iterate()
    began = collector.episodes
    start, state = _snapshot(trainer.env), collector.state()
    collector.latencies = []
    collector.last_lengths.clear()
    collector.last_returns.clear()
    checksum, actions, rewards = hashlib.sha256(), [], []
    waste = 0.0
    meter = Meter(stopwatch)
    for number in range(iterations):
        progress(f"rollout {number + 1} of {iterations}")
        with meter:
            rollout = collector.collect(policy)
            trainer.batch(rollout)
            stopwatch.lap("gae")
        _feed(checksum, rollout)
        actions.append(rollout.actions.copy())
        rewards.append(rollout.rewards.copy())
        waste += float(rollout.is_reset.mean()) / iterations
    steps = settings.rollout_steps * iterations
    out: dict[str, Any] = {"rollout": meter.report(steps, settings.frame_skip)}
    out["episodes"] = {
        "finished": collector.episodes - began,
        "mean_length": float(np.mean(collector.last_lengths)) if collector.last_lengths else None,
        "mean_return": float(np.mean(collector.last_returns)) if collector.last_returns else None,
    }
    out["waste_share"] = waste
    out["latency_ms"], out["reset_time_share"] = _latencies(collector.latencies)
    out["checksum"] = checksum.hexdigest()
    collector.latencies = None

    progress("environment alone")
    if start is not None:
        trainer.env.restore(start)
    out["env_only"], again = _env_only(trainer.env, actions, settings)
    # None where the environment cannot be taken back to where the rollout began.
    out["env_only"]["same_work"] = (
        None if start is None else bool(np.array_equal(again, np.concatenate(rewards)))
    )
    if start is not None:
        # Training goes on from there too: the collector's episode counts belong to those lanes.
        collector.restore(start, state)
    meter = Meter(stopwatch)
    for number in range(iterations):
        progress(f"training {number + 1} of {iterations}")
        with meter:
            trainer.iterate()
    out["training"] = meter.report(steps, settings.frame_skip)
    out["peak_rss_mib"] = _peak_rss_mib()
    out["observation_bytes"] = int(np.prod(collector.obs.shape[1:]))
    return out


def _snapshot(env: Any) -> Any:
    return env.snapshot() if hasattr(env, "snapshot") else None


def _env_only(env: Any, actions: list[Any], settings: Settings) -> tuple[dict[str, Any], Any]:
    """The rates of those actions alone, and the rewards float32[steps, lanes]."""
    rows = np.concatenate(actions)
    kept = []
    wall, cpu = time.perf_counter(), time.process_time()
    for row in rows:
        kept.append(env.step(row)[1])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "steps_per_second": rows.size / wall,
        "frames_per_second": rows.size * settings.frame_skip / wall,
        "cpu_over_wall": cpu / wall,
    }, np.array(kept)


def _feed(checksum: Any, rollout: Rollout) -> None:
    # Not values and log probabilities: floats, which another machine rounds otherwise.
    for array in (
        rollout.obs, rollout.actions, rollout.rewards,
        rollout.terminated, rollout.truncated, rollout.is_reset,
    ):  # fmt: skip
        checksum.update(array.tobytes())


def _latencies(found: list[tuple[int, int]]) -> tuple[dict[str, float], float]:
    """Percentiles of a batch step's milliseconds, and the share of time that resets add to steps without."""
    ns = np.array([one for one, _ in found], np.float64)
    resets = np.array([lanes for _, lanes in found])
    out = {f"p{p}": float(np.percentile(ns, p)) / 1e6 for p in PERCENTILES}
    out["max"] = float(ns.max()) / 1e6
    plain = ns[resets == 0]
    extra = float((ns[resets > 0] - np.median(plain)).sum() / ns.sum()) if len(plain) else float("nan")
    return out, max(extra, 0.0)


def _peak_rss_mib() -> float:
    """Of the process so far, all cells before this one included."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def host() -> dict[str, Any]:
    """What the numbers depend on beside the settings; nothing that names a person or a place."""
    import jax
    import optax

    from rollcart._native import __version__

    return {
        "usable_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "python": sys.version.split()[0],
        "rollcart": __version__,
        "jax": jax.__version__,
        "optax": optax.__version__,
        "numpy": np.__version__,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }
