"""Rollouts in several actors: what `rollcart rollout --engine ray` measures.

An actor is a `rollcart.envs._rollout.Rollout` with lanes of its own and the policy below. An engine is where
actors live: in this process, one after another, or in Ray's processes. One measurement hands weights to all
actors, lets each play a fragment, and takes the fragments back; so its rate holds what distribution costs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rollcart.envs._rollout import Rollout
from rollcart.errors import ConfigError
from rollcart.ppo.features import Features
from rollcart.ppo.settings import Settings


class GumbelPolicy:
    """PPO's stochastic policy as a rollout's function of weights, observations and random numbers.

    Records log probabilities and values beside the actions.
    """

    def __init__(self, see: Features) -> None:
        self.see = see

    def __call__(self, weights: Any, obs: Any, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
        # An actor's process imports JAX when it first plays.
        from rollcart.ppo import network
        from rollcart.ppo.collector import Draw

        logits, values = network.forward(weights, self.see(obs))
        draw = Draw(0)
        draw.rng = rng
        actions, log_probs = draw(np.asarray(logits))
        return actions, {"log_probs": log_probs, "values": np.asarray(values)}


class Engine(Protocol):
    """Where actors live."""

    name: str

    def start(self, count: int, policy: Any, settings: Settings) -> Sequence[Any]:
        """Actors of one run, numbered from 0."""

    def put(self, weights: Any) -> Any:
        """Weights as actors take them."""

    def ask(self, actors: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
        """What each actor answers to a call of its method; waits for all of them."""

    def stop(self, actors: Sequence[Any]) -> None:
        """Ends the actors."""


class Local:
    """Actors in this process, which take turns."""

    name = "local"

    def start(self, count: int, policy: Any, settings: Settings) -> Sequence[Any]:
        return [Rollout(policy, worker_index=index, **_options(settings)) for index in range(count)]

    def put(self, weights: Any) -> Any:
        return weights

    def ask(self, actors: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
        return [getattr(actor, method)(*arguments) for actor in actors]

    def stop(self, actors: Sequence[Any]) -> None:
        for actor in actors:
            actor.close()


class Ray:
    """Actors in processes of Ray's; starts a Ray of this machine where none is connected."""

    name = "ray"

    def __init__(self) -> None:
        try:
            import ray

            from rollcart.envs.ray import rollout_actors
        except ImportError as error:
            raise ConfigError(f"--engine ray needs Ray ({error}): pip install 'rollcart[ray]'") from None
        self._ray, self._rollout_actors = ray, rollout_actors
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")

    def start(self, count: int, policy: Any, settings: Settings) -> Sequence[Any]:
        threads = settings.threads or 1
        have = self._ray.cluster_resources().get("CPU", 0)
        if count * threads > have:
            raise ConfigError(
                f"--actors {count} with {threads} threads each need {count * threads} processors, and Ray "
                f"has {have:g}; ask for fewer, or connect to a larger cluster (RAY_ADDRESS)"
            )
        return self._rollout_actors(count, policy, num_cpus=threads, **_options(settings))

    def put(self, weights: Any) -> Any:
        return self._ray.put(weights)

    def ask(self, actors: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
        return list(self._ray.get([getattr(actor, method).remote(*arguments) for actor in actors]))

    def stop(self, actors: Sequence[Any]) -> None:
        for actor in actors:
            self._ray.kill(actor)


ENGINES: Mapping[str, Callable[[], Engine]] = {"local": Local, "ray": Ray}


def measure(
    engine: Engine,
    settings: Settings,
    weights: Any,
    see: Features,
    count: int,
    iterations: int,
    progress: Callable[[str], None] = lambda _text: None,
) -> dict[str, Any]:
    """`count` actors play `iterations` fragments of settings.horizon steps in each of their lanes.

    weights: host arrays by name. Rates are of all actors together, but for `per_actor`; object_bytes are the
    fragments' arrays, weight_sync_ms the median time until every actor has had new weights. The checksum is
    of actions, rewards and ends: equal settings and counts give equal ones under every engine.
    """
    if count < 1 or iterations < 1:
        raise ConfigError(f"actors, iterations: expected 1 or more, found {count} and {iterations}")
    progress(f"{engine.name}: starting {count} actors")
    actors = engine.start(count, GumbelPolicy(see), settings)
    try:
        progress(f"{engine.name}: warming up")
        engine.ask(actors, "sample", engine.put(weights), settings.horizon)
        syncs, wall, moved, episodes = [], 0.0, 0, 0
        checksum = hashlib.sha256()
        for number in range(iterations):
            progress(f"{engine.name}: fragment {number + 1} of {iterations}")
            began = time.perf_counter()
            given = engine.put(weights)
            engine.ask(actors, "have", given)
            synced = time.perf_counter()
            fragments = engine.ask(actors, "sample", given, settings.horizon)
            ended = time.perf_counter()
            syncs.append(synced - began)
            wall += ended - began
            for fragment in fragments:
                moved += _bytes(fragment)
                episodes += len(fragment["ended"])
                for name in ("actions", "rewards", "terminated", "truncated"):
                    checksum.update(np.ascontiguousarray(fragment[name]).tobytes())
    finally:
        engine.stop(actors)
    steps = count * settings.rollout_steps * iterations
    return {
        "engine": engine.name,
        "actors": count,
        "steps_per_second": steps / wall,
        "frames_per_second": steps * settings.frame_skip / wall,
        "per_actor": steps / wall / count,
        "weight_sync_ms": 1e3 * float(np.median(syncs)),
        "weight_bytes": sum(value.nbytes for value in weights.values()),
        "object_bytes_per_second": moved / wall,
        "episodes": episodes,
        "checksum": checksum.hexdigest(),
        "seconds": wall,
    }


def with_efficiency(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with an actor's rate over that of one actor alone, of the same engine; None without."""
    alone = {row["engine"]: row["steps_per_second"] for row in rows if row["actors"] == 1}
    return [
        {
            **row,
            "efficiency": row["per_actor"] / alone[row["engine"]] if row["engine"] in alone else None,
        }
        for row in rows
    ]


def _options(settings: Settings) -> dict[str, Any]:
    options = {**settings.env_options(), "game": settings.game, "seed": settings.seed}
    return {**options, "num_threads": settings.threads or 1}


def _bytes(fragment: Mapping[str, Any]) -> int:
    arrays: list[NDArray[Any]] = [value for value in fragment.values() if isinstance(value, np.ndarray)]
    return sum(array.nbytes for array in arrays)
