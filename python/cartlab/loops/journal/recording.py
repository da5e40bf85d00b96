"""`journal log`: a submission from its folder to its place in the ledger, and what a kill left undone.

Order of what is written: the submission as a commit below refs/ar/attempts, then the runs, then the verdict
and the session's files, and only then does the worktree move. A submission that has no verdict is left where
it is; one that has is finished.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cartlab.errors import (
    BadInput,
    ChecksFailed,
    MetricError,
    NotLegalNow,
    UsageError,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.loops import codelines, commands, compliance, intake, journal_file, manifest, trees
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal import files, judging, session
from cartlab.loops.journal.judging import Verdict
from cartlab.loops.running import Failed
from cartlab.loops.states import OVER, VIEWS
from cartlab.loops.views import protocol_of
from cartlab.sources import git

TEXT_CAP = 1000
INIT_MESSAGE = "autoresearch: initialize experiment session"


@dataclass(frozen=True)
class Entry:
    """What is handed in with a submission. asi: what was learned, with "hypothesis"; typed_*: what whoever
    hands in believes; the harness measures and says where they differ. source: the folder that holds the
    files, None for the session's worktree; agent: whose memory the hand-over hint counts.
    """

    description: str
    asi: Mapping[str, Any] = field(default_factory=dict)
    typed_metric: float | None = None
    typed_status: str | None = None
    forced: bool = False
    source: Path | None = None
    agent: str = ""


def validate(entry: Entry) -> None:
    """UsageError for a description or an ASI that says too little."""
    if not entry.description.strip():
        raise UsageError("an experiment needs a description", '--description "what was tried"')
    if not str(entry.asi.get("hypothesis") or "").strip():
        raise UsageError(
            "every entry needs asi.hypothesis: what was expected to happen, and why",
            '--hypothesis "..." or --asi \'{"hypothesis": "..."}\'',
        )
    typed = entry.typed_status
    if typed is not None and typed not in journal_file.STATUSES:
        raise UsageError(f"a status is one of {', '.join(journal_file.STATUSES)}; found {typed!r}")
    if typed not in (None, "keep") and not str(entry.asi.get("rollback_reason") or "").strip():
        raise UsageError(
            f"an entry that is typed {typed} needs asi.rollback_reason: why it is taken back",
            '--rollback-reason "..."',
        )


# --- the state before a record ------------------------------------------------------------------------


def prepare(desk: Desk) -> Goal:
    """Worktree, files and attempts as they have to be; what a killed run left is finished."""
    goal = desk.goal()
    tree = desk.worktree(goal)
    if not tree.exists():
        tree.create(goal.accepted)
    last = goal.last
    moving = last is not None and last.state in ("decided", "accepted", "rolled_back")
    head, branch = tree.head(), git.branch(tree.path)
    if branch != tree.branch:
        raise NotLegalNow(
            f"the session's worktree {tree.path} must be on {tree.branch or 'no branch'}; it is on "
            f"{branch or 'no branch'}",
            f"git -C {tree.path} checkout {tree.branch or '--detach ' + goal.accepted}",
        )
    # Killed between recording a commit and moving to it: the worktree still stands on the one before.
    allowed = {goal.accepted, goal.before} if moving or last is None else {goal.accepted}
    if head not in allowed:
        raise NotLegalNow(
            f"the session's worktree {tree.path} must stand on {goal.accepted[:12]}, its last kept "
            f"experiment; it stands on {head[:12]}",
            f"hand in files, not commits: git -C {tree.path} reset --soft {goal.accepted}",
        )
    if last is not None and last.state != "closed":
        if last.decision is None:
            give_up(desk, last)
        else:
            finish(desk, last)
    elif head != goal.accepted:
        tree.move_to(goal.accepted, session.FILES)
    _end(desk, stops=False)
    goal = desk.goal()
    if session.terms_of(goal).commit and not goal.body.get("files_committed"):
        files.render(desk, goal)
        _commit_files(desk, goal)
    files.render(desk, desk.goal())
    return desk.goal()


def _commit_files(desk: Desk, goal: Goal) -> None:
    """The session's files as a commit of the session branch, with the document's message."""
    made = files.with_files(desk, goal, trees.tree_of(desk.repo, goal.accepted))
    if made != trees.tree_of(desk.repo, goal.accepted):
        commit = trees.commit(desk.repo, made, [goal.accepted], INIT_MESSAGE)
        trees.keep_ref(desk.repo, f"{trees.REFS}accepted/{goal.id}", commit)
        desk.tell("base", commit=commit)
        desk.worktree(goal).move_to(commit, session.FILES)
    desk.tell("files", describes={"files_committed": True})


def give_up(desk: Desk, one: Try, why: str = "interrupted: it was not judged") -> None:
    """Close an attempt without a verdict. The worktree stays as it is: log it again."""
    current = next(found for found in desk.goal().tries if found.id == one.id)
    if current.state != "interrupted":
        desk.step(one, "interrupted")
    desk.decided(
        one, "interrupted", policy=str(desk.goal().body["policy"]), insight=why, inputs={}, retried=True
    )
    desk.step(one, "rolled_back", moved=False)
    desk.clear(one.id)
    desk.step(one, "closed")


def legal(goal: Goal) -> None:
    """NotLegalNow where the session has ended."""
    if goal.state in OVER:
        raise NotLegalNow(
            f"this session has ended: {goal.reason or goal.state}",
            "`journal init` starts a new segment, `journal finalize plan` makes branches of what was kept",
        )


# --- the baseline ---------------------------------------------------------------------------------------


def attempt(goal: Goal) -> Try:
    """A new attempt of the next experiment, counted over the whole file; nothing is recorded yet."""
    earlier = journal_file.parse(str(goal.body.get("before") or "")).results
    decided = [one for one in goal.tries if one.decision is not None and not one.decision.get("retried")]
    number = len(earlier) + len(decided) + 1
    again = sum(1 for one in goal.tries if one.round == number)
    name = f"{goal.id}-r{number}" + (f".{again + 1}" if again else "")
    return Try(name, number, segment=goal.segment)


def measure_baseline(desk: Desk, entry: Entry | None = None) -> Try:
    """Experiment 1 of the segment: the accepted tree's own value. Raises where it has none, because then
    there is nothing to compare with.
    """
    goal = desk.goal()
    one = attempt(goal)
    told = entry or Entry("baseline", {"hypothesis": session.BASELINE_HYPOTHESIS})
    if goal.state != "running":
        desk.tell("state", state="running", reason="")
    desk.step(one, "proposed", base=goal.accepted)
    desk.step(one, "dispatched", driver="cartlab")
    trees.keep_ref(desk.repo, f"{trees.REFS}attempts/{one.id}", goal.accepted)
    _as_accepted(desk, goal, one, told, "accepted")
    desk.step(one, "screened", complies=True)
    desk.step(one, "measuring")
    try:
        verdict = judging.judge_baseline(desk, goal, one, goal.accepted)
    except Failed as failed:
        give_up(desk, one, failed.insight)
        raise _as_error(failed) from None
    _decide(desk, one, verdict)
    finish(desk, one)
    return next(found for found in desk.goal().tries if found.id == one.id)


def _as_error(failed: Failed) -> Exception:
    kinds = {"timeout": WorkerTimeout, "metric_error": MetricError, "checks_failed": ChecksFailed}
    kind = kinds.get(failed.verdict, WorkerCrashed)
    return kind(
        f"the baseline must be measurable; {failed.insight}",
        f"correct {session.SCRIPT} and give it to `journal init --script FILE`",
    )


# --- a submission ---------------------------------------------------------------------------------------


def log(desk: Desk, entry: Entry) -> Try:
    """Record one experiment: take in, measure, decide, commit or take back. The attempt as it was closed."""
    validate(entry)
    with desk.alone():
        goal = prepare(desk)
        legal(goal)
        source = None if entry.source is None else entry.source.resolve()
        if source == desk.worktree(goal).path.resolve():
            source = None
        fresh = session.baseline_of(goal) is None
        if fresh:
            folder = source or desk.worktree(goal).path
            same = not handed_in(desk, goal, folder)
            found = measure_baseline(desk, entry if same else None)
            if same:
                return found
        goal = desk.goal()
        one = attempt(goal)
        desk.step(one, "proposed", base=goal.accepted)
        desk.step(one, "dispatched", driver="agent")
        return submit(desk, one, entry, source or desk.worktree(goal).path, rollback=source is None)


def handed_in(desk: Desk, goal: Goal, folder: Path) -> list[manifest.Change]:
    """What a folder has changed against what the session stands on, without its files and ignored ones."""
    base = trees.manifest_of(desk.repo, goal.accepted)
    changed = manifest.changes(base, manifest.scan(folder))
    new = trees.ignored(desk.worktree(goal).path, [c.path for c in changed if c.what == "added"])
    return [c for c in changed if c.path not in session.FILES and c.path not in new]


def submit(desk: Desk, one: Try, entry: Entry, folder: Path, *, rollback: bool) -> Try:
    """Judge what a folder holds, as an attempt that was dispatched. rollback: put the folder back unless it
    is kept; else it is only read.
    """
    goal = desk.goal()
    if goal.state != "running":
        desk.tell("state", state="running", reason="")
    for name in files.edited_scripts(desk, goal):
        desk.voice.warn(
            f"{name} was edited; this session measures with the pinned one, `journal init` takes up the new"
        )
    finding = _take_in(desk, goal, one, entry, folder, rollback)
    patch = (desk.run_folder(one.id) / "patch.diff").read_text(encoding="utf-8", errors="replace")
    wanted = "" if entry.typed_status in (None, "keep") else str(entry.asi["rollback_reason"])
    try:
        verdict = judging.judge(
            desk, goal, one, finding, codelines.net(patch), lowered=wanted, forced=entry.forced
        )
    except NotLegalNow:
        give_up(desk, one, "not judged: its secondary metrics are not those of the baseline")
        raise
    if entry.typed_metric is not None and verdict.value is not None:
        verdict.inputs["typed"] = entry.typed_metric
    _decide(desk, one, verdict)
    finish(desk, one)
    return next(found for found in desk.goal().tries if found.id == one.id)


def refuse(desk: Desk, one: Try, entry: Entry, verdict: Verdict, folder: Path) -> Try:
    """Record an experiment that gave nothing to measure: a researcher that failed, and whether it changed
    anything in its folder before.
    """
    goal = desk.goal()
    touched = trees.manifest_of(desk.repo, goal.accepted) != manifest.scan(folder)
    _as_accepted(desk, goal, one, entry, "elsewhere", touched=touched)
    _decide(desk, one, verdict)
    finish(desk, one)
    return next(found for found in desk.goal().tries if found.id == one.id)


def _as_accepted(desk: Desk, goal: Goal, one: Try, entry: Entry, source: str, **more: bool) -> None:
    """Record a submission that is the accepted tree itself."""
    desk.step(
        one,
        "submitted",
        strategy=commands.plain(entry.description, TEXT_CAP),
        commit=goal.accepted,
        tree=trees.tree_of(desk.repo, goal.accepted),
        asi=_plain(entry.asi),
        agent=entry.agent,
        source=source,
        **more,
    )


def _take_in(
    desk: Desk, goal: Goal, one: Try, entry: Entry, folder: Path, rollback: bool
) -> compliance.Finding:
    """Read the folder, and record what it holds below refs/ar/attempts, whether it complies or not."""
    base = trees.manifest_of(desk.repo, goal.accepted)
    found = manifest.scan(folder)
    finding = intake.judge(desk, goal, protocol_of(goal), base, found, folder, judging.rules_of(goal))
    whole = {
        path: entry_
        for path, entry_ in found.items()
        if path not in finding.dropped
        and path not in session.FILES
        and entry_.mode != manifest.OTHER
        and ".git" not in path.lower().split("/")
        and (base.get(path) == entry_ or (folder / path).lstat().st_size <= compliance.SIZE_CAP)
    }
    whole.update({path: base[path] for path in session.FILES if path in base})
    tree = trees.write(desk.repo, folder, whole, goal.accepted)
    commit = trees.commit(desk.repo, tree, [goal.accepted], f"attempt {one.id}")
    trees.keep_ref(desk.repo, f"{trees.REFS}attempts/{one.id}", commit)
    logs = desk.run_folder(one.id)
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "patch.diff").write_text(trees.patch(desk.repo, goal.accepted, commit), encoding="utf-8")
    desk.step(
        one,
        "submitted",
        strategy=commands.plain(entry.description, TEXT_CAP).strip(),
        commit=commit,
        tree=tree,
        changes=[[c.what, c.path] for c in finding.changes][:200],
        dropped=list(finding.dropped)[:50],
        flags=list(finding.flags),
        asi=_plain(entry.asi),
        agent=entry.agent,
        source="worktree" if rollback else "elsewhere",
        typed=entry.typed_status,
    )
    return finding


def _plain(asi: Mapping[str, Any]) -> dict[str, Any]:
    """The ASI as data: text capped and printable, anything else through JSON."""
    out: dict[str, Any] = {}
    for key, value in list(asi.items())[:32]:
        if isinstance(value, str):
            out[commands.plain(str(key), 64)] = commands.plain(value, TEXT_CAP)
        else:
            try:
                text = json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise BadInput(f"asi.{key} must be a JSON value; found {value!r}") from None
            out[commands.plain(str(key), 64)] = (
                value if len(text) <= TEXT_CAP else commands.plain(text, TEXT_CAP)
            )
    return out


def _decide(desk: Desk, one: Try, verdict: Verdict) -> None:
    """The verdict into the ledger, then into the session's files: both before anything is taken back."""
    goal = desk.goal()
    best, value = session.best_of(goal), verdict.value
    desk.decided(
        one,
        verdict.status,
        policy=str(goal.body["policy"]),
        insight=commands.plain(verdict.insight, TEXT_CAP),
        value=None if value is None else value.number,
        text="" if value is None else value.text,
        measurement=None if value is None else value.seq,
        metrics=dict(verdict.metrics),
        tree=next(t for t in goal.tries if t.id == one.id).steps["submitted"]["tree"],
        best_before=None if best is None else best.number,
        segment=goal.segment,
        direction=session.terms_of(goal).direction,
        inputs=verdict.inputs,
        advice=list(verdict.advice),
    )
    files.render(desk, desk.goal())


