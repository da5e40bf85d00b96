"""What is legal now, and what `next` proposes: the authority over an open round.

Contract: SPECS.md section 6. Pure: the clock, HEAD and the host come in as values. Each proposal has
a reason and an exact command line. To add an action: add its proposal below and, where it can be refused,
its rule to `_refusal`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from cartlab.errors import NotLegalNow
from cartlab.model import Json
from cartlab.round.rules import confirm_candidate
from cartlab.round.states import Candidate, Round

SCRIPT = "scripts/autoresearch.py"
BUNDLE_PRODUCT = 1.05
BUNDLE_STEADY, BUNDLE_STEADY_COUNT = 1.015, 3
BUNDLE_COUNT = 8
MAX_PROOF_MINUTES = 30.0
CALIBRATION_DAYS = 7.0

MEASURING = ("screen", "accept", "accept-stack", "confirm")
# What a paused round still allows: looking, learning, writing text, and ending the pause.
ALWAYS = (
    "init",
    "status",
    "next",
    "probe",
    "diagnose",
    "checks",
    "calibrate",
    "bisect",
    "record",
    "round show",
    "round abandon",
    "plan",
    "verify",
    "explain",
    "report",
    "note",
    "idea",
    "doctor",
    "gc",
    "export",
    "import",
    "stop",
)


class Action(NamedTuple):
    """One line of `next`: what, why, and the words after `scripts/autoresearch.py` that do it."""

    action: str
    command: str
    reason: str

    def to_json(self) -> Json:
        """As current.json and `next --json` show it."""
        return {**self._asdict(), "legal": True}


class NextFacts(NamedTuple):
    """What `next` looks at besides the events. calibrated_at: of the newest calibration of this host and
    toolchain.

    head_calibrated: is the newest calibration one of HEAD's tree; a round opens on no other.
    contract_paths: changed paths of HEAD against the baseline that are in the table of contract paths.
    """

    now: str
    head_commit: str | None
    head_tree: str | None
    calibrated_at: str | None
    contract_paths: tuple[str, ...] = ()
    max_proof_minutes: float = MAX_PROOF_MINUTES
    head_calibrated: bool = True


def _short(commit: str) -> str:
    return commit[:12]


def next_actions(found: Round | None, facts: NextFacts) -> list[Action]:
    """The proposals in order; the first is what to do."""
    if found is None or found.state == "abandoned":
        return _without_round(facts)
    if found.state == "complete":
        return [
            Action("stop", "report --session", "the round is complete: report it and stop"),
            _open_one(facts, "a new goal starts from live HEAD"),
        ]
    if found.state == "paused":
        return [
            Action(
                "round resume",
                "round resume --reason TEXT",
                f"paused by {found.pause_rule}: {found.pause_reason}",
            ),
            Action(
                "round abandon",
                "round abandon --reason TEXT",
                "end it; its results stay in the ledger",
            ),
        ]
    return _calibration(facts, found.baseline_commit) + _in_round(found, facts)


def _without_round(facts: NextFacts) -> list[Action]:
    due = _calibration(facts, facts.head_commit or "HEAD")
    if due and not facts.head_calibrated:
        return due
    return [*due, _open_one(facts, "no round is open: every command works as typed")]


def _open_one(facts: NextFacts, why: str) -> Action:
    """Opening a round on HEAD, or what has to come before."""
    if not facts.head_calibrated:
        line = f"calibrate {_short(facts.head_commit or 'HEAD')}"
        return Action("calibrate", line, f"{why}, once it is calibrated: then `round open --goal TEXT`")
    return Action("round open", "round open --goal TEXT", why)


def _calibration(facts: NextFacts, commit: str) -> list[Action]:
    line = f"calibrate {_short(commit)}"
    if facts.calibrated_at is None:
        return [Action("calibrate", line, "no calibration of this host and toolchain")]
    age = _days(facts.calibrated_at, facts.now)
    if age > CALIBRATION_DAYS:
        return [Action("calibrate", line, f"the last calibration is {age:.0f} days old")]
    return []


def _days(before: str, now: str) -> float:
    def at(time: str) -> float:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()

    return (at(now) - at(before)) / 86_400.0


def _in_round(found: Round, facts: NextFacts) -> list[Action]:
    base = _short(found.baseline_commit)
    out: list[Action] = []
    ready = confirm_candidate(found)
    if ready is not None:
        why = f"accepted at an estimate of {ready.estimate:.4f}, the target is {found.target:.2f}"
        out.append(Action("round confirm", f"round confirm {_short(ready.commit)}", why))
    elif found.state == "confirming":
        out.append(Action("round confirm", "round confirm", "its confirm run was not finished"))
    out += _proofs(found, facts, base)
    head = facts.head_tree
    judged = head is not None and head in found.candidates and found.candidates[head].status is not None
    if head is not None and facts.head_commit is not None and head != found.baseline_tree and not judged:
        if facts.contract_paths:
            why = f"contract paths changed: {', '.join(facts.contract_paths[:3])}"
            out.append(Action("accept", f"accept {base} {_short(facts.head_commit)}", why))
        else:
            out.append(
                Action("screen", f"screen {base} {_short(facts.head_commit)}", "HEAD was not screened yet")
            )
    learn = [
        Action("diagnose", "diagnose --quick", "find where the time goes before the next edit"),
        Action("probe", "probe", "learn whether an edit moves at all: evidence of learning only"),
    ]
    return learn + out if found.state == "open" and not out else out + learn


def _proofs(found: Round, facts: NextFacts, base: str) -> list[Action]:
    """Acceptance runs that the screens justify, and those that are not worth their time."""
    out = []
    promoted = [c for c in found.candidates.values() if c.promoted and not c.consumed and c.hl is not None]
    bundle = bundle_reason(promoted)
    if bundle:
        tip = facts.head_commit or promoted[-1].commit
        out.append(Action("accept-stack", f"accept-stack {base} {_short(tip)}", bundle))
    for candidate in found.candidates.values():
        minutes = proof_minutes(candidate)
        open_case = candidate.status in ("triage_promote", "inconclusive") and not candidate.consumed
        if (
            not open_case
            or minutes is None
            or minutes <= facts.max_proof_minutes
            or (bundle and candidate.promoted)
        ):
            continue
        word = "discard" if (candidate.hl or 0.0) < 1.0 else "defer"
        why = f"proving {candidate.hl or 0.0:.4f} would take about {minutes:.0f} minutes, more than "
        why += f"{facts.max_proof_minutes:.0f}" + (": it may be part of a stack" if word == "defer" else "")
        out.append(Action(word, f"note '{word} {_short(candidate.commit)}'", why))
    return out


def bundle_reason(promoted: Sequence[Candidate]) -> str:
    """Why these promoted candidates are worth a stack run; empty if they are not yet."""
    estimates = [c.hl or 1.0 for c in promoted]
    if any(hl >= BUNDLE_PRODUCT for hl in estimates):
        return f"one candidate alone is estimated at {max(estimates):.3f}"
    product = math.prod(estimates)
    if estimates and product >= BUNDLE_PRODUCT:
        return f"{len(estimates)} promoted candidates multiply to {product:.3f}"
    steady = sum(hl >= BUNDLE_STEADY for hl in estimates)
    if steady >= BUNDLE_STEADY_COUNT:
        return f"{steady} promoted candidates are estimated at {BUNDLE_STEADY} or more"
    return f"{len(estimates)} candidates are promoted" if len(estimates) >= BUNDLE_COUNT else ""


def proof_minutes(candidate: Candidate) -> float | None:
    """How long an acceptance run would take if the estimate is true; None where nothing tells."""
    if candidate.blocks_needed is None or candidate.seconds_per_block is None:
        return None
    return candidate.blocks_needed * candidate.seconds_per_block / 60.0


def require_legal(
    found: Round | None,
    command: str,
    base_tree: str | None = None,
    workload_hash: str | None = None,
    harness_hash: str | None = None,
    protected_hash: str | None = None,
) -> None:
    """NotLegalNow where the open round does not allow this command with these trees and hashes; nothing
    without a round.
    """
    why = _refusal(found, command, base_tree, workload_hash, harness_hash, protected_hash)
    if why:
        raise NotLegalNow(why[0], why[1])


def _refusal(
    found: Round | None,
    command: str,
    base_tree: str | None,
    workload_hash: str | None,
    harness_hash: str | None,
    protected_hash: str | None,
) -> tuple[str, str] | None:
    if found is None or not found.active:
        if command in ("confirm", "round resume", "round abandon"):
            return (
                f"no round is open: there is nothing to {command.removeprefix('round ')}",
                f"{SCRIPT} round open",
            )
        return None
    if command == "round open":
        hint = (
            "continue it, `round confirm` it, or `round abandon --reason TEXT` and open again from live HEAD"
        )
        return f"round {found.id} is {found.state}: one round at a time", hint
    if command == "round resume" and found.state != "paused":
        return f"round {found.id} is {found.state}, not paused", f"{SCRIPT} next"
    if found.state == "paused" and command not in (*ALWAYS, "round resume"):
        return (
            f"round {found.id} is paused by {found.pause_rule}: {found.pause_reason}",
            f"{SCRIPT} round resume --reason TEXT",
        )
    if command not in MEASURING:
        return None
    if command != "screen" and base_tree is not None and base_tree != found.baseline_tree:
        base = _short(found.baseline_commit)
        return (
            f"the round's baseline is fixed at {base}",
            f"compare against {base}; another one takes abandon and open",
        )
    pinned = found.body.get("workload_hash")
    if workload_hash is not None and pinned is not None and workload_hash != pinned:
        return "the round pins its workload, this is another one", "leave the workload's flags out"
    harness = found.body.get("harness_hash")
    if harness_hash is not None and harness is not None and harness_hash != harness:
        return (
            "the harness changed since the round was opened",
            "restore it, or abandon and open the round again",
        )
    guarded = found.body.get("protected_hash")
    if protected_hash is not None and guarded is not None and protected_hash != guarded:
        return (
            "the list of protected paths changed since the round was opened",
            "restore [protected] in autoresearch.toml, or abandon and open the round again",
        )
    if command == "confirm" and found.state == "open":
        return "nothing accepted reaches the target yet", f"{SCRIPT} next"
    return None
