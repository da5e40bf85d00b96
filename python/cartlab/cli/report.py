"""`report [--session] [--format html|md|json] [--output FILE]`: what the ledger shows and what comes next.

Without --session a page (html, into the root), or the same numbers as Markdown or JSON on stdout. With
--session the session's facts, as Markdown unless told otherwise. A page holds no path and no name of this
machine, so that it can be handed on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartlab.cli.context import Context
from cartlab.errors import BadInput, CartlabError, UsageError
from cartlab.outcome import Outcome

if TYPE_CHECKING:
    from cartlab.ledger import Ledger
    from cartlab.report import Page
    from cartlab.round import Action

FORMATS = ("html", "md", "json")
PAGE = "report.html"
STDOUT = "-"
# So many research loops are named at most.
LOOPS = 5


@dataclass(frozen=True)
class Request:
    session: bool
    format: str
    output: str | None
    dry_run: bool = False


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", action="store_true", help="the session's facts alone (md or json)")
    parser.add_argument(
        "--format", choices=FORMATS, help="html: one file that needs no network (default; with --session: md)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help=f"where to write; - is stdout (default: html into the root as {PAGE}, all else to stdout)",
    )


def translate(space: argparse.Namespace) -> Request:
    form = space.format or ("md" if space.session else "html")
    if space.session and form == "html":
        raise UsageError(
            "expected --session as md or json, found html",
            hint="leave --session out: the page holds the session's facts too",
        )
    return Request(space.session, form, space.output, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.cli.next import proposals
    from cartlab.ledger import Ledger

    ledger = Ledger.open(context.root.path, mend=False)
    for report in ledger.reports:
        context.talk.warn(report)
    out = context.answer()
    out.ledger = str(context.root.path / "events.jsonl")
    out.report.inputs = ["events.jsonl"]
    place = _place(context, request)
    if place is not None:
        _refuse_others(place)
    if request.dry_run:
        out.status, out.text = "planned", [f"would write {place or f'{request.format} to stdout'}"]
        return out
    # A document for a program or a browser is all that stdout holds.
    context.talk.document = place is None and request.format != "md"
    if request.session:
        # The proposals come first: they may record what a killed command left of the round.
        proposed = proposals(context)
        body, lines = _session(context, ledger, ledger.events(), proposed)
        if proposed:
            out.report.next = context.line(proposed[0].command)
        out.details = body
        text = "\n".join(lines) if request.format == "md" else _json(body)
    else:
        page = _page(context, ledger)
        if page.next:
            out.report.next = str(page.next[0]["command"])
        out.details, text = _body(page, request.format)
    if place is None:
        out.text = text.split("\n")
        return out
    _write(place, context.talk.own(text) + "\n" * (not text.endswith("\n")))
    out.report.outputs = [request.output or PAGE]
    out.details = {**out.details, "file": str(place)}
    out.text = [f"written: {place}"]
    return out


def _place(context: Context, request: Request) -> Path | None:
    """The file to write; None for stdout."""
    if request.output == STDOUT or (request.output is None and request.format != "html"):
        return None
    return context.root.path / PAGE if request.output is None else context.cwd / request.output


def _body(page: Page, form: str) -> tuple[dict[str, Any], str]:
    """What --json answers, and the text."""
    from cartlab.report import html_page, markdown_lines

    if form == "html":
        return {"candidates": len(page.candidates), "attempts": page.attempts}, html_page(page)
    body = page.to_json()
    return body, _json(body) if form == "json" else "\n".join(markdown_lines(page))


def _json(body: Mapping[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False)


def _refuse_others(place: Path) -> None:
    """BadInput for what is there and was not written by this command."""
    if place.is_dir() or (place.exists() and not _is_ours(place)):
        raise BadInput(
            f"expected a new file or an earlier report, found that {place} exists and is none",
            "name another file",
        )


def _write(place: Path, text: str) -> None:
    from cartlab.artefacts import write_whole

    try:
        write_whole(place, text)
    except OSError as error:
        raise BadInput(f"{place} could not be written: {error.strerror}", "name another file") from None


def _is_ours(place: Path) -> bool:
    """Did this command write it: only that may be written over."""
    from cartlab.report.facts import SCHEMA

    try:
        with place.open("rb") as file:
            return SCHEMA.encode() in file.read(1024)
    except OSError:
        return False


def after_completion(context: Context, out: Outcome) -> Outcome:
    """The answer with the session's report below it, where it completed its round; else the answer."""
    if ((out.details or {}).get("round") or {}).get("state") == "complete":
        from cartlab.cli.next import proposals
        from cartlab.ledger import Ledger

        proposed = proposals(context)
        ledger = Ledger.open(context.root.path, mend=False)
        body, lines = _session(context, ledger, ledger.events(), proposed)
        out.text += lines
        out.details = {**(out.details or {}), "session": body}
    return out


