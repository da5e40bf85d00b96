"""Rollout workers as plain Ray actors, without RLlib.

    import ray
    from rollcart.envs.ray import rollout_actors

    actors = rollout_actors(4, policy, num_cpus=2, num_envs=32, seed=0)
    weights = ray.put(parameters)
    fragments = ray.get([actor.sample.remote(weights, 128) for actor in actors])

An actor runs `rollcart.envs._rollout.Rollout`, whose docstrings say what it takes and gives. Arrays out of
Ray's object store are read-only. A restarted actor begins its run anew, with the same seed and so the same
experience; `save` and `load` carry on instead.
"""

from __future__ import annotations

from typing import Any

from rollcart.envs._rollout import Policy, Rollout

try:
    import ray
except ImportError as error:
    raise ImportError(
        f"rollcart.envs.ray needs Ray, and importing it failed ({error}): pip install 'rollcart[ray]'"
    ) from error

__all__ = ["Policy", "Rollout", "RolloutActor", "rollout_actors"]

# Restarted where a node is lost: constructor arguments are all it needs.
RolloutActor = ray.remote(num_cpus=1, max_restarts=-1)(Rollout)


def rollout_actors(count: int, policy: Policy, *, num_cpus: int = 1, **options: Any) -> list[Any]:
    """Actors of one run, numbered by worker_index. Each has num_cpus processors and as many threads.

    options: those of `Rollout`, seed among them.
    """
    if count < 1 or num_cpus < 1:
        raise ValueError(f"count, num_cpus: expected 1 or more, found {count} and {num_cpus}")
    options = {"num_threads": num_cpus, **options}
    actor = RolloutActor.options(num_cpus=num_cpus)
    return [actor.remote(policy, worker_index=index, **options) for index in range(count)]
