"""What the verbs of `journal` do: a session's terms from flags, its desk, and what each verb answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartlab.artefacts import read_text
from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.errors import BadInput, NotLegalNow, UsageError
from cartlab.outcome import Outcome

if TYPE_CHECKING:
    from cartlab.cli.journal import Request
    from cartlab.ledger import Ledger
    from cartlab.loops.desk import Desk
    from cartlab.loops.goals import Goal, Try
    from cartlab.loops.journal.opening import Wish
    from cartlab.loops.journal_file import Journal

COMMITS = 20


# --- which session ----------------------------------------------------------------------------------


def chosen(context: Context, events: Any, name: str | None) -> Goal | None:
    """The session that a name means; without one that of this folder's worktree, else the newest."""
    from cartlab.loops import goals
    from cartlab.loops.journal import opening, session

    known = [goal for goal in goals.fold(events).values() if goal.loop == session.LOOP]
    if name is not None:
        hits = [
            goal
            for goal in known
            if name in goal.id or opening.slug(session.terms_of(goal).name) == opening.slug(name)
        ]
        if not hits:
            raise BadInput(
                f"expected a session called {name!r}, found none", "`journal status` shows the newest"
            )
        return hits[-1]
    here = context.cwd.resolve()
    inside = [goal for goal in known if Path(goal.body["worktree"]).resolve() in (here, *here.parents)]
    found = inside or known
    return found[-1] if found else None


def desk_for(context: Context, request: Request, ledger: Ledger) -> Desk:
    """The session's desk; NotLegalNow where there is none."""
    from cartlab.loops.desk import Desk

    goal = chosen(context, ledger.events(), request.given["session"])
    if goal is None:
        raise _no_session()
    options = loopdesk.options(context, request.flags)
    return Desk(
        loopdesk.repository_of(context, goal), context.root.path, ledger, goal.id, context.talk, options
    )


def _no_session() -> NotLegalNow:
    return NotLegalNow(
        "no session was opened in this root",
        "journal init --name TEXT --metric-name NAME --command CMD --approve REASON",
    )


def desk_to_read(context: Context, request: Request) -> Desk:
    """The same where nothing is to be written, not even a root."""
    from cartlab.ledger import Ledger

    if not (context.root.path / "events.jsonl").is_file():
        raise _no_session()
    return desk_for(context, request, Ledger.open(context.root.path, mend=False))


def _recorded(context: Context, out: Outcome) -> Outcome:
    out.ledger, out.recorded = str(context.root.path / "events.jsonl"), True
    return out


# --- init -----------------------------------------------------------------------------------------


def wish_of(context: Context, given: dict[str, Any], flags: loopdesk.Flags) -> Wish:
    """What `init` was asked for."""
    from cartlab.loops.journal.opening import Wish
    from cartlab.loops.journal.session import Terms
    from cartlab.loops.protocol import size

    terms = Terms(
        name=given["name"],
        metric=given["metric_name"],
        unit=given["metric_unit"],
        direction=given["direction"] or "lower",
        script=_text(context, given["script"]),
        checks=_text(context, given["checks_script"]),
        objective=given["objective"],
        command=given["command"] or "",
        scope=tuple(given["scope"]),
        off_limits=tuple(given["off_limits"]),
        constraints=tuple(given["constraint"]),
        secondary=tuple(given["secondary"]),
        guards=tuple(given["guard"]),
        noise=given["noise"],
        simpler_by=given["simpler_by"],
        complex_lines=given["complex_lines"],
        baseline_runs=given["baseline_runs"],
        limit_s=given["limit"],
        checks_limit_s=given["checks_limit"],
        max_experiments=given["max_experiments"],
        max_seconds=given["max_seconds"],
        target=given["target"],
        locale=given["locale"],
        commit=given["commit"],
        nonce=given["nonce"],
        diff_cap=size(given["diff_cap"]),
    )
    return Wish(
        terms,
        policy=flags.policy,
        k=flags.k,
        measure=given["measure"],
        checks_command=given["checks_command"],
        approve=given["approve"] or "",
        branchless=given["no_branch"],
        before=given.get("before", ""),
        copies=tuple(given.get("copies", ())),
    )


