"""`rollcart rollout`: the numbers of a cell belong together, and two runs do the same work."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rollcart import cli
from rollcart.bench.retro_peer import Arrangement
from rollcart.cli import rollout
from rollcart.errors import ConfigError
from rollcart.ppo import benchmark, checkpoint, peer
from rollcart.ppo.settings import Settings
from rollcart.ppo.trainer import make_env

SMALL = Settings(
    lanes=4, threads=1, horizon=16, hidden=8, epochs=1, minibatches=1, max_episode_steps=10, ram_bytes=16
)


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    return [benchmark.measure(SMALL, make_env(SMALL), 2) for _ in range(2)]


def test_the_split_sums_to_the_wall_time(cells: list[dict[str, Any]]) -> None:
    for cell in cells:
        for kind in ("rollout", "training"):
            assert abs(cell[kind]["split_over_wall"] - 1) < 0.02
            assert sum(cell[kind]["split"].values()) == pytest.approx(1)
            assert cell[kind]["env_share"] == cell[kind]["split"]["env"]
            bound = cell[kind]["steps_per_second_if_env_took_no_time"]
            assert bound >= cell[kind]["steps_per_second"]
        assert "optimise" in cell["training"]["split"] and "optimise" not in cell["rollout"]["split"]


def test_two_runs_do_the_same_work_and_the_environment_alone_does_it_again(
    cells: list[dict[str, Any]],
) -> None:
    assert cells[0]["checksum"] == cells[1]["checksum"]
    assert [cell["env_only"]["same_work"] for cell in cells] == [True, True]
    other = replace(SMALL, seed=2)
    assert benchmark.measure(other, make_env(other), 1)["checksum"] != cells[0]["checksum"]


def test_episodes_and_waste_are_those_of_the_measured_rollouts(cells: list[dict[str, Any]]) -> None:
    # Episodes of ten steps and a reset each; 16 warm-up steps, then 32 measured ones: rows 21, 32 and 43.
    cell = cells[0]
    assert cell["episodes"]["finished"] == 3 * SMALL.lanes and cell["episodes"]["mean_length"] == 10
    assert cell["waste_share"] == pytest.approx(3 / 32)
    latency = cell["latency_ms"]
    assert latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"]
    assert 0 <= cell["reset_time_share"] < 1 and cell["peak_rss_mib"] > 0


def test_the_share_of_resets_is_what_their_steps_take_beyond_the_others() -> None:
    latency, share = benchmark._latencies([(10, 0), (10, 0), (10, 0), (30, 2)])
    assert share == pytest.approx(20 / 60) and latency["max"] == 30e-6


def test_the_trained_policy_is_small_and_plays_beyond_chance() -> None:
    assert rollout.TRAINED.stat().st_size < 1 << 20
    saved = checkpoint.load(rollout.TRAINED)
    settings = replace(saved.settings, lanes=4, threads=1, horizon=200, minibatches=1, epochs=1)
    cell = benchmark.measure(settings, make_env(settings), 1, params=saved.params, see=saved.see)
    # Four lanes run on to the right for 200 steps; a random policy comes 2 pixels a step, with deaths.
    assert cell["env_only"]["same_work"]
    env = make_env(settings)
    try:
        from rollcart.ppo import show

        policy = show.sampled(saved.params, saved.see, 0)
        obs, _ = env.reset(seed=0)
        total = np.zeros(4)
        alive = np.ones(4, bool)
        for _ in range(200):
            obs, rewards, terminated, truncated, _ = env.step(policy(obs))
            total += rewards * alive
            alive &= ~(terminated | truncated)
        assert total.mean() > 900
    finally:
        env.close()


def test_stable_retro_runs_in_the_same_harness() -> None:
    image = replace(SMALL, obs="image", lanes=2, horizon=8)
    work = peer.workload(image)
    assert work.actions[1] == ("RIGHT",) and set(work.actions[4]) == {"RIGHT", "A", "B"}
    cell = benchmark.measure(image, peer.Peer(work, Arrangement(1, False)), 2)
    assert cell["env_only"]["same_work"] is None and cell["rollout"]["split"]["env"] > 0
    assert cell["episodes"]["finished"] == 4 and cell["waste_share"] == pytest.approx(1 / 8)
    with pytest.raises(ConfigError, match="over images"):
        peer.make(SMALL, 0.1)


def test_the_command_sweeps_and_echoes_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--horizon", "8", "--hidden", "8", "--epochs", "1", "--minibatches", "1", "--iterations", "1"]
    words = ["rollout", "--lanes", "2,3", "--threads", "1", "--policy", "initial", *sizes]
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [cell["settings"]["lanes"] for cell in found["cells"]] == [2, 3]
    assert found["evidence"] == "learning" and found["host"]["jax"]
    assert all(len(cell["checksum"]) == 64 for cell in found["cells"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--peer", "stable-retro"], "add --obs image"),
        (["--lanes", "many"], "expected numbers"),
        (["--obs", "image", "--policy", "trained"], "reads the bundled game's RAM"),
        (["--iterations", "0"], "expected a number from 1 up"),
        (["--policy-threads", "one"], "before JAX is imported"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["rollout", *words]) == 2
    assert text in capsys.readouterr().err


def test_a_peer_is_compared_with_the_cell_of_its_lanes_that_has_the_most_threads() -> None:
    def cell(side: str, lanes: int, threads: int | None, rate: float, share: float) -> dict[str, Any]:
        rates: dict[str, Any] = {kind: {"steps_per_second": rate} for kind in ("env_only", "training")}
        rates["rollout"] = {"steps_per_second": rate, "env_share": share}
        settings = {"lanes": lanes, "threads": threads, "obs": "image"}
        return {"side": side, "policy": "initial", "settings": settings, **rates}

    cells = [
        cell("rollcart", 8, 1, 100, 0.5),
        cell("rollcart", 8, 2, 150, 0.4),
        cell("rollcart", 16, 2, 500, 0.1),
        cell("stable-retro", 8, None, 50, 0.9),
    ]
    (ratio,) = rollout._ratios(cells)
    assert ratio["rollout"] == 3 and (ratio["env_share_before"], ratio["env_share_after"]) == (0.9, 0.4)
