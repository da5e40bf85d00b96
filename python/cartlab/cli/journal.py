"""`journal status|summary|evaluate FILE`: read a session's autoresearch.jsonl, whoever wrote it.

What these print is advice on numbers that somebody typed; nothing of it is evidence, and nothing is recorded.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import number
from cartlab.errors import BadInput, UsageError
from cartlab.outcome import Outcome

VERBS = ("status", "summary", "evaluate")


@dataclass(frozen=True)
class Request:
    verb: str
    file: str
    metric: float | None
    direction: str | None


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=VERBS, metavar="|".join(VERBS))
    parser.add_argument("--jsonl", default="autoresearch.jsonl", metavar="FILE", help="the session's file")
    parser.add_argument("--metric", type=number, metavar="V", help="evaluate: the value to compare")
    parser.add_argument(
        "--direction",
        choices=("lower", "higher"),
        help="evaluate: which is better, instead of the file's own",
    )


def translate(space: argparse.Namespace) -> Request:
    if (space.verb == "evaluate") != (space.metric is not None):
        raise UsageError("journal evaluate, and it alone, takes a value", "journal evaluate --metric V")
    return Request(space.verb, space.jsonl, space.metric, space.direction)


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops import journal_file

    path = context.cwd / request.file
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(
            f"expected a session's journal at {path}; {error.strerror}", "name it: --jsonl FILE"
        ) from None
    journal = journal_file.parse(text)
    out = context.answer()
    out.report.inputs = [request.file]
    out.details = journal_file.status(journal)
    if request.verb == "summary":
        out.text = journal_file.summary(journal)
    elif request.verb == "status":
        out.text = [f"{key}: {value}" for key, value in out.details.items()]
    else:
        assert request.metric is not None
        found = journal_file.evaluate(journal, request.metric, request.direction)
        out.details |= asdict(found)
        against = "the first" if found.against is None else f"against {found.against:.9g}"
        delta = "" if found.percent is None else f", {found.percent:+.2f} % from the baseline"
        sure = "n/a" if found.confidence is None else f"{found.confidence:.2f}x"
        again = "; re-run to confirm" if found.confidence is not None and found.confidence < 1 else ""
        out.text = [f"{found.decision} ({against}{delta}); confidence {sure}, {found.label}, advisory{again}"]
    return out
