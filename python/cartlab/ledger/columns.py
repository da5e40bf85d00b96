"""The columns of results.tsv and how a value is written into a cell.

Contract: SPECS.md section 6. RESULTS_TSV_COLUMNS is the only list of the names; docs, skills and the
script are tested against it. To add a column: append its name here and its value in rows.py; nothing is
renamed or reused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

RESULTS_TSV_COLUMNS: tuple[str, ...] = (
    "epoch",
    "commit",
    "baseline_commit",
    "mode",
    "benchmark_tier",
    "workload_hash",
    "measured_invocation_count",
    "measured_pairs",
    "official_median_sps",
    "mean_invocation_median_sps",
    "bootstrap_ci95_invocation_median_sps",
    "median_pair_ratio",
    "mean_pair_ratio",
    "pair_ratio_bootstrap_ci95",
    "candidate_faster_pairs",
    "candidate_faster_pairs_required_for_win",
    "validity_passed",
    "load_gate_passed",
    "load_gate_ignored_for_validity",
    "limit_stop_reason",
    "previous_limit_stop_reason",
    "benchmark_limits",
    "discarded_incomplete_pair_raw_files",
    "expected_rom_sha256",
    "rom_sha256",
    "state_sha256",
    "decision",
    "status",
    "description",
    "artifact",
    "recorded_at",
    "attempt_id",
    "hl_ratio",
    "lcb",
    "ucb",
    "e_value",
    "guard",
    "ratio_vs_round_baseline",
    "policy_hash",
    "harness_hash",
    "base_build_id",
    "cand_build_id",
)

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}


def cell(value: Any) -> str:
    """A value as a cell: empty for None, true/false, numbers with ten digits, JSON for lists and objects,
    text escaped.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value, ".10g")
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "".join(_ESCAPES.get(c, c) for c in text)


def unescape(text: str) -> str:
    """The text that cell() escaped."""
    out, rest = [], iter(text)
    for c in rest:
        if c == "\\":
            following = next(rest, "\\")
            out.append(_UNESCAPES.get(following, "\\" + following))
        else:
            out.append(c)
    return "".join(out)


def line_of(row: Mapping[str, Any]) -> str:
    """One line of results.tsv without its newline. KeyError for a column that does not exist."""
    unknown = set(row) - set(RESULTS_TSV_COLUMNS)
    if unknown:
        raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
    return "\t".join(cell(row.get(name)) for name in RESULTS_TSV_COLUMNS)


def header() -> str:
    """The first line of results.tsv without its newline."""
    return "\t".join(RESULTS_TSV_COLUMNS)


def parse_table(text: str) -> list[dict[str, str]]:
    """The rows of a results.tsv, cells unescaped. ValueError where the header is another one."""
    lines = text.split("\n")
    if lines[0] != header():
        raise ValueError("expected the header of RESULTS_TSV_COLUMNS")
    rows = [line.split("\t") for line in lines[1:] if line]
    return [dict(zip(RESULTS_TSV_COLUMNS, map(unescape, row), strict=True)) for row in rows]