def _text(context: Context, name: str | None) -> str:
    return "" if name is None else read_text(context.cwd / name, "a script")


def init(context: Context, request: Request) -> Outcome:
    """Open a session, or a new segment, and measure its baseline."""
    from cartlab.loops.journal import files, opening, recording, session

    out = context.answer()
    wish = wish_of(context, request.given, request.flags)
    opening.check(wish.terms)
    if request.dry_run:
        planned = opening.with_scripts(context.repo, wish, None)
        out.status = "planned"
        out.text = [
            f"would open the session {wish.terms.name} and measure with:",
            *planned.terms.script.splitlines(),
        ]
        out.details = {"script": planned.terms.script, "checks": planned.terms.checks}
        return out
    ledger = loopdesk.open_ledger(context)
    options = loopdesk.options(context, request.flags)
    desk = opening.init(context.repo, context.root.path, ledger, context.talk, options, wish)
    goal = desk.goal()
    out.text = [
        f"session {session.named(goal)}",
        f"worktree: {goal.body['worktree']}",
        f"files: {files.place_of(desk, goal)}",
    ]
    if not request.given["no_baseline"]:
        with desk.alone():
            one = recording.measure_baseline(desk)
        out.attempt_id = one.id
        out.text.append(f"#{one.round} {(one.decision or {})['insight']}")
    ledger.project()
    goal = desk.goal()
    out.details = _facts(desk, goal)
    out.report.outputs = [str(files.place_of(desk, goal) / session.DOCUMENT)]
    out.report.next = context.line("journal log --description TEXT --hypothesis TEXT")
    return _recorded(context, out)


# --- log and run ----------------------------------------------------------------------------------


def entry_of(given: dict[str, Any], cwd: Path) -> Any:
    """What is handed in, from flags."""
    from cartlab.loops.journal.recording import Entry

    asi: dict[str, Any] = {}
    if given["asi"]:
        try:
            asi = json.loads(given["asi"])
        except ValueError as error:
            raise UsageError(
                f"--asi must be a JSON object; {error}", '--asi \'{"hypothesis": "..."}\''
            ) from None
        if not isinstance(asi, dict):
            raise UsageError(f"--asi must be a JSON object; found {type(asi).__name__}")
    for key, flag in (
        ("hypothesis", "hypothesis"),
        ("rollback_reason", "rollback_reason"),
        ("next_action_hint", "next_hint"),
    ):
        if given[flag]:
            asi[key] = given[flag]
    return Entry(
        description=given["description"],
        asi=asi,
        typed_metric=given["metric"],
        typed_status=given["status"],
        forced=given["force"],
        source=None if given["source"] is None else cwd / given["source"],
        agent=given["agent"],
    )


def log(context: Context, request: Request) -> Outcome:
    """Measure and record one experiment."""
    from cartlab.loops.journal import recording

    out = context.answer()
    entry = entry_of(request.given, context.cwd)
    recording.validate(entry)
    if request.dry_run:
        out.status, out.text = "planned", [f"would measure and record: {entry.description}"]
        return out
    ledger = loopdesk.open_ledger(context)
    desk = desk_for(context, request, ledger)
    one = recording.log(desk, entry)
    ledger.project()
    return _told(context, desk, one, out, entry.typed_metric)


