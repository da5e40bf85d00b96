"""Builds by a line of shell: what sources needs of a configuration, without one and without a compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

NOTHING: Mapping[str, str] = MappingProxyType({})
BUILD = "cp native $CARTLAB_BUILD_DIR; echo built"


@dataclass(frozen=True)
class Recipe:
    """config.BuildSpec's part; what is built is the file `native` of the tree."""

    command: str = BUILD
    artifact: str = "native"
    env: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Settings:
    """config.Config's part."""

    path: Path | None
    build: Recipe = Recipe()
    layout_command: str | None = None
