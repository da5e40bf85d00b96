"""Who may ask the live page, and for what: this machine, with GET or HEAD, for one of a few pages.

The address must be a loopback one, and the Host that a browser names must be one too: a page of the internet
whose name resolves to this machine gets nothing. No path of a request ever becomes a path of a file; names
are looked up among those of the ledger. Answers forbid script, frames and caches, and ask the browser to come
again after some seconds.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
import threading
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cartlab.errors import CartlabError, UsageError
from cartlab.ledger import Event, Ledger
from cartlab.loops.live import facts, page

HTML, JSON = "text/html; charset=utf-8", "application/json"
_NAME = re.compile(r"/(goal|attempt)/([^/]+)")


def loopback(host: str) -> str:
    """The address to listen on; UsageError for one that others could reach."""
    found = "127.0.0.1" if host == "localhost" else host.strip("[]")
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(found).is_loopback:
            return found
    raise UsageError(
        f"serve listens on this machine alone; found --host {host}",
        "use 127.0.0.1 or ::1; for another machine, forward the port over ssh",
    )


class Pages:
    """The pages of one root. report: makes the speed report's page; every: seconds between two loads."""

    def __init__(self, root: Path, report: Callable[[], str], every: int) -> None:
        self.root, self.report, self.every = root, report, every
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._events: list[Event] = []
        self._ledger: Ledger | None = None

    def events(self) -> list[Event]:
        """The ledger's events, read again only where the file changed."""
        path = self.root / "events.jsonl"
        with self._lock:
            now = (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None
            if now is None:
                self._events = []
            elif now != self._seen:
                self._events = self._grown()
            self._seen = now
            return self._events

    def _grown(self) -> list[Event]:
        """What was appended since is read alone; a ledger that does not go on from there is opened anew."""
        if self._ledger is not None:
            with contextlib.suppress(CartlabError):
                return self._ledger.events()
        self._ledger = Ledger.open(self.root, mend=False)
        return self._ledger.events()

    def answer(self, path: str) -> tuple[HTTPStatus, str, str]:
        """(status, kind, body) of a path."""
        try:
            return self._answer(path)
        except CartlabError as error:
            return HTTPStatus.INTERNAL_SERVER_ERROR, HTML, page.message("Not readable", str(error))

    def _answer(self, path: str) -> tuple[HTTPStatus, str, str]:
        ok = HTTPStatus.OK
        if path == "/":
            return ok, HTML, page.overview(facts.standings(self.events()))
        if path == "/ledger":
            return ok, HTML, page.ledger_page(self.events())
        if path == "/report":
            with self._lock:
                return ok, HTML, self.report()
        if path == "/data.json":
            return ok, JSON, self.data()
        if hit := _NAME.fullmatch(path):
            name = unquote(hit[2])
            if hit[1] == "goal":
                goals = [one for one in facts.standings(self.events()) if one.id == name]
                if goals:
                    return ok, HTML, page.goal_page(goals[0])
            elif (found := facts.detail(self.events(), self.root, name)) is not None:
                return ok, HTML, page.attempt_page(found)
        words = "There is no such page. The first one lists all goals and their attempts."
        return HTTPStatus.NOT_FOUND, HTML, page.message("Not found", words)

    def data(self) -> str:
        """The goals as JSON, for programs."""
        body: dict[str, Any] = {"goals": [asdict(one) for one in facts.standings(self.events())]}
        body["events"] = len(self.events())
        return json.dumps(body, ensure_ascii=False)


class Server(ThreadingHTTPServer):
    """Threads, so that a browser that keeps a connection open blocks nobody."""

    daemon_threads = True
    # A second server on a port that is in use is an error, not a silent sharing.
    allow_reuse_port = False

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        if ":" in host:
            import socket

            self.address_family = socket.AF_INET6
        self.pages = pages
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        """The page's address."""
        host, port = self.server_address[:2]
        text = host.decode() if isinstance(host, bytes) else str(host)
        return f"http://{f'[{text}]' if ':' in text else text}:{port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "cartlab"
    sys_version = ""
    timeout = 30.0

    def do_GET(self) -> None:
        """A page."""
        self._send(*self._page())

    def do_HEAD(self) -> None:
        """Its head."""
        self._send(*self._page(), empty=True)

    def _page(self) -> tuple[HTTPStatus, str, str]:
        if not self._is_ours():
            words = "This page is for browsers of this machine, by a loopback address."
            return HTTPStatus.FORBIDDEN, HTML, page.message("Refused", words)
        try:
            path = urlsplit(self.path).path
        except ValueError:
            path = ""
        return self.server.pages.answer(path)

    def _is_ours(self) -> bool:
        try:
            loopback(urlsplit(f"//{self.headers.get('Host', '')}").hostname or "")
        except (UsageError, ValueError):
            return False
        return True

    def _send(self, status: HTTPStatus, kind: str, body: str, empty: bool = False) -> None:
        data = body.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(data))),
            ("Content-Security-Policy", f"{page.POLICY}; frame-ancestors 'none'; base-uri 'none'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        if kind == HTML and status == HTTPStatus.OK and self.server.pages.every:
            self.send_header("Refresh", str(self.server.pages.every))
        self.end_headers()
        if not empty:
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Every other method and every broken request: no body of the standard library's."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self.close_connection = True
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a page that comes again every few seconds would fill the terminal."""