def _told(context: Context, desk: Desk, one: Try, out: Outcome, typed: float | None) -> Outcome:
    from cartlab.loops.journal import files, recording, session
    from cartlab.model import STATUSES

    goal = desk.goal()
    decision = dict(one.decision or {})
    status = STATUSES[str(one.status)]
    result = session.journal_of(desk.ledger.events(), goal.id).results[-1]
    best = session.best_of(goal)
    out.attempt_id, out.status, out.exit_code = one.id, status.name, status.exit_code
    out.report.decision = status.decision
    out.report.outputs = [str(files.place_of(desk, goal))]
    out.reasons = [str(decision["insight"])]
    out.text = [f"#{one.round} {result.status}: {decision.get('text') or 'no value'} ({decision['insight']})"]
    if typed is not None and decision.get("value") is not None:
        measured = float(decision["value"])
        out.text.append(f"typed {typed:.9g}, measured {measured:.9g}: difference {measured - typed:+.6g}")
    out.text += recording.hints(goal, one)
    sure = result.confidence
    if sure is not None:
        from cartlab.loops.confidence import label

        again = "; re-run to confirm" if sure < 1 else ""
        out.text.append(f"confidence {sure:.2f}x ({label(sure)}, advisory){again}")
    if best is not None:
        out.text.append(f"best so far: {best.text} (#{best.round})")
    if goal.state != "running":
        out.text.append(f"the session has ended: {goal.reason}")
    out.report.next = context.line(_next(goal))
    out.details = {
        "run": one.round,
        "status": result.status,
        "value": decision.get("value"),
        "metrics": dict(decision.get("metrics") or {}),
        "typed": typed,
        "confidence": sure,
        "commit": result.commit,
        "hints": recording.hints(goal, one),
        "state": goal.state,
        "reason": goal.reason,
    }
    return _recorded(context, out)


def _next(goal: Goal) -> str:
    """What a session wants next."""
    from cartlab.loops.states import OVER

    if goal.state in OVER:
        return "journal finalize plan"
    return "journal log --description TEXT --hypothesis TEXT"


def run_loop(context: Context, request: Request) -> Outcome:
    """Experiments with a researcher's command until the session ends."""
    from cartlab.loops import approvals
    from cartlab.loops.journal import researching

    out = context.answer()
    researcher = str(request.given["researcher"])
    approvals.require(researcher, request.given["approve"])
    if request.dry_run:
        out.status, out.text = "planned", [f"would run experiments of `{researcher}` until the session ends"]
        return out
    ledger = loopdesk.open_ledger(context)
    desk = loopdesk.approved(desk_for(context, request, ledger), request.given["approve"])
    goal = researching.run(desk, researcher, request.given["experiments"])
    ledger.project()
    out.details = _facts(desk, goal)
    out.text = [f"the session is {goal.state}" + (f": {goal.reason}" if goal.reason else "")]
    out.report.next = context.line("journal summary")
    return _recorded(context, out)


# --- reading --------------------------------------------------------------------------------------


def _session(context: Context, request: Request) -> tuple[Desk, Journal] | None:
    """The session to read, None where a file is meant."""
    from cartlab.ledger import Ledger
    from cartlab.loops.desk import Desk
    from cartlab.loops.journal import session

    if request.given["jsonl"] is not None or not (context.root.path / "events.jsonl").is_file():
        return None
    ledger = Ledger.open(context.root.path, mend=False)
    goal = chosen(context, ledger.events(), request.given["session"])
    if goal is None:
        return None
    repo = loopdesk.repository_of(context, goal)
    desk = Desk(repo, context.root.path, ledger, goal.id, context.talk)
    return desk, session.journal_of(ledger.events(), goal.id)


