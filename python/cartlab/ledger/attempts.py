"""What the events say about attempts, pairs and calibrations: pure folds over a list of events.

Which blocks are evidence is decided here and nowhere else (SPECS.md section 5): all valid blocks of
the same pair in ledger order, over reruns and tiers, but none of an unrecorded attempt, of an imported one,
or of one whose outputs or clocks were found to be wrong.

Bodies, as the pipeline writes them:
  attempt_started   Plan.to_json()
  block             Block.to_json(); of an unrecorded attempt also "unrecorded": true
  decision          Verdict.to_json() and "tier", "pair", "validity", "budget_ended", "pooled_through" (the
  last seq that
                    its evidence includes). A run over several workloads is one attempt a workload
  attempt_finished  "status", "seconds" {build, verify, blocks, other}, "base_build_id", "cand_build_id",
  "artifact",
                    "description", "limit_stop_reason", "relink_floor" (calibrate), "toolchain", "patch_id",
                    "witnesses", "problem", and what a results row needs besides
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cartlab.ledger.chain import Event
from cartlab.model import STATUSES, Block, PairKey, Plan

# An attempt that ended so has measured something else than its pair: its blocks are no evidence.
SPOILED = ("behaviour_changed", "tampered")
# A pair with one of these is decided: asking again answers from the ledger.
DECIDED = ("keep", "keep_stack", "keep_small_gain", "discard", "discard_stack")
SCREENED = ("triage_promote", "triage_discard", "inconclusive")


@dataclass
class Attempt:
    """One run as the ledger knows it. decisions: bodies in order, the last one is its verdict."""

    id: str
    started_seq: int
    started: str
    plan: Plan
    blocks: list[Block] = field(default_factory=list)
    block_seqs: list[int] = field(default_factory=list)
    decisions: list[Mapping[str, Any]] = field(default_factory=list)
    finished: Mapping[str, Any] | None = None
    finished_at: str | None = None

    @property
    def decision(self) -> Mapping[str, Any] | None:
        """The last decision's body, or None."""
        return self.decisions[-1] if self.decisions else None

    @property
    def status(self) -> str | None:
        """The status it ended with; None while it is open."""
        if self.finished is not None:
            return str(self.finished.get("status"))
        return str(self.decision["status"]) if self.decision is not None else None


def attempts_of(events: Iterable[Event]) -> dict[str, Attempt]:
    """All attempts in the order they started. An event of an unknown attempt is left out."""
    out: dict[str, Attempt] = {}
    for event in events:
        name, kind = event["attempt"], event["type"]
        if kind == "attempt_started":
            out[name] = Attempt(name, event["seq"], event["time"], Plan.from_json(event["body"]))
            continue
        attempt = out.get(name) if name is not None else None
        if attempt is None:
            continue
        if kind == "block":
            attempt.blocks.append(Block.from_json(event["body"]))
            attempt.block_seqs.append(event["seq"])
        elif kind == "decision":
            attempt.decisions.append(event["body"])
        elif kind == "attempt_finished":
            attempt.finished, attempt.finished_at = event["body"], event["time"]
    return out


def is_evidence(attempt: Attempt) -> bool:
    """May its blocks count at all."""
    return attempt.plan.recorded and attempt.plan.policy != "legacy" and attempt.status not in SPOILED


def blocks_of(
    attempts: Mapping[str, Attempt], pair: PairKey, unit: str = "block", before: str | None = None
) -> list[Block]:
    """The pair's block sequence in ledger order, dropped ones included.

    unit: blocks and processes are samples of different noise and do not mix. before: an attempt's id; only
    blocks that were in the ledger when it started count.
    """
    this = attempts.get(before) if before is not None else None
    until = None if this is None else this.started_seq
    found: list[tuple[int, Block]] = []
    for attempt in attempts.values():
        if attempt.plan.pair == pair and attempt.plan.unit == unit and is_evidence(attempt):
            found += zip(attempt.block_seqs, attempt.blocks, strict=True)
    ordered = sorted(found, key=lambda item: item[0])
    return [block for seq, block in ordered if until is None or seq < until]


def verdict_of(
    attempts: Mapping[str, Attempt], pair: PairKey, tier: str, policy_hash: str
) -> tuple[Attempt, Mapping[str, Any]] | None:
    """The newest verdict that answers for this pair and tier without measuring again, with its attempt.

    A screen answers with any finished screen of its own size; an acceptance tier with a keep* or a discard*.
    Interrupted, failed, forced and unrecorded runs, and those of another policy, answer for nothing.
    """
    answers = SCREENED if tier == "screen" else DECIDED
    for attempt in reversed(list(attempts.values())):
        body = attempt.decision
        if (
            body is not None
            and attempt.plan.pair == pair
            and attempt.plan.tier == tier
            and attempt.plan.policy_hash == policy_hash
            and not (tier == "screen" and attempt.plan.sizes_changed)
            and is_evidence(attempt)
            and body["status"] in answers
            and body.get("final", True)
            and "forced" not in body.get("marks", ())
            and (attempt.finished is None or attempt.finished.get("status") == body["status"])
        ):
            return attempt, body
    return None


def is_calibration(attempt: Attempt) -> bool:
    """Does it stand for its host: recorded, ended with a baseline, and of resident blocks, since processes
    scatter three times as much.
    """
    plan = attempt.plan
    return (
        plan.tier == "calibrate"
        and plan.unit == "block"
        and is_evidence(attempt)
        and attempt.status == "baseline"
    )


def calibration_of(
    attempts: Mapping[str, Attempt], host_class: str, toolchain: str | None = None
) -> Attempt | None:
    """The newest finished calibration on this class of host, or None. toolchain: only one that this compiled,
    or that does not say what compiled it.
    """
    for attempt in reversed(list(attempts.values())):
        if (
            is_calibration(attempt)
            and attempt.plan.host_class == host_class
            and toolchain in (None, (attempt.finished or {}).get("toolchain") or toolchain)
        ):
            return attempt
    return None


def floor_of(attempts: Mapping[str, Attempt], host_class: str) -> float | None:
    """1 + the relink floor of the newest calibration of this class of host; None where none measured one."""
    newest = calibration_of(attempts, host_class)
    floor = None if newest is None or newest.finished is None else newest.finished.get("relink_floor")
    return None if floor is None else 1.0 + float(floor)


def latest_accepted(attempts: Mapping[str, Attempt]) -> Attempt | None:
    """The newest recorded attempt that kept its candidate."""
    for attempt in reversed(list(attempts.values())):
        row = STATUSES.get(attempt.status or "")
        if row is not None and row.keeps and is_evidence(attempt) and attempt.plan.part_of is None:
            return attempt
    return None
