"""PPO's rollout as a workload: a frozen trained policy plays, its transitions are stored and their advantages
computed, for cartlab's slice server.

The environment is nes_batch's with RAM beside the image, and so are held-out draws and warm-up. The policy is
the integer network of ppo_rollout_policy.npz (made by ppo_rollout_freeze.py from the policy that `rollcart
rollout` calls trained): bits of RAM, two layers, actions drawn by integer weights. All its sums are whole
numbers that float32 holds exactly, so two builds whose observations are equal take equal actions whatever
the matrix library does, and one that gives another observation soon plays another game. Images are stored as
a learner needs them. It imports the standard library, numpy and the rollcart of the build under test; the
learner's update is left out, since no build could change it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# Before numpy is imported: the idle threads of a matrix library would spin beside the lanes' own.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    if "numpy" not in sys.modules:
        os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

POLICY = Path(__file__).with_name("ppo_rollout_policy.npz")
GAMMA, GAE_LAMBDA, REWARD_SCALE = np.float32(0.99), np.float32(0.95), np.float32(0.02)
# Weights of actions: WEIGHTS[i] belongs to a logit i / STEPS_A_NAT below the best one.
STEPS_A_NAT = 16
WEIGHTS = np.array([round(2**20 * 2.718281828459045 ** (-i / STEPS_A_NAT)) for i in range(256)], np.int64)
_DRAW_BITS = 31


def _neighbour(name: str) -> ModuleType:
    """An adapter beside this one; the slice server loads by path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


nes_batch = _neighbour("nes_batch")
BAD_INPUT = nes_batch.BAD_INPUT


class Network:
    """Layers of whole numbers: relu(x @ w + b) >> shift, at most 255; then logits and a value.

    tables: `addresses`; for dense, policy0 and value0 `NAME.w` int8 [in, out], `NAME.b` int64, `NAME.shift`;
    for policy and value `NAME.w`, `NAME.b`; `logits.scale` and `value.scale` (what 1.0 is in them).
    """

    def __init__(self, tables: dict[str, Any]) -> None:
        self.addresses = tables["addresses"]
        self._weights = {k: v.astype(np.float32) for k, v in tables.items() if k.endswith((".w", ".b"))}
        self._shift = {k.split(".")[0]: np.float32(2.0 ** -int(v)) for k, v in tables.items() if "shift" in k}
        self._to_steps = STEPS_A_NAT / float(tables["logits.scale"])
        self._value_scale = np.float32(tables["value.scale"])
        for name, inputs in (
            ("dense", 1),
            ("policy0", 255),
            ("value0", 255),
            ("policy", 255),
            ("value", 255),
        ):
            reach = inputs * np.abs(self._weights[f"{name}.w"]).sum(0) + np.abs(self._weights[f"{name}.b"])
            if reach.max() >= 2**24:
                raise nes_batch.BadWorkload(f"{POLICY.name}: sums of {name} can pass 2**24, so are not exact")

    def __call__(self, ram: Any) -> tuple[Any, Any]:
        """RAM uint8[lanes, bytes] to whole-number logits float32[lanes, actions], values float32[lanes]."""
        x = np.unpackbits(ram[:, self.addresses], axis=1).astype(np.float32)
        x = self._layer("dense", x)
        logits = self._sum("policy", self._layer("policy0", x))
        value = self._sum("value", self._layer("value0", x))[:, 0]
        return logits, value / self._value_scale

    def weights(self, logits: Any) -> Any:
        """int64[lanes, actions]: how likely each action is, WEIGHTS[0] for the likeliest."""
        below = (logits.max(1, keepdims=True) - logits).astype(np.float64) * self._to_steps
        return WEIGHTS[np.minimum(below, 255).astype(np.int64)]

    def draw(self, logits: Any, numbers: Any) -> Any:
        """Actions int64[lanes], by numbers int64[lanes] drawn evenly from [0, 2**31)."""
        edges = self.weights(logits).cumsum(1)
        return (edges <= (numbers * edges[:, -1] >> _DRAW_BITS)[:, None]).sum(1)

    def _sum(self, name: str, x: Any) -> Any:
        return x @ self._weights[f"{name}.w"] + self._weights[f"{name}.b"]

    def _layer(self, name: str, x: Any) -> Any:
        return np.floor(np.clip(self._sum(name, x), 0, None) * self._shift[name]).clip(0, 255)


def load_network() -> Network:
    with np.load(POLICY, allow_pickle=False) as tables:
        return Network(dict(tables))