def _session(
    context: Context, ledger: Ledger, events: Sequence[dict[str, Any]], proposed: Sequence[Action]
) -> tuple[dict[str, Any], list[str]]:
    """The body of `report --session` and its lines."""
    from cartlab.round import fold
    from cartlab.round.session import SessionFacts, session_lines, session_report
    from cartlab.sources import branch, changed, dirty, resolve

    repo = context.repo
    found, head = fold(events), resolve(repo, "HEAD")
    checks = tuple(
        e["body"]["text"] for e in events if e["type"] == "note" and e["body"].get("kind") == "checks"
    )
    try:
        changed_files = tuple(changed(repo, found.baseline_commit, head.commit)) if found else ()
    except CartlabError as error:  # a baseline that is gone pauses the round: the rest is told all the same
        context.talk.warn(f"changed files are not known: {error}")
        changed_files = ()
    facts = SessionFacts(
        branch=branch(repo),
        head_commit=head.commit,
        changed_files=changed_files,
        dirty_files=tuple(dirty(repo)),
        left_behind=tuple(one.id for one in ledger.abandoned()),
        checks=checks,
    )
    body = session_report(events, facts, proposed)
    return body, session_lines(body)


def _page(context: Context, ledger: Ledger) -> Page:
    """The page's facts, free of paths and names before anything is made of them."""
    from cartlab.cli.export import own_names
    from cartlab.cli.next import actions_now, proposals, seen_in
    from cartlab.exchange import redact
    from cartlab.ledger.store import utc_now
    from cartlab.pipeline.reporting import Surroundings, instructions_of, page_of
    from cartlab.sources import branch

    root, names = context.root.path, own_names()
    remarks: list[str] = []
    proposed: list[dict[str, Any]] = []
    session: tuple[dict[str, Any], list[str]] = ({}, [])
    # What the repository cannot answer now (no commit, a configuration that does not load) costs its own
    # part of the page, not the page.
    try:
        seen = seen_in(ledger.events()) if (root / "events.jsonl").exists() else None
        proposed = [{**one, "command": context.line(one["command"])} for one in actions_now(context, seen)]
    except CartlabError as error:
        remarks.append(f"What to do next is not known: {error}")
    events = [{**event, "body": redact(event["body"], names)} for event in ledger.events()]
    try:
        session = _session(context, ledger, events, proposals(context))
    except CartlabError as error:
        remarks.append(f"The repository does not answer: {error}")
    remarks += _loops(context, ledger.events())
    around = Surroundings(
        root=root.name,
        project=_project(context),
        written_at=utc_now(),
        host_class=context.lab.host_class(),
        branch=branch(context.repo),
        commit=session[0].get("head_commit"),
        next=proposed,
        session=session[0],
        session_text=session[1],
        remarks=[*remarks, *ledger.reports],
    )
    cleaned = Surroundings(**redact(around._asdict(), names))
    return page_of(events, cleaned, lambda attempt: instructions_of(root, attempt))


def _loops(context: Context, events: Sequence[dict[str, Any]]) -> list[str]:
    """A remark that names the research loops of the root, which this page does not show."""
    from cartlab.cli.status import loops_of

    found = loops_of(events)
    if not found:
        return []
    named = "; ".join(
        f"{one['goal']} ({one['loop']}, {one['state'].replace('_', ' ')}, best {one['best']})"
        for one in found[-LOOPS:]
    )
    more = f"; and {len(found) - LOOPS} before them" if len(found) > LOOPS else ""
    return [
        f"This page is about speed. The root also holds research loops: {named}{more}. "
        f"`{context.line('show')}` tells about the newest one, `{context.line('serve')}` shows them all."
    ]


def _project(context: Context) -> str:
    try:
        return str(context.lab.load_config(context.repo).project)
    except CartlabError:
        return context.repo.name
