"""What the loops work with: the repository, the root, the ledger, the goal, a voice; and how they record.

Every step is an event before the next step begins, so that whoever was killed is found where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, NotLegalNow, Tampered
from cartlab.ledger import Event, Ledger
from cartlab.loops import goals, isolation
from cartlab.loops.goals import Goal, Try
from cartlab.loops.states import SESSION_STATES
from cartlab.loops.worktree import Worktree
from cartlab.model import STATUSES
from cartlab.pipeline.voice import Voice

EVAL_LIMIT_S = 600.0


@dataclass(frozen=True)
class Options:
    """How a loop is run. isolation: the level's name; writable: further folders that the researcher may
    write; eval_limit_s: when an evaluation is killed; launcher: an approved shell line that runs training's
    `{command}` elsewhere, "" for here; approve: a person's reason to call a command that needs one.
    """

    isolation: str = "process"
    writable: tuple[Path, ...] = ()
    recent: int = 5
    plateau: int = 5
    eval_retries: int = 1
    train_retries: int = 1
    eval_limit_s: float = EVAL_LIMIT_S
    locale: str = "zh"
    launcher: str = ""
    approve: str = ""


@dataclass
class Desk:
    """One goal's desk."""

    repo: Path
    root: Path
    ledger: Ledger
    goal_id: str
    voice: Voice
    options: Options = field(default_factory=Options)

    # --- reading ----------------------------------------------------------------------------------

    def goal(self) -> Goal:
        """The goal as the ledger has it now."""
        return goals.fold(self.ledger.events())[self.goal_id]

    def worktree(self, goal: Goal) -> Worktree:
        """The goal's worktree."""
        return Worktree(self.repo, Path(goal.body["worktree"]), goal.body.get("branch"))

    def run_folder(self, attempt: str) -> Path:
        """What stays of an attempt: prompt, submission, logs, checkpoint."""
        return self.root / "benchmarks" / "runs" / attempt

    def work_folder(self, attempt: str) -> Path:
        """What goes when the attempt is closed: working copies, homes, temporary files."""
        return self.root / "tmp" / "loops" / attempt

    # --- recording --------------------------------------------------------------------------------

    def tell(self, op: str, **body: Any) -> Event:
        """An event of the goal. ValueError for a state that no session has."""
        if op == "state" and body["state"] not in SESSION_STATES:
            raise ValueError(f"expected one of {', '.join(SESSION_STATES)}, found {body['state']}")
        return self.ledger.append("goal", None, {"goal": self.goal_id, "op": op, **body})

    def tell_lever(self, op: str, **body: Any) -> Event:
        """An event of a lever of the goal's search."""
        return self.ledger.append("lever", None, {"goal": self.goal_id, "op": op, **body})

    def step(self, one: Try, state: str, **body: Any) -> None:
        """One step of an attempt."""
        self.ledger.append(
            "proposal", one.id, {"goal": self.goal_id, "round": one.round, "state": state, **body}
        )

    def measured(self, one: Try, role: str, **body: Any) -> int:
        """A run that the harness made; returns its seq."""
        event = self.ledger.append(
            "measurement",
            one.id,
            {
                "goal": self.goal_id,
                "round": one.round,
                "role": role,
                "isolation": self.options.isolation,
                **body,
            },
        )
        return int(event["seq"])

    def decided(self, one: Try, status: str, **body: Any) -> None:
        """The verdict on an attempt. Tampered for a keep or a baseline without a run of its own."""
        if STATUSES[status].keeps or status == "baseline":
            self.require_run(one, body)
        self.ledger.append(
            "decision", one.id, {"goal": self.goal_id, "round": one.round, "status": status, **body}
        )

    def require_run(self, one: Try, body: Mapping[str, Any]) -> None:
        """Tampered unless the value is that of a recorded evaluation of this attempt, of the tree that
        it handed in: nobody types a result, in whatever way they call this.
        """
        run = next((event for event in self.ledger.events() if event["seq"] == body.get("measurement")), None)
        of = (None, {}) if run is None else (run["attempt"], run["body"])
        submitted = next((found for found in self.goal().tries if found.id == one.id), one).steps
        tree = submitted.get("submitted", {}).get("tree")
        if (
            of[0] != one.id
            or of[1].get("role") != "eval"
            or tree is None
            or of[1].get("tree") != tree
            or of[1].get("value") != body.get("value")
        ):
            raise Tampered(
                f"{one.id} can only be kept with the value of a run of its own tree; {body.get('text')!r} is "
                "none",
                "hand its files in: the harness measures them",
            )

    def note(self, one: Try, text: str) -> None:
        """Guidance for the current round."""
        self.ledger.append("note", one.id, {"file": "experiences.md", "kind": "note", "text": text})

    # --- running ----------------------------------------------------------------------------------

    def clear(self, attempt: str) -> None:
        """Remove an attempt's working copies."""
        shutil.rmtree(self.work_folder(attempt), ignore_errors=True)

    def wrap(self, command: str, *writable: Path, readable: tuple[Path, ...] = ()) -> str:
        """The command at the goal's isolation level: of the root it sees these folders and nothing else."""
        return isolation.wrap(command, self.options.isolation, writable, (self.root,), readable)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one who moves this goal; NotLegalNow names the other. The kernel frees the lock of a
        process that died.
        """
        folder = self.root / "tmp" / "loops"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.goal_id}.lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._taken(file) from None
            file.seek(0)
            file.truncate()
            json.dump({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}, file)
            file.flush()
            yield

    def require_free(self) -> None:
        """NotLegalNow where alone() would be refused now; nothing is written."""
        path = self.root / "tmp" / "loops" / f"{self.goal_id}.lock"
        if not path.is_file():
            return
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._taken(file) from None

    def _taken(self, file: Any) -> NotLegalNow:
        return NotLegalNow(
            f"one supervisor works on a goal at a time; {_holder(file)} works on {self.goal_id}",
            "wait for it, or ask it to end: `stop`",
        )


def _holder(file: Any) -> str:
    with contextlib.suppress(ValueError, KeyError):
        file.seek(0)
        note = json.load(file)
        return f"process {note['pid']} (since {note['since']})"
    return "another process"


def newest(events: list[Event]) -> Goal | None:
    """The newest goal, or None."""
    return next(reversed(goals.fold(events).values()), None)


def going(events: list[Event]) -> list[Goal]:
    """The goals that are running by the ledger, oldest first; the process of one may have been killed."""
    return [goal for goal in goals.fold(events).values() if goal.state == "running"]


def attempt_named(events: list[Event], name: str) -> tuple[Goal, Try]:
    """The attempt that a name means: its id, a round of the newest goal (`7`, `r7`, `R7`), or a part of one
    attempt's id alone; BadInput otherwise.
    """
    known = goals.fold(events)
    tries = [(goal, one) for goal in known.values() for one in goal.tries]
    for hits in (
        [hit for hit in tries if hit[1].id == name],
        _of_round(list(known.values()), name),
        [hit for hit in tries if name in hit[1].id],
    ):
        if len(hits) == 1:
            return hits[0]
    some = ", ".join(one.id for _, one in (hits or tries)[-5:])
    raise BadInput(
        f"expected one attempt with {name!r}, found {len(hits)}",
        f"a round of the newest goal (r3), or an id such as {some}" if some else "no loop has an attempt yet",
    )


def _of_round(known: list[Goal], name: str) -> list[tuple[Goal, Try]]:
    """The newest goal's last attempt at a round."""
    number = name.lower().removeprefix("r")
    if not known or not number.isdecimal():
        return []
    return [(known[-1], one) for one in known[-1].tries if one.round == int(number)][-1:]
