"""The states that native lanes know: which bytes a name stands for here.

A state that is a file of the game's, or one of the catalog, keeps its name. One that came as a path or as
bytes is told by its content: where its name is taken by another it gets a part of its digest behind it, so
two files of one name are two states, and a file that was written anew is another state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress

from rollcart._native import Batch
from rollcart.errors import StateError
from rollcart.games import Game

Named = tuple[str, bytes | None]


class Starts:
    """Names of the states at which a batch's lanes can begin, and their indices in the batch."""

    def __init__(self, batch: Batch, game: Game, catalog: Sequence[Named], fixed: Iterable[str]) -> None:
        """catalog: what the batch was made with. fixed: its names that the caller gave."""
        self._batch = batch
        self._game = game
        self._known = {name: index for index, (name, _) in enumerate(catalog)}
        self._digests = {name: _digest(state) for name, state in catalog}
        # What a plain name means, without looking for its file again.
        self._fixed = {name: self._known[name] for name in fixed}

    def index(self, source: object) -> int:
        """The index of a state, by name, path or bytes; a new one is read and kept."""
        plain = source.removesuffix(".state") if isinstance(source, str) else ""
        if plain in self._fixed:
            return self._fixed[plain]
        try:
            name, state = self._game.state(source)
        except StateError:
            # A name that infos told, of a state that came as bytes.
            if plain in self._known:
                return self._known[plain]
            raise
        own = self._game.has_state(plain)
        name = distinct(name, state, self._digests)
        index = self._known[name] if name in self._known else self._add(name, state)
        if own:
            self._fixed[plain] = index
        return index

    def learn(self, name: str) -> None:
        """Reads the state where a snapshot's later episodes begin, if it is the game's and not known yet."""
        if name not in self._known:
            with suppress(StateError):
                self.index(name)

    def _add(self, name: str, state: bytes | None) -> int:
        self._known[name], self._digests[name] = self._batch.add_start(name, state), _digest(state)
        return self._known[name]


def catalog_of(states: Iterable[Named]) -> list[Named]:
    """The states of a list, each once; two of one name and other bytes get other names."""
    digests: dict[str, bytes] = {}
    out: dict[str, bytes | None] = {}
    for name, state in states:
        name = distinct(name, state, digests)
        digests[name], out[name] = _digest(state), state
    return list(out.items())


def distinct(name: str, state: bytes | None, digests: dict[str, bytes]) -> str:
    """The name, or where other bytes have it, one with a part of the digest."""
    if digests.get(name, _digest(state)) == _digest(state):
        return name
    return f"{name}-{_digest(state).hex()[:8]}"


def _digest(state: bytes | None) -> bytes:
    return b"" if state is None else hashlib.sha1(state).digest()