def finish(desk: Desk, one: Try) -> None:
    """Carry out what was decided, from wherever it was left: commit or take back, then close."""
    goal = desk.goal()
    current = next(found for found in goal.tries if found.id == one.id)
    decision = current.decision
    assert decision is not None
    tree = desk.worktree(goal)
    mine = current.steps.get("submitted", {}).get("source") == "worktree"
    if current.kept:
        if "accepted" not in current.steps:
            desk.require_run(current, decision)
            made = trees.commit(
                desk.repo, _kept_tree(desk, goal, current), [goal.accepted], _message(goal, current)
            )
            trees.keep_ref(desk.repo, f"{trees.REFS}accepted/{goal.id}", made)
            desk.step(one, "accepted", commit=made)
        _move(desk, tree.path, desk.goal(), current)
    elif current.status == "baseline":
        if "accepted" not in current.steps and "rolled_back" not in current.steps:
            desk.step(one, "accepted", commit=goal.accepted)
    elif current.state != "closed":
        if mine and "rolled_back" not in current.steps:
            _move(desk, tree.path, goal, current)
        if "rolled_back" not in current.steps:
            desk.step(one, "rolled_back", moved=mine)
    desk.clear(one.id)
    if current.state != "closed":
        desk.step(one, "closed")
        _end(desk)
    files.render(desk, desk.goal())


