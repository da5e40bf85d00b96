"""From the arguments of the environments to the native lanes: finds files, reads states, writes options.

Which values an option may have is the native module's business (`vec_env::config`).
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from rollcart import _arguments, games
from rollcart._native import Batch
from rollcart._starts import Named, Starts, catalog_of
from rollcart._warnings import warn
from rollcart.errors import ConfigError


@dataclass
class Lanes:
    """Native lanes, their game, and the states that they know."""

    batch: Batch
    game: games.Game
    starts: Starts


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
    fixed: tuple[str, ...] = ()
    if state_catalog is None:
        # A lane of which nothing is said begins where the game does.
        players = options["players"]
        # What is no number of players is refused with the other options.
        usual = found.default_state(players if isinstance(players, int) else 1)
        if _is_row(state):
            state = [usual if one is None else one for one in state]
            catalog = [found.state(state[0] if state else usual)]
        else:
            state = usual if state is None else state
            catalog = [found.state(state)]
    else:
        catalog, fixed = _catalog(state_catalog, found)
    texts = found.data, found.scenario, catalog, list(found.scripts)
    batch = Batch(
        found.rom, _json(options), *texts, found.signals() if _arguments.flag("signals", signals) else None
    )
    found.warn_if_bare()
    for text in batch.warnings:
        warn(f"{found.name}: {text}")
    lanes = Lanes(batch, found, Starts(batch, found, catalog, fixed))
    starts = list(batch.starts)
    if state is not None:
        starts = chosen(lanes, "state", state, starts)
    return lanes, starts


def chosen(lanes: Lanes, what: str, state: object, now: list[int]) -> list[int]:
    """Each lane's start: one state for all, or one a lane, of which None keeps what is."""
    if not _is_row(state):
        return [lanes.starts.index(state, now)] * len(now)
    if len(state) != len(now):
        raise ConfigError(
            f"{what}: expected one state, or {len(now)} of them, one a lane; found {len(state)}"
        )
    starts, in_use = list(now), set(now)
    for lane, one in enumerate(state):
        if one is not None:
            starts[lane] = lanes.starts.index(one, in_use)
            in_use.add(starts[lane])
    return starts


def _is_row(state: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(state, (list, tuple, np.ndarray))


def _catalog(catalog: object, game: games.Game) -> tuple[list[Named], tuple[str, ...]]:
    """The states of a catalog, and those names that the caller gave them."""
    if isinstance(catalog, Mapping) and catalog:
        named = [(str(name), game.state(source)[1]) for name, source in catalog.items()]
        return named, tuple(name for name, _ in named)
    if _is_row(catalog) and len(catalog):
        return catalog_of(game.state(source) for source in catalog), ()
    raise ConfigError(
        f"state_catalog: expected a list of states or a dict of names and states, found {catalog!r}"
    )


def _json(options: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, enum.Enum):
            # Stable Retro's: Actions.MULTI_DISCRETE, Observations.RAM.
            return value.name.lower()
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
