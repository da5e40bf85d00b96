"""The ids of gym-super-mario-bros, and `make`.

Versions 1 to 3 play ROMs that its authors changed (no background, blocks of colour, fewer pixels). They can
be neither shipped nor made from the user's ROM here, so asking for one is an error that says so.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import gymnasium

from rollcart.compat.gym_super_mario_bros.env import SuperMarioBrosEnv
from rollcart.compat.gym_super_mario_bros.joypad import OldApi
from rollcart.errors import ConfigError

_LONGEST = 9_999_999
_VERSIONS = 4
_ENTRY = "rollcart.compat.gym_super_mario_bros.ids:"


def _table() -> dict[str, dict[str, Any]]:
    """Each id without its version, and the arguments of its environment."""
    table: dict[str, dict[str, Any]] = {
        "SuperMarioBros": {},
        "SuperMarioBrosRandomStages": {"random_stages": True},
    }
    for world in range(1, 9):
        for stage in range(1, 5):
            table[f"SuperMarioBros-{world}-{stage}"] = {"stage": f"{world}-{stage}"}
    table["SuperMarioBros2"] = {"lost_levels": True}
    return table


IDS: dict[str, dict[str, Any]] = {
    f"{name}-v{version}": kwargs
    for name, kwargs in _table().items()
    for version in range(2 if name == "SuperMarioBros2" else _VERSIONS)
}


def register() -> None:
    """Makes the ids known to Gymnasium, once."""
    for name, kwargs in IDS.items():
        if name not in gymnasium.registry:
            entry = "SuperMarioBrosEnv" if name.endswith("-v0") else "changed_rom"
            given = kwargs if name.endswith("-v0") else {"name": name}
            gymnasium.register(name, _ENTRY + entry, max_episode_steps=_LONGEST, kwargs=given)
    # Gymnasium advises the highest version, which is none that could be had.
    warnings.filterwarnings(
        "ignore", r".*The environment SuperMarioBros\S*-v0 is out of date", DeprecationWarning
    )


def changed_rom(name: str, **_kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Refuses the versions with changed ROMs."""
    raise ConfigError(
        f"{name} plays a modified ROM of gym-super-mario-bros that cannot be shipped: use "
        f"{name.rpartition('-')[0]}-v0, and shrink or grey its pictures with Gymnasium's wrappers"
    )


def make(
    id: str = "SuperMarioBros-v0",
    *,
    rom_path: str | os.PathLike[str] | bytes | None = None,
    render_mode: str | None = None,
    old_api: bool = False,
    apply_api_compatibility: bool | None = None,
    **kwargs: Any,
) -> gymnasium.Env[Any, Any]:
    """An environment by its id.

    rom_path: the ROM (path or bytes); by default ROLLCART_SMB_ROM, or what `rollcart import` found.
    render_mode: None, "rgb_array" or "human". old_api: `reset()` gives the observation alone and `step()`
    four values, as before gym 0.26. apply_api_compatibility: accepted and without effect, as its five values
    are the default. The rest goes to `gymnasium.make` and `SuperMarioBrosEnv`.
    """
    if id not in IDS:
        raise ConfigError(
            f"id: there is no {id!r}, expected SuperMarioBros-v0, SuperMarioBros-1-1-v0 to -8-4-v0, "
            "SuperMarioBrosRandomStages-v0 or SuperMarioBros2-v0"
        )
    if apply_api_compatibility and old_api:
        raise ConfigError(
            "apply_api_compatibility asks for five values and old_api for four: give one of them"
        )
    # By its spec, since a text makes Gymnasium advise a higher version.
    env = gymnasium.make(gymnasium.spec(id), render_mode=render_mode, rom_path=rom_path, **kwargs)
    return OldApi(env) if old_api else env


__all__ = ["IDS", "SuperMarioBrosEnv", "changed_rom", "make", "register"]
