"""`serve`: a live page of the loops and the ledger, for a browser of this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import errno
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import whole
from cartlab.errors import BadRoot, UsageError
from cartlab.outcome import Outcome

PORT = 8477


@dataclass(frozen=True)
class Request:
    host: str
    port: int
    every: int
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="a loopback address; all others are refused"
    )
    parser.add_argument(
        "--port", type=whole, default=PORT, metavar="N", help=f"the port; 0 takes any that is free ({PORT})"
    )
    parser.add_argument(
        "--every", type=whole, default=3, metavar="S", help="seconds until the page loads again; 0: never (3)"
    )


def translate(space: argparse.Namespace) -> Request:
    from cartlab.loops.live.server import loopback

    if not 0 <= space.port <= 65535:
        raise UsageError(f"expected --port of 0 to 65535, found {space.port}")
    if space.every < 0:
        raise UsageError(f"expected --every of 0 or more, found {space.every}")
    return Request(loopback(space.host), space.port, space.every, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops.live.server import Pages, Server

    root = context.root.path
    if not root.is_dir():
        raise BadRoot(f"expected a state folder, found nothing at {root}", "run `init` first")
    out = context.answer()
    out.ledger = str(root / "events.jsonl")
    if request.dry_run:
        out.status, out.text = "planned", [f"would serve {root} on {request.host}, port {request.port}"]
        return out
    try:
        server = Server(request.host, request.port, Pages(root, lambda: _report(context), request.every))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
            raise
        raise UsageError(
            f"port {request.port} of {request.host} cannot be used: {error.strerror}",
            "--port 0 takes any that is free",
        ) from None
    out.details = {"address": server.address, "root": str(root), "every": request.every}
    if context.talk.as_json:
        # The object comes first: whoever reads it needs the address while the server runs.
        context.talk.finish(out)
    context.talk.say(f"serving {server.address} (this machine only, read-only; Ctrl-C ends it)")
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        context.talk.say("stopped")
    finally:
        server.server_close()
    return out


def _report(context: Context) -> str:
    """The speed report as it stands now. What would come next is left out: to propose it may record."""
    from cartlab.cli.export import own_names
    from cartlab.exchange import redact
    from cartlab.ledger import Ledger
    from cartlab.ledger.store import utc_now
    from cartlab.pipeline.reporting import Surroundings, instructions_of, page_of
    from cartlab.report import html_page
    from cartlab.sources import branch

    root, names = context.root.path, own_names()
    ledger = Ledger.open(root, mend=False)
    around = Surroundings(
        root=root.name,
        project=context.repo.name,
        written_at=utc_now(),
        host_class=context.lab.host_class(),
        branch=branch(context.repo),
        commit=None,
        next=[],
        session={},
        session_text=[],
        remarks=list(ledger.reports),
    )
    events = [{**event, "body": redact(event["body"], names)} for event in ledger.events()]
    cleaned = Surroundings(**redact(around._asdict(), names))
    return html_page(page_of(events, cleaned, lambda attempt: instructions_of(root, attempt)))
