"""The states that native lanes know: which bytes a name stands for here, and which may be forgotten.

A state that is a file of the game's, or one of the catalog, keeps its name. One that came as a path or as
bytes is told by its content: where its name is taken by another it gets a part of its digest behind it, so
two files of one name are two states, and a file that was written anew is another state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from rollcart._native import Batch
from rollcart.errors import StateError
from rollcart.games import Game

# Of those that came as paths or bytes so many are kept, and all at which lanes begin.
KEPT = 256

Named = tuple[str, bytes | None]


class Starts:
    """Names of the states at which a batch's lanes can begin, and their indices in the batch."""

    def __init__(self, batch: Batch, game: Game, catalog: Sequence[Named], fixed: Iterable[str]) -> None:
        """catalog: what the batch was made with, which stays. fixed: its names that the caller gave."""
        self._batch = batch
        self._game = game
        self._known = {name: index for index, (name, _) in enumerate(catalog)}
        self._digests = {name: _digest(state) for name, state in catalog}
        # What a plain name means, without looking for its file again.
        self._fixed = {name: self._known[name] for name in fixed}
        # What may be forgotten, the one that was asked for longest ago first.
        self._lent: dict[str, None] = {}

    def index(self, source: object, in_use: Collection[int] = ()) -> int:
        """The index of a state, by name, path or bytes; a new one is read and kept.

        in_use: indices that were given out and are not in the batch yet.
        """
        plain = source.removesuffix(".state") if isinstance(source, str) else ""
        if plain in self._fixed:
            return self._fixed[plain]
        try:
            name, state = self._game.state(source)
        except StateError:
            # A name that infos told, of a state that came as bytes.
            if plain in self._known:
                return self._asked_for(plain)
            raise
        own = self._game.has_state(plain)
        name = distinct(name, state, self._digests)
        index = self._asked_for(name) if name in self._known else self._add(name, state, in_use)
        if own:
            self._fixed[plain] = index
            self._lent.pop(name, None)
        return index

    def learn(self, name: str) -> None:
        """Reads the state where a snapshot's later episodes begin, if it is the game's and not known yet."""
        if name not in self._known:
            with suppress(StateError):
                self.index(name)

    def _asked_for(self, name: str) -> int:
        if name in self._lent:
            self._lent[name] = self._lent.pop(name)
        return self._known[name]

    def _add(self, name: str, state: bytes | None, in_use: Collection[int]) -> int:
        forgotten = self._oldest(in_use) if len(self._lent) >= KEPT else None
        if forgotten is None:
            index = self._batch.add_start(name, state)
        else:
            index = self._batch.add_start(name, state, self._known[forgotten])
            del self._known[forgotten], self._digests[forgotten], self._lent[forgotten]
        self._known[name], self._digests[name], self._lent[name] = index, _digest(state), None
        return index

    def _oldest(self, in_use: Collection[int]) -> str | None:
        kept = {*self._batch.starts, *in_use}
        return next((name for name in self._lent if self._known[name] not in kept), None)


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
