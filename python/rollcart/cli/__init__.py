"""`rollcart` and `python -m rollcart`: read the command line, call one subcommand, print its answer, give its
exit code.

A subcommand is a file here and a row in `table`; only the chosen one is imported. It has

    declare(parser)              its arguments; --json and --help are there already
    run(options, talk) -> Answer its work; what it says goes through `talk`, what it found into the answer

To add one: (1) its file, (2) its row in `table.ROWS`, (3) its tests under tests/python/rollcart, (4) its
row in docs/commands.md. Libraries raise errors; this module alone turns them into exit codes (`answer`).
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from typing import Any

from rollcart.cli.answer import INTERNAL, INTERRUPTED, UNREAD, USAGE, Answer, CommandError, exit_code_of
from rollcart.cli.table import BY_NAME, ROWS, Row
from rollcart.cli.talk import Talk

INTRODUCTION = """\
NES games for reinforcement learning, at the speed of the processor.

A first session, with the bundled game:
{session}

Your own ROMs: `{prog} import FOLDER`, once; or --rom-path where a command has it.
Add --json for one object on stdout (all else goes to stderr).
"""
EXIT_CODES = """\
exit codes: 0 done, 1 the answer is no (nothing found, not equal), 2 the command line is wrong, 3 an input is
wrong, 4 something is not installed, 70 a fault of rollcart itself, 130 interrupted, 141 nobody read on
"""

# Asked for their text alone, of which a reader may take as much as it likes.
TEXTS = {"-h", "--help", "--version"}


def main(argv: list[str] | None = None, *, prog: str = "rollcart") -> int:
    """Runs one command line and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A letter that the terminal's encoding lacks is written as an escape, in JSON the same text.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    name = words[0] if words else "--help"
    try:
        code = _answered(words, name, prog)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of stdout went away (`| head`): nothing is left to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if not words or TEXTS & set(words) else UNREAD
    return code


def _answered(words: list[str], name: str, prog: str) -> int:
    """The introduction, the version, or one command's work."""
    if name in ("-h", "--help"):
        _introduce(prog)
        return 0
    if name == "--version":
        from rollcart._native import __version__

        print(__version__)
        return 0
    talk = Talk(as_json="--json" in words)
    row = BY_NAME.get(name)
    if row is None:
        near = difflib.get_close_matches(name, BY_NAME, 1)
        hint = f"did you mean {near[0]}?" if near else f"{prog} --help lists them"
        return _refused(talk, prog, name, CommandError(f"there is no command {name!r}; {hint}", USAGE))
    return _guarded(talk, prog, row, words[1:])


def load(row: Row) -> Any:
    """The module of a row: declare(parser), run(options, talk)."""
    return importlib.import_module(f"rollcart.cli.{row.module}")


def build_parser(prog: str, row: Row) -> argparse.ArgumentParser:
    """One subcommand's parser, with its examples and exit codes."""
    examples = "\n".join(f"  {prog} {line}" for line in row.examples)
    parser = _Parser(
        prog=f"{prog} {row.name}",
        description=row.summary,
        epilog=f"examples:\n{examples}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    load(row).declare(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, all else on stderr")
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise CommandError(f"{message}; {self.prog} --help shows what it takes", USAGE)


def _guarded(talk: Talk, prog: str, row: Row, words: list[str]) -> int:
    try:
        options = build_parser(prog, row).parse_intermixed_args(words)
        answer: Answer = load(row).run(options, talk)
    except SystemExit as done:  # --help
        return int(done.code or 0)
    except KeyboardInterrupt:
        return _refused(talk, prog, row.name, CommandError("interrupted", INTERRUPTED))
    except BrokenPipeError:
        raise
    except Exception as error:
        if exit_code_of(error) == INTERNAL:
            import traceback

            traceback.print_exc(file=sys.stderr)
        return _refused(talk, prog, row.name, error)
    talk.finish({"command": row.name, "exit_code": answer.exit_code, **answer.document})
    return answer.exit_code


def _refused(talk: Talk, prog: str, name: str, error: Exception) -> int:
    code = exit_code_of(error)
    text = str(error) if code != INTERNAL else f"internal error: {type(error).__name__}: {error}"
    talk.note(f"{prog} {name}: {text}")
    talk.finish({"command": name, "exit_code": code, "error": text})
    return code


def _introduce(prog: str) -> None:
    session = "\n".join(f"  {prog} {row.examples[0]}" for row in ROWS)
    width = max(len(row.name) for row in ROWS)
    print(f"usage: {prog} COMMAND [arguments]\n")
    print(INTRODUCTION.format(prog=prog, session=session))
    print("commands:")
    for row in ROWS:
        print(f"  {row.name:<{width}}  {row.summary}")
    print(f"\n{prog} COMMAND --help shows a command's arguments and examples.")
    print(EXIT_CODES, end="")
