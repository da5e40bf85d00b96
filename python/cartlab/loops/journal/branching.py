"""`journal finalize create` and `verify`: the planned branches, all of them or none, and what holds of them.

Commits are objects that nothing names until one transaction of git makes all branches at once. No checkout,
index or stash is touched, so there is nothing to put back; the session's branch stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import manifest, policies, rounds, trees
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal import finalising, judging, session
from cartlab.loops.journal.finalising import Group, Plan
from cartlab.loops.running import Failed
from cartlab.sources import git
from cartlab.words import counted

# --- create -----------------------------------------------------------------------------------------


def create(desk: Desk, goal: Goal, made: Plan, reason: str) -> dict[str, str]:
    """Make the branches; branch -> commit. After a kill in between, the same call finishes or begins anew.
    NotLegalNow without a person's reason.
    """
    if not reason.strip():
        raise NotLegalNow(
            "branches for review are made with a person's word; none was given", 'add --approve "why"'
        )
    _untouched(desk, goal)
    pending = goal.body.get("finalizing")
    if pending is not None:
        if all(_ref(desk, name) == commit for name, commit in pending["branches"].items()):
            desk.tell("finalized", branches=pending["branches"], plan=pending["plan"])
            return dict(pending["branches"])
        _take_back(desk, pending["branches"])
    taken = [group.branch for group in made.groups if _ref(desk, group.branch) is not None]
    if taken:
        raise NotLegalNow(
            f"the branch {taken[0]} is there already; nothing was made",
            "delete it, or name the group otherwise (--groups FILE)",
        )
    commits = {group.branch: _commit(desk, goal, made, group) for group in made.groups}
    desk.ledger.append(
        "approval",
        None,
        {"goal": goal.id, "what": "branches for review", "command": sorted(commits), "reason": reason},
    )
    desk.tell("finalizing", branches=commits, plan=made.to_json())
    rows = "".join(f"create refs/heads/{name} {commit}\n" for name, commit in commits.items())
    try:
        git.feed(desk.repo, rows.encode(), "update-ref", "--stdin")
    except BadInput:
        _take_back(desk, commits)
        raise
    desk.tell("finalized", branches=commits, plan=made.to_json())
    return commits


def _commit(desk: Desk, goal: Goal, made: Plan, group: Group) -> str:
    """The base with the group's files as the session's tip has them."""
    base, tip = trees.manifest_of(desk.repo, made.base), trees.manifest_of(desk.repo, made.tip)
    wanted = {path: entry for path, entry in base.items() if path not in group.files}
    wanted.update({path: tip[path] for path in group.files if path in tip})
    tree = trees.write(desk.repo, desk.repo, wanted, made.base)
    if tree == trees.tree_of(desk.repo, made.base):
        raise BadInput(f"the group {group.name} is empty: its branch would hold what the trunk holds")
    return trees.commit(desk.repo, tree, [made.base], finalising.message(desk, goal, group))


def _ref(desk: Desk, branch: str) -> str | None:
    done = git.ask(desk.repo, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
    return done.stdout.decode().strip() if done.returncode == 0 else None


def _take_back(desk: Desk, branches: dict[str, str]) -> None:
    """Remove those of our branches that still hold our commit."""
    for name, commit in branches.items():
        if _ref(desk, name) == commit:
            trees.tell(desk.repo, "update-ref", "-d", f"refs/heads/{name}", commit)


def _untouched(desk: Desk, goal: Goal) -> None:
    branch = goal.body.get("branch")
    if branch is not None and _ref(desk, branch) != goal.accepted:
        raise NotLegalNow(
            f"the session's branch {branch} must stand on {goal.accepted[:12]}, its last keep; it was moved",
            f"git update-ref refs/heads/{branch} {goal.accepted}",
        )


# --- verify -----------------------------------------------------------------------------------------


@dataclass
class Checked:
    """One branch: what does not hold of it (empty: ready for review), and what it measured."""

    branch: str
    value: float | None = None
    wrong: list[str] = field(default_factory=list)
    title: str = ""
    said: str = ""


def verify(
    desk: Desk, goal: Goal, trunk: str | None = None, *, measure: bool = True
) -> tuple[list[Checked], list[str]]:
    """All branches, and what does not hold of them together. trunk: another one than they were made for."""
    done = goal.body.get("finalized")
    if done is None:
        raise NotLegalNow(
            "no branches were made of this session", '`journal finalize create --approve "why"`'
        )
    made = Plan.from_json(done["plan"])
    base = trees.manifest_of(desk.repo, made.base)
    union: dict[str, manifest.Entry] = dict(base)
    touched: dict[str, str] = {}
    out: list[Checked] = []
    for group in made.groups:
        one = Checked(group.branch, title=group.title)
        out.append(one)
        commit = _ref(desk, group.branch)
        if commit is None:
            one.wrong.append("the branch is gone")
            continue
        if commit != done["branches"][group.branch]:
            one.wrong.append("the branch was moved since it was made")
        held = trees.manifest_of(desk.repo, commit)
        changed = manifest.changes(base, held)
        if not changed:
            one.wrong.append("it is empty: the trunk's tree")
        one.wrong += [
            f"it holds the session's {path}" for path in held if finalising.session_file(path, base)
        ]
        for change in changed:
            if change.path in touched:
                one.wrong.append(f"{change.path} is also changed by {touched[change.path]}")
            touched[change.path] = group.branch
            if change.what == "removed":
                union.pop(change.path, None)
            else:
                union[change.path] = held[change.path]
        one.wrong += _merges(desk, trunk or made.trunk, commit)
        if measure:
            _measure(desk, goal, group, one, commit)
    tip = trees.manifest_of(desk.repo, made.tip)
    wanted = {path: entry for path, entry in tip.items() if not finalising.session_file(path, base)}
    whole = [
        f"{change.path} differs between the session and the branches together"
        for change in manifest.changes(wanted, union)
    ]
    branch = goal.body.get("branch")
    if branch is not None and _ref(desk, branch) != goal.accepted:
        whole.append(f"the session's branch {branch} was moved")
    desk.tell(
        "verified",
        branches={one.branch: {"value": one.value, "wrong": one.wrong} for one in out},
        whole=whole,
    )
    return out, whole


def _merges(desk: Desk, trunk: str, commit: str) -> list[str]:
    done = git.ask(desk.repo, "merge-tree", "--write-tree", "--name-only", trunk, commit)
    if done.returncode == 0:
        return []
    if done.returncode == 1 and done.stdout:  # it is 1 without a word on it where there is no such trunk
        names = done.stdout.decode("utf-8", "replace").split("\n\n")[0].splitlines()[1:]
        return [f"it does not merge with {trunk}: {', '.join(names[:3]) or 'conflict'}"]
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return [f"whether it merges with {trunk} was not found out: {words[-1] if words else 'git failed'}"]


def _measure(desk: Desk, goal: Goal, group: Group, one: Checked, commit: str) -> None:
    """Benchmark and checks of a branch alone; better than the baseline, or equal where code was taken out."""
    number = sum(1 for event in desk.ledger.events() if event["body"].get("op") == "verified")
    bench = judging.bench_of(desk, goal, Try(f"{goal.id}-final-{group.name}-{number + 1}", 0), commit)
    try:
        value = bench.value(rounds.draw_seed(goal))
        failing = bench.checks()
    except Failed as failed:
        one.wrong.append(failed.insight)
        return
    finally:
        desk.clear(bench.one.id)
    one.value = value.number
    if failing is not None:
        one.wrong.append(failing)
    base = session.baseline_of(goal)
    stated = None if base is None else (base.decision or {}).get("value")
    if stated is None:
        return
    simpler = any(
        (found.decision or {}).get("inputs", {}).get("simplification")
        for found in goal.tries
        if found.round in group.runs and found.kept
    )
    better = policies.better(value.number, float(stated), session.terms_of(goal).direction)
    equal = simpler and abs(value.number - float(stated)) <= session.noise_of(goal)
    one.said = f"{session.terms_of(goal).metric}: {float(stated):.9g} -> {value.text}"
    if not better and not equal:
        one.wrong.append(
            f"alone it measures {value.text}, not better than the baseline's {float(stated):.9g}"
        )


def shown(goal: Goal, found: list[Checked], whole: list[str], total: int) -> list[str]:
    """The report for people."""
    lines = [f"{counted(len(found), 'branch', 'branches')} from {counted(total, 'experiment')}:"]
    for one in found:
        lines += ["", f"  {one.branch}"]
        if one.said:
            lines.append(f"    {one.said}")
        lines += [f"    {text}" for text in one.wrong] or ["    ready for review"]
    lines += ["", *(f"wrong: {text}" for text in whole)]
    return [*lines, f"session kept: {session.named(goal)}"]


def as_json(found: list[Checked]) -> list[dict[str, Any]]:
    """For `--json`."""
    return [{"branch": one.branch, "value": one.value, "wrong": one.wrong} for one in found]
