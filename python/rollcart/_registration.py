"""Gymnasium's ids, registered when Gymnasium is there: importing rollcart does not import it.

`gymnasium.make("rollcart:ID")` imports rollcart after Gymnasium, and is served at once; where rollcart comes
first, a finder waits for Gymnasium's import and serves it then.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from rollcart.games import BUNDLED

# Id and the arguments of its environments. Files are looked for when one is made, not before.
IDS: dict[str, dict[str, Any]] = {
    BUNDLED: {"game": BUNDLED},
    "SuperMarioBros-Nes-v0": {"game": "SuperMarioBros-Nes-v0"},
    "Nes-v0": {},
}


def register() -> None:
    """Makes the ids known to Gymnasium, once."""
    import gymnasium

    for name, kwargs in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="rollcart.env:NesEnv",
                vector_entry_point="rollcart.vector_env:NesVectorEnv",
                kwargs=kwargs,
            )


class _WaitsForGymnasium(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        register()


def register_when_possible() -> None:
    """Registers now if Gymnasium is imported, else as soon as it is."""
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _WaitsForGymnasium())
