"""Checkpoints: one .npz file that holds a policy, and with `opt` and `lanes` all that training goes on from.

Entries: `meta` (JSON as bytes: version, settings, what the trainer adds), `params/NAME` (float32; a policy
file may hold float16), `addresses` (which bytes of RAM the policy reads), `opt/NUMBER` (the optimizer's
leaves) and `lane/NUMBER` (snapshots as bytes).
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rollcart.errors import ConfigError
from rollcart.ppo.features import Features
from rollcart.ppo.settings import Settings, from_dict

VERSION = 1


class Checkpoint(NamedTuple):
    settings: Settings
    params: dict[str, Any]
    see: Features
    meta: dict[str, Any]
    opt: list[Any]
    lanes: list[bytes]

    @property
    def is_resumable(self) -> bool:
        return bool(self.opt and self.lanes)


def save(
    path: str | os.PathLike[str],
    settings: Settings,
    params: Mapping[str, Any],
    see: Features,
    meta: Mapping[str, Any] | None = None,
    opt: Sequence[Any] = (),
    lanes: Sequence[bytes] = (),
) -> None:
    """Writes the file, whole or not at all."""
    path = Path(path)
    head = {"version": VERSION, "settings": settings.as_dict(), **(meta or {})}
    entries: dict[str, Any] = {"meta": np.frombuffer(json.dumps(head).encode(), np.uint8)}
    if see.addresses is not None:
        entries["addresses"] = see.addresses
    entries |= {f"params/{name}": np.asarray(value) for name, value in params.items()}
    entries |= {f"opt/{number}": np.asarray(value) for number, value in enumerate(opt)}
    entries |= {f"lane/{number}": np.frombuffer(value, np.uint8) for number, value in enumerate(lanes)}
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            np.savez_compressed(file, **entries)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Reads a checkpoint or a policy file; weights come as float32."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        meta = json.loads(found.pop("meta").tobytes())
        version = meta.pop("version")
        settings = meta.pop("settings")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such checkpoint") from None
    except (ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{path}: expected a checkpoint of `rollcart train`; found another file ({error})"
        ) from None
    if version != VERSION:
        raise ConfigError(
            f"{path}: expected version {VERSION}, found {version}; use the rollcart that wrote it"
        )
    params = {
        name.removeprefix("params/"): value.astype(np.float32)
        for name, value in found.items()
        if name.startswith("params/")
    }
    opt = [found[f"opt/{n}"] for n in range(sum(name.startswith("opt/") for name in found))]
    lanes = [found[f"lane/{n}"].tobytes() for n in range(sum(name.startswith("lane/") for name in found))]
    return Checkpoint(from_dict(settings), params, Features(found.get("addresses")), meta, opt, lanes)
