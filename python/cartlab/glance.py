"""The ledger's views without reading the ledger: what `next` can answer from in a few milliseconds.

current.json says up to which event it is right; if that is the last event on disk, it and results.tsv can
be believed. Otherwise (a run was killed, a view was edited or deleted) the caller reads the ledger and
rebuilds them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Lines hold one block at most: some tens of kilobytes. A longer last line only costs the fast path.
TAIL_BYTES = 1 << 18


@dataclass(frozen=True)
class Glance:
    """current.json, and the last rows of results.tsv (column name -> cell), oldest first."""

    current: dict[str, Any]
    rows: list[dict[str, str]]


def glance(root: Path, rows: int = 5) -> Glance | None:
    """The views if they are up to date, else None."""
    try:
        current = json.loads((root / "current.json").read_text(encoding="utf-8"))
        last = _last_line(root / "events.jsonl")
        table = (root / "results.tsv").read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return None
    if not isinstance(current, dict):
        return None
    if last is None:
        return None
    if last and (current.get("last_seq"), current.get("last_hash")) != (last.get("seq"), last.get("hash")):
        return None
    if not last and current.get("last_seq") != 0:
        return None
    header = table[0].split("\t")
    cells = [line.split("\t") for line in table[1:] if line]
    return Glance(current, [dict(zip(header, line, strict=False)) for line in cells[-rows:]])


def _last_line(path: Path) -> dict[str, Any] | None:
    """The last event; {} for an empty file; None where the last line is torn or too long to be read this
    way.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return {}
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read()
    if not tail.endswith(b"\n"):
        return None
    start = tail.rfind(b"\n", 0, len(tail) - 1) + 1
    if start == 0 and size > len(tail):
        return None
    found = json.loads(tail[start:])
    return found if isinstance(found, dict) else None
