"""`export FILE`: the ledger as one portable file, without paths and names of this machine."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from pathlib import Path

from cartlab.cli.context import Context
from cartlab.errors import BadInput
from cartlab.outcome import Outcome


@dataclass(frozen=True)
class Request:
    file: Path
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a file that does not exist yet")


def translate(space: argparse.Namespace) -> Request:
    return Request(space.file, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.exchange import export_events
    from cartlab.ledger import Ledger
    from cartlab.ledger.store import utc_now

    root, target = context.root.path, context.cwd / request.file
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    out.report.inputs = ["events.jsonl"]
    if target.exists():
        raise BadInput(f"expected a new file, found that {request.file} exists", "name another one")
    events = Ledger.open(root, mend=False).events()
    if request.dry_run:
        out.status, out.text = "planned", [f"would export {len(events)} events"]
        return out
    try:
        target.write_bytes(export_events(events, utc_now(), own_names()))
    except OSError as error:
        raise BadInput(
            f"{request.file} could not be written: {error.strerror}", "name another file"
        ) from None
    out.report.outputs = [str(request.file)]
    out.details = {"events": len(events)}
    out.text = [f"exported {len(events)} events to {request.file}"]
    return out


# Names that every machine has: they give nothing away, and hiding them would garble texts.
COMMON_NAMES = ("root", "user", "localhost")


def own_names() -> list[str]:
    """Words of this machine that must not leave it: its name and its user's."""
    import getpass
    import socket

    names = [socket.gethostname()]
    # A user id without an entry in the system's table has no name to hide.
    with contextlib.suppress(KeyError, OSError):
        names.append(getpass.getuser())
    return [name for name in names if name not in COMMON_NAMES]