def read(context: Context, request: Request) -> Outcome:
    """status, summary, evaluate: of a session, or of any tool's file."""
    from cartlab.loops import journal_file

    out = context.answer()
    own = _session(context, request)
    if own is not None:
        desk, journal = own
        out.report.inputs = ["events.jsonl"]
    else:
        name = request.given["jsonl"] or "autoresearch.jsonl"
        journal = _read_file(context.cwd / name)
        out.report.inputs = [name]
        if request.given["repair"]:
            journal = journal_file.Journal(journal.lines)
    out.details = journal_file.status(journal)
    if request.verb == "evaluate":
        out.text = _evaluated(out, journal, request)
        return out
    out.text = (
        journal_file.summary(journal)
        if request.verb == "summary"
        else [f"{key}: {value}" for key, value in out.details.items()]
    )
    if own is not None and request.verb == "status":
        facts = _facts(desk, desk.goal())
        out.details["session"] = facts
        out.text += _shown(facts)
        out.report.next = context.line(facts["next"])
    return out


def _read_file(path: Path) -> Journal:
    from cartlab.loops import journal_file

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(
            f"expected a session's journal at {path}; {error.strerror}",
            "`journal init --name TEXT --metric-name NAME --command CMD` opens one; --jsonl FILE reads any",
        ) from None
    return journal_file.parse(text)


def _evaluated(out: Outcome, journal: Journal, request: Request) -> list[str]:
    from cartlab.loops import journal_file

    found = journal_file.evaluate(journal, request.given["metric"], request.given["direction"])
    assert out.details is not None
    out.details |= asdict(found)
    against = "the first" if found.against is None else f"against {found.against:.9g}"
    delta = "" if found.percent is None else f", {found.percent:+.2f} % from the baseline"
    sure = "n/a" if found.confidence is None else f"{found.confidence:.2f}x"
    again = "; re-run to confirm" if found.confidence is not None and found.confidence < 1 else ""
    return [f"{found.decision} ({against}{delta}); confidence {sure}, {found.label}, advisory{again}"]


def _facts(desk: Desk, goal: Goal) -> dict[str, Any]:
    """All that a fresh agent needs to go on, from the ledger and the session's own text."""
    from cartlab.loops.journal import document, files, ideas, session
    from cartlab.sources import git

    place, best = files.place_of(desk, goal), session.best_of(goal)
    about = place / session.DOCUMENT
    text = about.read_text(encoding="utf-8", errors="replace") if about.is_file() else ""
    terms = session.terms_of(goal)
    told = document.sections(text or document.fresh(terms))
    log_lines = git.tell(desk.repo, "log", "--format=%h %s", f"-{COMMITS}", goal.accepted).decode(
        "utf-8", "replace"
    )
    return {
        "id": goal.id,
        "state": goal.state,
        "reason": goal.reason,
        "segment": goal.segment,
        "branch": goal.body.get("branch"),
        "worktree": goal.body["worktree"],
        "files": str(place),
        "accepted": goal.accepted,
        "policy": goal.body["policy"],
        "best": None if best is None else {"value": best.number, "text": best.text, "run": best.round},
        "objective": told.get("objective", ""),
        "constraints": told.get("constraints", ""),
        "termination": document.ending_told(terms, told.get("termination", "")),
        "tried": document.tried(goal),
        "ideas": ideas.listed(place / session.IDEAS),
        "edited_scripts": files.edited_scripts(desk, goal),
        "commits": log_lines.splitlines(),
        "next": _next(goal),
    }


def _shown(facts: dict[str, Any]) -> list[str]:
    lines = [
        "",
        f"session {facts['id']}: {facts['state']}" + (f" ({facts['reason']})" if facts["reason"] else ""),
        f"branch: {facts['branch'] or 'none'}",
        f"worktree: {facts['worktree']}",
        f"files: {facts['files']}",
        f"objective: {' '.join(str(facts['objective']).split())}",
        f"ends: {' '.join(str(facts['termination']).split())}",
        "",
        *facts["tried"],
    ]
    if facts["ideas"]:
        lines += ["", "Ideas:", *(f"  {at}. {text}" for at, text in enumerate(facts["ideas"], 1))]
    return [*lines, "", "Commits:", *(f"  {line}" for line in facts["commits"])]


# --- ideas ----------------------------------------------------------------------------------------


