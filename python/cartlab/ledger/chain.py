"""The form of an event line and of the chain: bytes to events and back, without touching a disk.

Contract: SPECS.md section 6. A line is the canonical JSON of {v, seq, time, type, attempt, body,
prev, hash} and a newline; hash = sha256 of the same JSON without `hash`; the first prev is 64 zeros; seq
starts at 1. Because a line is canonical, the hashed bytes are the line's own bytes with one field cut out:
any edited byte shows, without parsing.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from cartlab.errors import DamagedLedger
from cartlab.model import canonical_json, parsed_json

Event = dict[str, Any]

GENESIS = "0" * 64
TYPES = (
    "attempt_started",
    "block",
    "attempt_finished",
    "decision",
    "round",
    "note",
    "import",
    "repair",
    "approval",
    # From the research loops.
    "goal",
    "proposal",
    "measurement",
    "lever",
    "stack",
)
_FIELDS = {"v", "seq", "time", "type", "attempt", "body", "prev", "hash"}
_MARK = b',"hash":"'


class Tip(NamedTuple):
    """Where a chain ends: the last event's seq and hash, and the bytes and lines that lead there."""

    seq: int = 0
    hash: str = GENESIS
    size: int = 0
    lines: int = 0


class Reading(NamedTuple):
    """Verified events after a tip, the new tip, and the bytes of a torn last line (empty if there is
    none).
    """

    events: list[Event]
    tip: Tip
    torn: bytes


def encode(tip: Tip, time: str, kind: str, attempt: str | None, body: dict[str, Any]) -> tuple[bytes, Event]:
    """The next event's line and the event. ValueError for an unknown type or a body that JSON cannot hold."""
    if kind not in TYPES:
        raise ValueError(f"expected an event type of {', '.join(TYPES)}; found {kind!r}")
    event: Event = {
        "v": 1,
        "seq": tip.seq + 1,
        "time": time,
        "type": kind,
        "attempt": attempt,
        "body": body,
        "prev": tip.hash,
    }
    event["hash"] = hashlib.sha256(canonical_json(event)).hexdigest()
    line = canonical_json(event) + b"\n"
    # What the writer returns is what a reader will see: tuples are lists, keys are strings.
    return line, json.loads(line)


def read(data: bytes, tip: Tip = Tip(), path: str = "events.jsonl") -> Reading:  # noqa: B008
    """Verify and parse the lines in `data`, which follow `tip`.

    A last line without its newline is torn: no append that returned left it. It is given back, not an
    error. Any other damage raises DamagedLedger, which names the line.
    """
    end = data.rfind(b"\n") + 1
    events = []
    for line in data[:end].split(b"\n")[:-1]:
        event = _verified(line, tip, path)
        tip = Tip(event["seq"], event["hash"], tip.size + len(line) + 1, tip.lines + 1)
        events.append(event)
    return Reading(events, tip, data[end:])


def _verified(line: bytes, tip: Tip, path: str) -> Event:
    at = line.rfind(_MARK)
    start = at + len(_MARK)
    stated, rest = line[start : start + 64], line[start + 64 :]
    if not rest.startswith(b'",'):
        raise _damaged(path, tip, "expected an event with its hash, found something else")
    # What remains without `,"hash":"<64 hex>"` is what the hash was taken of.
    if hashlib.sha256(line[:at] + rest[1:]).hexdigest().encode() != stated:
        raise _damaged(path, tip, "the line's hash is not that of its content")
    try:
        event = parsed_json(line)
    except ValueError as error:
        raise _damaged(path, tip, f"no JSON: {error}") from None
    if not isinstance(event, dict) or set(event) != _FIELDS or event["v"] != 1 or event["type"] not in TYPES:
        raise _damaged(path, tip, "expected an event of version 1 with its eight fields")
    if event["seq"] != tip.seq + 1 or event["prev"] != tip.hash:
        raise _damaged(
            path, tip, f"expected event {tip.seq + 1} after {tip.hash[:12]}, found event {event['seq']}"
        )
    return event


def _damaged(path: str, tip: Tip, what: str) -> DamagedLedger:
    line = tip.lines + 1
    return DamagedLedger(
        f"{path} line {line}: {what}",
        "restore the file from a copy, or set this line and all after it aside with `init --repair`",
        details={"line": line, "good_bytes": tip.size},
    )
