"""Libraries that are not installed with rollcart, and the error that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from rollcart.errors import NotInstalled


def need(module: str, extra: str, purpose: str = "this") -> Any:
    """Imports a module of an extra; NotInstalled, which says what to install, where there is none."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise NotInstalled(
            f"{purpose} needs {package}, which is not installed; try: pip install 'rollcart[{extra}]'"
        ) from None
