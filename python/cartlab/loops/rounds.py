"""One round: start an attempt, take in what the researcher hands over, judge it, act, close.

`supervise` runs these in a row; `attempt start|submit|close` gives them to an agent that drives itself. The
rules are the same, because they are here. Order of what is written: the decision is in the ledger before the
worktree moves or the working copies go, so a killed process leaves nothing that cannot be finished.
"""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import commands, compliance, experiences, manifest, policies, tasks, trees, views
from cartlab.loops.compliance import Finding, Rules
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.protocol import Protocol
from cartlab.loops.protocol import files as protocol_files
from cartlab.loops.running import Bench, Failed, Value, rooted
from cartlab.loops.views import Best
from cartlab.loops.worktree import repository_state

VIEW_NAMES = ("experiences.md", "autoresearch-protocol.md")
STRATEGY_CAP = 500
PROFILES = ("profiles/round-{n}-before.md", "profiles/round-{n}-analysis.md")
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
    """The two generated files as paths of the tree."""
    return rooted(top_of(goal), VIEW_NAMES)


def render_views(desk: Desk, goal: Goal) -> None:
    """Write experiences.md and the protocol into the worktree, from the ledger."""
    folder = desk.worktree(goal).path / top_of(goal)
    folder.mkdir(parents=True, exist_ok=True)
    from cartlab.loops.protocol import render

    texts = {
        "experiences.md": experiences.render(views.experiences_of(goal)),
        "autoresearch-protocol.md": render(views.protocol_of(goal), desk.options.locale),
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
    protocol, best = views.protocol_of(goal), views.best_of(goal)
    tries = sum(1 for one in goal.tries if one.round == number) + 1
    one = Try(f"{goal.id}-r{number}" + (f".{tries}" if tries > 1 else ""), number, segment=goal.segment)
    desk.step(
        one,
        "proposed",
        tasks=tasks.created(protocol, number, best.text),
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
    text = tasks.prompt(protocol, number, rows.rows, "experiences.md", desk.options.recent)
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


def research(desk: Desk, goal: Goal, given: Dispatch, command: str) -> Failed | None:
    """Run the researcher's command once, in a fresh process, to its end or its deadline."""
    protocol, own = views.protocol_of(goal), desk.work_folder(given.one.id)
    places = {"prompt": given.prompt, "submission": given.submission, "work": given.work}
    temporary = own / "researcher-tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    extra = {ENVIRONMENT[name]: str(path) for name, path in places.items()}
    env = commands.researcher_environment(
        {**extra, "AR_ROUND": str(given.one.round), "TMPDIR": str(temporary)}
    )
    limit = 2 * protocol.time_limit_s
    before = repository_state(desk.repo)
    seen = len(desk.ledger.events())
    desk.voice.progress(f"round {given.one.round}: the researcher works (at most {limit:g} s)")
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
    after = repository_state(desk.repo)
    moved = [name for name in before if before[name] != after[name]]
    if moved and desk.options.isolation != "landlock":
        return Failed(
            "tampered",
            f"the repository's {', '.join(moved)} changed while the researcher ran: it may not write there",
        )
    strangers = [event for event in desk.ledger.events()[seen:] if event["type"] not in ("note", "goal")]
    if any(event["body"].get("role") != "researcher" for event in strangers):
        return Failed(
            "tampered", "the ledger got events while the researcher ran that no command of ours wrote"
        )
    if ran.returncode is None:
        return Failed(
            "timeout", f"timeout after {limit:g}s — likely cause: the researcher did not end by its deadline"
        )
    ready = any(line.strip() == tasks.READY for line in ran.output.splitlines())
    if ran.returncode != 0 and not ready:
        words = commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)
        return Failed("crashed", f"crash: {words}. Likely cause: the researcher's command failed")
    return None


# --- submit ---------------------------------------------------------------------------------------


def take_in(desk: Desk, goal: Goal, given: Dispatch, strategy: str | None = None) -> Finding:
    """Read the working copy, record what it holds under refs/ar/attempts, and say whether it complies.

    strategy: as typed; None: from the submission file, else from the researcher's row in experiences.md.
    """
    protocol, one = views.protocol_of(goal), given.one
    work = desk.work_folder(one.id) / "work"
    told, flags = _told(goal, given, one.round)
    base = trees.manifest_of(desk.repo, goal.accepted)
    found = manifest.scan(work)
    finding = judge(desk, goal, protocol, base, found, work)
    kept = {path: entry for path, entry in found.items() if path not in (*finding.dropped, *view_paths(goal))}
    kept.update({path: base[path] for path in view_paths(goal) if path in base})
    whole = {
        path: entry
        for path, entry in kept.items()
        if entry.mode != manifest.OTHER and ".git" not in path.lower().split("/")
    }
    tree = trees.write(desk.repo, work, _present(whole, work, base), goal.accepted)
    commit = trees.commit(desk.repo, tree, [goal.accepted], f"attempt {one.id}")
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
    )
    return finding


