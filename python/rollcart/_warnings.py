"""Warnings that point at the line that called, however deep in this package or in Gymnasium they arise."""

from __future__ import annotations

import sys
import warnings

_OURS = ("rollcart", "gymnasium")


def warn(text: str) -> None:
    """Warns, naming the innermost line that is of neither package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
