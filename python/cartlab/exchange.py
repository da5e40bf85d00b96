"""`export` and `import`: a ledger that can be handed on, and results of another one taken in as what they
are.

Contract: SPECS.md section 6. An export is a file of lines: a header, then the events without paths
and names of this machine, chained anew, so that `verify` derives every decision again from it. The header
has the tip of the chain it was made from. What is imported is marked, has rows, and is never evidence:
blocks of another machine continue nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from cartlab.errors import BadInput
from cartlab.ledger import Event, Ledger, attempts_of
from cartlab.ledger.chain import Tip, encode
from cartlab.ledger.rows import row_of
from cartlab.model import Json, canonical_json, digest_of, parsed_json
from cartlab.verify import Report, verify_events

FORMAT = "cartlab-export"
VERSION = 1
HIDDEN = "<hidden>"

# Fields that only ever hold a place, a process or a person.
_PRIVATE_KEYS = {"argv", "cwd", "env", "home", "host", "hostname", "path", "pid", "user", "username"}
_PRIVATE_ENDINGS = ("_path", "_dir", "_pid")
# An absolute path in a text: POSIX with two parts or more, a home, a drive letter, a share.
_PATHS = re.compile(
    r"(?<![\w./<])(?:~?/[\w.+@-]+(?:/[\w.+@-]*)+|~/[\w.+@-]+|[A-Za-z]:[\\/][^\s'\"]*|\\\\[^\s'\"]+)"
)


def redact(value: Any, names: Sequence[str] = ()) -> Any:
    """The value without absolute paths, private fields and these names (host, user)."""
    if isinstance(value, dict):
        return {
            key: redact(item, names)
            for key, item in value.items()
            if key not in _PRIVATE_KEYS and not key.endswith(_PRIVATE_ENDINGS)
        }
    if isinstance(value, (list, tuple)):
        return [redact(item, names) for item in value]
    if not isinstance(value, str):
        return value
    text = _PATHS.sub(HIDDEN, value)
    for name in names:
        if name:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", HIDDEN, text)
    return text


def export_events(events: Sequence[Event], exported_at: str, names: Sequence[str] = ()) -> bytes:
    """The file's bytes. names: words of this machine that must not leave it, besides paths."""
    last = events[-1] if events else {"seq": 0, "hash": Tip().hash}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": exported_at,
        "origin_seq": last["seq"],
        "origin_tip": last["hash"],
    }
    lines = [canonical_json(header) + b"\n"]
    tip = Tip()
    for event in events:
        line, made = encode(tip, event["time"], event["type"], event["attempt"], redact(event["body"], names))
        tip = Tip(made["seq"], made["hash"])
        lines.append(line)
    return b"".join(lines)


class Export(NamedTuple):
    """A file that was read: its header, its events, and what verify says of them."""

    header: Json
    events: list[Event]
    report: Report


def read_export(data: bytes) -> Export:
    """Read and verify an export. BadInput where it is none, or where a decision in it does not follow from
    its slices.
    """
    head, _, rest = data.partition(b"\n")
    try:
        header = parsed_json(head)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BadInput("expected an export of cartlab, found another file", "make one with `export`")
    if header.get("version") != VERSION:
        raise BadInput(
            f"expected export version {VERSION}, found {header.get('version')}", "use a newer cartlab"
        )
    report = verify_events(rest)
    if not report.holds:
        first = report.findings[0]
        raise BadInput(
            f"the export does not verify: line {first.line + 1}, {first.attempt or 'chain'}: {first.what}",
            "export it again from its ledger",
        )
    return Export(header, [json.loads(line) for line in rest.splitlines()], report)


def import_export(ledger: Ledger, data: bytes) -> list[str]:
    """Take in the finished, recorded attempts of an export, each as one `import` event; returns their new
    names.

    An attempt that was imported before is left out, so importing twice changes nothing.
    """
    export = read_export(data)
    known = {event["body"].get("origin") for event in ledger.events() if event["type"] == "import"}
    attempts = attempts_of(export.events)
    taken = []
    for attempt in attempts.values():
        if attempt.finished is None or not attempt.plan.recorded:
            continue
        origin = digest_of([attempt.id, attempt.started, attempt.plan.to_json()])
        if origin in known:
            continue
        name = f"imported-{origin[:8]}-{attempt.id}"
        body = {
            "source": f"{attempt.id} of ledger {export.header['origin_tip'][:12]}",
            "origin": origin,
            "origin_tip": export.header["origin_tip"],
            "status": attempt.status,
            "row": row_of(attempt, attempts),
            "plan": attempt.plan.to_json(),
            "decision": dict(attempt.decision) if attempt.decision is not None else None,
        }
        ledger.append("import", name, body)
        taken.append(name)
    return taken
