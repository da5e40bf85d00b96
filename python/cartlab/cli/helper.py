"""`autoresearch_helper.py`: the journal document's helper, with the flags that its users' agents type.

A drop-in over a journal session. What is typed as a metric is compared with what the harness measures of the
files in this checkout, which are read and never written; the file that `--jsonl` names is the session's view
and is written again after each record. A file without a session is only read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from cartlab.cli import loopdesk, streams
from cartlab.cli.context import Context
from cartlab.cli.options import number
from cartlab.cli.talk import Talk
from cartlab.errors import BadInput, CartlabError

PROG = "autoresearch_helper.py"
NO_CONFIG = 1


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 also for a discard, as in the document's tool."""
    streams.prepare()
    return streams.ended(_run(argv))


def _run(argv: list[str] | None) -> int:
    try:
        space = _parser().parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    with Talk(False, PROG) as talk:
        context = Context(command=space.verb, phase="record", program=PROG, talk=talk)
        try:
            for line in _VERBS[space.verb](context, space, (context.cwd / space.jsonl).resolve()):
                streams.put(line, sys.stdout)
        except CartlabError as error:
            talk.warn(f"error: {error.message}" + (f"\n  try: {error.hint}" if error.hint else ""))
            return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG, description="a journal of experiments, measured by the harness"
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="init|log|evaluate|summary|status")
    rows = {name: verbs.add_parser(name) for name in _VERBS}
    for row in rows.values():
        row.add_argument("--jsonl", required=True, metavar="FILE", help="autoresearch.jsonl")
    init, log, evaluate = rows["init"], rows["log"], rows["evaluate"]
    init.add_argument("--name", required=True, help="the session's name")
    init.add_argument("--metric-name", required=True, help="as in METRIC NAME=1.5")
    init.add_argument("--metric-unit", default="", help="its unit")
    init.add_argument("--direction", choices=("lower", "higher"), default="lower", help="which is better")
    init.add_argument("--approve", default="", metavar="REASON", help="make a session branch; recorded")
    log.add_argument("--commit", default="", help="ignored: the harness knows what it measured")
    log.add_argument("--metric", type=number, required=True, help="the value that was seen")
    log.add_argument("--status", required=True, choices=("keep", "discard", "crash", "checks_failed"))
    log.add_argument("--description", required=True, help="what was tried")
    log.add_argument("--direction", choices=("lower", "higher"), help="ignored: the session has one")
    log.add_argument("--metrics", metavar="JSON", help="ignored: METRIC lines say them")
    log.add_argument("--asi", metavar="JSON", help='what was learned, with "hypothesis"')
    evaluate.add_argument("--metric", type=number, required=True, help="the value to compare")
    evaluate.add_argument("--direction", choices=("lower", "higher"), help="instead of the session's")
    return parser


def _desk(context: Context, path: Path) -> Any:
    """The session whose file this is, or None."""
    from cartlab.ledger import Ledger
    from cartlab.loops import goals
    from cartlab.loops.desk import Desk
    from cartlab.loops.journal import files, session

    if not (context.root.path / "events.jsonl").is_file():
        return None
    ledger = Ledger.open(context.root.path)
    for goal in reversed(list(goals.fold(ledger.events()).values())):
        if goal.loop != session.LOOP:
            continue
        desk = Desk(context.repo, context.root.path, ledger, goal.id, context.talk, _options(context))
        places = [str(files.place_of(desk, goal) / session.LINES), *(goal.body.get("copies") or ())]
        if str(path) in places:
            return desk
    return None


def _options(context: Context) -> Any:
    return loopdesk.options(context, loopdesk.Flags("greedy", 3, "auto", (), 5, 5, "en"))


def _init(context: Context, space: argparse.Namespace, path: Path) -> list[str]:
    from cartlab.loops.journal import opening, session

    known = _desk(context, path)
    terms = session.Terms(
        name=session.terms_of(known.goal()).name if known is not None else space.name,
        metric=space.metric_name,
        unit=space.metric_unit,
        direction=space.direction,
        script=_beside(path, session.SCRIPT),
        checks=_beside(path, session.CHECKS),
    )
    before = path.read_text(encoding="utf-8", errors="replace") if known is None and path.is_file() else ""
    wish = opening.Wish(
        terms, approve=space.approve, branchless=not space.approve, before=before, copies=(str(path),)
    )
    ledger = loopdesk.open_ledger(context)
    desk = opening.init(context.repo, context.root.path, ledger, context.talk, _options(context), wish)
    ledger.project()
    return [
        f"initialised {space.name}: {space.metric_name}, {space.direction} is better (segment "
        f"{session.journal_of(ledger.events(), desk.goal_id).segment})"
    ]


