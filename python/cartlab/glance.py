"""The ledger's views without parsing the ledger: what `next` can answer from in a few milliseconds.

current.json says up to which event it is right; if that is the last event on disk, and every line before it
is whole, it and results.tsv can be believed. Otherwise (a run was killed, a view was edited or deleted, a
byte of the ledger is not what was written) the caller reads the ledger, which rebuilds the views or names
the damage.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS = 5
_GENESIS = b"0" * 64
_MARK = b',"hash":"'


@dataclass(frozen=True)
class Glance:
    """current.json, and the last rows of results.tsv (column name -> cell), oldest first."""

    current: dict[str, Any]
    rows: list[dict[str, str]]


def glance(root: Path, rows: int = ROWS) -> Glance | None:
    """The views if they are up to date and the ledger's chain is whole, else None."""
    try:
        current = json.loads((root / "current.json").read_text(encoding="utf-8"))
        tip = chain_tip(root / "events.jsonl")
        table = (root / "results.tsv").read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return None
    if not isinstance(current, dict) or tip is None:
        return None
    if (current.get("last_seq"), current.get("last_hash")) != tip:
        return None
    header = table[0].split("\t")
    cells = [line.split("\t") for line in table[1:] if line]
    return Glance(current, [dict(zip(header, line, strict=False)) for line in cells[-rows:]])


def chain_tip(path: Path) -> tuple[int, str] | None:
    """(seq, hash) of the last event; None where a line is torn or is not the one that was chained.

    Every byte is hashed, none is parsed: a line is canonical JSON, so that `hash`, `prev` and `seq` stand
    side by side in it. A thousand blocks take some ten milliseconds.
    """
    prev, seq = _GENESIS, 0
    with path.open("rb") as file:
        for line in file:
            at = line.rfind(_MARK)
            start = at + len(_MARK)
            stated, rest = line[start : start + 64], line[start + 64 :]
            if not rest.startswith(b'","prev":"%b","seq":%d,' % (prev, seq + 1)):
                return None
            if hashlib.sha256(line[:at] + rest[1:].removesuffix(b"\n")).hexdigest().encode() != stated:
                return None
            if not line.endswith(b"\n"):
                return None
            prev, seq = stated, seq + 1
    return seq, prev.decode()