def _kept_tree(desk: Desk, goal: Goal, one: Try) -> str:
    tree = str(one.steps["submitted"]["tree"])
    return files.with_files(desk, goal, tree) if session.terms_of(goal).commit else tree


def _message(goal: Goal, one: Try) -> str:
    """The document's message of a keep."""
    decision = one.decision or {}
    result = {"status": "keep", session.terms_of(goal).metric: decision["value"]}
    return f"{one.steps['submitted']['strategy']}\n\nResult: {json.dumps(result, ensure_ascii=False)}"


def _move(desk: Desk, folder: Path, goal: Goal, one: Try) -> None:
    """Put the worktree on what is accepted. What lies there and is neither that nor the submission (somebody
    went on working after a kill) is first kept below refs/ar/rescued.
    """
    known = [
        trees.manifest_of(desk.repo, commit)
        for commit in (str(one.commit), goal.accepted, str(one.steps["proposed"]["base"]))
    ]
    found = {path: entry for path, entry in manifest.scan(folder).items() if path not in session.FILES}
    refused = {path for _, path in one.steps["submitted"].get("changes") or ()}
    strange = [
        path
        for path, entry in found.items()
        if path not in refused and all(tree.get(path) != entry for tree in known)
    ]
    strange = sorted(set(strange) - trees.ignored(folder, strange))
    if strange:
        held = {path: known[0][path] for path in found if path in known[0]}
        held.update({path: found[path] for path in strange if found[path].mode != manifest.OTHER})
        held = {path: entry for path, entry in held.items() if ".git" not in path.lower().split("/")}
        made = trees.write(desk.repo, folder, held, goal.accepted)
        commit = trees.commit(desk.repo, made, [goal.accepted], f"rescued from the worktree of {goal.id}")
        trees.keep_ref(desk.repo, f"{trees.REFS}rescued/{one.id}", commit)
        desk.voice.warn(f"{strange[0]} and what else was new is kept as {trees.REFS}rescued/{one.id}")
    desk.worktree(goal).move_to(goal.accepted, session.FILES)


