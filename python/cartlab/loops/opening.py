"""Opening a goal from its protocol file, and changing it as its user: both are events of the ledger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cartlab.artefacts import read_text
from cartlab.errors import BadInput, NotLegalNow, UsageError
from cartlab.ledger import Event, Ledger
from cartlab.ledger.store import utc_now
from cartlab.loops import experiences, protocol, trees, views
from cartlab.loops.desk import Desk, Options
from cartlab.loops.goals import SUPERVISE, Goal, fold, new_id
from cartlab.loops.protocol import Protocol
from cartlab.pipeline.voice import Voice
from cartlab.sources import git

LOOP = SUPERVISE
# A change of one of these changes what a number means: old wins do not count any more.
MEANING = (
    "metric",
    "direction",
    "eval_command",
    "fixed",
    "train_command",
    "time_limit",
    "epoch_limit",
    "checkpoint",
    "witnesses",
)
SETTABLE = (
    "max_rounds",
    "target",
    "fixed",
    "variable",
    "variable_range",
    "time_limit",
    "epoch_limit",
    "eval_command",
    "train_command",
    "profile_command",
    "checkpoint",
    "strict_variable",
    "diff_cap",
    "env_repair",
    "research_question",
)


def place_of(repo: Path, file: Path) -> tuple[Path, str]:
    """The worktree's path and the experiment's folder (relative to the top) of a protocol file."""
    folder = file.resolve().parent
    try:
        top = folder.relative_to(repo.resolve()).as_posix()
    except ValueError:
        raise BadInput(
            f"the protocol must lie in the repository {repo}; found {file}",
            "run it inside the experiment's clone",
        ) from None
    name = folder.name
    return repo.resolve().parent / f"autoresearch-{name}", "" if top == "." else top


def read_protocol(file: Path) -> Protocol:
    """The protocol in a file; BadInput where there is none, or says what is wrong with it."""
    return protocol.parse(read_text(file, "a protocol", "`handoff DESIGN.md` writes one"))


def goal_at(events: list[Event], where: Path, top: str) -> Goal | None:
    """The goal of the experiment in this folder, None where none was opened. NotLegalNow where the worktree
    that its folder's name gives is another loop's.
    """
    same = [goal for goal in fold(events).values() if Path(goal.body["worktree"]) == where]
    mine = [goal for goal in same if goal.loop == LOOP and goal.body["top"] == top]
    if not mine and same and where.exists():
        raise NotLegalNow(
            f"the worktree {where} belongs to {same[-1].id}, a {same[-1].loop} of another folder or name",
            "a worktree is named after the experiment's folder: rename that, or use a clone elsewhere",
        )
    return mine[-1] if mine else None


def open_goal(
    repo: Path, root: Path, ledger: Ledger, file: Path, voice: Voice, options: Options, policy: str, k: int
) -> Desk:
    """The desk of a protocol's goal: the one that runs already, or a new one with its worktree."""
    wanted = read_protocol(file)
    where, top = place_of(repo, file)
    found = goal_at(ledger.events(), where, top)
    if found is not None:
        desk = Desk(repo, root, ledger, found.id, voice, options)
        _take_up_changes(desk, found, wanted)
        return desk
    zero = _baseline_row(file.with_name("experiences.md"))
    head = trees.commit_of(repo, "HEAD")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", where.name.removeprefix("autoresearch-")) or "goal"
    goal_id = new_id(ledger.events(), name, utc_now())
    ledger.append(
        "goal",
        None,
        {
            "goal": goal_id,
            "op": "opened",
            "loop": LOOP,
            "baseline_commit": head,
            "describes": {
                "protocol": wanted.to_json(),
                "file": wanted.to_json(),
                "worktree": str(where),
                "top": top,
                "policy": policy,
                "k": k,
                "zero": zero,
            },
        },
    )
    return Desk(repo, root, ledger, goal_id, voice, options)


def _baseline_row(path: Path) -> dict[str, str]:
    """Strategy and note of row 0, as the handoff or a person wrote them."""
    if not path.is_file():
        return {"strategy": "baseline", "note": ""}
    row = experiences.parse(read_text(path, "experiences.md")).row(0)
    return {"strategy": row.strategy if row else "baseline", "note": row.note if row else ""}


def _take_up_changes(desk: Desk, goal: Goal, wanted: Protocol) -> None:
    """A protocol file that was edited since it was last read is a change by its user, in what was edited."""
    changed, edited = with_edits(goal, wanted)
    if edited:
        _change(desk, changed, edited, "the protocol file was edited", file=wanted.to_json())


def with_edits(goal: Goal, wanted: Protocol) -> tuple[Protocol, list[str]]:
    """The goal's protocol with what was edited in its file since that was last read, and the keys of it."""
    # Through the class: a key that the ledger's protocol was written without has its default.
    was, new = Protocol.from_json(goal.body["file"]).to_json(), wanted.to_json()
    edited = {key: value for key, value in new.items() if value != was[key] and key != "baseline"}
    return Protocol.from_json({**views.protocol_of(goal).to_json(), **edited}), list(edited)


def changed(goal: Goal, key: str, text: str) -> Protocol:
    """The goal's protocol with a new value; UsageError or BadInput for one that it cannot have."""
    if key not in SETTABLE:
        raise UsageError(
            f"protocol set takes one of {', '.join(SETTABLE)}; found {key!r}",
            "the metric itself is a new goal",
        )
    now = views.protocol_of(goal)
    body = now.to_json()
    if key in ("fixed", "variable"):
        body[key] = list(protocol.files(text))
    elif key == "max_rounds":
        body[key] = (
            int(text) if text.isdecimal() and int(text) > 0 else _refuse(key, text, "a whole number above 0")
        )
    elif key == "diff_cap":
        body[key] = protocol.size(text)
    elif key == "target":
        body[key] = None if text == "none" else _number(key, text)
    elif key == "strict_variable":
        body[key] = (
            text in ("true", "yes")
            if text in ("true", "false", "yes", "no")
            else _refuse(key, text, "true or false")
        )
    else:
        body[key] = text
    wanted = Protocol.from_json(body)
    # What can be written can be read again: the same rules as for a file.
    protocol.parse(protocol.render(wanted, "en"))
    return wanted


def change(desk: Desk, key: str, text: str, why: str) -> list[str]:
    """`protocol set KEY VALUE`: a logged change; returns what to tell."""
    wanted = changed(desk.goal(), key, text)
    segment = _change(desk, wanted, [key], why)
    told = [f"{key} = {text}"]
    if segment:
        told.append(
            "this changes what a number means: the baseline is measured again, earlier wins do not count"
        )
    return told


def _refuse(key: str, text: str, wanted: str) -> Any:
    raise UsageError(f"{key} must be {wanted}; found {text!r}")


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(_refuse(key, text, "a number or none"))


def _change(
    desk: Desk, wanted: Protocol, keys: Sequence[str], why: str, file: dict[str, Any] | None = None
) -> bool:
    segment = any(key in MEANING for key in keys)
    desk.tell(
        "protocol",
        describes={"protocol": wanted.to_json(), **({"file": file} if file else {})},
        keys=list(keys),
        segment=segment,
        who=git.ask(desk.repo, "config", "user.name").stdout.decode(errors="replace").strip() or "unknown",
        why=why,
    )
    return segment
