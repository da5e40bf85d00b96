"""`journal VERB`: a session of experiments on one script's number, from `init` to branches for review.

`status`, `summary` and `evaluate` also read the autoresearch.jsonl of any other tool; what they print of such
a file is advice on numbers that somebody typed, and nothing is recorded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.cli.options import not_negative, number, positive, positive_int
from cartlab.errors import UsageError
from cartlab.outcome import Outcome

# verb -> the words that may follow it.
VERBS: dict[str, tuple[str, ...]] = {
    "init": (),
    "log": (),
    "run": (),
    "evaluate": (),
    "status": (),
    "summary": (),
    "idea": ("add", "prune", "list"),
    "finalize": ("plan", "create", "verify"),
}
READING = ("status", "summary", "evaluate")


@dataclass(frozen=True)
class Request:
    """verb, the word after it, further words, and all flags by name."""

    verb: str
    word: str
    words: tuple[str, ...]
    given: dict[str, Any]
    dry_run: bool
    flags: loopdesk.Flags


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=VERBS, metavar="|".join(VERBS))
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="idea: add|prune|list; finalize: plan|create|verify"
    )
    parser.add_argument(
        "--session", metavar="NAME", help="which session (default: this folder's, else the newest)"
    )
    _declare_init(parser.add_argument_group("init: what is optimised, and how it is measured"))
    _declare_log(parser.add_argument_group("log: one experiment, from the files of the session's worktree"))
    group = parser.add_argument_group("run, finalize, and files of other tools")
    group.add_argument("--researcher", metavar="CMD", help="run: a shell line that makes one change")
    group.add_argument("--experiments", type=positive_int, metavar="N", help="run: at most N now")
    group.add_argument(
        "--trunk",
        metavar="BRANCH",
        help="finalize: where it starts (main; verify: the one that create was given)",
    )
    group.add_argument("--groups", metavar="FILE", help="finalize: JSON, which experiments belong together")
    group.add_argument(
        "--collapse-overlap", action="store_true", help="finalize: one group of those that share a file"
    )
    group.add_argument("--single", action="store_true", help="finalize: everything in one branch")
    group.add_argument("--jsonl", metavar="FILE", help="status, summary, evaluate: any autoresearch.jsonl")
    group.add_argument(
        "--repair", action="store_true", help="decide on such a file without the lines that cannot be read"
    )
    group.add_argument("--approve", metavar="REASON", help="a person's word for new branches; recorded")
    loopdesk.declare_how(parser)


def _declare_init(group: Any) -> None:
    group.add_argument("--name", metavar="TEXT", help="the session's name; the same name opens a new segment")
    group.add_argument("--metric-name", metavar="NAME", help="the primary metric, as in METRIC NAME=1.5")
    group.add_argument("--metric-unit", default="", metavar="UNIT", help="its unit")
    group.add_argument("--direction", choices=("lower", "higher"), help="which is better (default: lower)")
    group.add_argument("--command", metavar="CMD", help="write autoresearch.sh around this command")
    group.add_argument(
        "--measure",
        choices=("output", "time"),
        default="output",
        help="the metric is printed by the command, or is its wall time in seconds",
    )
    group.add_argument("--checks-command", default="", metavar="CMD", help="what every keep has to pass")
    group.add_argument("--script", metavar="FILE", help="a measuring script of your own")
    group.add_argument("--checks-script", metavar="FILE", help="a checking script of your own")
    group.add_argument("--objective", default="", metavar="TEXT", help="what this is for, in a sentence")
    group.add_argument("--scope", action="append", default=[], metavar="GLOB", help="what may change (all)")
    group.add_argument("--off-limits", action="append", default=[], metavar="GLOB", help="what may not")
    group.add_argument("--constraint", action="append", default=[], metavar="TEXT", help="a rule in words")
    group.add_argument("--secondary", action="append", default=[], metavar="NAME", help="a metric to watch")
    group.add_argument(
        "--guard", action="append", default=[], metavar="NAME<=V", help="a bound that no keep may break"
    )
    group.add_argument(
        "--noise", type=not_negative, default=0.0, metavar="V", help="values so near are equal (0)"
    )
    group.add_argument(
        "--simpler-by", type=positive_int, default=1, metavar="N", help="code lines less that keep a tie (1)"
    )
    group.add_argument(
        "--complex-lines", type=positive_int, default=50, metavar="N", help="remark: lines a percent (50)"
    )
    group.add_argument(
        "--baseline-runs", type=positive_int, default=1, metavar="N", help="runs of the baseline (1)"
    )
    group.add_argument("--limit", type=positive, default=600.0, metavar="S", help="of a benchmark (600)")
    group.add_argument("--checks-limit", type=positive, default=300.0, metavar="S", help="of checks (300)")
    group.add_argument("--max-experiments", type=positive_int, metavar="N", help="end after N")
    group.add_argument("--max-seconds", type=positive, metavar="S", help="end after this wall time")
    group.add_argument("--target", type=number, metavar="V", help="end where the metric reaches V")
    group.add_argument("--nonce", action="store_true", help="only lines METRIC[$AR_NONCE] NAME=V count")
    group.add_argument("--diff-cap", default="16 MiB", metavar="SIZE", help="what a change may add (16 MiB)")
    group.add_argument("--commit", action="store_true", help="the session's files into its branch as well")
    group.add_argument("--locale", choices=("fr", "en"), default="fr", help="autoresearch.md's language (fr)")
    group.add_argument("--no-branch", action="store_true", help="no session branch, which needs no approval")
    group.add_argument("--no-baseline", action="store_true", help="measure the baseline with the first `log`")


def _declare_log(group: Any) -> None:
    group.add_argument("--description", default="", metavar="TEXT", help="what was tried")
    group.add_argument("--hypothesis", default="", metavar="TEXT", help="what was expected, and why")
    group.add_argument("--rollback-reason", default="", metavar="TEXT", help="why it is taken back")
    group.add_argument("--next-hint", default="", metavar="TEXT", help="what to try instead")
    group.add_argument("--asi", metavar="JSON", help="all that was learned, as an object")
    group.add_argument(
        "--metric", type=number, metavar="V", help="the value that was seen; it is measured again"
    )
    group.add_argument("--status", metavar="WORD", help="a discard lowers the verdict; a keep raises none")
    group.add_argument("--metrics", metavar="JSON", help="ignored: METRIC lines say them")
    group.add_argument("--force", action="store_true", help="let the secondary metrics have other names")
    group.add_argument(
        "--from", dest="source", metavar="DIR", help="take the files of this folder; only read"
    )
    group.add_argument(
        "--agent", default="", metavar="ID", help="whose experiments the hand-over hint counts"
    )


def translate(space: argparse.Namespace) -> Request:
    verb, words = space.verb, list(space.words)
    allowed = VERBS[verb]
    word = words.pop(0) if allowed and words else ""
    if allowed and word not in allowed:
        raise UsageError(
            f"journal {verb} takes {', '.join(allowed)}; found {word or 'nothing'}",
            f"journal {verb} {allowed[-1]}",
        )
    if words and word not in ("add", "prune"):
        raise UsageError(f"journal {verb} takes no further word; found {words[0]!r}")
    if verb == "evaluate" and space.metric is None:
        raise UsageError("journal evaluate takes a value", "journal evaluate --metric V")
    if verb in ("status", "summary") and space.metric is not None:
        raise UsageError("a value is for journal evaluate and journal log", "journal evaluate --metric V")
    if verb == "run" and not (space.researcher or "").strip():
        raise UsageError("journal run needs a researcher", 'add --researcher "CMD", or use `journal log`')
    if verb == "init" and not (space.name and space.metric_name):
        raise UsageError(
            "journal init needs a name and a metric",
            "--name 'bundle size' --metric-name kb --direction lower",
        )
    if word == "create" and not (space.approve or "").strip():
        raise UsageError(
            "journal finalize create makes branches, which needs a person's word", '--approve "why"'
        )
    return Request(verb, word, tuple(words), dict(vars(space)), space.dry_run, _flags(space))


def _flags(space: argparse.Namespace) -> loopdesk.Flags:
    return loopdesk.Flags(
        space.policy, space.k, space.isolation, tuple(space.may_write), recent=5, plateau=5, locale="en"
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.cli import journalling

    if request.verb in READING:
        return journalling.read(context, request)
    return journalling.ACTIONS[request.verb](context, request)
