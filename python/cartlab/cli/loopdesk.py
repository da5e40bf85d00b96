"""What the loop commands have in common: their flags, the ledger, and the desk of a goal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartlab.cli.context import Context
from cartlab.cli.options import positive_int
from cartlab.errors import NotLegalNow, UsageError
from cartlab.loops import isolation
from cartlab.root import make_folder

if TYPE_CHECKING:
    from cartlab.ledger import Event, Ledger
    from cartlab.loops.desk import Desk
    from cartlab.loops.goals import Goal

# policies.POLICIES, whose module brings numpy along; a test holds the two equal.
POLICIES = ("greedy", "repeat-k", "paired", "verified")


@dataclass(frozen=True)
class Flags:
    """How a loop runs."""

    policy: str
    k: int
    isolation: str
    may_write: tuple[str, ...]
    recent: int
    plateau: int
    locale: str


def declare(parser: argparse.ArgumentParser) -> None:
    """The flags of supervise and attempt."""
    group = declare_how(parser)
    group.add_argument(
        "--recent", type=positive_int, default=5, metavar="N", help="rows of the table in the prompt (5)"
    )
    group.add_argument(
        "--plateau",
        type=positive_int,
        default=5,
        metavar="N",
        help="rounds without a gain before a warning (5)",
    )
    declare_locale(parser)


def declare_how(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The flags that each loop has: policy and isolation."""
    group = parser.add_argument_group("how the loop runs")
    group.add_argument(
        "--policy",
        choices=POLICIES,
        default="greedy",
        help="when a round is kept: strictly better (greedy, the document's), the median of k runs, pairs "
        "that decide at alpha 0.01, or a win that a second run repeats (default: greedy)",
    )
    group.add_argument("--k", type=positive_int, default=3, metavar="K", help="runs of repeat-k (default: 3)")
    group.add_argument(
        "--isolation",
        choices=isolation.CHOICES,
        default="auto",
        help="how far commands are confined; what was had is recorded (default: the best there is)",
    )
    group.add_argument(
        "--may-write",
        action="append",
        default=[],
        metavar="DIR",
        help="a further folder that the researcher may write; hidden folders of the home are allowed",
    )
    return group


def declare_locale(parser: argparse.ArgumentParser) -> None:
    """--locale."""
    parser.add_argument(
        "--locale",
        choices=("zh", "en"),
        default="zh",
        help="the protocol's headings: the document's own, or bare",
    )


def flags(space: argparse.Namespace) -> Flags:
    """The namespace's part of it."""
    return Flags(
        space.policy,
        space.k,
        space.isolation,
        tuple(space.may_write),
        space.recent,
        space.plateau,
        space.locale,
    )


def here(context: Context) -> None:
    """Speak about the repository around the working directory, where it lies in one: loops work on any, also
    on one without autoresearch.toml.
    """
    if context.about is None and any(
        (place / ".git").exists() for place in (context.cwd, *context.cwd.parents)
    ):
        context.about = context.cwd


def must_record(context: Context) -> None:
    """UsageError where nothing is to be recorded."""
    if context.common.no_record:
        raise UsageError(
            "--no-record leaves a measurement of two revisions out of the results; a loop lives in its "
            "ledger",
            "leave the flag out, or try on another root: --autoresearch-root DIR",
        )


def open_ledger(context: Context) -> Ledger:
    """The ledger, made where it is missing. UsageError for a run that is not to be recorded."""
    from cartlab.ledger import Ledger
    from cartlab.round import round_part

    must_record(context)
    root = context.root.path
    make_folder(root)
    ledger = Ledger.open(root, round_part=round_part)
    ledger.init()
    for line in ledger.reports:
        context.talk.warn(line)
    return ledger


def as_it_is(context: Context) -> Ledger | None:
    """The ledger for who only looks, as a dry run does; None where there is none yet. UsageError as for
    open_ledger.
    """
    from cartlab.ledger import Ledger

    must_record(context)
    root = context.root.path
    return Ledger.open(root, mend=False) if (root / "events.jsonl").is_file() else None


def foreseen(context: Context, chosen: Flags | None = None, attempt: str | None = None) -> Desk:
    """current_desk() for a dry run: the same refusals, and nothing is written."""
    ledger = as_it_is(context)
    if ledger is None:
        raise _no_goal()
    return current_desk(context, ledger, chosen, attempt)


