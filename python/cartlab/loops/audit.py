"""`audit ID`: does a kept attempt still hold, measured again from its commit and nothing else?

Its tree and the one it started from are laid out afresh and run in pairs on seeds that no earlier run had,
the first of each pair drawn. The answer compares with what is stored: the gain (is the median of the pairs
above zero?) and the value (does it lie in the range of the new ones, widened on both sides by its own width
and the protocol's tolerance?). A few pairs are a check that somebody can repeat, not a bound: a rate is
claimed by the policy `paired` alone. The answer is an event, and nothing of the goal moves.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cartlab.errors import BadInput, NotLegalNow
from cartlab.loops import acceptance, policies, rounds, views
from cartlab.loops.desk import Desk
from cartlab.loops.dispatch import top_of
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal import judging, session
from cartlab.loops.running import Bench, Failed
from cartlab.loops.witness import Usual

RUNS = 3
# Word -> the row of model.STATUSES that it answers with.
WORDS = {"reproduced": "ok", "moved": "inconclusive", "not_reproduced": "discard"}


@dataclass(frozen=True)
class Found:
    """word: reproduced | moved (the gain is there, the value is another one) | not_reproduced."""

    word: str
    reason: str
    interval: tuple[float, float]
    gain: float


def compare(
    stored: float, values: Sequence[float], effects: Sequence[float], tolerance: float = 0.0
) -> Found:
    """The word for new values and pair effects (> 0 where the candidate is better). Pure."""
    low, high = min(values), max(values)
    # A value that was printed with nine digits is the same where those digits are.
    wide = (high - low) + tolerance + 1e-9 * abs(stored)
    interval, gain = (low - wide, high + wide), statistics.median(effects)
    shown = f"{interval[0]:.9g} to {interval[1]:.9g}"
    if gain <= 0:
        return Found("not_reproduced", f"no gain in {len(effects)} pairs, median {gain:+.3g}", interval, gain)
    if not interval[0] <= stored <= interval[1]:
        return Found("moved", f"the stored {stored:.9g} is not in {shown}, the gain is there", interval, gain)
    return Found("reproduced", f"the stored {stored:.9g} is in {shown}, and so is its gain", interval, gain)


def audit(desk: Desk, goal: Goal, one: Try, runs: int = RUNS) -> Found:
    """Measure, record and answer. NotLegalNow for an attempt that was not kept."""
    decision = one.decision
    if decision is None or not one.kept or one.commit is None:
        raise NotLegalNow(
            f"an audit asks whether a kept attempt holds; {one.id} is {one.status or one.state}",
            "`show` lists what was kept",
        )
    if "protocol" not in goal.body:
        raise BadInput(
            f"{one.id} belongs to a loop without a protocol; its harness cannot be run again from here"
        )
    protocol = views.protocol_of(goal)
    if one.segment != goal.segment:
        raise NotLegalNow(
            f"{one.id} was measured before the protocol changed what a number means; nothing compares",
            "audit an attempt of the current segment",
        )
    past = sum(_is_audit(event, one.id) for event in desk.ledger.events())
    name = Try(f"{one.id}-audit{past + 1}", one.round)
    usual = acceptance.usual(desk, goal, rounds.draw_seed(goal))
    bench, tolerance = _bench(desk, goal, name, one.commit, usual)
    # A campaign's experiment is made from the champion of its launch, a round from that of its proposal.
    made_from = {**one.steps["proposed"], **one.steps["dispatched"]}["base"]
    base = replace(bench, commit=str(made_from))
    pairs: list[list[int]] = []
    values, effects = [], []
    try:
        for at in range(1, runs + 1):
            desk.voice.progress(f"audit of {one.id}: pair {at} of {runs}")
            seed = rounds.draw_seed(goal)
            order = [(bench, f"-{at}-cand"), (base, f"-{at}-base")]
            first = secrets.randbelow(2)
            got = {id(side): side.value(seed, label) for side, label in (order if first else order[::-1])}
            cand, other = got[id(bench)], got[id(base)]
            pairs.append([cand.seq, other.seq])
            values.append(cand.number)
            effects.append(policies.effect(cand.number, other.number, protocol.direction))
        found = compare(float(decision["value"]), values, effects, tolerance)
    except Failed as failed:
        found = Found("not_reproduced", f"{failed.verdict}: {failed.insight}", (0.0, 0.0), 0.0)
    finally:
        desk.clear(name.id)
    desk.tell(
        "audit",
        attempt=one.id,
        word=found.word,
        reason=found.reason,
        stored=decision["value"],
        tolerance=tolerance,
        pairs=pairs,
        complete=len(pairs) == runs,
    )
    return found


def _bench(desk: Desk, goal: Goal, name: Try, commit: str, usual: Usual) -> tuple[Bench, float]:
    """What an attempt of this kind of loop is measured with, and how far equal values may lie apart."""
    if goal.loop == session.LOOP:
        return judging.bench_of(desk, goal, name, commit), session.noise_of(goal)
    protocol = views.protocol_of(goal)
    return Bench(desk, name, protocol, top_of(goal), commit, usual=usual), protocol.eval_tolerance


def _is_audit(event: Any, attempt: str) -> bool:
    body = event["body"]
    return bool(event["type"] == "goal" and body["op"] == "audit" and body["attempt"] == attempt)


def of_attempt(events: Sequence[Any], attempt: str) -> list[dict[str, Any]]:
    """The audits of an attempt, oldest first."""
    return [{"time": event["time"], **event["body"]} for event in events if _is_audit(event, attempt)]


# --- attempts of the speed rounds ---------------------------------------------------------------------


def compare_bounds(
    stored: tuple[float | None, float | None], ratio: float | None, upper: float | None
) -> Found:
    """The same for a pair of revisions: the new estimate held against the stored bounds. Pure."""
    low, high = stored[0] or 0.0, stored[1] or float("inf")
    if ratio is None:
        return Found("moved", "the new run gave no estimate", (low, high), 0.0)
    shown = f"{low:.4f} to {high:.4f}" if high < float("inf") else f"from {low:.4f}"
    if upper is not None and upper < low:
        return Found("not_reproduced", f"at most {upper:.4f}; stored are {shown}", (low, high), ratio)
    if low <= ratio <= high:
        return Found("reproduced", f"{ratio:.4f} lies in the stored bounds {shown}", (low, high), ratio)
    return Found("moved", f"{ratio:.4f} lies outside the stored bounds {shown}", (low, high), ratio)
