"""The arrays that observations are written into.

With `copy=True` an array is used again only when nobody holds it or a view of it any more, so nothing that
was handed out ever changes; memory that is warm stays in use. With `copy=False` two sets take turns whoever
holds them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = tuple["NDArray[np.uint8] | None", "NDArray[np.uint8] | None"]

# Sets of arrays that are kept for later; more are made when a caller holds on to many observations.
_KEPT = 4


class Observations:
    """Hands out arrays for images, shape (lanes, *image), and for RAM, shape (lanes, bytes)."""

    def __init__(self, lanes: int, image: tuple[int, ...] | None, ram: int, *, copy: bool) -> None:
        self.image = image
        self._image = None if image is None else (lanes, *image)
        self._ram = (lanes, ram) if ram else None
        self._copy = copy
        self._sets: list[tuple[Any, Any]] = [self.new() for _ in range(1 if copy else 2)]
        # What a set counts that nobody else holds: asked of one, since interpreters differ.
        for chosen in self._sets:
            self._alone = _references(*chosen)

    def new(self) -> tuple[Any, Any]:
        image, ram = (None if s is None else np.empty(s, np.uint8) for s in (self._image, self._ram))
        return image, ram

    def take(self, out: Any = None) -> Arrays:
        """Arrays to write the next observation into: fresh objects, whatever their memory, or `out`."""
        if out is not None:
            return self._given(out)
        if self._copy:
            chosen = self._unheld()
        else:
            chosen = self._sets.pop(0)
            self._sets.append(chosen)
        image, ram = chosen
        return (None if image is None else image.view(), None if ram is None else ram.view())

    def _given(self, out: Any) -> Arrays:
        both = self._image is not None and self._ram is not None
        if both and not isinstance(out, dict):
            raise TypeError(f"out: expected a dict with arrays image and ram, found {type(out).__name__}")
        image, ram = (
            None
            if shape is None
            else _checked(f"out[{key!r}]" if both else "out", out.get(key) if both else out, shape)
            for key, shape in (("image", self._image), ("ram", self._ram))
        )
        return image, ram

    def _unheld(self) -> tuple[Any, Any]:
        for index, chosen in enumerate(self._sets):
            if _references(*chosen) == self._alone:
                self._sets.append(self._sets.pop(index))
                return chosen
        new = self.new()
        self._sets.append(new)
        del self._sets[:-_KEPT]
        return new


def _references(image: object, ram: object) -> tuple[int, int]:
    return (0 if image is None else sys.getrefcount(image), 0 if ram is None else sys.getrefcount(ram))


def _checked(what: str, array: Any, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what}: expected a numpy array, found {type(array).__name__}")
    if array.dtype != np.uint8 or array.shape != shape:
        raise ValueError(f"{what}: expected uint8 {shape}, found {array.dtype} {array.shape}")
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ValueError(f"{what}: expected an array that is C-contiguous and writeable; pass such a one")
    return array
