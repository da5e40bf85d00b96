"""Taking in what a researcher hands over: read file by file, judged by the protocol's rules, recorded.

Everything that was handed in becomes a commit below refs/ar/attempts, whether it complies or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput
from cartlab.loops import commands, compliance, experiences, manifest, trees, views
from cartlab.loops.compliance import Finding, Rules
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import STRATEGY_CAP, Dispatch, top_of, view_paths
from cartlab.loops.goals import SUPERVISE, Goal, Try
from cartlab.loops.protocol import Protocol
from cartlab.loops.protocol import files as protocol_files
from cartlab.loops.running import rooted
from cartlab.model import parsed_json

SEEDS_ONLY = "only literals of seeds were changed: the harness draws the seeds, and luck is no gain"
PROFILES = ("profiles/round-{n}-before.md", "profiles/round-{n}-analysis.md")


def take_in(
    desk: Desk,
    goal: Goal,
    given: Dispatch,
    strategy: str | None = None,
    message: str = "",
    more: Callable[[str], Mapping[str, Any]] | None = None,
) -> Finding:
    """Read the working copy, record what it holds under refs/ar/attempts, and say whether it complies.

    strategy: as typed; None: from the submission file, else from the researcher's row in experiences.md.
    message: of the attempt's commit; more: from that commit to what else the step records.
    """
    protocol, one = views.protocol_of(goal), given.one
    work = desk.work_folder(one.id) / "work"
    told, flags = _told(goal, given, one.round)
    base = trees.manifest_of(desk.repo, goal.accepted)
    found = manifest.scan(work)
    views_here = view_paths(goal)
    finding = judge(desk, goal, protocol, base, found, work)
    kept = {path: entry for path, entry in found.items() if path not in (*finding.dropped, *views_here)}
    kept.update({path: base[path] for path in views_here if path in base})
    whole = {
        path: entry
        for path, entry in kept.items()
        if entry.mode != manifest.OTHER and ".git" not in path.lower().split("/")
    }
    tree = trees.write(desk.repo, work, _present(whole, work, base, finding.too_much), goal.accepted)
    commit = trees.commit(desk.repo, tree, [goal.accepted], message or f"attempt {one.id}")
    trees.keep_ref(desk.repo, f"{trees.REFS}attempts/{one.id}", commit)
    folder = desk.run_folder(one.id)
    (folder / "patch.diff").write_text(trees.patch(desk.repo, goal.accepted, commit), encoding="utf-8")
    _keep_profiles(given, folder, one.round)
    text = commands.plain(strategy or told, STRATEGY_CAP).strip() or "no strategy was stated"
    desk.step(
        one,
        "submitted",
        strategy=text,
        commit=commit,
        tree=tree,
        changes=[[c.what, c.path] for c in finding.changes][:200],
        dropped=list(finding.dropped)[:50],
        flags=[*finding.flags, *flags],
        **(more(commit) if more else {}),
    )
    return finding


def judge(
    desk: Desk,
    goal: Goal,
    protocol: Protocol,
    base: manifest.Manifest,
    found: manifest.Manifest,
    work: Path,
    rules: Rules | None = None,
) -> Finding:
    """The working copy held against the protocol's rules, or against these."""
    top = top_of(goal)
    rules = rules or Rules(
        fixed=rooted(top, protocol.fixed),
        variable=rooted(top, protocol.variable),
        strict=protocol.strict_variable,
        views=view_paths(goal),
        diff_cap=protocol.diff_cap,
    )
    changed = manifest.changes(base, found)
    new = [c.path for c in changed if c.what == "added"]
    plain_files = [c.path for c in changed if c.what != "removed" and found[c.path].mode in _FILES]
    escaping = [
        c.path
        for c in changed
        if c.what != "removed" and found[c.path].mode == manifest.LINK and manifest.escapes(work, c.path)
    ]
    sizes = {path: (work / path).lstat().st_size for path in plain_files}
    texts = {
        path: (work / path).read_text(encoding="utf-8", errors="replace")
        for path in new
        if path in sizes and path.endswith(".py") and sizes[path] <= rules.size_cap
    }
    edited = [c.path for c in changed if c.what == "changed" and sizes.get(c.path, TEXT_CAP) < TEXT_CAP]
    old = trees.texts(desk.repo, [base[path].digest for path in edited])
    new_texts = [(work / path).read_text(encoding="utf-8", errors="replace") for path in edited]
    edits = dict(zip(edited, zip(old, new_texts, strict=True), strict=True))
    touched = [c.path for c in changed if c.what != "added" and base[c.path].mode in _FILES]
    was = trees.texts(desk.repo, [base[path].digest for path in touched])
    framed = {
        path: (text, (work / path).read_text(encoding="utf-8", errors="replace") if path in sizes else "")
        for path, text in zip(touched, was, strict=True)
        if compliance.BEGIN in text
    }
    hidden = trees.ignored(desk.worktree(goal).path, new)
    # A checkpoint is what training makes; one that is handed in is not part of a submission.
    checkpoints = rooted(top, protocol_files(protocol.checkpoint))
    hidden |= {path for path in new if manifest.named(path, checkpoints)}
    return compliance.judge(
        base,
        found,
        rules,
        ignored=hidden,
        sizes=sizes,
        escaping=escaping,
        texts=texts,
        edits=edits,
        framed=framed,
        binary=[path for path in new if path in sizes and _is_binary(work / path)],
    )


