"""The supervisor: rounds in a row until the protocol's own end, and what to do when a run is taken up again.

The loop ends for three reasons only: the target is reached, the last round is closed, or somebody asked it to
stop. A failed round is a round; what it taught is in its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.loops import approvals, dispatch, holdout, intake, manifest, opening, rounds, tasks, trees, views
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.running import Bench, Failed
from cartlab.loops.states import ENDED
from cartlab.loops.worktree import Worktree
from cartlab.words import counted

# What training leaves behind, as ignore rules: none of it may enter a commit.
ARTEFACTS = ("outputs/", "logs/", "checkpoints/", "wandb/", "__pycache__/")


# --- the start of a run ---------------------------------------------------------------------------


def prepare(desk: Desk) -> None:
    """Worktree, ignore rules and state as they have to be before a round starts; what a killed run left is
    finished or taken back.
    """
    goal = desk.goal()
    holdout.require_hidden(desk)
    tree = desk.worktree(goal)
    if not tree.exists():
        tree.create(goal.accepted)
        goal = desk.goal()
    if not goal.tries and goal.state == "not_started":
        _ignore_artefacts(desk, goal, tree)
        goal = desk.goal()
    recover(desk, goal, tree)
    dispatch.take_notes(desk, desk.goal())
    dispatch.render_views(desk, desk.goal())


def _ignore_artefacts(desk: Desk, goal: Goal, tree: Worktree) -> None:
    top = dispatch.top_of(goal)
    samples = {f"{top}/{name}x" if top else f"{name}x": name for name in ARTEFACTS}
    hidden = trees.ignored(tree.path, list(samples))
    missing = [name for path, name in samples.items() if path not in hidden]
    if not missing:
        desk.tell("ignored", present=list(ARTEFACTS), added=[])
        return
    path = tree.path / top / ".gitignore"
    old = path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
    gap = "" if not old or old.endswith("\n") else "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(old + gap + "\n".join(missing) + "\n", encoding="utf-8", errors="surrogateescape")
    base = dict(trees.manifest_of(desk.repo, goal.accepted))
    base[f"{top}/.gitignore" if top else ".gitignore"] = manifest.read(path)
    made = trees.write(desk.repo, tree.path, base, goal.accepted)
    commit = trees.commit(
        desk.repo, made, [goal.accepted], "autoresearch: ignore what training leaves behind"
    )
    trees.keep_ref(desk.repo, f"{trees.REFS}accepted/{goal.id}", commit)
    desk.tell("base", commit=commit, added=missing)
    tree.move_to(commit, dispatch.view_paths(goal))


def recover(desk: Desk, goal: Goal, tree: Worktree) -> None:
    """After an interruption. HEAD has to be the last accepted commit; a round without verdict is taken back
    and runs again, one with a verdict is finished.
    """
    last = goal.last
    # Killed between recording a commit and moving to it: the worktree still stands on the one before.
    moving = not goal.tries or (last is not None and last.state == "accepted")
    allowed = {goal.accepted, goal.before} if moving else {goal.accepted}
    head = tree.head()
    if head not in allowed:
        raise NotLegalNow(
            f"the worktree {tree.path} must stand on {goal.accepted[:12]}, the last accepted round; it "
            f"stands on {head[:12]}",
            f"nothing was changed. To go on: git -C {tree.path} checkout --detach {goal.accepted}",
        )
    if head != goal.accepted and (last is None or last.state == "closed"):
        tree.move_to(goal.accepted, dispatch.view_paths(goal))
    if last is None or last.state == "closed":
        return
    if last.decision is not None:
        rounds.finish(desk, last)
    elif not (last.state == "dispatched" and last.steps["dispatched"]["driver"] == "agent"):
        give_up(desk, goal, last)


def give_up(desk: Desk, goal: Goal, one: Try, why: str = views.INTERRUPTED) -> None:
    """Close an attempt that nobody works on any more; its round runs again."""
    desk.step(one, "interrupted")
    rounds.act(desk, goal, one, rounds.Result("interrupted", why, retry=True), str(goal.body["policy"]))


def next_round(goal: Goal, extend: int | None) -> int:
    """The round to run now, by the resume table; NotLegalNow where the goal has ended."""
    # One whose protocol was changed since, to more rounds or another target, has not ended any more.
    if goal.state in ENDED and not extend and rounds.ending(goal) is not None:
        raise NotLegalNow(
            f"this goal is done: {goal.state}. {views.experiences_of(goal).best} is its best value",
            "`supervise PROTOCOL --extend N` goes on for N more rounds; by hand, `protocol set max_rounds N`",
        )
    if goal.state not in ("not_started", "running", "stopped_by_user", *ENDED):
        raise NotLegalNow(f"a goal that is {goal.state} cannot be taken up", "`show` tells why it is")
    done = goal.closed_rounds()
    return done[-1].round + 1 if done else 1


# --- the loop -------------------------------------------------------------------------------------


def run(desk: Desk, researcher: str, extend: int | None = None) -> Goal:
    """All rounds that are left, then the goal as it ended."""
    with desk.alone():
        approvals.admit(desk.ledger, desk.goal_id, researcher, desk.options.approve)
        prepare(desk)
        goal = desk.goal()
        number = next_round(goal, extend)
        if extend:
            desk.tell("extended", max_rounds=views.protocol_of(goal).max_rounds + extend)
        desk.tell("state", state="running")
        goal = desk.goal()
        desk.voice.say(tasks.announce(views.protocol_of(goal), number))
        while (reason := rounds.ending(goal)) is None:
            measure_baseline(desk)
            one_round(desk, researcher, number)
            goal = desk.goal()
            _tell_round(desk, goal, number)
            if rounds.ending(goal) is None:
                dispatch.require_start(goal.closed_rounds())
            number += 1
        close(desk, reason)
        return desk.goal()


def close(desk: Desk, reason: str) -> None:
    """Record why the goal ended, and render its files."""
    why = desk.goal().stop_asked if reason == "stopped_by_user" else reason
    desk.tell("state", state=reason, reason=why)
    dispatch.render_views(desk, desk.goal())


def one_round(desk: Desk, researcher: str, number: int) -> None:
    """One round to its verdict; a passing failure is tried once more, on the same tree."""
    goal = desk.goal()
    given = dispatch.start(desk, goal, number, "supervise")
    failed = dispatch.research(desk, goal, given, researcher)
    dispatch.require_program(failed)
    finding = intake.take_in(desk, goal, given)
    settle(desk, given, finding, failed)
    for _ in range(desk.options.train_retries):
        last = desk.goal().last
        if last is None or not (last.decision or {}).get("retried"):
            return
        again(desk, last)


def settle(desk: Desk, given: dispatch.Dispatch, finding: Any, failed: Failed | None = None) -> None:
    """Judge what was taken in, and act on it."""
    goal = desk.goal()
    policy = str(goal.body["policy"])
    if failed is not None:
        result = rounds.Result(failed.verdict, failed.insight)
    else:
        result = rounds.decide(desk, goal, given.one, finding, policy, int(goal.body["k"]))
    if result.retry and retries(goal, given.one) >= desk.options.train_retries:
        result.retry = False
    rounds.act(desk, goal, given.one, result, policy)


def retries(goal: Goal, one: Try) -> int:
    """How often its round was tried again already; what was cut short is no try."""
    return sum(
        other.round == one.round
        and bool((other.decision or {}).get("retried"))
        and other.status != "interrupted"
        for other in goal.tries
    )


def again(desk: Desk, earlier: Try) -> None:
    """The same tree once more, as attempt 2 of its round."""
    goal = desk.goal()
    given = dispatch.start(desk, goal, earlier.round, "retry")
    work = desk.work_folder(given.one.id) / "work"
    trees.lay(desk.repo, str(earlier.commit), work, dispatch.view_paths(goal))
    strategy = str(earlier.steps["submitted"]["strategy"])
    finding = intake.take_in(desk, goal, given, strategy)
    settle(desk, given, finding)


def measure_baseline(desk: Desk) -> None:
    """After a change of what a number means: the accepted tree's value under the new rules."""
    goal = desk.goal()
    if goal.segment == int(goal.body.get("measured_segment", 0)):
        return
    protocol = views.protocol_of(goal)
    one = Try(f"{goal.id}-baseline{goal.segment}", 0)
    bench = Bench(desk, one, protocol, dispatch.top_of(goal), goal.accepted)
    try:
        value = bench.value(rounds.draw_seed(goal))
    except Failed as failed:
        raise NotLegalNow(
            f"the baseline cannot be measured under the changed protocol: {failed.insight}",
            "correct it with `protocol set`",
        ) from None
    finally:
        desk.clear(one.id)
    desk.tell(
        "protocol",
        describes={
            "protocol": replace(protocol, baseline=value.text).to_json(),
            "measured_segment": goal.segment,
        },
        keys=["baseline"],
        segment=False,
        who="cartlab",
        why="measured again",
    )


