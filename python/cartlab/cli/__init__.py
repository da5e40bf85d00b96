"""`cartlab` and `scripts/autoresearch.py`: read the command line, call one subcommand, print its answer,
give its exit code.

Only the chosen subcommand's module is imported, so that `next` answers at once. Libraries raise errors that
carry an exit code; this module alone turns them into one. Rules live elsewhere: nothing here decides.
"""

from __future__ import annotations

import errno
import importlib
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from cartlab.cli import streams
from cartlab.cli.options import Parser, declare_common, hoist
from cartlab.cli.table import BY_NAME, ROWS, Row, family
from cartlab.cli.talk import INSTALLED, Talk
from cartlab.errors import BadRoot, CartlabError, DamagedLedger, Interrupted, UsageError

if TYPE_CHECKING:
    from cartlab.outcome import Outcome
    from cartlab.pipeline.lab import Lab

PROG = "scripts/autoresearch.py"
SCRIPT = "run_git_ref_benchmark"

# What a disk says that cannot take more; anything else that goes wrong with a file is an error of ours.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
ROOM = "make room or fix the folder's permissions; everything recorded so far is safe"
# A folder where a file of the state should be, or the other way round.
IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP)
WAY = "move away what stands there; `init` makes what is missing"
INTRODUCTION = """\
Measure two git revisions against each other and keep only proven speed-ups.

A first session:
  {prog} init
  {prog} status
  {prog} next                        what to do now, as an exact command line
  {prog} probe                       where you are, in five seconds
  {prog} checks --quick              before you commit a candidate
  {prog} screen HEAD~1 HEAD          worth proving?
  {prog} accept HEAD~1 HEAD          proven?

Add --dry-run to see what a command would do, --json for one object on stdout.
"""


def main(
    argv: list[str] | None = None,
    *,
    prog: str | None = None,
    repository: Path | None = None,
    lab: Lab | None = None,
) -> int:
    """Run one command line and return its exit code.

    repository: where the calling script lies, if it lies in one. lab: the world that the pipeline sees;
    None is the real.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    streams.prepare()
    return streams.ended(_chosen(words, prog or INSTALLED, repository, lab))


def _chosen(words: list[str], program: str, repository: Path | None, lab: Lab | None) -> int:
    """The introduction, or one row's command."""
    name, rest = hoist(words)
    if name == "help":
        return _chosen([*rest, "--help"], program, repository, lab)
    if name is None and rest and rest[-1] in ("-h", "--help"):
        return _introduce(program)
    row = BY_NAME.get(name or "")
    if row is None and family(name or "") and set(rest) <= {"-h", "--help"} and rest:
        return _introduce_family(program, str(name))
    with Talk("--json" in words, program) as talk:
        if row is None:
            return _refused(talk, name or "", _unknown(program, name))
        return _guarded(row, rest, talk, program, repository, lab)


def run_row(
    row: Row, argv: list[str] | None, *, prog: str, repository: Path | None, lab: Lab | None = None
) -> int:
    """Run a command that is a script of its own: no subcommand word, otherwise the same in everything."""
    words = [word for word in (sys.argv[1:] if argv is None else argv) if word != "--"]
    streams.prepare()
    with Talk(as_json="--json" in words) as talk:
        return streams.ended(_guarded(row, words, talk, prog, repository, lab))


def _guarded(
    row: Row, rest: list[str], talk: Talk, program: str, repository: Path | None, lab: Lab | None
) -> int:
    name = row.name or Path(program).stem
    try:
        return _run(row, rest, talk, program, repository, lab)
    except KeyboardInterrupt:
        return _refused(talk, name, Interrupted("interrupted", hint="run the same command to continue"))
    except CartlabError as error:
        return _refused(talk, name, error)
    except OSError as error:
        if error.errno in IN_THE_WAY:
            return _refused(talk, name, BadRoot(f"expected the state's own files, found: {error}", WAY))
        if error.errno not in NO_ROOM:
            return _internal(talk, name, error)
        return _refused(talk, name, BadRoot(f"expected to write the state, found: {error}", ROOM))
    except Exception as error:
        return _internal(talk, name, error)


def _internal(talk: Talk, name: str, error: Exception) -> int:
    import traceback

    traceback.print_exc(file=sys.stderr)
    return _refused(talk, name, CartlabError(f"internal error: {type(error).__name__}: {error}"))


