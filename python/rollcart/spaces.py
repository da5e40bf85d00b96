"""Gymnasium spaces of what the native lanes show and take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollcart._native import Batch


def observation_space(batch: Batch) -> spaces.Space[Any]:
    """One lane's observation: an image, RAM, or a dict of both."""
    parts: dict[str, spaces.Space[Any]] = {}
    if batch.image_shape is not None:
        parts["image"] = spaces.Box(0, 255, batch.image_shape, np.uint8)
    if batch.ram_bytes:
        parts["ram"] = spaces.Box(0, 255, (batch.ram_bytes,), np.uint8)
    return spaces.Dict(parts) if len(parts) > 1 else next(iter(parts.values()))


def action_space(batch: Batch) -> spaces.Space[Any]:
    """One lane's action."""
    kind, sizes = batch.action_space
    if kind == "Discrete":
        return spaces.Discrete(sizes[0])
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(sizes)
    return spaces.MultiBinary(sizes[0])


def numbers(
    actions: Any, space: spaces.Space[Any], shape: tuple[int, ...], each: str = " a lane"
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Actions as one row of int64, whatever integers they came as; ValueError for any other thing.

    space: one lane's. shape: that of the whole batch. each: of what there is one `space`, said
    behind it. Ranges are checked natively.
    """
    try:
        array = np.asarray(actions)
    except ValueError as error:
        wanted = _wanted(space, shape, each)
        raise ValueError(f"actions: expected {wanted}, found {actions!r} ({error})") from None
    if array.shape != shape:
        raise ValueError(f"actions: expected {_wanted(space, shape, each)}, found shape {array.shape}")
    if array.dtype.kind not in ("iub" if isinstance(space, spaces.MultiBinary) else "iu"):
        raise ValueError(f"actions: expected {_wanted(space, shape, each)}, found dtype {array.dtype}")
    if array.dtype == np.uint64:
        # Beyond int64 they would wrap round, and a refusal name another number.
        array = np.minimum(array, np.uint64(np.iinfo(np.int64).max))
    return np.ascontiguousarray(array, np.int64).reshape(-1)


def check_range(numbers: NDArray[np.int64], space: spaces.Space[Any], lanes: Iterable[int]) -> None:
    """ValueError unless every number, shape (lanes, numbers of one action), is one that the space has.

    The native module checks this too; here it is asked where lanes are not stepped at once.
    """
    counts: Any = 2
    if isinstance(space, spaces.Discrete):
        counts = space.n
    elif isinstance(space, spaces.MultiDiscrete):
        counts = space.nvec
    bad = np.argwhere((numbers < 0) | (numbers >= counts))
    if len(bad):
        row, column = bad[0]
        most = int(np.broadcast_to(counts, numbers.shape)[row, column]) - 1
        raise ValueError(
            f"action {numbers[row, column]} of lane {list(lanes)[row]} is out of range, expected 0 to {most}"
        )


def _wanted(space: spaces.Space[Any], shape: tuple[int, ...], each: str) -> str:
    text = f"integers of shape {shape}, one {space}{each}"
    if isinstance(space, spaces.MultiBinary):
        text += f' (for one number{each} make the environment with actions="discrete")'
    return text
