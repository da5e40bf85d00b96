"""Sending an attempt out: the task list, the working copy, the prompt, and the researcher's one run.

The researcher gets a copy of the accepted tree without `.git`, in a fresh process, and hands files back. What
a person writes into a Note cell meanwhile is taken up here, and the two generated files are rendered here.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import approvals, commands, experiences, protocol, tasks, trees, views
from cartlab.loops.desk import Desk
from cartlab.loops.goals import SUPERVISE, Goal, Try
from cartlab.loops.running import Failed, rooted
from cartlab.loops.worktree import repository_state

VIEW_NAMES = ("experiences.md", "autoresearch-protocol.md")
STRATEGY_CAP = 500
# A shell's exit codes for a program that it may not run and for one that it does not find.
CANNOT_RUN = (126, 127)
# What a shell or an interpreter also ends with where it does not find the script that it was given.
NOT_STARTED = (2, *CANNOT_RUN)
# A researcher that ended so within so many seconds did no work; its confinement and an interpreter's start on
# a busy machine count in them.
START_S = 5.0
# How often the same failure in a row counts as a loop: what comes next would be the same.
SAME = 3
# The names of what the researcher is handed, beside the placeholders of the same names.
ENVIRONMENT = {"prompt": "AR_PROMPT", "submission": "AR_SUBMISSION", "work": "AR_WORK"}


@dataclass(frozen=True)
class Dispatch:
    """What a researcher gets. work: a copy of the accepted tree without `.git`; submission: where its JSON
    file goes, `{"strategy": "..."}`.
    """

    one: Try
    work: Path
    prompt: Path
    submission: Path


def top_of(goal: Goal) -> str:
    """The experiment's folder relative to the repository's top; "" for the top itself."""
    return str(goal.body["top"])


def view_paths(goal: Goal) -> tuple[str, ...]:
    """The two generated files as paths of the tree; other loops keep theirs elsewhere."""
    return rooted(top_of(goal), VIEW_NAMES) if goal.loop == SUPERVISE else ()


def render_views(desk: Desk, goal: Goal) -> None:
    """Write experiences.md and the protocol into the worktree, from the ledger."""
    folder = desk.worktree(goal).path / top_of(goal)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "experiences.md": experiences.render(views.experiences_of(goal)),
        "autoresearch-protocol.md": protocol.render(views.protocol_of(goal), desk.options.locale),
    }
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
            path.write_text(text, encoding="utf-8")


def take_notes(desk: Desk, goal: Goal) -> None:
    """What a person wrote into the Note cell of the newest round's row becomes a note of it."""
    path = desk.worktree(goal).path / top_of(goal) / "experiences.md"
    if not path.is_file() or goal.last is None:
        return
    try:
        row = experiences.parse(path.read_text(encoding="utf-8", errors="replace")).row(goal.last.round)
    except BadInput as error:
        desk.voice.warn(f"experiences.md was rendered again: {error.message}")
        return
    known = experiences.one_line("; ".join(goal.last.notes))
    if row is not None and row.note.strip() and row.note != known:
        added = row.note.removeprefix(known).removeprefix("; ").strip()
        desk.note(goal.last, commands.plain(added, STRATEGY_CAP))


# --- start ----------------------------------------------------------------------------------------


def start(desk: Desk, goal: Goal, number: int, driver: str) -> Dispatch:
    """Make the task list, then the working copy and the prompt, and dispatch."""
    asked, best = views.protocol_of(goal), views.best_of(goal)
    tries = sum(1 for one in goal.tries if one.round == number) + 1
    one = Try(f"{goal.id}-r{number}" + (f".{tries}" if tries > 1 else ""), number, segment=goal.segment)
    desk.step(
        one,
        "proposed",
        tasks=tasks.created(asked, number, best.text),
        base=goal.accepted,
        best=best.text,
        best_round=best.round,
    )
    work = desk.work_folder(one.id) / "work"
    trees.lay(desk.repo, goal.accepted, work)
    place = work / top_of(goal)
    place.mkdir(parents=True, exist_ok=True)
    rows = views.experiences_of(goal)
    (place / "experiences.md").write_text(experiences.render(rows), encoding="utf-8")
    folder = desk.run_folder(one.id)
    folder.mkdir(parents=True, exist_ok=True)
    inbox = desk.work_folder(one.id) / "inbox"
    inbox.mkdir(parents=True, exist_ok=True)
    text = tasks.prompt(asked, number, rows.rows, "experiences.md", desk.options.recent)
    (folder / "prompt.md").write_text(text, encoding="utf-8")
    shutil.copyfile(folder / "prompt.md", inbox / "prompt.md")
    desk.step(one, "dispatched", driver=driver)
    return Dispatch(one, place, inbox / "prompt.md", inbox / "submission.json")


