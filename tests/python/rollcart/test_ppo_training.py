"""PPO's collector, update and loop on a few lanes; the command `train` from end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from rollcart import cli
from rollcart.errors import ConfigError
from rollcart.ppo import checkpoint, learner, network, settings
from rollcart.ppo.settings import Settings
from rollcart.ppo.stopwatch import Stopwatch
from rollcart.ppo.trainer import Trainer

SMALL = Settings(
    lanes=4, threads=1, horizon=16, steps=4 * 16 * 4, hidden=8, epochs=2, minibatches=2, max_episode_steps=10
)


@pytest.fixture
def trainer() -> Any:
    made = Trainer(SMALL)
    yield made
    made.close()


def weights(trainer: Trainer) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in trainer.params.items()}


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_rollout_holds_what_the_environment_gave_and_marks_the_rows_of_resets(trainer: Trainer) -> None:
    first = trainer.collector.collect(trainer.params)
    # Ten steps, then the row of the reset: every lane's eleventh row, and none before it.
    assert first.truncated[9].all() and not first.is_reset[:10].any()
    assert first.is_reset[10].all() and not first.rewards[10].any()
    assert trainer.collector.episodes == 4
    assert list(trainer.collector.last_lengths) == [10] * 4
    np.testing.assert_allclose(trainer.collector.last_returns, first.rewards[:10].sum(0))
    logits, values = network.forward(trainer.params, first.obs[3])
    np.testing.assert_allclose(values, first.values[3], atol=1e-6)
    expected = np.asarray(jax.nn.log_softmax(logits))[np.arange(4), first.actions[3]]
    np.testing.assert_allclose(first.log_probs[3], expected, atol=1e-5)


def test_the_first_policy_is_near_uniform_and_actions_are_drawn_as_it_says(trainer: Trainer) -> None:
    logits = np.log(np.tile(np.array([0.1, 0.6, 0.3], np.float32), (20_000, 1)))
    drawn, log_probs = trainer.collector.draw(logits)
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.1, 0.6, 0.3], atol=0.015)
    np.testing.assert_allclose(np.exp(log_probs), np.array([0.1, 0.6, 0.3])[drawn], rtol=1e-5)
    first, _ = network.forward(trainer.params, trainer.see(trainer.collector.obs))
    assert np.ptp(np.asarray(jax.nn.softmax(first))) < 0.05


def test_masked_rows_change_nothing_of_the_loss_or_its_gradient() -> None:
    rng = np.random.default_rng(0)
    rows = 12
    params = network.init(0, (32,), 3, 8)
    batch = learner.Batch(
        rng.integers(0, 2, (rows, 32), np.uint8),
        rng.integers(0, 3, rows),
        rng.normal(size=rows).astype(np.float32) - 1,
        rng.normal(size=rows).astype(np.float32),
        rng.normal(size=rows).astype(np.float32),
        np.ones(rows, np.float32),
    )
    more = learner.Batch(*(np.concatenate([x, x[:5] + 7 if i else x[:5]]) for i, x in enumerate(batch)))
    more = more._replace(
        actions=np.minimum(more.actions, 2), mask=np.concatenate([batch.mask, np.zeros(5, np.float32)])
    )
    gradient = jax.value_and_grad(lambda p, b: learner.loss(p, b, SMALL)[0])
    (plain, plain_grads), (masked, masked_grads) = gradient(params, batch), gradient(params, more)
    np.testing.assert_allclose(plain, masked, rtol=1e-5)
    for name in params:
        np.testing.assert_allclose(plain_grads[name], masked_grads[name], atol=1e-5, err_msg=name)


def test_the_loss_is_clipped_on_the_side_where_the_policy_has_already_moved() -> None:
    """A row with a positive advantage whose action is already 1.2 times as likely pulls no further."""
    params = network.init(0, (4,), 2, 8)
    obs = np.zeros((2, 4), np.uint8)
    now = np.asarray(jax.nn.log_softmax(network.apply(params, obs)[0]))[:, 0]

    def pull(before: float) -> float:
        batch = learner.Batch(
            obs,
            np.zeros(2, int),
            now + np.float32(before),
            np.array([1, -1], np.float32),
            np.zeros(2),
            np.ones(2),
        )
        only = replace(SMALL, entropy=0.0, value_weight=0.0)
        _, parts = learner.loss(params, batch, only)
        return float(parts["policy_loss"])

    # ratio r on both rows, advantages 1 and -1: -mean(min(r, clip(r)) + min(-r, -clip(r)))
    assert pull(0.0) == pytest.approx(0.0, abs=1e-6)
    assert pull(-np.log(1.5)) == pytest.approx(-(1.2 - 1.5) / 2, abs=1e-5)
    assert pull(np.log(2.0)) == pytest.approx(-(0.5 - 0.8) / 2, abs=1e-5)


def test_training_twice_is_the_same_and_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    whole, parted = Trainer(SMALL), Trainer(SMALL)
    for _ in range(4):
        whole.iterate()
    assert whole.is_done and whole.steps == SMALL.steps
    for _ in range(2):
        parted.iterate()
    parted.save(tmp_path / "half.npz")
    parted.close()
    resumed = Trainer.resumed(tmp_path / "half.npz")
    assert resumed.iteration == 2 and resumed.history == parted.history
    for _ in range(2):
        resumed.iterate()
    assert_same(weights(whole), weights(resumed))
    timing = ("seconds", "steps_per_second")
    for mine, other in zip(whole.history, resumed.history, strict=True):
        assert {k: v for k, v in mine.items() if k not in timing} == {
            k: v for k, v in other.items() if k not in timing
        }
    whole.close()
    resumed.close()


def test_a_policy_reads_the_bits_of_the_bytes_that_change_in_play(trainer: Trainer) -> None:
    addresses = trainer.see.addresses
    assert addresses is not None and len(addresses) == SMALL.ram_bytes
    assert 49 in addresses, "the bundled game's position"
    ram = np.zeros((1, 10_240), np.uint8)
    ram[0, addresses[1]] = 0b10000010
    assert np.flatnonzero(trainer.see(ram)[0]).tolist() == [8, 14]


def test_an_update_moves_the_policy_towards_what_paid() -> None:
    """Rows in which one action alone has a positive advantage make it more likely."""
    one = replace(SMALL, learning_rate=1e-2, entropy=0.0)
    params = network.init(1, (32,), 3, 8)
    state = learner.optimizer(one).init(params)
    rng = np.random.default_rng(0)
    obs = rng.integers(0, 2, (64, 32), np.uint8)
    actions = rng.integers(0, 3, 64)
    before = np.asarray(jax.nn.log_softmax(network.apply(params, obs)[0]))
    batch = learner.Batch(
        obs,
        actions,
        before[np.arange(64), actions],
        np.where(actions == 2, 1, -1).astype(np.float32),
        np.zeros(64, np.float32),
        np.ones(64, np.float32),
    )
    batch = jax.tree.map(jax.numpy.asarray, batch)
    for number in range(3):
        params, state, _ = learner.make_update(one)(params, state, batch, jax.random.key(number))
    after = np.asarray(jax.nn.log_softmax(network.apply(params, obs)[0]))
    assert after[:, 2].mean() > before[:, 2].mean() + 0.05


def test_the_image_network_trains_too() -> None:
    trainer = Trainer(replace(SMALL, obs="image", lanes=2, horizon=4, steps=8, epochs=1))
    before = weights(trainer)
    row = trainer.iterate()
    assert all(np.isfinite(row[name]) for name in ("policy_loss", "value_loss", "entropy"))
    assert all((weights(trainer)[name] != before[name]).any() for name in ("conv0.w", "dense.w", "policy.w"))
    trainer.close()


def test_a_stopwatch_gives_every_moment_to_one_lap() -> None:
    times = iter([0, 5, 7, 20, 21])
    watch = Stopwatch(lambda: next(times))
    assert [watch.lap("a"), watch.lap("b"), watch.lap("a"), watch.lap("b")] == [5, 2, 13, 1]
    assert watch.spent == {"a": 18, "b": 3}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"obs": "smell"}, "obs: expected one of ram, image"),
        ({"lanes": 0}, "lanes: expected a number from 1"),
        ({"gamma": 1.5}, "gamma: expected a number from 0 to 1"),
        ({"minibatches": 3}, "expected a divisor of lanes x horizon = 64"),
        ({"learning_rte": 1}, "did you mean learning_rate"),
    ],
)
def test_settings_say_what_is_wrong(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        settings.from_dict({**SMALL.as_dict(), **wrong})


def test_a_checkpoint_is_refused_where_it_is_none_or_does_not_fit(tmp_path: Path, trainer: Trainer) -> None:
    with pytest.raises(ConfigError, match="no such checkpoint"):
        checkpoint.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ConfigError, match="found another file"):
        checkpoint.load(tmp_path / "text.npz")
    checkpoint.save(tmp_path / "policy.npz", SMALL, weights(trainer), trainer.see)
    with pytest.raises(ConfigError, match="nothing to resume"):
        Trainer.resumed(tmp_path / "policy.npz")
    saved = checkpoint.load(tmp_path / "policy.npz")
    assert saved.settings == SMALL
    assert_same(saved.params, weights(trainer))
    with pytest.raises(ConfigError, match="does not fit these settings: dense"):
        Trainer(replace(SMALL, hidden=4), params=saved.params)


def test_the_command_trains_shows_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    sizes = ["--lanes", "4", "--threads", "1", "--horizon", "16", "--hidden", "8", "--epochs", "2"]
    words = ["train", "--out", str(out), *sizes, "--minibatches", "2", "--max-episode-steps", "10", "--json"]
    assert cli.main([*words, "--steps", "256"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stopped"] == "all steps are done" and found["last"]["steps"] == 256
    assert found["random"]["episodes"] == 100 and found["settings"]["lanes"] == 4
    assert Path(found["files"]["curve"]).read_bytes().startswith(b"\x89PNG")
    assert Path(found["files"]["video"]).read_bytes().startswith(b"GIF8")
    assert found["video"]["pictures"] == 11 and found["video"]["return"] == max(found["video"]["best_of"])
    assert cli.main([*words, "--steps", "256"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert cli.main(["train", "--out", str(out), "--resume", "--seed", "3"]) == 2
    assert "leave out --seed" in capsys.readouterr().err
    assert cli.main(["train", "--out", str(out), "--resume", "--video", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["last"] == found["last"]