def judge(
    desk: Desk,
    goal: Goal,
    protocol: Protocol,
    base: manifest.Manifest,
    found: manifest.Manifest,
    work: Path,
) -> Finding:
    """The working copy held against the protocol's rules."""
    top = top_of(goal)
    rules = Rules(
        fixed=rooted(top, protocol.fixed),
        variable=rooted(top, protocol.variable),
        strict=protocol.strict_variable,
        views=view_paths(goal),
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
    hidden = trees.ignored(desk.worktree(goal).path, new)
    # A checkpoint is what training makes; one that is handed in is not part of a submission.
    checkpoints = rooted(top, protocol_files(protocol.checkpoint))
    hidden |= {path for path in new if manifest.named(path, checkpoints)}
    return compliance.judge(base, found, rules, ignored=hidden, sizes=sizes, escaping=escaping, texts=texts)


_FILES = (manifest.FILE, manifest.EXECUTABLE)


def _present(
    kept: dict[str, manifest.Entry], work: Path, base: manifest.Manifest
) -> dict[str, manifest.Entry]:
    """A file of a size over the cap is named, not stored: nothing that large belongs into a repository."""
    return {
        path: entry
        for path, entry in kept.items()
        if base.get(path) == entry or (work / path).lstat().st_size <= compliance.SIZE_CAP
    }


def _told(goal: Goal, given: Dispatch, number: int) -> tuple[str, list[str]]:
    """The strategy that the researcher states, and what it did to experiences.md besides."""
    flags = []
    strategy = ""
    if given.submission.is_file():
        try:
            body = json.loads(given.submission.read_text(encoding="utf-8", errors="replace")[:65536])
            strategy = str(body.get("strategy") or "") if isinstance(body, dict) else ""
        except ValueError:
            flags.append("submission: not JSON")
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


# --- judge ----------------------------------------------------------------------------------------


@dataclass
class Result:
    """How a round came out. retry: it failed of something passing and may be tried once more."""

    status: str
    insight: str
    value: Value | None = None
    compliance: str = "✅"
    inputs: dict[str, Any] | None = None
    retry: bool = False
    done: tuple[str, ...] = ()


def decide(desk: Desk, goal: Goal, one: Try, finding: Finding, policy: str, k: int) -> Result:
    """Compliance, parity, train, eval, and the policy's word on what they gave. Nothing is written but
    measurements and the steps on the way.
    """
    protocol, best = views.protocol_of(goal), views.best_of(goal)
    number, strategy = one.round, str(goal_step(desk, one, "submitted")["strategy"])
    done = [tasks.researched(number, strategy)]
    if finding.broken:
        path, why = next(iter(finding.broken.items()))
        told = tasks.touched_files(path)
        desk.step(one, "screened", complies=False, broken=dict(list(finding.broken.items())[:50]))
        fixed = why.startswith("a fixed file")
        what = f"modified fixed file {path} — {why}" if fixed else f"{path} may not be handed in: {why}"
        return Result("compliance_failed", what, compliance=told, done=(*done, tasks.complied(number, told)))
    if not finding.changes:
        desk.step(one, "screened", complies=True, changes=0)
        return Result("no_change", "no change: the submission is the accepted tree", done=tuple(done))
    bench = Bench(desk, one, protocol, top_of(goal), str(goal_step(desk, one, "submitted")["commit"]))
    flags = list(finding.flags) + [
        f for f in goal_step(desk, one, "submitted")["flags"] if f not in finding.flags
    ]
    if protocol.profile_command and not all(
        (desk.run_folder(one.id) / Path(name.format(n=number)).name).is_file() for name in PROFILES
    ):
        flags.append(tasks.SKIPPED_PROFILE)
    for target in protocol.kernel_targets:
        line = bench.parity(target)
        if line is not None:
            kind = line.partition("kind=")[2].partition(" ")[0]
            told = tasks.parity_broken(target.name, kind, line.partition("detail=")[2][:80])
            desk.step(one, "screened", complies=True, parity=line)
            insight = _joined([line, *flags])
            return Result(
                "parity_violation", insight, compliance=told, done=(*done, tasks.complied(number, told))
            )
    desk.step(one, "screened", complies=True, parity="ok" if protocol.kernel_targets else None)
    done.append(tasks.complied(number))
    desk.step(one, "measuring")
    try:
        value, found = _measure(desk, goal, one, bench, best, policy, k)
    except Failed as failed:
        return Result(
            failed.verdict, _joined([failed.insight, *flags]), retry=failed.transient, done=tuple(done)
        )
    won = found.status == "keep"
    insight = _joined([f"{'worked' if won else 'did not help'}: {strategy} ({found.reason})", *flags])
    top_text = value.text if won else best.text
    done.append(tasks.evaluated(protocol, number, value.text, top_text, won))
    return Result(str(found.status), insight, value, inputs=found.inputs, done=tuple(done))


def goal_step(desk: Desk, one: Try, state: str) -> Any:
    """What an attempt's step recorded."""
    current = next(found for found in desk.goal().tries if found.id == one.id)
    return current.steps[state]


def _joined(parts: list[str]) -> str:
    return commands.plain("; ".join(part for part in parts if part), 1000)


def _measure(
    desk: Desk, goal: Goal, one: Try, bench: Bench, best: Best, policy: str, k: int
) -> tuple[Value, policies.Decided]:
    """Runs until the policy has decided. A tree that was measured before is not drawn again."""
    direction = bench.protocol.direction
    tree = trees.tree_of(desk.repo, bench.commit)
    earlier = _earlier(goal, one, tree)
    if earlier is not None:
        value, inputs = earlier
        return value, policies.Decided(
            "discard", f"the same tree was measured before: {value.text}", {**inputs, "pooled": True}
        )
    if policy == "paired":
        return _pairs(desk, goal, one, bench, direction)
    values: list[Value] = []
    while True:
        values.append(bench.value(draw_seed(), f"-{len(values) + 1}" if values else ""))
        numbers = [value.number for value in values]
        if policy == "greedy":
            found = policies.greedy(best.number, numbers[0], direction)
        elif policy == "repeat-k":
            found = policies.repeat_k(best.number, numbers, k, direction)
        else:
            found = policies.verified(best.number, numbers, direction)
        if found.status is not None:
            shown = values[0]
            if policy == "repeat-k":
                shown = sorted(values, key=lambda value: value.number)[(len(values) - 1) // 2]
            return shown, policies.Decided(
                found.status, found.reason, {**found.inputs, "measurements": [value.seq for value in values]}
            )


def _pairs(desk: Desk, goal: Goal, one: Try, bench: Bench, direction: str) -> tuple[Value, policies.Decided]:
    """Candidate and accepted tree in turn on the same seed, the first of each pair drawn."""
    base = Bench(desk, one, bench.protocol, bench.top, goal.accepted)
    effects: list[float] = []
    seqs: list[list[int]] = []
    shown: Value | None = None
    while True:
        seed, name = draw_seed(), f"-pair{len(effects) + 1}"
        order = [(bench, f"{name}-cand"), (base, f"{name}-base")]
        first = secrets.randbelow(2)
        got = {id(side): side.value(seed, label) for side, label in (order if first else order[::-1])}
        cand, other = got[id(bench)], got[id(base)]
        shown = shown or cand
        effects.append(policies.effect(cand.number, other.number, direction))
        seqs.append([cand.seq, other.seq])
        found = policies.paired(effects)
        if found.status is not None:
            return shown, policies.Decided(found.status, found.reason, {**found.inputs, "measurements": seqs})


def _earlier(goal: Goal, one: Try, tree: str) -> tuple[Value, dict[str, Any]] | None:
    for other in goal.tries:
        if (
            other.id != one.id
            and other.segment == goal.segment
            and other.steps.get("submitted", {}).get("tree") == tree
            and other.decision is not None
            and other.decision.get("value") is not None
        ):
            body = other.decision
            value = Value(float(body["value"]), str(body["text"]), int(body["measurement"]))
            return value, {"attempt": other.id, "best": float(body["inputs"].get("best", body["value"]))}
    return None


def draw_seed() -> int:
    """A seed that no researcher can know before its tree is fixed."""
    return secrets.randbelow(2**31)


# --- act ------------------------------------------------------------------------------------------


def act(desk: Desk, goal: Goal, one: Try, result: Result, policy: str) -> None:
    """Record the verdict, then move the worktree or leave it, then close. Can be called again after a kill
    with what the ledger holds (finish).
    """
    best = views.best_of(goal)
    desk.decided(
        one,
        result.status,
        policy=policy,
        compliance=result.compliance,
        insight=result.insight,
        value=None if result.value is None else result.value.number,
        text="" if result.value is None else result.value.text,
        measurement=None if result.value is None else result.value.seq,
        tree=goal_step(desk, one, "submitted")["tree"] if "submitted" in _steps(desk, one) else None,
        best_before=best.number,
        segment=goal.segment,
        direction=views.protocol_of(goal).direction,
        inputs=result.inputs or {},
        retried=result.retry,
        tasks=list(result.done),
    )
    finish(desk, one)


def _steps(desk: Desk, one: Try) -> dict[str, Any]:
    current = next((found for found in desk.goal().tries if found.id == one.id), one)
    return dict(current.steps)


def finish(desk: Desk, one: Try) -> None:
    """Carry out what was decided, from wherever it was left: accept or roll back, then close."""
    goal = desk.goal()
    current = next(found for found in goal.tries if found.id == one.id)
    decision = current.decision
    if decision is None:
        raise NotLegalNow(f"{one.id} has no verdict yet", "`attempt submit` judges it")
    tree = desk.worktree(goal)
    keep = view_paths(goal)
    number = current.round
    if current.kept:
        if "accepted" not in current.steps:
            protocol = views.protocol_of(goal)
            message = tasks.commit_message(protocol, number, str(decision["text"]))
            made = trees.commit(desk.repo, current.steps["submitted"]["tree"], [goal.accepted], message)
            trees.keep_ref(desk.repo, f"{trees.REFS}accepted/{goal.id}", made)
            desk.step(one, "accepted", commit=made)
        tree.move_to(desk.goal().accepted, keep)
    else:
        if "rolled_back" not in current.steps:
            desk.step(one, "rolled_back")
        tree.move_to(goal.accepted, keep)
    desk.clear(one.id)
    if current.state != "closed":
        desk.step(one, "closed", tasks=[tasks.acted(number, current.kept)])
    render_views(desk, desk.goal())
