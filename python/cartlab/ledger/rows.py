"""A results.tsv row of an attempt, and the file: projections of the events, rebuildable at any time.

Contract: SPECS.md section 6 on what the predecessor's columns mean under blocks. A column that has no
meaning under a policy is empty. An attempt has a row once it is finished, unless it was chosen beforehand
not to be recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from cartlab.ledger.attempts import Attempt, attempts_of, blocks_of
from cartlab.ledger.chain import Event
from cartlab.ledger.columns import RESULTS_TSV_COLUMNS, header, line_of
from cartlab.model import BUSY, POLICY, STATUSES, Block, Json, PairKey, Workload


def results_tsv(events: Sequence[Event]) -> str:
    """The whole results.tsv of these events."""
    attempts = attempts_of(events)
    # A row needs the runs of its own pair alone: a long ledger has thousands of pairs.
    related: dict[PairKey, dict[str, Attempt]] = {}
    for name, attempt in attempts.items():
        related.setdefault(attempt.plan.pair, {})[name] = attempt
    lines = [header()]
    for event in events:
        if event["type"] == "attempt_finished" and event["attempt"] in attempts:
            attempt = attempts[event["attempt"]]
            if attempt.plan.recorded and attempt.finished is event["body"]:
                lines.append(line_of(row_of(attempt, related[attempt.plan.pair])))
        elif event["type"] == "import":
            lines.append(line_of(imported_row(event)))
    return "\n".join(lines) + "\n"


def epoch_of(time: str) -> int:
    """Seconds since 1970 of an RFC 3339 time in UTC."""
    return int(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp())


def sample_of(attempt: Attempt, attempts: Mapping[str, Attempt]) -> list[Block]:
    """The valid blocks that the attempt's evidence rests on: earlier runs' of the pair, then its own."""
    plan = attempt.plan
    if plan.legacy is not None:
        return list(attempt.blocks)
    earlier = blocks_of(attempts, plan.pair, plan.unit, before=attempt.id)
    forced = plan.forced
    return [
        block
        for block in [*earlier, *attempt.blocks]
        if block.dropped is None or (forced and block.dropped.startswith(BUSY))
    ]


def units_per_step(workload: Workload) -> float:
    """How many units of the metric one worker step is: params["units_per_step"], else the number of lanes,
    else 1.
    """
    for key in ("units_per_step", "lanes", "num_envs"):
        if isinstance(workload.params.get(key), (int, float)):
            return float(workload.params[key])
    return 1.0


def speeds(blocks: Iterable[Block], workload: Workload, side: str = "cand") -> list[list[float]]:
    """The metric of each slice of one side ("base" | "cand"), a list a block, in units a second."""
    per_step = units_per_step(workload)
    return [
        [block.steps * per_step * 1e9 / ns for ns in (block.cand_ns if side == "cand" else block.base_ns)]
        for block in blocks
    ]


def row_of(attempt: Attempt, attempts: Mapping[str, Attempt]) -> Json:
    """The row of a finished attempt; column name -> value, None where there is none. attempts: those of its
    pair at least.
    """
    # Read late: it is most of what importing the ledger costs, and `next` needs none of it.
    import statistics

    plan, done, body = attempt.plan, attempt.finished or {}, attempt.decision or {}
    found: Mapping[str, Any] = body.get("evidence") or {}
    sample = sample_of(attempt, attempts)
    ratios = [math.exp(block.y) for block in sample]
    own = [values for values in speeds(attempt.blocks, plan.workload) if values]
    medians = [statistics.median(values) for values in own]
    everything = [value for values in own for value in values]
    busy = sum(block.dropped is not None for block in attempt.blocks)
    status = attempt.status or "interrupted"
    row: Json = dict.fromkeys(RESULTS_TSV_COLUMNS)
    row |= {
        "epoch": epoch_of(attempt.finished_at or attempt.started),
        "commit": plan.cand.commit,
        "baseline_commit": plan.base.commit,
        "mode": plan.command,
        "benchmark_tier": plan.benchmark_tier,
        "workload_hash": plan.workload.hash,
        "measured_invocation_count": 2 * len(attempt.blocks),
        "measured_pairs": len(sample),
        "official_median_sps": statistics.median(everything) if everything else None,
        "mean_invocation_median_sps": statistics.fmean(medians) if medians else None,
        "median_pair_ratio": statistics.median(ratios) if ratios else None,
        "mean_pair_ratio": statistics.fmean(ratios) if ratios else None,
        "candidate_faster_pairs": sum(block.y > 0.0 for block in sample),
        "candidate_faster_pairs_required_for_win": _needed_faster(plan.tier, len(sample)),
        "validity_passed": status in ("baseline", *_JUDGED),
        "load_gate_passed": busy <= POLICY.max_dropped * len(attempt.blocks) if attempt.blocks else None,
        "load_gate_ignored_for_validity": plan.forced,
        "limit_stop_reason": done.get("limit_stop_reason"),
        "previous_limit_stop_reason": _previous_stop(attempt, attempts),
        "benchmark_limits": {"max_blocks": plan.max_blocks, "max_seconds": plan.max_seconds},
        "expected_rom_sha256": plan.workload.params.get("expected_rom_sha256"),
        "rom_sha256": plan.workload.params.get("rom_sha256"),
        "state_sha256": plan.workload.params.get("state_sha256"),
        "decision": body.get("decision") or (STATUSES[status].decision if status in STATUSES else None),
        "status": status,
        "description": done.get("description"),
        "artifact": done.get("artifact"),
        "recorded_at": attempt.finished_at,
        "attempt_id": attempt.id,
        "hl_ratio": found.get("hl"),
        "lcb": found.get("lcb"),
        "ucb": found.get("ucb"),
        "e_value": found.get("e_value"),
        "guard": found.get("guard"),
        "ratio_vs_round_baseline": done.get("ratio_vs_round_baseline"),
        "policy_hash": plan.policy_hash,
        "harness_hash": plan.harness_hash,
        "base_build_id": done.get("base_build_id"),
        "cand_build_id": done.get("cand_build_id"),
    }
    # A policy of its own (legacy) and manual overrides hand in the cells that only they can fill.
    row |= {key: value for key, value in (done.get("row") or {}).items() if key in row}
    return row


_JUDGED = (
    "triage_promote",
    "triage_discard",
    "keep",
    "keep_stack",
    "keep_small_gain",
    "discard",
    "discard_stack",
    "inconclusive",
)


def _needed_faster(tier: str, blocks: int) -> int | None:
    """Only the screen asks for a number of faster blocks."""
    part, whole = POLICY.promote_share
    return math.ceil(blocks * part / whole) if tier == "screen" and blocks else None


def _previous_stop(attempt: Attempt, attempts: Mapping[str, Attempt]) -> str | None:
    """Why the run before this one of the same pair and tier stopped short, if it did."""
    previous = None
    for other in attempts.values():
        if other.id == attempt.id:
            break
        if other.plan.pair == attempt.plan.pair and other.plan.tier == attempt.plan.tier and other.finished:
            previous = other.finished.get("limit_stop_reason")
    return previous


def imported_row(event: Event) -> Json:
    """The row of an `import` event: what was handed in, marked, with our own time and without an attempt of
    ours.
    """
    body = event["body"]
    row: Json = dict.fromkeys(RESULTS_TSV_COLUMNS)
    row |= {key: value for key, value in (body.get("row") or {}).items() if key in row}
    row["description"] = f"imported: {row['description'] or body.get('source') or ''}".rstrip(": ")
    row["recorded_at"] = event["time"]
    row["epoch"] = row["epoch"] or epoch_of(event["time"])
    row["attempt_id"] = event["attempt"]
    return row
