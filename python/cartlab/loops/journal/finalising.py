"""`journal finalize plan`: which branches for review a session's keeps make. Nothing is written here.

A group is kept experiments whose files no other group touches, so that each branch merges by itself. Without
a file of groups each keep is one, and those that share a file are one together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cartlab.artefacts import read_text
from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import journal_file, manifest, trees
from cartlab.loops.commands import plain
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal import session
from cartlab.loops.journal.opening import slug
from cartlab.model import Stored, parsed_json
from cartlab.sources import git

PREFIX = "autoresearch/finalize/"
_TITLE_CAP = 200


@dataclass(frozen=True)
class Group(Stored):
    """One branch: runs: the kept experiments, in order; files: what they changed and the tip still has
    changed; steps: (value before, value after) of each stretch of them that no other group's keep divides,
    so that no group is given another one's gain.
    """

    name: str
    title: str
    runs: tuple[int, ...]
    files: tuple[str, ...]
    steps: tuple[Sequence[float | None], ...]

    _tuples = ("runs", "files", "steps")

    @property
    def branch(self) -> str:
        """The branch's name."""
        return PREFIX + self.name


@dataclass(frozen=True)
class Plan:
    """base: where every branch starts, the merge base of session and trunk; tip: the session's last keep;
    dropped: keeps of which the tip has nothing any more.
    """

    trunk: str
    base: str
    tip: str
    groups: tuple[Group, ...]
    dropped: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the ledger and finalize.json hold it."""
        return {
            "trunk": self.trunk,
            "base": self.base,
            "tip": self.tip,
            "groups": [group.to_json() for group in self.groups],
            "dropped": list(self.dropped),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Plan:
        """The plan again."""
        groups = tuple(Group.from_json(one) for one in body["groups"])
        return cls(body["trunk"], body["base"], body["tip"], groups, tuple(body["dropped"]))


def plan(desk: Desk, goal: Goal, trunk: str, wanted: Path | None, *, collapse: bool, single: bool) -> Plan:
    """The plan of a session; BadInput or NotLegalNow names what stands in its way."""
    base, tip = _base(desk, goal, trunk), goal.accepted
    kept = [one for one in goal.tries if one.kept and "accepted" in one.steps]
    if not kept:
        raise NotLegalNow(
            "there is nothing to finalise: no experiment was kept", "`journal summary` lists them"
        )
    changed = {c.path for c in _changes(desk, base, tip)}
    if not changed:
        raise NotLegalNow("there is nothing to finalise: the session's tree is the one it started from")
    files = {one.round: _files(desk, one) & changed for one in kept}
    if wanted is not None:
        named = _read(wanted, {one.round for one in kept})
    elif single:
        named = [(goal.id, session.terms_of(goal).name, [one.round for one in kept])]
    else:
        named = [
            ("", str(one.steps["submitted"]["strategy"]), [one.round]) for one in kept if files[one.round]
        ]
    groups = [_group(name, title, runs, kept, files) for name, title, runs in named]
    if wanted is None or collapse:
        groups = _collapsed(groups, kept, files)
    _disjoint(groups)
    names = _named_apart(groups)
    dropped = tuple(number for number, paths in files.items() if not paths)
    return Plan(trunk, base, tip, tuple(names), dropped)


def session_file(path: str, base: manifest.Manifest) -> bool:
    """Is it one of the session's own files, wherever it lies; one that the trunk has is not."""
    return path.rpartition("/")[2] in session.FILES and path not in base