def _introduce(program: str) -> int:
    width = max(len(row.name) for row in ROWS)
    lines = [
        f"usage: {program} COMMAND [arguments] [flags]\n",
        INTRODUCTION.format(prog=program),
        "commands, in the order of work:",
        *(f"  {row.name:<{width}}  {row.summary}" for row in ROWS),
        f"\n{program} COMMAND --help shows a command's flags and examples.",
    ]
    streams.put("\n".join(lines), sys.stdout)
    return 0


def _introduce_family(program: str, name: str) -> int:
    rows = family(name)
    width = max(len(row.name) for row in rows)
    lines = [
        f"usage: {program} {name} COMMAND [arguments] [flags]\n\nin the order of work:",
        *(f"  {row.name:<{width}}  {row.summary}" for row in rows),
        f"\n{program} {rows[0].name} --help shows a command's flags and examples.",
    ]
    streams.put("\n".join(lines), sys.stdout)
    return 0


def _unknown(program: str, name: str | None) -> UsageError:
    if name is None:
        return UsageError("expected a subcommand", hint=f"{program} --help lists them in the order of work")
    if rows := family(name):
        verbs = ", ".join(row.name.split()[1] for row in rows)
        return UsageError(f"{name} must be followed by one of {verbs}", hint=f"{program} {name} --help")
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, 1)
    hint = f"did you mean {near[0]}?" if near else f"{program} --help lists them in the order of work"
    return UsageError(f"there is no subcommand {name!r}", hint=hint)


def build_parser(program: str, row: Row) -> Parser:
    """One subcommand's parser, with its examples."""
    examples = "\n".join(f"  {program} {line}" for line in row.examples)
    parser = Parser(
        prog=f"{program} {row.name}".strip(), description=row.summary, epilog=f"examples:\n{examples}"
    )
    load(row).declare(parser)
    declare_common(parser)
    return parser


def load(row: Row) -> Any:
    """The module of a row: declare(parser), translate(namespace), run(context, request)."""
    return importlib.import_module(f"cartlab.cli.{row.module}")


def _run(
    row: Row, rest: list[str], talk: Talk, program: str, repository: Path | None, lab: Lab | None
) -> int:
    parser = build_parser(program, row)
    try:
        # Flags may stand between the refs, which plain parse_args does not take for `nargs="*"`.
        space = parser.parse_intermixed_args(rest)
    except SystemExit:  # --help
        return 0
    from cartlab.cli.context import Context

    module = load(row)
    request = module.translate(space)
    context = Context.open(
        space,
        talk,
        program=program,
        command=row.name,
        phase=row.phase,
        fallback=repository,
        any_repository=row.any_repository,
    )
    context.lab_override = lab
    previous = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        outcome: Outcome = module.run(context, request)
    finally:
        signal.signal(signal.SIGTERM, previous)
    talk.finish(outcome)
    return outcome.exit_code


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _after(error: CartlabError, name: str) -> str:
    # A command line, as everywhere: how to type this one, where to put the root, or where things stand.
    line = f"{PROG} {name}" if name in BY_NAME else f"scripts/{name}.py" if name == SCRIPT else PROG
    if isinstance(error, UsageError):
        return f"{line} --help"
    if isinstance(error, BadRoot):
        return f"{line} --autoresearch-root DIR"
    return f"{PROG} init --repair" if isinstance(error, DamagedLedger) else f"{PROG} status"


def _refused(talk: Talk, name: str, error: CartlabError) -> int:
    from cartlab.model import STATUSES
    from cartlab.outcome import Outcome, Report

    row = BY_NAME.get(name)
    reasons = [str(error.message), *([error.hint] if error.hint else [])]
    status = error.status
    outcome = Outcome(
        command=name,
        report=Report(
            phase=row.phase if row else "orient",
            inputs=[],
            outputs=[],
            decision=STATUSES[status].decision,
            next=_after(error, name),
        ),
        status=status,
        exit_code=error.exit_code,
        reasons=reasons,
        details={"problem": error.details} if error.details else None,
    )
    for line in str(error.details.get("log_tail", "")).rstrip().splitlines()[-20:]:
        talk.warn(f"  | {line}")
    talk.warn(f"error: {error.message}" + (f"\n  try: {error.hint}" if error.hint else ""))
    talk.finish(outcome)
    return error.exit_code