# A file above this is data, in which no seed is looked for.
TEXT_CAP = 1 << 20
_FILES = (manifest.FILE, manifest.EXECUTABLE)


def verdict_without_a_run(desk: Desk, one: Try, finding: Finding, unchanged: str) -> tuple[str, str] | None:
    """Status and reason of a submission that needs no run to be judged, recorded as screened; None for one
    that has to be measured. unchanged: the reason for one that changes nothing.
    """
    if finding.broken:
        path, why = next(iter(finding.broken.items()))
        desk.step(one, "screened", complies=False, broken=dict(list(finding.broken.items())[:50]))
        return "compliance_failed", f"{path} may not be handed in: {why}"
    if not finding.changes:
        desk.step(one, "screened", complies=True, changes=0)
        return "no_change", unchanged
    if finding.seeds_only:
        desk.step(one, "screened", complies=True, changes=len(finding.changes), seeds_only=True)
        return "no_change", SEEDS_ONLY
    return None


def _is_binary(path: Path) -> bool:
    """As git has it: a zero byte near the beginning."""
    with path.open("rb") as file:
        return b"\0" in file.read(8000)


def _present(
    kept: dict[str, manifest.Entry], work: Path, base: manifest.Manifest, too_much: bool
) -> dict[str, manifest.Entry]:
    """A file of a size over the cap is named, not stored: nothing that large belongs into a repository. Of a
    submission that is too much as a whole (which is refused) no file of more than TEXT_CAP / 16 is stored.
    """
    cap = TEXT_CAP // 16 if too_much else compliance.SIZE_CAP
    return {
        path: entry
        for path, entry in kept.items()
        if base.get(path) == entry or (work / path).lstat().st_size <= cap
    }


def _told(goal: Goal, given: Dispatch, number: int) -> tuple[str, list[str]]:
    """The strategy that the researcher states, and what it did to experiences.md besides."""
    flags = []
    strategy = ""
    if given.submission.is_file():
        try:
            body = parsed_json(given.submission.read_text(encoding="utf-8", errors="replace")[:65536])
            strategy = str(body.get("strategy") or "") if isinstance(body, dict) else ""
        except ValueError:
            flags.append("submission: not JSON")
    if goal.loop != SUPERVISE:
        return strategy, flags
    path = given.work / "experiences.md"
    try:
        handed = experiences.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, BadInput):
        return strategy, [*flags, "experiences: the file was broken or removed; it was rendered again"]
    own = handed.row(number)
    ours = views.experiences_of(goal)
    others = tuple(row for row in handed.rows if row.round != number)
    mine = tuple(row for row in ours.rows if row.round != number)
    filled = own is not None and any((own.compliance, own.result, own.verdict, own.insight, own.note))
    normal = tuple(experiences.Row(row.round, *map(experiences.one_line, row.cells()[1:])) for row in mine)
    if others != normal or filled or (handed.best, handed.status) != (ours.best, ours.status):
        flags.append("experiences: more than its own Strategy cell was changed; that was undone")
    return strategy or (own.strategy if own else ""), flags


def _keep_profiles(given: Dispatch, folder: Path, number: int) -> None:
    for name in PROFILES:
        path = given.work / name.format(n=number)
        if path.is_file() and not path.is_symlink():
            (folder / path.name).write_bytes(path.read_bytes()[: compliance.SIZE_CAP])
