"""Rollouts in actors: every engine plays the same, and the numbers belong together."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from rollcart import cli
from rollcart.errors import ConfigError
from rollcart.ppo import actors, benchmark
from rollcart.ppo.settings import Settings
from rollcart.ppo.trainer import make_env

SMALL = Settings(
    lanes=2, threads=1, horizon=12, hidden=8, epochs=1, minibatches=1, max_episode_steps=5, ram_bytes=16
)


class Threads(actors.Local):
    """A stand-in for Ray: actors work at once, and what they are handed cannot be written."""

    name = "threads"

    def put(self, weights: Any) -> Any:
        read_only = {name: np.array(value) for name, value in weights.items()}
        for value in read_only.values():
            value.flags.writeable = False
        return read_only

    def ask(self, actors: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
        with ThreadPoolExecutor(len(actors)) as pool:
            return list(pool.map(lambda actor: getattr(actor, method)(*arguments), actors))


@pytest.fixture(scope="module")
def policy() -> Iterator[tuple[dict[str, Any], Any]]:
    yield benchmark.host_policy(SMALL, make_env(SMALL), None, None)


def test_engines_do_equal_work_and_more_actors_other_work(policy: tuple[dict[str, Any], Any]) -> None:
    weights, see = policy
    rows = [
        actors.measure(engine, SMALL, weights, see, count, 2)
        for engine, count in ((actors.Local(), 1), (actors.Local(), 2), (Threads(), 2), (Threads(), 1))
    ]
    sums = [row["checksum"] for row in rows]
    assert sums[0] == sums[3] and sums[1] == sums[2] and sums[0] != sums[1]
    # 12 warm-up steps of 5-step episodes, then 24 measured ones, two lanes an actor.
    assert [row["episodes"] for row in rows] == [2 * (7 - 2), 4 * (7 - 2), 4 * (7 - 2), 2 * (7 - 2)]


def test_the_numbers_of_a_row_belong_together(policy: tuple[dict[str, Any], Any]) -> None:
    weights, see = policy
    said: list[str] = []
    row = actors.measure(Threads(), SMALL, weights, see, 2, 3, said.append)
    steps = 2 * SMALL.lanes * SMALL.horizon * 3
    assert row["steps_per_second"] * row["seconds"] == pytest.approx(steps)
    assert row["per_actor"] * 2 == pytest.approx(row["steps_per_second"])
    assert row["frames_per_second"] == pytest.approx(4 * row["steps_per_second"])
    assert row["weight_bytes"] == sum(value.nbytes for value in weights.values())
    # At least every observation of RAM goes through the store.
    assert row["object_bytes_per_second"] * row["seconds"] > steps * 2048
    assert 0 < row["weight_sync_ms"] < 1e3 * row["seconds"]
    assert said[0].endswith("starting 2 actors") and said[-1].endswith("fragment 3 of 3")
    with pytest.raises(ConfigError, match="actors, iterations: expected 1 or more"):
        actors.measure(Threads(), SMALL, weights, see, 0, 1)


def test_efficiency_is_an_actors_rate_over_that_of_one_alone() -> None:
    rows = [
        {"engine": "local", "actors": 1, "steps_per_second": 100.0, "per_actor": 100.0},
        {"engine": "ray", "actors": 1, "steps_per_second": 80.0, "per_actor": 80.0},
        {"engine": "ray", "actors": 2, "steps_per_second": 120.0, "per_actor": 60.0},
        {"engine": "other", "actors": 2, "steps_per_second": 10.0, "per_actor": 5.0},
    ]
    assert [row["efficiency"] for row in actors.with_efficiency(rows)] == [1.0, 1.0, 0.75, None]


def test_actors_are_ended_when_one_fails(policy: tuple[dict[str, Any], Any]) -> None:
    weights, see = policy
    ended: list[int] = []

    class Failing(Threads):
        def ask(self, actors: Sequence[Any], method: str, *arguments: Any) -> list[Any]:
            raise RuntimeError("an actor died")

        def stop(self, actors: Sequence[Any]) -> None:
            ended.append(len(actors))
            super().stop(actors)

    with pytest.raises(RuntimeError, match="died"):
        actors.measure(Failing(), SMALL, weights, see, 2, 1)
    assert ended == [2]


SIZES = ["--lanes", "2", "--horizon", "8", "--hidden", "8", "--minibatches", "1", "--iterations", "1"]


def test_the_command_compares_actors_with_one_in_this_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(actors, "ENGINES", {"ray": Threads})
    words = ["rollout", "--engine", "ray", "--actors", "1,2", "--policy", "initial,trained", *SIZES]
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [cell["policy"] for cell in found["cells"]] == ["initial", "trained"]
    for cell in found["cells"]:
        rows = [(row["engine"], row["actors"]) for row in cell["engines"]]
        assert rows == [("local", 1), ("threads", 1), ("threads", 2)]
        assert cell["engines"][0]["checksum"] == cell["engines"][1]["checksum"]
        assert cell["settings"]["threads"] == 1
    assert cli.main([*words[:-4], "--policy", "initial", *SIZES]) == 0
    out = capsys.readouterr().out
    assert "efficiency" in out and "evidence: learning" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--peer", "stable-retro", "--obs", "image"], "leave --peer out"),
        (["--actors", "two"], "--actors: expected numbers"),
        (["--actors", "0"], "expected 1 or more"),
    ],
)
def test_what_actors_cannot_do_is_refused(
    words: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(actors, "ENGINES", {"ray": Threads})
    assert cli.main(["rollout", "--engine", "ray", "--policy", "initial", *SIZES, *words]) != 0
    assert text in capsys.readouterr().err


def test_without_ray_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["rollout", "--engine", "ray", "--policy", "initial", *SIZES]) != 0
    assert "rollcart[ray]" in capsys.readouterr().err