def goal_of(context: Context, file: str) -> Goal | None:
    """The goal of a protocol as the ledger has it, None where it is not opened yet; BadInput for a protocol
    that cannot be read. Nothing is written.
    """
    from cartlab.loops import opening

    path = protocol_file(context, file)
    opening.read_protocol(path)
    where = opening.place_of(context.repo, path)
    ledger = as_it_is(context)
    return None if ledger is None else opening.goal_at(ledger.events(), *where)


def _no_goal() -> NotLegalNow:
    return NotLegalNow("no goal was opened in this root", "`handoff DESIGN.md`, then `supervise PROTOCOL`")


def confinement(context: Context, wanted: str, may_write: Sequence[str]) -> tuple[str, tuple[Path, ...]]:
    """What this machine has of the isolation that is wanted, and where a command may write besides."""
    level = isolation.level(wanted)
    home = Path(context.environ.get("HOME") or Path.home())
    writable = [Path(name).expanduser().resolve() for name in may_write]
    if level == "landlock":
        writable += isolation.home_folders(home, (context.repo, context.root.path))
    return level, tuple(writable)


def options(context: Context, chosen: Flags) -> Any:
    """The loop's options with the isolation level that this machine has."""
    from cartlab.loops.desk import Options

    level, writable = confinement(context, chosen.isolation, chosen.may_write)
    return Options(
        isolation=level,
        writable=writable,
        recent=chosen.recent,
        plateau=chosen.plateau,
        locale=chosen.locale,
    )


def protocol_file(context: Context, name: str) -> Path:
    """The protocol that a word names: the file, or the folder that it lies in."""
    path = context.cwd / name
    return path / "autoresearch-protocol.md" if path.is_dir() else path


def desk_of(context: Context, ledger: Ledger, file: str, chosen: Flags) -> Desk:
    """The desk of a protocol's goal, opened where there is none."""
    from cartlab.loops.opening import open_goal

    return open_goal(
        context.repo,
        context.root.path,
        ledger,
        protocol_file(context, file),
        context.talk,
        options(context, chosen),
        chosen.policy,
        chosen.k,
    )


def approved(desk: Desk, reason: str | None) -> Desk:
    """The desk with a person's reason to call a command that needs one."""
    return replace(desk, options=replace(desk.options, approve=(reason or "").strip()))


def repository_of(context: Context, goal: Goal) -> Path:
    """The checkout that a goal's worktree belongs to, wherever the command was typed; where the worktree is
    gone or is none any more, the one that is meant here.
    """
    from cartlab.sources import git

    tree = Path(goal.body.get("worktree") or "")
    if goal.body.get("worktree") and tree.is_dir():
        done = git.ask(tree, "rev-parse", "--path-format=absolute", "--git-common-dir")
        shared = Path(done.stdout.decode(errors="surrogateescape").rstrip("\n"))
        if done.returncode == 0 and shared.name == ".git":
            return shared.parent
    return context.repo


def current_desk(
    context: Context, ledger: Ledger, chosen: Flags | None = None, attempt: str | None = None
) -> Desk:
    """The desk of the supervised goal that is meant; NotLegalNow where there is none. attempt: a part of the
    id of the attempt that is to be handed in or given up, "" for any.
    """
    from cartlab.loops.desk import Desk, Options

    goal = _meant(context, ledger.events(), attempt)
    if goal is None:
        raise _no_goal()
    made = Options() if chosen is None else options(context, chosen)
    return Desk(repository_of(context, goal), context.root.path, ledger, goal.id, context.talk, made)


def _meant(context: Context, events: list[Event], attempt: str | None) -> Goal | None:
    """Of the goals with such an open attempt, or of all, the one of the folder around the caller, else the
    newest.
    """
    from cartlab.loops import goals

    known = [goal for goal in goals.fold(events).values() if goal.loop == goals.SUPERVISE]
    if attempt is not None:
        lasts = [(goal, goal.last) for goal in known]
        waiting = [
            goal for goal, one in lasts if one is not None and one.state == "dispatched" and attempt in one.id
        ]
        known = waiting or known
    around = (context.cwd.resolve(), *context.cwd.resolve().parents)
    here = [
        goal
        for goal in known
        if Path(goal.body["worktree"]) in around
        or (goal.body["top"] and (context.repo / goal.body["top"]).resolve() in around)
    ]
    found = here or known
    return found[-1] if found else None
