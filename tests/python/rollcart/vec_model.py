"""A slow model of `NesVectorEnv`: one `Console` a lane, numpy, and loops, written from the documentation.

Everything that the native lanes do is done again here in the plainest way: every frame drawn, every pixel
resized by the formula, random numbers by the published generators. Tests compare the two to the byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import rollcart

GAME = Path(rollcart.__file__).parent / "data/stable/CartRunner-Nes-v0"
MASK = (1 << 64) - 1


class LaneRng:
    """xoshiro256++ seeded by SplitMix64."""

    def __init__(self, seed: int) -> None:
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ (z >> 31))

    def next(self) -> int:
        def rotate(x: int, k: int) -> int:
            return ((x << k) | (x >> (64 - k))) & MASK

        s = self.s
        result = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        return result

    def up_to(self, most: int) -> int:
        return (self.next() * (most + 1)) >> 64

    def chance(self, p: float) -> bool:
        return (self.next() >> 11) / (1 << 53) < p


@dataclass(frozen=True)
class Options:
    """The options of `NesVectorEnv` that the model knows, with the same defaults."""

    frame_skip: int = 4
    frame_stack: int = 4
    maxpool: bool = False
    grayscale: bool = True
    crop: tuple[int, int, int, int] = (32, 0, 0, 0)
    crop_mode: str = "mask"
    resize: tuple[int, int] | None = (84, 84)
    resize_algorithm: str = "area"
    layout: str = "chw"
    noop_reset_max: int = 0
    sticky_action_prob: float = 0.0
    reward_clip: bool = False
    max_episode_steps: int | None = None
    episodic_life: str | None = None
    stack_start: str = "repeat"


def resize_plane(plane: np.ndarray, size: tuple[int, int], algorithm: str) -> np.ndarray:
    """(rows, columns) uint8 to `size`, by the formulas of the documentation."""
    rows, columns = plane.shape
    if size == plane.shape:
        return plane  # each output covers its own pixel, whatever the algorithm
    out = np.zeros(size, np.uint8)
    for i in range(size[0]):
        for j in range(size[1]):
            if algorithm == "area":
                y0, x0 = i * rows // size[0], j * columns // size[1]
                y1 = max((i + 1) * rows // size[0], y0 + 1)
                x1 = max((j + 1) * columns // size[1], x0 + 1)
                part = plane[y0:y1, x0:x1]
                out[i, j] = int(part.sum(dtype=np.int64)) // part.size
            elif algorithm == "nearest":
                out[i, j] = plane[i * rows // size[0], j * columns // size[1]]
            else:
                y, y1, wy = _pair(i, rows, size[0])
                x, x1, wx = _pair(j, columns, size[1])
                p = plane.astype(np.int64)
                top = (256 - wx) * p[y, x] + wx * p[y, x1]
                bottom = (256 - wx) * p[y1, x] + wx * p[y1, x1]
                out[i, j] = ((256 - wy) * top + wy * bottom + 32768) >> 16
    return out


def _pair(i: int, source: int, output: int) -> tuple[int, int, int]:
    position = min(max((2 * i + 1) * source - output, 0), (source - 1) * 2 * output)
    first, rest = divmod(position, 2 * output)
    return first, min(first + 1, source - 1), (rest * 256 + output) // (2 * output)


def observe(pictures: list[np.ndarray], options: Options) -> np.ndarray:
    """One unstacked observation, (channels, rows, columns), of the window pictures that count."""
    rgb = np.maximum.reduce(pictures).astype(np.int64)
    top, right, bottom, left = options.crop
    rows, columns = slice(top, 224 - bottom), slice(left, 240 - right)
    if options.crop_mode == "cut":
        rgb = rgb[rows, columns]
    else:
        masked = np.zeros_like(rgb)
        masked[rows, columns] = rgb[rows, columns]
        rgb = masked
    if options.grayscale:
        planes = [(77 * rgb[..., 0] + 150 * rgb[..., 1] + 29 * rgb[..., 2] + 128) >> 8]
    else:
        planes = [rgb[..., channel] for channel in range(3)]
    size = options.resize or planes[0].shape
    return np.stack([resize_plane(p.astype(np.uint8), size, options.resize_algorithm) for p in planes])


class Files:
    """A game's data.json and scenario.json for the kinds of entries that the bundled game has."""

    def __init__(self, folder: Path) -> None:
        self.rom = (folder / "rom.nes").read_bytes()
        self.info = json.loads((folder / "data.json").read_text())["info"]
        scenario = json.loads((folder / "scenario.json").read_text())
        self.reward = scenario.get("reward", {}).get("variables", {})
        self.done = scenario.get("done", {}).get("variables", {})

    def values(self, ram: np.ndarray) -> dict[str, int]:
        def value(entry: dict[str, Any]) -> int:
            endian, kind, width = entry["type"][0], entry["type"][1], int(entry["type"][2])
            data = [int(b) for b in ram[entry["address"] : entry["address"] + width]]
            if endian != ">":
                data.reverse()
            if kind == "n":
                return int("".join(str(b & 15) for b in data))
            return int.from_bytes(bytes(data), "big", signed=kind == "i")

        return {name: value(entry) for name, entry in self.info.items()}

    def judge(self, before: dict[str, int], now: dict[str, int]) -> tuple[np.float32, bool]:
        reward = np.float32(0)
        for name, rule in self.reward.items():
            result = _operate(rule, now[name] - before[name])
            worth = rule.get("reward", 0) if result > 0 else rule.get("penalty", 0) if result < 0 else 0
            reward += np.float32(result) * np.float32(worth)
        done = any(_operate(rule, now[name]) > 0 for name, rule in self.done.items())
        return reward, done


