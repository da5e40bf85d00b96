"""`journal run`: the loop with a researcher's command, one hypothesis an experiment, until the session ends.

The researcher is a command in a fresh process with a copy of what the session stands on; it writes
`{"description": ..., "hypothesis": ..., "next_action_hint": ...}` and leaves its files in the copy.
"""

from __future__ import annotations

from typing import Any

from cartlab.loops import approvals, dispatch, trees
from cartlab.loops.commands import plain
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import Dispatch
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal import document, files, ideas, recording, session
from cartlab.loops.journal.judging import Verdict
from cartlab.loops.journal.recording import Entry
from cartlab.loops.states import VIEWS
from cartlab.model import parsed_json

WORKING = "work"


def run(desk: Desk, researcher: str, experiments: int | None = None) -> Goal:
    """Experiments until the session ends, somebody stops it, or so many are done."""
    with desk.alone():
        approvals.admit(desk.ledger, desk.goal_id, researcher, desk.options.approve)
        goal = recording.prepare(desk)
        recording.legal(goal)
        if session.baseline_of(goal) is None:
            _tell(desk, recording.measure_baseline(desk))
        desk.tell("state", state="running", reason="")
        done = 0
        try:
            while desk.goal().state == "running" and (experiments is None or done < experiments):
                _tell(desk, one_experiment(desk, researcher))
                done += 1
                if desk.goal().state == "running":
                    dispatch.require_start(session.tries(desk.goal()))
        except KeyboardInterrupt:
            desk.tell("state", state="stopped_by_user", reason="interrupted")
            raise
        return desk.goal()


def one_experiment(desk: Desk, researcher: str) -> Try:
    """Send out, take in, judge, record."""
    goal = desk.goal()
    given = start(desk, goal)
    failed = dispatch.research(desk, goal, given, researcher)
    dispatch.require_program(failed)
    told, flags = submission(given)
    folder = desk.work_folder(given.one.id) / WORKING
    entry = Entry(
        description=str(told.get("description") or told.get("strategy") or "no description was given"),
        asi={
            "hypothesis": str(told.get("hypothesis") or told.get("description") or "none was stated"),
            **{key: value for key, value in told.items() if key not in ("description", "strategy")},
            **({"flags": flags} if flags else {}),
        },
        agent=given.one.id,
    )
    if failed is not None:
        return recording.refuse(desk, given.one, entry, Verdict(failed.verdict, failed.insight), folder)
    return recording.submit(desk, given.one, entry, folder, rollback=False)


def start(desk: Desk, goal: Goal) -> Dispatch:
    """The working copy, the prompt and the inbox of the next experiment."""
    one = recording.attempt(goal)
    desk.step(one, "proposed", base=goal.accepted)
    work = desk.work_folder(one.id) / WORKING
    trees.lay(desk.repo, goal.accepted, work)
    inbox, logs = desk.work_folder(one.id) / "inbox", desk.run_folder(one.id)
    for folder in (inbox, logs):
        folder.mkdir(parents=True, exist_ok=True)
    place = files.place_of(desk, goal)
    text = prompt(goal, one.round, ideas.listed(place / session.IDEAS))
    for path in (logs / "prompt.md", inbox / "prompt.md"):
        path.write_text(text, encoding="utf-8")
    desk.step(one, "dispatched", driver="researcher")
    return Dispatch(one, work, inbox / "prompt.md", inbox / "submission.json")


def submission(given: Dispatch) -> tuple[dict[str, Any], list[str]]:
    """What the researcher says of its change; what is no JSON object says nothing."""
    if not given.submission.is_file():
        return {}, ["no submission file"]
    try:
        body = parsed_json(given.submission.read_text(encoding="utf-8", errors="replace")[:65536])
    except ValueError:
        return {}, ["submission: not JSON"]
    return (body, []) if isinstance(body, dict) else ({}, ["submission: no JSON object"])


def prompt(goal: Goal, number: int, waiting: list[str]) -> str:
    """What the researcher is told. It holds no file's content."""
    terms = session.terms_of(goal)
    best = session.best_of(goal)
    lines = [
        f"# Experiment {number}: {terms.name}",
        "",
        f"Goal: {terms.objective or terms.name}.",
        f"Metric: {terms.metric} ({terms.direction} is better). Best so far: "
        f"{best.text if best is not None else 'none'}.",
        f"In scope: {', '.join(terms.scope) or 'every file that is not off limits'}.",
        f"Off limits: {', '.join((*terms.off_limits, session.SCRIPT, session.CHECKS))}.",
        f"Constraints: {'; '.join(terms.constraints) or 'none'}.",
        "",
        "Change the files in this folder, one hypothesis only. The harness measures what you leave here, you",
        "do not. Then write a JSON object to the file that AR_SUBMISSION names: description (what was",
        "tried), hypothesis (what you expect and why), next_action_hint (what to try if it does not work).",
        "",
        "## What was tried",
        *document.tried(goal),
    ]
    if waiting:
        lines += ["", "## Ideas that wait", *(f"- {plain(text, ideas.CAP)}" for text in waiting)]
    return "\n".join(lines) + "\n"


def _tell(desk: Desk, one: Try) -> None:
    decision = one.decision or {}
    word = VIEWS[str(one.status)].journal
    value = str(decision.get("text") or "no value")
    desk.voice.say(f"#{one.round} {word}: {value} ({decision.get('insight')})")
    for line in recording.hints(desk.goal(), one):
        desk.voice.say(f"  {line}")