def _base(desk: Desk, goal: Goal, trunk: str) -> str:
    done = git.ask(desk.repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{trunk}^{{commit}}")
    if done.returncode != 0:
        raise BadInput(f"expected the trunk as a branch or commit, found no {trunk!r}", "--trunk BRANCH")
    asked = git.ask(desk.repo, "merge-base", goal.accepted, done.stdout.decode().strip())
    base = asked.stdout.decode().strip()
    start = next(
        str(event["body"]["baseline_commit"])
        for event in desk.ledger.events()
        if event["type"] == "goal" and event["body"]["goal"] == goal.id and event["body"]["op"] == "opened"
    )
    if base != start:
        raise NotLegalNow(
            f"the session started from {start[:12]}, which {trunk} does not hold: its branches would lack "
            "what lies between",
            f"name the trunk that it started from, or that commit: --trunk {start[:12]}",
        )
    return base


def _changes(desk: Desk, base: str, commit: str) -> list[manifest.Change]:
    held = trees.manifest_of(desk.repo, base)
    found = manifest.changes(held, trees.manifest_of(desk.repo, commit))
    return [c for c in found if not session_file(c.path, held)]


def _files(desk: Desk, one: Try) -> set[str]:
    commits = (str(one.steps["proposed"]["base"]), str(one.steps["accepted"]["commit"]))
    missing = [
        name for name in commits if git.ask(desk.repo, "cat-file", "-e", f"{name}^{{commit}}").returncode
    ]
    if missing:
        raise BadInput(
            f"the commit {missing[0][:12]} of experiment #{one.round} is missing from the repository",
            "fetch it again from a clone that has it; refs/ar/accepted held it",
        )
    return {c.path for c in _changes(desk, *commits)}


def _read(path: Path, kept: set[int]) -> list[tuple[str, str, list[int]]]:
    """The groups that a person wrote: `[{"name": ..., "description": ..., "experiments": [2, 5]}]`."""
    example = '[{"name": "depth", "description": "A smaller depth", "experiments": [2, 5]}]'
    try:
        body = parsed_json(read_text(path, "groups", example))
    except ValueError as error:
        raise BadInput(f"{path.name} must be JSON; {error}", example) from None
    rows = body.get("groups") if isinstance(body, dict) else body
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{path.name} must hold a list of groups, at least one", example)
    out: list[tuple[str, str, list[int]]] = []
    seen: dict[int, str] = {}
    for row in rows:
        numbers = row.get("experiments", row.get("runs")) if isinstance(row, dict) else None
        if not isinstance(numbers, list) or not numbers or not all(type(n) is int for n in numbers):
            raise BadInput(f"a group names its experiments by number; found {row!r}", example)
        name = str(row.get("name") or "")
        title = str(row.get("description") or row.get("title") or name)
        for number in numbers:
            if number not in kept:
                raise BadInput(
                    f"experiment #{number} of the group {name!r} was not kept", "only keeps are finalised"
                )
            if number in seen:
                raise BadInput(f"experiment #{number} is in two groups, {seen[number]!r} and {name!r}")
            seen[number] = name
        out.append((name, title, sorted(numbers)))
    left = sorted(kept - set(seen))
    if left:
        raise BadInput(f"experiment #{left[0]} was kept and is in no group", "each keep belongs to one group")
    return out


def _group(
    name: str, title: str, runs: Sequence[int], kept: Sequence[Try], files: dict[int, set[str]]
) -> Group:
    own = [one for one in kept if one.round in runs]
    paths = sorted(set().union(*(files[one.round] for one in own)))
    if not paths:
        raise BadInput(
            f"the group {name or title!r} is empty: nothing of its experiments is left in the session's tree",
            "leave it out, or join it with another",
        )
    return Group(
        name=slug(name or title) if (name or title) else "group",
        title=plain(title or name, _TITLE_CAP),
        runs=tuple(one.round for one in own),
        files=tuple(paths),
        steps=tuple(_steps(kept, own)),
    )


def _steps(kept: Sequence[Try], own: Sequence[Try]) -> list[list[float | None]]:
    """The stretches of a group's keeps, each from the best value before it to its last one's."""
    out: list[list[float | None]] = []
    open_step = False
    for one in kept:
        decision = one.decision or {}
        if one not in own:
            open_step = False
        elif open_step:
            out[-1][1] = float(decision["value"])
        else:
            before = decision.get("best_before")
            out.append([None if before is None else float(before), float(decision["value"])])
            open_step = True
    return out


def _collapsed(groups: list[Group], kept: Sequence[Try], files: dict[int, set[str]]) -> list[Group]:
    """Groups that share a file as one, named after the first, in the order of application."""
    out: list[Group] = []
    for group in groups:
        while True:
            met = next((one for one in out if set(one.files) & set(group.files)), None)
            if met is None:
                break
            out.remove(met)
            title = met.title if met.title == group.title else f"{met.title}; {group.title}"
            joined = _group(met.name, title, [*met.runs, *group.runs], kept, files)
            group = replace(joined, name=met.name)
        out.append(group)
    return sorted(out, key=lambda group: group.runs[0])


def _disjoint(groups: Sequence[Group]) -> None:
    owner: dict[str, Group] = {}
    for group in groups:
        for path in group.files:
            if path in owner:
                raise BadInput(
                    f"{path} is in two groups, {owner[path].name} and {group.name}; neither merges alone",
                    "join them, or let --collapse-overlap do it",
                )
            owner[path] = group


def _named_apart(groups: Sequence[Group]) -> list[Group]:
    out: list[Group] = []
    for group in groups:
        name, at = group.name, 2
        while any(one.name == name for one in out):
            name, at = f"{group.name}-{at}", at + 1
        out.append(replace(group, name=name))
    return out


def change_words(group: Group, arrow: str = " -> ") -> str:
    """`10 -> 7 (-30.0%)`, a stretch each."""
    return ", ".join(_step_words(before, after, arrow) for before, after in group.steps)


def _step_words(before: float | None, after: float | None, arrow: str) -> str:
    if before is None or after is None:
        return f"{after:.9g}"
    percent = f" ({(after - before) / abs(before) * 100:+.1f}%)" if before else ""
    return f"{before:.9g}{arrow}{after:.9g}{percent}"


def message(desk: Desk, goal: Goal, group: Group) -> str:
    """The commit's message in the document's form."""
    found = journal_file.standing(session.journal_of(desk.ledger.events(), goal.id))
    kept = sum(1 for one in found.results if one.status == "keep")
    sure = "n/a" if found.confidence is None else f"{found.confidence:.9g}x noise floor"
    moved = change_words(group, " to ").replace(", ", ", from ")
    return "\n".join(
        [
            group.title,
            "",
            "Autoresearch results:",
            f"- Metric: {found.config.metric} improved from {moved}",
            f"- Confidence: {sure}",
            f"- Experiments: {len(found.results)} total, {kept} kept",
        ]
    )


def shown(goal: Goal, made: Plan) -> list[str]:
    """The plan for people."""
    metric = session.terms_of(goal).metric
    lines = []
    for at, group in enumerate(made.groups, 1):
        lines += [
            f'Group {at}: "{group.title}"',
            f"  Branch: {group.branch}",
            f"  Files: {', '.join(group.files)}",
            f"  Metric: {metric} {change_words(group)}",
            f"  Experiments: {', '.join(f'#{number}' for number in group.runs)}",
        ]
    if made.dropped:
        lines.append(f"Left out, nothing of them is left: {', '.join(f'#{n}' for n in made.dropped)}")
    return lines
