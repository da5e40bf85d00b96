"""`journal init`: a session's goal, or a new segment of the one that has its name.

What makes a branch needs a person's word (`--approve REASON`), recorded before anything is made; without a
branch the session stands on a detached HEAD and its keeps are below refs/ar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from cartlab.errors import BadInput, NotLegalNow, UsageError
from cartlab.ledger import Ledger
from cartlab.ledger.store import utc_now
from cartlab.loops import goals, journal_file, trees
from cartlab.loops.desk import Desk, Options
from cartlab.loops.goals import Goal
from cartlab.loops.journal import files, recording, scripts, session
from cartlab.loops.journal.session import Terms
from cartlab.model import digest_of
from cartlab.pipeline.voice import Voice
from cartlab.sources import git

BRANCHES = "autoresearch/"
# A name must be readable in METRIC lines.
_METRIC = re.compile(r"[A-Za-z_µ][\w.µ-]*")


@dataclass(frozen=True)
class Wish:
    """What `init` was asked for. terms.script may be empty: then it is found or made (script_of). approve: a
    person's reason for the branch; branchless: no branch; before: lines of a file that another tool wrote;
    copies: further places of autoresearch.jsonl.
    """

    terms: Terms
    policy: str = "greedy"
    k: int = 3
    measure: str = "output"
    checks_command: str = ""
    approve: str = ""
    branchless: bool = False
    before: str = ""
    copies: tuple[str, ...] = ()


def slug(name: str) -> str:
    """A session's name as part of a branch's."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:48].strip("-")
    if not found:
        raise UsageError(f"a session's name needs letters or digits; found {name!r}", "--name 'bundle size'")
    return found


def named(events: list[dict[str, object]], name: str) -> Goal | None:
    """The newest session of this name."""
    found = [
        goal
        for goal in goals.fold(events).values()
        if goal.loop == session.LOOP and slug(session.terms_of(goal).name) == slug(name)
    ]
    return found[-1] if found else None


def with_scripts(repo: Path, wish: Wish, place: Path | None) -> Wish:
    """The wish with its two scripts: as given, else made from the command, else as they lie in the session's
    folder, else as HEAD has them.
    """
    terms = wish.terms
    head = trees.manifest_of(repo, "HEAD")
    script, checks = terms.script, terms.checks
    if not script and terms.command:
        checked = scripts.checkable(head, terms.scope, terms.command)
        script = scripts.benchmark(terms.metric, terms.command, wish.measure, checked, terms.nonce)
    script = script or _found(repo, place, session.SCRIPT)
    if not script:
        raise UsageError(
            "a session needs something to measure with; there is no command, no script, and no "
            f"{session.SCRIPT} in the repository",
            '--command "python3 bench.py" writes one',
        )
    if not checks:
        checks = scripts.checks(wish.checks_command) if wish.checks_command else ""
    checks = checks or _found(repo, place, session.CHECKS)
    return replace(wish, terms=replace(terms, script=script, checks=checks))


def _found(repo: Path, place: Path | None, name: str) -> str:
    if place is not None and (place / name).is_file():
        return (place / name).read_text(encoding="utf-8", errors="replace")
    done = git.ask(repo, "cat-file", "blob", f"HEAD:{name}")
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def check(terms: Terms) -> None:
    """UsageError for terms that no session can have."""
    slug(terms.name)
    if not _METRIC.fullmatch(terms.metric):
        raise UsageError(
            f"a metric's name has letters, digits, dots and dashes and stands in METRIC lines; found "
            f"{terms.metric!r}",
            "--metric val_bpb",
        )
    for text in terms.guards:
        session.guard(text)


def init(repo: Path, root: Path, ledger: Ledger, voice: Voice, options: Options, wish: Wish) -> Desk:
    """Open the session, or a new segment of it. The baseline is not measured here."""
    check(wish.terms)
    found = named(ledger.events(), wish.terms.name)
    if found is not None:
        return _again(Desk(repo, root, ledger, found.id, voice, options), found, wish)
    wish = with_scripts(repo, wish, None)
    terms = wish.terms
    now = utc_now()
    branch = None if wish.branchless else f"{BRANCHES}{slug(terms.name)}-{now[:10]}"
    base = _branch_base(repo, branch, wish.approve)
    left_out = [path for path in git.dirty(repo) if path not in session.FILES]
    if left_out:
        voice.warn(f"uncommitted changes ({left_out[0]} first) are left alone and are no part of the session")
    goal_id = goals.new_id(ledger.events(), slug(terms.name), now)
    folder = f"autoresearch-{slug(terms.name)}-{now[:10].replace('-', '')}"
    if wish.approve:
        ledger.append(
            "approval",
            None,
            {
                "goal": goal_id,
                "what": f"the branch {branch}",
                "command": digest_of(branch),
                "reason": wish.approve,
            },
        )
    ledger.append(
        "goal",
        None,
        {
            "goal": goal_id,
            "op": "opened",
            "loop": session.LOOP,
            "baseline_commit": base,
            "describes": {
                "protocol": terms.protocol().to_json(),
                "journal": terms.to_json(),
                "worktree": str(repo.resolve().parent / folder),
                "branch": branch,
                "top": "",
                "policy": wish.policy,
                "k": wish.k,
                "before": _lines(wish.before),
                "copies": list(wish.copies),
            },
        },
    )
    desk = Desk(repo, root, ledger, goal_id, voice, options)
    with desk.alone():
        recording.prepare(desk)
    return desk


def _branch_base(repo: Path, branch: str | None, approve: str) -> str:
    """The commit that the session starts from: the branch's where it exists, else HEAD."""
    if branch is not None:
        done = git.ask(repo, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
        if done.returncode == 0:
            return done.stdout.decode().strip()
        if not approve.strip():
            raise NotLegalNow(
                f"making the branch {branch} needs a person's word",
                'add --approve "why"; it is recorded. --no-branch works without one',
            )
    return trees.commit_of(repo, "HEAD")


def _lines(text: str) -> str:
    """A file that another tool wrote, as far as it can be read; BadInput where a line cannot be."""
    read = journal_file.parse(text)
    if read.damaged:
        raise BadInput(
            f"line {read.damaged[0]} of the journal that is there cannot be read", "mend it, or move it away"
        )
    return journal_file.render(read)


def _again(desk: Desk, goal: Goal, wish: Wish) -> Desk:
    """A second init: a new config line, and a new segment where there are results already."""
    with desk.alone():
        goal = recording.prepare(desk)
        wish = with_scripts(desk.repo, wish, files.place_of(desk, goal))
        terms = replace(wish.terms, commit=session.terms_of(goal).commit)
        opens = bool(session.tries(goal))
        desk.tell(
            "protocol",
            describes={
                "protocol": terms.protocol().to_json(),
                "journal": terms.to_json(),
                "policy": wish.policy,
                "k": wish.k,
                "segment_began": utc_now(),
                **({"copies": list(wish.copies)} if wish.copies else {}),
            },
            keys=["journal"],
            segment=opens,
            who=git.ask(desk.repo, "config", "user.name").stdout.decode(errors="replace").strip()
            or "unknown",
            why="journal init",
        )
        place = files.place_of(desk, desk.goal())
        for name, body in ((session.SCRIPT, terms.script), (session.CHECKS, terms.checks)):
            if body:
                (place / name).write_text(body, encoding="utf-8")
        if opens:
            desk.tell("state", state="running", reason="")
        files.render(desk, desk.goal())
    return desk