def idea(context: Context, request: Request) -> Outcome:
    """autoresearch.ideas.md: add, prune, list."""
    from cartlab.loops.journal import files, ideas, session

    out = context.answer()
    if request.word == "list" or request.dry_run:
        desk = desk_to_read(context, request)
    else:
        desk = desk_for(context, request, loopdesk.open_ledger(context))
    path = files.place_of(desk, desk.goal()) / session.IDEAS
    out.report.next = context.line("journal idea list")
    if request.word != "list" and not request.words:
        raise UsageError(f"journal idea {request.word} needs a text", f'journal idea {request.word} "..."')
    if request.word == "list":
        out.text = [f"{at}. {text}" for at, text in enumerate(ideas.listed(path), 1)] or ["no ideas wait"]
    elif request.dry_run:
        out.status, out.text = "planned", [f"would {request.word}: {' '.join(request.words)}"]
    else:
        with desk.ledger.holding():  # two who write at once lose no idea
            if request.word == "add":
                out.text = [f"added: {ideas.add(path, ' '.join(request.words))}"]
            else:
                out.text = [f"pruned: {text}" for text in ideas.prune(path, list(request.words))]
    out.details = {"ideas": ideas.listed(path), "file": str(path)}
    return out


# --- finalize -------------------------------------------------------------------------------------


def finalize(context: Context, request: Request) -> Outcome:
    """plan, create, verify: branches for review of what was kept."""
    from cartlab.loops.journal import branching, finalising, recording, session

    out, given = context.answer(), request.given
    if request.dry_run:
        desk = desk_to_read(context, request)
    else:
        desk = desk_for(context, request, loopdesk.open_ledger(context))
    groups = None if given["groups"] is None else context.cwd / given["groups"]

    def planned(goal: Goal) -> Any:
        return finalising.plan(
            desk,
            goal,
            given["trunk"] or "main",
            groups,
            collapse=given["collapse_overlap"],
            single=given["single"],
        )

    if request.word == "plan" or request.dry_run:
        made = planned(desk.goal())
        path = context.root.path / "journal" / desk.goal_id / "finalize.json"
        out.details = {"plan": made.to_json(), "file": str(path)}
        out.text = finalising.shown(desk.goal(), made)
        out.status = "planned" if request.dry_run else "ok"
        if not request.dry_run:
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [
                {"name": one.name, "description": one.title, "experiments": list(one.runs)}
                for one in made.groups
            ]
            path.write_text(
                json.dumps({"groups": rows}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            out.report.outputs = [str(path)]
            out.text.append(f"to group otherwise, edit {path} and give it as --groups")
        trunk = f"--trunk {shlex.quote(given['trunk'])} " if given["trunk"] else ""
        out.report.next = context.line(f"journal finalize create {trunk}--approve REASON")
        return out
    with desk.alone():
        goal = recording.prepare(desk)
        if request.word == "create":
            commits = branching.create(desk, goal, planned(goal), str(given["approve"]))
            out.details = {"branches": commits}
            out.text = [f"{name}  {commit[:12]}" for name, commit in commits.items()]
            out.report.outputs = list(commits)
            out.report.next = context.line("journal finalize verify")
            return _recorded(context, out)
        found, whole = branching.verify(desk, goal, given["trunk"])
    total = len(session.journal_of(desk.ledger.events(), goal.id).results)
    out.text = branching.shown(goal, found, whole, total)
    out.details = {"branches": branching.as_json(found), "whole": whole}
    out.reasons = [*whole, *(f"{one.branch}: {text}" for one in found for text in one.wrong)]
    if out.reasons:
        out.status, out.exit_code, out.report.decision = "unverified", 19, "inconclusive"
    return _recorded(context, out)


ACTIONS: dict[str, Callable[[Context, Any], Outcome]] = {
    "init": init,
    "log": log,
    "run": run_loop,
    "idea": idea,
    "finalize": finalize,
}
