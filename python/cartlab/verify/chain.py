"""The hash chain, checked the slow way: each line is parsed, written again and hashed.

Source: SPECS.md section 6. The writer's reader cuts the hash out of the line's bytes instead; that
the two agree is the point of having both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

KEYS = ("attempt", "body", "hash", "prev", "seq", "time", "type", "v")


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key stands twice")
    return dict(pairs)


def checked_lines(data: bytes) -> Iterator[tuple[int, dict[str, Any] | None, str]]:
    """(line number, event or None, what is wrong or ""). After a broken line the chain goes on from what it
    states.
    """
    previous, number = "0" * 64, 0
    whole = data.count(b"\n")
    for line_number, line in enumerate(data.split(b"\n"), start=1):
        if not line:
            if line_number <= whole:
                yield line_number, None, "an empty line"
            continue
        if line_number > whole:
            yield line_number, None, "a torn last line"
            continue
        try:
            event = json.loads(line, object_pairs_hook=_no_twice)
        except (ValueError, RecursionError) as error:
            yield line_number, None, f"no JSON: {error}"
            continue
        wrong = _wrong(event, line, previous, number)
        if (
            isinstance(event, dict)
            and isinstance(event.get("seq"), int)
            and isinstance(event.get("hash"), str)
        ):
            previous, number = event["hash"], event["seq"]
        yield line_number, None if wrong else event, wrong


def _wrong(event: Any, line: bytes, previous: str, number: int) -> str:
    if not isinstance(event, dict) or tuple(sorted(event)) != KEYS or event["v"] != 1:
        return "not an event of version 1"
    bare = {key: event[key] for key in KEYS if key != "hash"}
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
    if encode(event).encode() != line:
        return "the line is not in canonical form"
    if hashlib.sha256(encode(bare).encode()).hexdigest() != event["hash"]:
        return "the hash is not that of the content"
    if event["seq"] != number + 1:
        return f"event {event['seq']} follows event {number}"
    return (
        "" if event["prev"] == previous else "the chain is broken: prev is not the hash of the event before"
    )
