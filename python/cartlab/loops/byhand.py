"""`attempt start|submit|close`: the supervisor's rounds, one at a time, for who writes the code itself."""

from __future__ import annotations

from cartlab.errors import NotLegalNow
from cartlab.loops import dispatch, intake, rounds
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.supervise import (
    again,
    close,
    give_up,
    measure_baseline,
    next_round,
    prepare,
    settle,
)


def start_by_hand(desk: Desk) -> dispatch.Dispatch:
    """`attempt start`: the next round's working copy. One that is open already is given again."""
    with desk.alone():
        prepare(desk)
        goal = desk.goal()
        last = goal.last
        if last is not None and last.state == "dispatched":
            return dispatch.dispatched(desk, goal, last)
        number = require_round(goal)
        if goal.state != "running" or goal.stop_asked:
            desk.tell("state", state="running")
        measure_baseline(desk)
        return dispatch.start(desk, desk.goal(), number, "agent")


def require_round(goal: Goal) -> int:
    """The round that can be started; NotLegalNow where the goal has none left."""
    number = next_round(goal, None)
    if (reason := rounds.ending(goal)) is not None and reason != "stopped_by_user":
        raise NotLegalNow(
            f"this goal is done: {reason}", "`supervise PROTOCOL --extend N` gives it more rounds"
        )
    return number


def submit_by_hand(desk: Desk, name: str | None, strategy: str | None) -> Try:
    """`attempt submit`: judge the open attempt."""
    with desk.alone():
        goal, one = open_try(desk, name)
        given = dispatch.dispatched(desk, goal, one)
        if not (desk.work_folder(one.id) / "work").is_dir():
            raise NotLegalNow(
                f"the working copy of {one.id} is gone", f"`attempt close {one.id} --reason lost`"
            )
        finding = intake.take_in(desk, goal, given, strategy)
        settle(desk, given, finding)
        last = desk.goal().last
        while last is not None and (last.decision or {}).get("retried") and last.status != "interrupted":
            again(desk, last)
            last = desk.goal().last
        if (reason := rounds.ending(desk.goal())) is not None:
            close(desk, reason)
        found = desk.goal().last
        assert found is not None
        return found


def close_by_hand(desk: Desk, name: str | None, reason: str) -> Try:
    """`attempt close`: give the open attempt up; its round starts anew."""
    with desk.alone():
        goal, one = open_try(desk, name)
        give_up(desk, goal, one, f"given up: {reason}")
        return next(found for found in desk.goal().tries if found.id == one.id)


def open_try(desk: Desk, name: str | None) -> tuple[Goal, Try]:
    """The attempt that can be handed in or given up; NotLegalNow where none is open, or not that one."""
    goal = desk.goal()
    one = goal.last
    if one is None or one.state != "dispatched" or (name is not None and name not in one.id):
        open_one = f"{one.id} is {one.state}" if one is not None else "none was started"
        raise NotLegalNow(
            f"expected an open attempt{f' called {name}' if name else ''}; {open_one}",
            "`attempt start PROTOCOL`",
        )
    return goal, one
