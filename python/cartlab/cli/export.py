"""`export FILE`: the ledger as one portable file, without paths and names of this machine; or one goal of a
loop as a table that another tool reads (--as).
"""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.cli.context import Context
from cartlab.errors import BadInput, UsageError
from cartlab.outcome import Outcome
from cartlab.words import counted

# tsvviews.FORMATS beside our own; a test holds them equal.
FORMS = ("ledger", "karpathy", "leo")


@dataclass(frozen=True)
class Request:
    file: Path
    form: str
    goal: str | None
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a file that does not exist yet")
    parser.add_argument(
        "--as",
        dest="form",
        choices=FORMS,
        default="ledger",
        help="ledger: all events (default); karpathy, leo: a goal's rounds as their results.tsv",
    )
    parser.add_argument(
        "--goal", metavar="ID", help="with --as karpathy or leo: the goal, or a part of its id (the newest)"
    )


def translate(space: argparse.Namespace) -> Request:
    if space.goal is not None and space.form == "ledger":
        raise UsageError("--goal names what --as karpathy or --as leo writes", "add one of them")
    return Request(space.file, space.form, space.goal, space.dry_run)


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
    what = f"{counted(len(events), 'event')}"
    out.details = {"events": len(events)}
    if request.form != "ledger":
        data, rows, goal = _table(events, request)
        what, out.details = (
            f"{counted(rows, 'round')} of {goal}",
            {"goal": goal, "rows": rows, "format": request.form},
        )
    elif not request.dry_run:
        data = export_events(events, utc_now(), own_names())
    if request.dry_run:
        out.status, out.text = "planned", [f"would export {what}"]
        return out
    try:
        target.write_bytes(data)
    except OSError as error:
        raise BadInput(
            f"{request.file} could not be written: {error.strerror}", "name another file"
        ) from None
    out.report.outputs = [str(request.file)]
    out.text = [f"exported {what} to {request.file}"]
    return out


def _table(events: list[dict[str, Any]], request: Request) -> tuple[bytes, int, str]:
    """One goal's rounds as the table of another tool: its bytes, its rows, the goal's id."""
    from cartlab.loops import goals, tsv, tsvviews

    known = [one for one in goals.fold(events).values() if (request.goal or "") in one.id and one.tries]
    exact = [one for one in known if one.id == request.goal]
    if not known or (request.goal is not None and len(exact or known) != 1):
        raise BadInput(
            f"expected one goal with rounds{f' called {request.goal}' if request.goal else ''}, found "
            f"{len(known)}",
            "`show` and `serve` name the goals",
        )
    goal = (exact or known)[-1]
    if request.form == "karpathy":
        table = tsvviews.karpathy(goal)
        return tsv.render_karpathy(table).encode(), len(table.rows), goal.id
    other = tsvviews.leo(goal)
    return tsv.render_leo(other).encode(), len(other.rows), goal.id


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