class Session(nes_batch.Session):  # type: ignore[misc, name-defined]
    """One environment of the build under test, and the rollout that is played on it."""

    def __init__(self, params: dict[str, Any], seed: int, layout_seed: int | None) -> None:
        super().__init__(params, seed, layout_seed)
        self._network = load_network()
        self._numbers = np.random.PCG64(self._seed + 1)
        self._obs: Any = None
        self._is_reset = np.zeros(self.lanes, bool)
        self._rows: dict[str, Any] = {}
        self._infos: list[Any] = []
        self._ram_after: list[Any] = []

    def spread(self) -> None:
        super().spread()
        if self._obs is None:
            # The first observation and flags of the rollout: those of one step of the warm-up's policy.
            self._obs, _, terminated, truncated, _ = self.env.step(self._policy.draw(1)[0])
            self._is_reset = terminated | truncated

    def prepare(self, steps: int) -> None:
        self.spread()
        raw = self._numbers.random_raw(steps * self.lanes) >> np.uint64(64 - _DRAW_BITS)
        shape = (steps, self.lanes)
        if self._rows.get("rewards") is None or self._rows["rewards"].shape != shape:
            image = self._obs["image"].shape[1:]
            self._rows = {
                "image": np.zeros((*shape, *image), np.uint8),
                "ram": np.zeros((*shape, self._obs["ram"].shape[1]), np.uint8),
                "values": np.zeros((steps + 1, self.lanes), np.float32),
                "advantages": np.zeros(shape, np.float32),
                "rewards": np.zeros(shape, np.float32),
                "actions": np.zeros(shape, np.int64),
                **{name: np.zeros(shape, bool) for name in ("terminated", "truncated", "is_reset")},
            }
        self._rows["numbers"] = raw.astype(np.int64).reshape(shape)

    def forget(self) -> None:
        self._infos = []
        self._kept = []

    def run(self) -> None:
        """The prepared steps, each observed, decided, played and stored; then their advantages."""
        rows, network, step = self._rows, self._network, self.env.step
        for t, numbers in enumerate(rows["numbers"]):
            rows["image"][t], rows["ram"][t] = self._obs["image"], self._obs["ram"]
            logits, rows["values"][t] = network(rows["ram"][t])
            actions = network.draw(logits, numbers)
            outcome = step(actions)
            self._obs, rows["rewards"][t], terminated, truncated, infos = outcome
            rows["actions"][t], rows["is_reset"][t] = actions, self._is_reset
            rows["terminated"][t], rows["truncated"][t] = terminated, truncated
            self._is_reset = terminated | truncated
            self._infos.append(infos)
            self._kept.append(self._obs)
        _, rows["values"][len(rows["numbers"])] = network(self._obs["ram"])
        self._advantages()

    def _advantages(self) -> None:
        """Generalised advantages, rows of resets masked (rollcart.ppo.gae is the same with its tests)."""
        rows, ahead = self._rows, np.zeros(self.lanes, np.float32)
        values, rewards = rows["values"], rows["rewards"] * REWARD_SCALE
        lives = GAMMA * ~rows["terminated"]
        goes = GAMMA * GAE_LAMBDA * ~(rows["terminated"] | rows["truncated"])
        for t in range(len(rewards) - 1, -1, -1):
            error = rewards[t] + lives[t] * values[t + 1] - values[t]
            ahead = (error + goes[t] * ahead) * ~rows["is_reset"][t]
            rows["advantages"][t] = ahead

    def results(self) -> list[Any]:
        names = ("rewards", "terminated", "truncated", "actions", "advantages")
        return [(*(self._rows[name][t] for name in names), infos) for t, infos in enumerate(self._infos)]

    def observation(self, step: int) -> Any:
        return self._kept[step]

    # ------------------------------------------------------------------------------------ equal work

    def verify(self, steps: int) -> Iterator[tuple[str, Any]]:
        yield from self._surface()
        observation, infos = self._first
        yield "reset: observation", observation
        yield "reset: infos", infos
        half = max(1, steps // 2)
        yield from self._rollout("rollout", half)
        yield from self._masked_reset()
        saved = self.env.snapshot()
        yield "restored: observation", self.env.restore(saved)
        yield from self._rollout("later rollout", max(1, steps - half))

    def _rollout(self, label: str, steps: int) -> Iterator[tuple[str, Any]]:
        self.forget()
        self.prepare(steps)
        self.run()
        for number, outcome in enumerate(self.results()):
            yield f"{label} {number}: observation", self.observation(number)
            yield f"{label} {number}: outcome", list(outcome)
        yield f"{label}: RAM after {steps}", self.env.ram()


def open(workload: dict[str, Any], seed: int, layout_seed: int | None) -> Session:
    """Make the environment and reset it; what the reset gave is kept for `verify`."""
    nes_batch.use_controllers_game(workload["params"])
    return Session({**workload["params"], "obs": "dict", "copy": True}, seed, layout_seed)
