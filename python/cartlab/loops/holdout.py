"""The sealed holdout: an evaluator that no researcher and no candidate's run can read, asked at acceptance.

`holdout seal` copies a folder into the state root, where the kernel's isolation hides it, and fixes its
command and how often it may be asked. A winning round is kept only if the command, run on a fresh layout of
it with its checkpoint, ends with code 0; nothing else of its answer leaves the root, and once the looks are
spent nothing is accepted any more. `holdout final` asks it once, with AR_FINAL=1, about the accepted result.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import commands, manifest, trees, views
from cartlab.loops.desk import EVAL_LIMIT_S, Desk
from cartlab.loops.dispatch import top_of
from cartlab.loops.goals import Goal, Try
from cartlab.loops.running import Bench, Failed

LEVEL = "landlock"


def place(desk: Desk) -> Path:
    """Where the goal's sealed files lie."""
    return desk.root / "benchmarks" / "sealed" / desk.goal_id


def seal(desk: Desk, folder: Path, command: str, looks: int) -> dict[str, Any]:
    """Copy the folder and record what was sealed; once a goal."""
    require_sealable(desk.goal(), desk.repo, desk.options.isolation, folder)
    target = place(desk)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    body = {"digest": manifest.digest(manifest.scan(target)), "command": command, "looks": looks}
    desk.tell("holdout", **body)
    return body


def require_sealable(goal: Goal | None, repo: Path, level: str, folder: Path) -> None:
    """NotLegalNow or BadInput where this folder cannot be sealed for the goal (None: not opened yet)."""
    if goal is not None and goal.body.get("holdout"):
        raise NotLegalNow("this goal's holdout is sealed already", "a new goal may have another")
    if level != LEVEL:
        raise NotLegalNow(
            f"a holdout needs the isolation level {LEVEL}, which can hide it; here it is {level}",
            "use a Linux with Landlock (5.13 or newer)",
        )
    if not folder.is_dir() or not manifest.scan(folder):
        raise BadInput(f"expected a folder with the holdout's files at {folder}, found none", "name it")
    if folder.resolve().is_relative_to(repo.resolve()):
        raise BadInput(
            f"the holdout must lie outside the repository, found {folder}: a researcher reads all of that",
            "move it out, and out of the history",
        )


def spent(goal: Goal) -> int:
    """How often it was asked for an acceptance."""
    return sum(body["role"] == "holdout" for one in goal.tries for _, body in one.measurements)


def require_hidden(desk: Desk) -> None:
    """NotLegalNow where a goal has a holdout and its runs could read it."""
    if desk.goal().body.get("holdout") and desk.options.isolation != LEVEL:
        raise NotLegalNow(
            f"this goal has a sealed holdout, which isolation {desk.options.isolation} cannot hide",
            f"use --isolation {LEVEL}",
        )


def look(desk: Desk, goal: Goal, bench: Bench) -> Failed | None:
    """One look at acceptance: None where it passes, or where the goal has no holdout."""
    sealed = goal.body.get("holdout")
    if not sealed:
        return None
    if spent(desk.goal()) >= int(sealed["looks"]):
        return Failed("checks_failed", f"holdout: all {sealed['looks']} looks are spent; nothing is accepted")
    return None if _ask(desk, sealed, bench, "holdout") else Failed("checks_failed", "holdout: not passed")


def require_final(desk: Desk) -> Try:
    """The accepted attempt that the final look is for; NotLegalNow where there is none, or was one."""
    goal = desk.goal()
    sealed = goal.body.get("holdout")
    if not sealed:
        raise NotLegalNow("this goal has no sealed holdout", "`holdout seal DIR --command CMD`")
    if any(event["attempt"] == _final(goal).id for event in desk.ledger.events()):
        raise NotLegalNow("the final look was taken; there is one", "a new goal seals new files")
    kept = [found for found in goal.closed_rounds() if found.kept]
    if not kept:
        raise NotLegalNow("nothing was accepted yet, so there is nothing to test", "`supervise PROTOCOL`")
    _require_sealed(desk, sealed)
    return kept[-1]


def _final(goal: Goal) -> Try:
    return Try(f"{goal.id}-final", 0)


def final(desk: Desk) -> bool:
    """The one sealed look at the accepted result; NotLegalNow for a second one."""
    kept, goal = require_final(desk), desk.goal()
    bench = Bench(desk, kept, views.protocol_of(goal), top_of(goal), goal.accepted)
    try:
        return _ask(desk, goal.body["holdout"], bench, "final", _final(goal))
    finally:
        desk.clear(kept.id)


def _require_sealed(desk: Desk, sealed: dict[str, Any]) -> None:
    files = place(desk)
    if not files.is_dir() or manifest.digest(manifest.scan(files)) != sealed["digest"]:
        raise NotLegalNow(
            "the sealed holdout's files are not what was sealed", "put them back as they were; see `show`"
        )


def _ask(desk: Desk, sealed: dict[str, Any], bench: Bench, role: str, name: Try | None = None) -> bool:
    _require_sealed(desk, sealed)
    files = place(desk)
    folder = bench.lay(role)
    kept = desk.run_folder(bench.one.id) / "checkpoint"
    if kept.is_dir():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    extra = {"AR_HOLDOUT": str(files), **({"AR_FINAL": "1"} if role == "final" else {})}
    command = commands.fill(str(sealed["command"]), holdout=files)
    ran = bench.run(command, role, folder / bench.top, EVAL_LIMIT_S, role, extra=extra, readable=(files,))
    desk.measured(
        name or bench.one,
        role,
        tree=trees.tree_of(desk.repo, bench.commit),
        passed=ran.returncode == 0,
        seconds=ran.seconds,
        digest=sealed["digest"],
    )
    return ran.returncode == 0
