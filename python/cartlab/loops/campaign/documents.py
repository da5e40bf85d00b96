"""The campaign's documents, made again from the ledger."""

from __future__ import annotations

from cartlab.loops.desk import Desk


def render(desk: Desk) -> None:
    """Write what is not as the ledger has it."""
