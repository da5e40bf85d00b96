"""From the arguments of the environments to the native lanes: finds files, reads states, writes options.

Which values an option may have is the native module's business (`vec_env::config`).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollcart import games
from rollcart._native import Batch
from rollcart.errors import ConfigError, StateError


@dataclass
class Lanes:
    """Native lanes, their game, and the states that they know, by name."""

    batch: Batch
    game: games.Game
    starts: dict[str, int]

    def start(self, source: object) -> int:
        """The index of a state, by name, path or bytes; a new one is read and kept."""
        name = source.removesuffix(".state") if isinstance(source, str) else source
        if isinstance(name, str) and name in self.starts:
            return self.starts[name]
        name, state = self.game.state(source)
        if name not in self.starts:
            self.starts[name] = self.batch.add_start(name, state)
        return self.starts[name]


def make(
    game: str,
    rom_path: str | os.PathLike[str] | bytes | None,
    state: object,
    state_catalog: object,
    options: dict[str, Any],
    files: Mapping[str, Any] | None = None,
    signals: bool = False,
) -> tuple[Lanes, list[int]]:
    """The lanes, and the index of the state in which each one begins. files: as `games.find` has them."""
    found = games.find(game, rom_path, **(files or {}))
    catalog = _catalog(state_catalog, found)
    if not catalog and state is None:
        catalog = [found.state(found.default_state(int(options["players"])))]
    elif not catalog:
        first = state[0] if isinstance(state, (list, tuple)) and state else state
        catalog = [found.state(first)]
    texts = found.data, found.scenario, catalog, list(found.scripts)
    batch = Batch(found.rom, _json(options), *texts, found.signals() if signals else None)
    found.warn_if_bare(stacklevel=4)
    for text in batch.warnings:
        warnings.warn(f"{found.name}: {text}", stacklevel=4)
    lanes = Lanes(batch, found, {name: index for index, (name, _) in enumerate(catalog)})
    starts = list(batch.starts)
    if state is not None:
        starts = chosen(lanes, "state", state, starts)
    return lanes, starts


def chosen(lanes: Lanes, what: str, state: object, now: list[int]) -> list[int]:
    """Each lane's start: one state for all, or one a lane, of which None keeps what is."""
    if isinstance(state, (list, tuple, np.ndarray)):
        if len(state) != len(now):
            raise ConfigError(
                f"{what}: expected one state, or {len(now)} of them, one a lane; found {len(state)}"
            )
        return [start if one is None else lanes.start(one) for one, start in zip(state, now, strict=True)]
    return [lanes.start(state)] * len(now)


def learn_start(lanes: Lanes, name: str) -> None:
    """Reads the state where a snapshot's later episodes begin, if it is the game's and not known yet."""
    if name not in lanes.starts:
        with suppress(StateError):
            lanes.start(name)


def _catalog(catalog: object, game: games.Game) -> list[tuple[str, bytes | None]]:
    if catalog is None:
        return []
    if isinstance(catalog, Mapping):
        return [(str(name), game.state(source)[1]) for name, source in catalog.items()]
    if isinstance(catalog, Sequence) and not isinstance(catalog, (str, bytes)) and len(catalog):
        found = [game.state(source) for source in catalog]
        return list(dict(found).items())
    raise ConfigError(
        f"state_catalog: expected a list of states or a dict of names and states, found {catalog!r}"
    )


def _json(options: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return value.tolist()
        raise TypeError(type(value))

    def text(name: str, value: Any) -> str:
        try:
            return f"{json.dumps(name)}: {json.dumps(value, default=plain, allow_nan=False)}"
        except (TypeError, ValueError):
            raise ConfigError(
                f"{name}: expected finite numbers, texts and lists of them, found {value!r}"
            ) from None

    return "{" + ", ".join(text(name, value) for name, value in options.items()) + "}"
