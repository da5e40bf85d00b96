"""`PufferEnv` under the real PufferLib (`make test-puffer`). The logic alone: test_puffer_lanes.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pufferlib
import pufferlib.vector
import pytest

from rollcart.envs.puffer import Batches, PufferEnv

OPTIONS: dict[str, Any] = {"num_envs": 2, "resize": (12, 10), "frame_stack": 2, "max_episode_steps": 5}


def played(vecenv: Any, steps: int = 12) -> list[Any]:
    seen = []
    vecenv.async_reset(3)
    for step in range(steps):
        obs, rewards, terminals, truncations, infos, *_ = vecenv.recv()
        seen.append((obs.copy(), rewards.copy(), terminals.copy(), truncations.copy(), infos))
        vecenv.send(np.full(len(obs), step % 9))
    return seen


def test_it_is_a_native_environment_of_the_library() -> None:
    env = PufferEnv(**OPTIONS)
    assert isinstance(env, pufferlib.PufferEnv) and env.num_agents == 2 and not env.emulated
    obs, infos = env.reset(seed=3)
    assert obs is env.observations and obs.shape == (2, 2, 12, 10) and infos == []
    obs, rewards, terminals, truncations, infos = env.step(np.array([6, 0], np.int32))
    assert rewards.dtype == np.float32 and not terminals.any() and not truncations.any()
    env.close()


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_its_vectors_play_as_the_environments_do(backend: str) -> None:
    kind = getattr(pufferlib.vector, backend)
    more = {"num_workers": 2} if backend == "Multiprocessing" else {}
    vecenv = pufferlib.vector.make(PufferEnv, num_envs=2, backend=kind, env_kwargs=OPTIONS, seed=0, **more)
    try:
        seen = played(vecenv)
    finally:
        vecenv.close()
    alone = [PufferEnv(**OPTIONS) for _ in range(2)]
    first = [env.reset(seed=3 + index)[0] for index, env in enumerate(alone)]
    assert np.array_equal(seen[0][0], np.concatenate(first))
    for step in range(1, len(seen)):
        parts = [env.step(np.full(2, (step - 1) % 9)) for env in alone]
        for index in range(4):
            assert np.array_equal(seen[step][index], np.concatenate([part[index] for part in parts]))
    told = [info for *_, infos in seen for info in infos]
    assert told and {info["episode_length"] for info in told} == {5}


def test_batches_have_the_calls_of_its_vectors() -> None:
    native = pufferlib.vector.make(PufferEnv, backend=pufferlib.PufferEnv, env_kwargs=OPTIONS)
    own = Batches(**OPTIONS)
    for vecenv in (native, own):
        vecenv.async_reset(1)
        received = vecenv.recv()
        assert len(received) == 7 and received[0].shape == (2, 2, 12, 10) and received[6].all()
        vecenv.send(np.array([6, 6]))
        assert vecenv.recv()[1].shape == (2,)