def _end(desk: Desk, stops: bool = True) -> None:
    """After a record: is the session over. Asked at the record's own time: asking again says the same. stops:
    heed a stop that was asked for; between two records it waits for the next one.
    """
    goal = desk.goal()
    done = session.tries(goal)
    if not done or goal.state != "running":
        return
    found = session.ending(goal, datetime.fromisoformat(done[-1].decided_at.replace("Z", "+00:00")))
    if found is not None and (stops or found[0] != "stopped_by_user"):
        desk.tell("state", state=found[0], reason=found[1])


def hints(goal: Goal, one: Try) -> list[str]:
    """What to say to whoever handed in, beside the verdict."""
    out = list((one.decision or {}).get("advice") or ())
    asi = one.steps.get("submitted", {}).get("asi") or {}
    word = VIEWS[str(one.status)].journal
    if word != "keep" and not asi.get("next_action_hint"):
        out.append("asi.next_action_hint is missing: say what should be tried instead (--next-hint)")
    agent = str(one.steps.get("submitted", {}).get("agent") or "")
    count = sum(
        1 for found in session.tries(goal) if str(found.steps["submitted"].get("agent") or "") == agent
    )
    if count and count % session.HAND_OVER == 0:
        out.append(
            f"hand over: {count} experiments in this agent session. All state is in the session's files; a "
            "fresh agent goes on with `journal status`"
        )
    return out
