"""The flags that several subcommands share, and the refs.

Flags stand anywhere: before the subcommand, between the refs, after them, or after `--`, which the
predecessor used to separate the runner's flags and which is accepted and not needed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from cartlab.cli.streams import put
from cartlab.cli.table import joined
from cartlab.errors import BadRef, UsageError
from cartlab.pipeline.request import Runner

LEGACY_FLAGS = ("--steps", "--repeats", "--warmups", "--max-load", "--max-measured-invocations")
GLOBAL_VALUES = ("--autoresearch-root",)
UNITS = ("block", "process")
DESIGNS = ("betting", "groupseq")
POLICIES = ("anytime", "legacy")


# Of any argument: more would be no number any more once it is counted in seconds or in bytes.
MOST = 1e12


@dataclass(frozen=True)
class Common:
    """Flags that every subcommand understands."""

    root: str | None = None
    json: bool = False
    dry_run: bool = False
    no_record: bool = False


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving the process, and never guesses an abbreviated flag."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("allow_abbrev", False)
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**settings)

    def format_usage(self) -> str:
        """The words in their order and no flag: two dozen of those would hide them; --help lists them."""
        return f"usage: {self.line()} [flags]\n"

    def format_help(self) -> str:
        self.usage = f"{self.line()} [flags]"
        return super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse would take what could not be written for written."""
        put(message.rstrip("\n"), file or sys.stdout)

    def line(self) -> str:
        """The command with the words that it takes; an optional one in brackets."""
        words = [
            f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar)
            for action in self._get_positional_actions()
        ]
        return " ".join([self.prog, *words])

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", hint=self._hint(message))

    def _hint(self, message: str) -> str:
        """The flag that was meant, else how the command is typed."""
        import difflib

        _, _, strangers = message.partition("unrecognized arguments: ")
        for word in strangers.split():
            near = difflib.get_close_matches(word.partition("=")[0], self._option_string_actions, 1)
            if near:
                return f"did you mean {near[0]}? {self.prog} --help lists the flags"
        return f"{self.line()} [flags]; {self.prog} --help shows examples"


def hoist(argv: list[str]) -> tuple[str | None, list[str]]:
    """The subcommand (one word, or a family's two) and its arguments: global flags before it are moved
    behind it, and `--` is dropped.
    """
    early: list[str] = []
    rest = list(argv)
    while rest and rest[0].startswith("-") and rest[0] not in ("-h", "--help"):
        flag = rest.pop(0)
        early.append(flag)
        if flag in GLOBAL_VALUES and rest:
            early.append(rest.pop(0))
    if not rest or rest[0] in ("-h", "--help"):
        return None, early + rest
    name, rest = joined(rest)
    return name, early + [word for word in rest if word != "--"]


def declare_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("everywhere")
    group.add_argument("--autoresearch-root", metavar="DIR", help="state folder; outside the repository")
    group.add_argument("--json", action="store_true", help="one JSON object on stdout, all else on stderr")
    group.add_argument("--dry-run", action="store_true", help="say what would be done; write nothing")
    group.add_argument(
        "--no-record",
        action="store_true",
        help="keep the result out of results.tsv; it never becomes evidence",
    )


def common(space: argparse.Namespace) -> Common:
    return Common(space.autoresearch_root, space.json, space.dry_run, space.no_record)


def declare_refs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "refs",
        nargs="*",
        metavar="BASE CAND",
        help="branch, tag, short or full SHA, HEAD~3; or one A..B",
    )


def two_refs(command: str, refs: list[str]) -> tuple[str, str]:
    """BASE and CAND out of what was typed: two words, or one `A..B`."""
    if len(refs) == 1 and ".." in refs[0]:
        if "..." in refs[0]:
            raise BadRef(
                f"expected A..B, found {refs[0]}", hint="three dots name a symmetric difference; use two"
            )
        base, _, cand = refs[0].partition("..")
        refs = [base or "HEAD", cand or "HEAD"]
    if len(refs) != 2:
        raise UsageError(
            f"{command}: expected two revisions, found {len(refs)}",
            hint=f"for example: {command} HEAD~1 HEAD, or {command} HEAD~1..HEAD",
        )
    return refs[0], refs[1]


