"""NES games for reinforcement learning.

Importing this is quick: Gymnasium is imported when an environment is asked for, and its ids are registered
whenever Gymnasium is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rollcart import errors
from rollcart._native import Console, CpuRegisters, GameRules
from rollcart._registration import register_when_possible

if TYPE_CHECKING:
    from rollcart.env import NesEnv
    from rollcart.vector_env import NesVectorEnv

__all__ = ["Console", "CpuRegisters", "GameRules", "NesEnv", "NesVectorEnv", "errors"]

_LATER = {"NesEnv": "rollcart.env", "NesVectorEnv": "rollcart.vector_env"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'rollcart' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register_when_possible()
