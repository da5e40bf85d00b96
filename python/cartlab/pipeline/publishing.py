"""`publish`: fast-forward of the current branch to a candidate that was accepted. The one command that
moves a branch, so it needs a reason, which the ledger keeps as an `approval` event before anything moves.

What must hold: a branch is checked out and clean, the candidate descends from it, and every step from the
branch to the candidate is covered by acceptance runs of this ledger that kept it: recorded, not forced, not
imported, and not contradicted by a later run of the same pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from cartlab import fastforward
from cartlab.errors import NotLegalNow, UsageError
from cartlab.ledger import Attempt, Event, Ledger, attempts_of
from cartlab.ledger.attempts import is_evidence
from cartlab.model import STATUSES, TIERS, Json, Ref
from cartlab.outcome import Outcome, Report
from cartlab.pipeline import answer
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.run import open_ledger
from cartlab.pipeline.signals import uninterrupted
from cartlab.pipeline.voice import Voice
from cartlab.round import fold, require_legal

ACTION = "publish"


def accepted(attempts: Mapping[str, Attempt]) -> list[Attempt]:
    """Attempts that may carry a publication, newest first: what the newest acceptance run of a pair kept."""
    judged: set[tuple[str, str]] = set()
    found = []
    for attempt in reversed(list(attempts.values())):
        plan, status = attempt.plan, attempt.status
        pair = (plan.base.tree, plan.cand.tree)
        ended = attempt.finished is not None and status not in ("interrupted", "inconclusive", "busy_invalid")
        if not (TIERS[plan.tier].proves and plan.recorded and ended) or pair in judged:
            continue
        judged.add(pair)
        marks = (attempt.decision or {}).get("marks") or ()
        if status in STATUSES and STATUSES[status].keeps and is_evidence(attempt) and "forced" not in marks:
            found.append(attempt)
    return found


def proof(kept: Iterable[Attempt], lab: Lab, repo: Path, head: Ref, cand: Ref) -> list[Attempt]:
    """The accepted attempts that lead from `head` (or before it) to the candidate, newest step first.
    NotLegalNow where a step is missing.
    """
    steps = list(kept)
    reached: dict[str, list[Attempt]] = {cand.tree: []}
    waiting = [(cand.tree, cand.commit)]
    while waiting:
        tree, commit = waiting.pop()
        for one in steps:
            base = one.plan.base
            if (
                one.plan.cand.tree != tree
                or base.tree in reached
                or not lab.is_ancestor(repo, base.commit, commit)
            ):
                continue
            reached[base.tree] = [*reached[tree], one]
            if lab.is_ancestor(repo, base.commit, head.commit):
                return reached[base.tree]
            waiting.append((base.tree, base.commit))
    if len(reached) == 1:
        raise NotLegalNow(
            f"{cand.name} ({cand.commit[:12]}) was not accepted: "
            "no recorded, unforced acceptance run keeps its tree",
            f"prove it: {answer.SCRIPT} accept {head.commit[:12]} {cand.commit[:12]}",
        )
    raise NotLegalNow(
        f"{cand.name} ({cand.commit[:12]}) was accepted against a commit that is not in the current branch "
        "yet, and the steps up to that one were not accepted",
        f"prove the whole: {answer.SCRIPT} accept-stack {head.commit[:12]} {cand.commit[:12]}",
    )


def newest(kept: list[Attempt]) -> str:
    """The commit that is published where none was named."""
    if not kept:
        raise NotLegalNow(
            "no candidate was accepted yet: there is nothing to publish",
            f"{answer.SCRIPT} accept BASE CAND proves one; or name a revision",
        )
    return kept[0].plan.cand.commit


def unfinished(events: Iterable[Event], head: Ref) -> bool:
    """Was the newest publication meant to move `head` away, which is still there."""
    bodies = [e["body"] for e in events if e["type"] == "approval" and e["body"].get("action") == ACTION]
    return bool(bodies) and bodies[-1]["from"] == head.commit


def publish(
    text: str | None, reason: str, lab: Lab, repo: Path, root: Path, voice: Voice, *, dry_run: bool
) -> Outcome:
    """Check everything, record the approval, move the branch. Raises NotLegalNow with what does not hold,
    UsageError without a person's reason.
    """
    if not reason.strip() and not dry_run:
        raise UsageError(
            "publish moves your branch and needs a reason",
            'add --approve "why"; or look first with --dry-run',
        )
    ledger: Ledger | None = open_ledger(root, voice) if root.is_dir() else None
    events = ledger.events() if ledger is not None else []
    require_legal(fold(events), ACTION)
    kept = accepted(attempts_of(events))
    branch = fastforward.checked_branch(repo)
    head = lab.resolve(repo, "HEAD")
    cand = lab.resolve(repo, text or newest(kept))
    out = Outcome(
        command=ACTION,
        report=Report(
            phase="record", inputs=[f"{branch} {head.commit[:12]}", f"{cand.name} {cand.commit[:12]}"]
        ),
        ledger=str(root / "events.jsonl"),
        recorded=False,
        baseline=answer.side(head, None),
        candidate=answer.side(cand, None),
    )
    out.details = {"branch": branch, "from": head.commit, "to": cand.commit, "moved": False}
    out.report.next = f"{answer.SCRIPT} status"
    if cand.commit == head.commit:
        out.text = [f"{branch} is at {cand.commit[:12]} already: nothing to publish"]
        return out
    if not lab.is_ancestor(repo, head.commit, cand.commit):
        raise NotLegalNow(
            f"publish only moves forward; {cand.name} ({cand.commit[:12]}) does not descend from {branch} "
            f"({head.commit[:12]})",
            "rebase the candidate on the branch and prove it there: a rebased commit is another tree",
        )
    fastforward.require_clean(repo, unfinished(events, head))
    steps = proof(kept, lab, repo, head, cand)
    fastforward.require_room(repo, head, cand)
    names = [one.id for one in steps]
    out.details["evidence"] = names
    shown = f"{branch}: {head.commit[:12]} -> {cand.commit[:12]}, accepted by {', '.join(names)}"
    if dry_run:
        out.status, out.text = "planned", [f"would fast-forward {shown}"]
        return out
    assert ledger is not None  # accepted attempts came from it
    body: Json = {
        "action": ACTION,
        "branch": branch,
        "from": head.commit,
        "to": cand.commit,
        "tree": cand.tree,
        "evidence": names,
        "reason": reason,
    }
    with uninterrupted():
        ledger.append("approval", None, body)
        fastforward.forward(repo, branch, head, cand)
    ledger.project()
    out.recorded, out.details["moved"] = True, True
    out.report.outputs = ["events.jsonl", f"branch {branch}"]
    out.text = [f"fast-forwarded {shown}", f"approved: {reason}"]
    return out