def _beside(path: Path, name: str) -> str:
    script = path.with_name(name)
    return script.read_text(encoding="utf-8", errors="replace") if script.is_file() else ""


def _log(context: Context, space: argparse.Namespace, path: Path) -> list[str]:
    from cartlab.loops.journal import recording, session
    from cartlab.sources import git

    desk = _desk(context, path)
    if desk is None:
        raise BadInput(f"no session has the file {path}", f"{PROG} init --jsonl {path.name} --name TEXT ...")
    entry = recording.Entry(
        description=space.description,
        asi=_object(context, "--asi", space.asi),
        typed_metric=space.metric,
        typed_status=space.status,
        source=git.top(path.parent),
    )
    _object(context, "--metrics", space.metrics)
    goal = desk.goal()
    base = session.baseline_of(goal)
    if base is not None and not recording.handed_in(desk, goal, git.top(path.parent)):
        result = session.journal_of(desk.ledger.events(), goal.id).results[-1]
        return [
            f"these files are those of experiment #{result.run}; nothing new to record",
            *_typed(space, base),
        ]
    one = recording.log(desk, entry)
    desk.ledger.project()
    result = session.journal_of(desk.ledger.events(), goal.id).results[-1]
    decision = one.decision or {}
    return [
        f"#{result.run} {result.status}: {decision.get('text') or 'no value'} ({decision['insight']})",
        *_typed(space, one),
        *recording.hints(desk.goal(), one),
    ]


def _typed(space: argparse.Namespace, one: Any) -> list[str]:
    value = (one.decision or {}).get("value")
    if value is None:
        return []
    return [f"typed {space.metric:.9g}, measured {value:.9g}: difference {value - space.metric:+.6g}"]


def _object(context: Context, flag: str, text: str | None) -> dict[str, Any]:
    """A JSON object; what is none is warned of and left out, as in the document's tool."""
    if not text:
        return {}
    try:
        body = json.loads(text)
    except ValueError as error:
        context.talk.warn(f"warning: {flag} is no JSON and is left out: {error}")
        return {}
    if not isinstance(body, dict):
        context.talk.warn(f"warning: {flag} is no JSON object and is left out")
        return {}
    return body


def _read(context: Context, path: Path) -> Any:
    from cartlab.loops import journal_file
    from cartlab.loops.journal import session

    desk = _desk(context, path)
    if desk is not None:
        return session.journal_of(desk.ledger.events(), desk.goal_id)
    if not path.is_file():
        raise BadInput(f"expected a journal at {path}, found nothing", f"{PROG} init", exit_code=NO_CONFIG)
    found = journal_file.parse(path.read_text(encoding="utf-8", errors="replace"))
    if found.config is None:
        raise BadInput("the journal has no config line", f"{PROG} init", exit_code=NO_CONFIG)
    return found


def _evaluate(context: Context, space: argparse.Namespace, path: Path) -> list[str]:
    from cartlab.loops import journal_file

    found = journal_file.evaluate(_read(context, path), space.metric, space.direction)
    config = _read(context, path).config
    lines = [f"decision: {found.decision}"]
    if found.delta is not None:
        lines.append(
            f"delta: {found.delta:+.9g}" + ("" if found.percent is None else f" ({found.percent:+.2f}%)")
        )
    lines.append(f"direction: {space.direction or config.direction}")
    sure = "n/a" if found.confidence is None else f"{found.confidence:.2f}x"
    lines.append(f"confidence: {sure} ({found.label})")
    return lines


def _status(context: Context, space: argparse.Namespace, path: Path) -> list[str]:
    from cartlab.loops import journal_file

    return [json.dumps(journal_file.status(_read(context, path)), indent=2, ensure_ascii=False)]


def _summary(context: Context, space: argparse.Namespace, path: Path) -> list[str]:
    from cartlab.loops import journal_file

    return journal_file.summary(_read(context, path))


_VERBS = {"init": _init, "log": _log, "evaluate": _evaluate, "summary": _summary, "status": _status}