def declare_lease_wait(group: argparse._ActionsContainer) -> None:
    """The flag of whatever builds, checks or measures."""
    group.add_argument(
        "--lease-wait",
        type=not_negative,
        metavar="SECONDS",
        help="wait at most this long for another controller (default 3600)",
    )


def declare_runner(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the measurement (also accepted after --)")
    group.add_argument("--rom-path", metavar="FILE", help="measure this cartridge")
    group.add_argument("--game", metavar="NAME", help="measure this game of the RETRO_DATA_PATH tree")
    group.add_argument("--state-dir", metavar="DIR", help="the folder of the start states")
    group.add_argument("--workload", metavar="NAME", help="a [workload.NAME] of autoresearch.toml")
    group.add_argument("--max-blocks", type=positive_int, metavar="N", help="new blocks of this run, at most")
    group.add_argument(
        "--max-wall-clock-minutes", type=positive, metavar="M", help="stop after the block that passes M"
    )
    group.add_argument(
        "--unit", choices=UNITS, default="block", help="block (resident workers) or process (a check)"
    )
    group.add_argument("--design", choices=DESIGNS, default="betting", help="how blocks become a decision")
    group.add_argument(
        "--policy", choices=POLICIES, default="anytime", help="legacy: the predecessor's, to compare"
    )
    declare_lease_wait(group)
    group.add_argument(
        "--force-busy", action="store_true", help="waive the contention rule for this run (--approve)"
    )
    group.add_argument("--approve", metavar="REASON", help="why a rule may be waived; recorded")
    group.add_argument("--keep-sources", action="store_true", help="leave the exported sources in the root")
    for flag in LEGACY_FLAGS:
        group.add_argument(flag, metavar="N", help=argparse.SUPPRESS)


def runner(space: argparse.Namespace) -> Runner:
    """Translate, and refuse what contradicts itself."""
    legacy = {flag: value for flag in LEGACY_FLAGS if (value := getattr(space, _key(flag))) is not None}
    if legacy and space.policy != "legacy":
        raise UsageError(
            f"{sorted(legacy)[0]} belongs to the predecessor's policy and means nothing here",
            hint="sizes are the tier's own; add --policy legacy to compare with the predecessor",
        )
    if space.force_busy and not space.approve:
        raise UsageError(
            "--force-busy waives a rule and needs a reason",
            hint='add --approve "why"; the verdict is marked forced and completes no round',
        )
    if space.rom_path and space.game:
        raise UsageError("--rom-path and --game both name the cartridge", hint="give one of them")
    return Runner(
        rom_path=space.rom_path,
        game=space.game,
        state_dir=space.state_dir,
        workload=space.workload,
        max_blocks=space.max_blocks,
        max_minutes=space.max_wall_clock_minutes,
        unit=space.unit,
        design=space.design,
        policy=space.policy,
        lease_wait=space.lease_wait,
        force_busy=space.force_busy,
        approve=space.approve,
        keep_sources=space.keep_sources,
        legacy=legacy,
    )


def refuse_legacy(command: str, space: argparse.Namespace) -> None:
    """UsageError where a command that reads block sequences is asked for the policy that has none."""
    if space.policy == "legacy":
        raise UsageError(
            f"{command}: the legacy policy has no block sequence to go by",
            hint="leave it out; screen, accept, accept-stack and calibrate take it, to compare",
        )


def _key(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def positive_int(text: str) -> int:
    """An argument's whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def whole(text: str) -> int:
    """An argument's whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, found {text!r}")
    return int(text)


def positive(text: str) -> float:
    """An argument's number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return value


def not_negative(text: str) -> float:
    """An argument's number of at least 0."""
    value = number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, found {text!r}")
    return value


def number(text: str) -> float:
    """An argument's finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value or abs(value) > MOST:
        raise argparse.ArgumentTypeError(f"expected a number of at most {MOST:g}, found {text!r}")
    return value