def dispatched(desk: Desk, goal: Goal, one: Try) -> Dispatch:
    """The places of an attempt that was dispatched before."""
    inbox = desk.work_folder(one.id) / "inbox"
    return Dispatch(
        one,
        desk.work_folder(one.id) / "work" / top_of(goal),
        inbox / "prompt.md",
        inbox / "submission.json",
    )


def require_program(failed: Failed | None) -> None:
    """NotLegalNow where the researcher's command cannot run here: the rounds that are left would all be spent
    on the same mistake. The open attempt is taken back when the loop is taken up again.
    """
    if failed is not None and failed.missing:
        raise NotLegalNow(
            f"expected a researcher's command that can be run, found: {failed.insight}",
            "correct the command and run the same line again; no round was spent. Names without / are looked "
            "for on the PATH, those with one from the experiment's folder in the working copy",
        )


def alike(done: Sequence[Try]) -> bool:
    """Did the last attempts, as many as make a loop, end with one verdict in the same words. An attempt's own
    folder bears its name: that is no other word.
    """
    last = done[-SAME:]
    words = {(one.status, str((one.decision or {}).get("insight", "")).replace(one.id, "")) for one in last}
    return len(last) == SAME and len(words) == 1


def require_start(done: Sequence[Try]) -> None:
    """NotLegalNow where the researcher of the last attempts did not get to work: it ended at once and alike,
    as one does whose script is missing, and touched nothing.

    done: attempts with their verdicts, in order.
    """
    if not alike(done) or not all(_never_began(one) for one in done[-SAME:]):
        return
    last = done[-1]
    raise NotLegalNow(
        f"the researcher did not start: {SAME} attempts in a row ended alike within {START_S:g} s and "
        f"changed no file: {(last.decision or {}).get('insight')}",
        "correct the command (is its script there, seen from the experiment's folder in the working copy?) "
        "and run the same line again: it goes on with the next attempt",
    )


def _never_began(one: Try) -> bool:
    handed_in = one.steps.get("submitted", {})
    if handed_in.get("changes") or handed_in.get("touched"):
        return False
    runs = [body for _, body in one.measurements if body["role"] == "researcher"]
    return bool(runs) and runs[-1].get("returncode") in NOT_STARTED and float(runs[-1]["seconds"]) <= START_S


def research(
    desk: Desk,
    goal: Goal,
    given: Dispatch,
    command: str,
    *,
    limit_s: float | None = None,
    more: Mapping[str, str] | None = None,
    what: str = "",
) -> Failed | None:
    """Run the researcher's command once, in a fresh process, to its end or its deadline.

    limit_s: the deadline, twice the time limit where none is given; more: further variables of its
    environment; what: the attempt's name for people.
    """
    approvals.require(command, desk.options.approve)
    limit = limit_s or 2 * views.protocol_of(goal).time_limit_s
    name = what or f"round {given.one.round}"
    own = desk.work_folder(given.one.id)
    places = {"prompt": given.prompt, "submission": given.submission, "work": given.work}
    temporary = own / "researcher-tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    extra = {ENVIRONMENT[name]: str(path) for name, path in places.items()}
    env = commands.researcher_environment(
        {**extra, "AR_ROUND": str(given.one.round), "TMPDIR": str(temporary), **(more or {})}
    )
    before = repository_state(desk.repo)
    seen = len(desk.ledger.events())
    desk.voice.progress(f"{name}: the researcher works (at most {limit:g} s)")
    ran = commands.run(
        desk.wrap(
            commands.fill(command, **places), own / "work", own / "inbox", temporary, *desk.options.writable
        ),
        cwd=given.work,
        env=env,
        limit_s=limit,
        folder=desk.run_folder(given.one.id),
        name="researcher",
    )
    desk.measured(given.one, "researcher", seconds=ran.seconds, returncode=ran.returncode, left=ran.left)
    # What changed while the kernel confined it is another command's: several loops may share a root.
    if desk.options.isolation != "landlock" and (why := _written(desk, before, seen)):
        return Failed("tampered", why)
    if ran.returncode is None:
        return Failed(
            "timeout", f"timeout after {limit:g}s — likely cause: the researcher did not end by its deadline"
        )
    ready = any(line.strip() == tasks.READY for line in ran.output.splitlines())
    if ran.returncode != 0 and not ready:
        words = commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)
        return Failed(
            "crashed",
            f"crash: {words}. Likely cause: the researcher's command failed",
            missing=ran.returncode in CANNOT_RUN,
        )
    return None


def _written(desk: Desk, before: Mapping[str, str], seen: int) -> str | None:
    """What was written in the repository or the ledger while an unconfined researcher ran, or None."""
    after = repository_state(desk.repo)
    moved = [name for name in before if before[name] != after[name]]
    if moved:
        return f"the repository's {', '.join(moved)} changed while the researcher ran: it may not write there"
    strangers = [event for event in desk.ledger.events()[seen:] if event["type"] not in ("note", "goal")]
    if any(event["body"].get("role") != "researcher" for event in strangers):
        return "the ledger got events while the researcher ran that no command of ours wrote"
    return None