def _operate(rule: dict[str, Any], value: int) -> int:
    reference = rule.get("reference", 0)
    return {
        None: value,
        "positive": int(value > 0),
        "nonzero": int(value != 0),
        "negative": int(value < 0),
        "greater-or-equal": int(value >= reference),
        "equal": int(value == reference),
    }[rule.get("op")]


class Lane:
    """One lane. Its observation is (channels x stack, rows, columns) or the hwc form of it."""

    def __init__(self, options: Options, start: bytes | None, folder: Path = GAME) -> None:
        self.options, self.start, self.files = options, start, Files(folder)
        self.console = rollcart.Console(self.files.rom)
        self.rng = LaneRng(0)
        self.life_lost = False

    def _frame(self, buttons: int) -> None:
        self.before = self.values
        self.held = buttons
        self.console.step(buttons)
        self.values = self.files.values(self.console.ram)
        self.pictures.append(self.console.rgb()[8:232, 8:248])

    def _push(self, *, first: bool) -> None:
        seen = self.pictures[-2:] if self.options.maxpool else self.pictures[-1:]
        newest = observe(seen, self.options)
        if first:
            older = newest if self.options.stack_start == "repeat" else np.zeros_like(newest)
            self.stack = [older] * self.options.frame_stack
        self.stack = [*self.stack[1:], newest]

    def reset(self, seed: int | None = None) -> np.ndarray:
        goes_on = self.life_lost and seed is None
        if seed is not None:
            self.rng = LaneRng(seed)
        noops = self.rng.up_to(self.options.noop_reset_max) if self.options.noop_reset_max else 0
        if not (goes_on and self._begin(noops, anew=False)) and not self._begin(noops):
            self._begin(0)
        self._push(first=True)
        self.life_lost = False
        self.elapsed, self.episode_return = 0, 0.0
        return self.observation

    def _begin(self, noops: int, anew: bool = True) -> bool:
        if anew:
            self.console.reset()
            if self.start is not None:
                self.console.load(self.start)
            self.values = {}
        self.pictures = []
        ended = False
        for frame in range(noops + 1):
            self._frame(0)
            if frame or not anew:
                ended |= self.files.judge(self.before, self.values)[1]
        return not ended

    def step(self, buttons: int) -> tuple[np.ndarray, float, bool, bool]:
        options = self.options
        self.pictures, total, done = [], 0.0, False
        for _ in range(options.frame_skip):
            sticks = options.sticky_action_prob > 0 and self.rng.chance(options.sticky_action_prob)
            self._frame(self.held if sticks else buttons)
            reward, done = self.files.judge(self.before, self.values)
            total += float(reward)
            life = options.episodic_life
            self.life_lost = not done and life is not None and self.values[life] < self.before[life]
            done |= self.life_lost
            if done:
                break
        self._push(first=False)
        self.elapsed += 1
        self.episode_return += total
        limit = options.max_episode_steps
        truncated = not done and limit is not None and self.elapsed >= limit
        return self.observation, float(np.sign(total)) if options.reward_clip else total, done, truncated

    @property
    def observation(self) -> np.ndarray:
        image = np.concatenate(self.stack)
        return image if self.options.layout == "chw" else np.ascontiguousarray(image.transpose(1, 2, 0))


class Actions:
    """Buttons of the default Discrete(36)."""

    @cached_property
    def buttons(self) -> list[int]:
        groups = ([0, 16, 32], [0, 64, 128], [0, 2, 1, 3])  # B before A: Stable Retro counts by its flags
        return [a | b | c for c in groups[2] for b in groups[1] for a in groups[0]]


BUTTONS = Actions().buttons
