"""Libraries that are not installed with rollcart, and the error that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from rollcart.errors import ConfigError


def need(module: str, extra: str, purpose: str) -> Any:
    """Imports a module of an extra; ConfigError that says what to install where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{purpose} needs the package {module.split('.')[0].replace('_', '-')}, which cannot be imported "
            f"({error}); install it with: pip install 'rollcart[{extra}]'"
        ) from None
