"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 run`, `2 runs`. many: the plural where it is not the singular with an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