def _tell_round(desk: Desk, goal: Goal, number: int) -> None:
    last = goal.closed_rounds()
    if not last or last[-1].round != number:
        return
    row, best = views.row_of(last[-1]), views.best_of(goal)
    protocol = views.protocol_of(goal)
    for line in tasks.progress(
        protocol, number, row.result or "none", row.verdict or "undecided", best.text, best.round
    ):
        desk.voice.say(line)
    if not row.result and row.insight:
        desk.voice.say(f"  Why: {row.insight}")
    since = len(last) - max((at + 1 for at, one in enumerate(last) if one.kept), default=0)
    if since and since % desk.options.plateau == 0:
        desk.voice.say(plateau(last, since))


def plateau(done: Sequence[Try], since: int) -> str:
    """The warning after several rounds without a gain; the loop goes on."""
    recent = [views.row_of(one).strategy for one in done[-since:]]
    repeats = len(recent) - len(set(recent))
    why = "strategies are repeating" if repeats else "variable space may be exhausted"
    return f"plateau: {counted(since, 'round')} in a row without an improvement ({why}); the loop goes on"


# --- besides --------------------------------------------------------------------------------------


def foretell(repo: Path, file: Path, researcher: str, goal: Goal | None, extend: int | None) -> list[str]:
    """What a run would do, without doing it. goal: the protocol's, None where it has none yet."""
    wanted, number = opening.read_protocol(file), 1
    where, _ = opening.place_of(repo, file)
    best = wanted.baseline
    if goal is not None:
        number, best = next_round(goal, extend), views.experiences_of(goal).best
        wanted, _ = opening.with_edits(goal, wanted)
        wanted = replace(wanted, max_rounds=wanted.max_rounds + (extend or 0))
    left = max(0, wanted.max_rounds - number + 1)
    return [
        f"would run up to {counted(left, 'round')} of `{researcher}` in {where}",
        f"metric: {wanted.metric} ({wanted.direction} is better), baseline {wanted.baseline}",
        *tasks.created(wanted, number, best),
    ]


def remove_worktree(desk: Desk, goal: Goal) -> None:
    """Take the worktree away; NotLegalNow while a process works in it. The accepted commit keeps its ref."""
    tree = desk.worktree(goal)
    inside = [pid for pid, place in _places() if place == tree.path or tree.path in place.parents]
    if inside:
        raise NotLegalNow(
            f"the worktree {tree.path} is in use by process {inside[0]}", "end it, or keep the worktree"
        )
    tree.remove()


def _places() -> list[tuple[int, Path]]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found.append((int(entry.name), (entry / "cwd").readlink()))
        except OSError:
            continue
    return found
