"""What every command answers: one object for `--json`, and five closing lines for people.

The keys are SPECS.md section 6's: unknown is null, a key is never absent. `details` is ours: what one
command has to say beyond the common keys (the frozen plan of a dry run, the rows of `status`, the actions
of `next`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SCHEMA = "cartlab.result/1"


@dataclass
class Side:
    """One of the two revisions as far as it is known: the text that was typed, what git says, what was
    built.
    """

    ref: str | None = None
    commit: str | None = None
    tree: str | None = None
    build_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"ref": self.ref, "commit": self.commit, "tree": self.tree, "build_id": self.build_id}


@dataclass
class Report:
    """The five lines that close every command."""

    phase: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    decision: str = "defer"
    next: str = "scripts/autoresearch.py next"

    def lines(self) -> list[str]:
        return [
            f"phase: {self.phase}",
            f"inputs: {_joined(self.inputs)}",
            f"outputs: {_joined(self.outputs)}",
            f"decision: {self.decision}",
            f"next: {self.next}",
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "inputs": _joined(self.inputs),
            "outputs": _joined(self.outputs),
            "decision": self.decision,
            "next": self.next,
        }


def _joined(parts: list[str]) -> str:
    return ", ".join(" ".join(part.split()) for part in parts) or "none"


@dataclass
class Outcome:
    """The answer of one command. `text` is the body for people; it is not part of the JSON object."""

    command: str
    report: Report
    status: str = "ok"
    exit_code: int = 0
    reasons: list[str] = field(default_factory=list)
    attempt_id: str | None = None
    recorded: bool | None = None
    baseline: Side = field(default_factory=Side)
    candidate: Side = field(default_factory=Side)
    workload_hash: str | None = None
    harness_hash: str | None = None
    policy_hash: str | None = None
    ratio: float | None = None
    lcb: float | None = None
    ucb: float | None = None
    e_value: float | None = None
    guard: float | None = None
    alpha: float | None = None
    blocks: dict[str, int | None] = field(
        default_factory=lambda: {"used": None, "dropped": None, "pooled": None}
    )
    candidate_faster_blocks: int | None = None
    seconds: dict[str, float | None] = field(
        default_factory=lambda: {"build": None, "verify": None, "blocks": None, "other": None}
    )
    ledger: str | None = None
    details: dict[str, Any] | None = None
    text: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "command": self.command,
            "status": self.status,
            "exit_code": self.exit_code,
            "reasons": list(self.reasons),
            "attempt_id": self.attempt_id,
            "recorded": self.recorded,
            "baseline": self.baseline.to_json(),
            "candidate": self.candidate.to_json(),
            "workload_hash": self.workload_hash,
            "harness_hash": self.harness_hash,
            "policy_hash": self.policy_hash,
            "ratio": finite(self.ratio),
            "lcb": finite(self.lcb),
            "ucb": finite(self.ucb),
            "e_value": finite(self.e_value),
            "guard": finite(self.guard),
            "alpha": finite(self.alpha),
            "blocks": dict(self.blocks),
            "candidate_faster_blocks": self.candidate_faster_blocks,
            "seconds": dict(self.seconds),
            "ledger": self.ledger,
            "report": self.report.to_json(),
            "details": self.details,
        }


def finite(value: float | None) -> float | None:
    """JSON has no infinity and no NaN: a bound that does not exist yet is null."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return value
