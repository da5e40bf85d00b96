"""The predecessor's tiers, gates and statuses.

Source: the predecessor's rules. It takes precision for validity and calls a bootstrap of a median of
three a 95 % interval; both are kept here, because that is what it did. Where a number was left open, the
docstring says what was chosen. A legacy verdict is marked and cannot complete a round. Nothing of it is
used by the policy that decides.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from cartlab.model import STATUSES, Verdict

RESAMPLES = 20_000
SEED = 12345
LOW_ENTRY, HIGH_ENTRY = 500, 19_499
SMOKE_STEPS = 1_000

SPAN = 0.0025  # of the last three checkpoint medians, relative to the last
SPAN_LOOKS = 3
RATIO_CV = 0.015
INTERVAL_WIDTH = 0.005  # relative to the estimate
WIN, NO_WIN = 1.03, 1.01
FASTER_SHARE = 0.75
FASTER_FLOOR, FASTER_FLOOR_FROM = 8, 11
INVOCATION_CV, SAMPLE_CV = 0.0075, 0.0125
IQR_FACTOR, MAD_LIMIT, OUTLIERS_FROM = 1.5, 3.5, 4
LOAD_SHARE, START_SHARE, POLL_SECONDS = 1 / 3, 0.85, 15

MARK = "legacy"


class LegacyTier(NamedTuple):
    """Sizes of one tier: steps x repeats an invocation, warm-up pairs, and after how many pairs it may
    stop.
    """

    steps: int
    repeats: int
    warmups: int
    checkpoints: tuple[int, ...]
    full: tuple[int, ...]


TIERS: dict[str, LegacyTier] = {
    "screen": LegacyTier(5_000, 1, 0, (3,), (3,)),
    "accept-stack": LegacyTier(30_000, 2, 1, (3, 5, 7), (3, 5, 7)),
    "accept": LegacyTier(50_000, 3, 2, (3,), (7, 11, 15, 21, 31)),
    "calibrate": LegacyTier(50_000, 3, 2, (11,), (5, 8, 11, 15, 21, 31)),
}


def baseline_first(pair: int) -> bool:
    """Even pairs run the baseline first, odd ones the candidate."""
    return pair % 2 == 0


def load_limit(cpus: int) -> tuple[float, float]:
    """The one-minute load that a run must stay below, and the one that it may start below."""
    return cpus * LOAD_SHARE, cpus * LOAD_SHARE * START_SHARE


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> tuple[float, float]:
    """Percentile bootstrap of the median: entries 500 and 19,499 of 20,000 sorted resample medians."""
    rng = random.Random(seed)
    n = len(values)
    medians = sorted(
        statistics.median([values[rng.randrange(n)] for _ in range(n)]) for _ in range(RESAMPLES)
    )
    return medians[LOW_ENTRY], medians[HIGH_ENTRY]


def outliers(values: Sequence[float]) -> list[int]:
    """Indices outside the quartiles by 1.5 interquartile ranges, or more than 3.5 scaled MADs off the
    median; from 4 values.

    Quartiles are those of statistics.quantiles(method="inclusive"); a MAD of zero finds nothing.
    """
    if len(values) < OUTLIERS_FROM:
        return []
    q1, middle, q3 = statistics.quantiles(values, n=4, method="inclusive")
    reach = IQR_FACTOR * (q3 - q1)
    mad = 1.4826 * statistics.median([abs(v - middle) for v in values])
    return [
        i
        for i, v in enumerate(values)
        if v < q1 - reach or v > q3 + reach or (mad > 0 and abs(v - middle) / mad > MAD_LIMIT)
    ]


def variation(values: Sequence[float]) -> float:
    """Coefficient of variation with the sample sd; 0 for a single value."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0


def faster_needed(pairs: int) -> int:
    """How many pairs must be faster for a win."""
    needed = math.ceil(FASTER_SHARE * pairs)
    return max(needed, FASTER_FLOOR) if pairs >= FASTER_FLOOR_FROM else needed


def pair_ratio(base_ns: Sequence[int], cand_ns: Sequence[int]) -> float:
    """Candidate speed / baseline speed of a pair: each side's value is the median speed of its repeats,
    all of the same number of steps.
    """
    return statistics.median(1.0 / ns for ns in cand_ns) / statistics.median(1.0 / ns for ns in base_ns)


def looks_until(checkpoints: Sequence[int], count: int) -> tuple[int, ...]:
    """The checkpoints of a run that a limit ends after so many: the end itself is its last look."""
    return (*(c for c in checkpoints if c < count), count)


class Look(NamedTuple):
    """What the predecessor knew at a checkpoint of a pair run."""

    pairs: int
    estimate: float
    low: float
    high: float
    span: float | None
    faster: int
    gates: dict[str, bool]  # each of the five stability gates
    win: bool
    no_win: bool
    decision: str
    stops: bool

    @property
    def stable(self) -> bool:
        """Do all stability gates hold."""
        return all(self.gates.values())

    @property
    def valid(self) -> bool:
        """What it called valid."""
        return self.stable and (self.win or self.no_win)


def look(
    ratios: Sequence[float],
    checkpoints: Sequence[int],
    load_fine: bool,
    interval: tuple[float, float] | None = None,
) -> Look:
    """The state after these pair ratios; their number is one of the checkpoints. interval: a bootstrap made
    elsewhere.
    """
    n = len(ratios)
    if n not in checkpoints:
        raise ValueError(f"expected {' or '.join(map(str, checkpoints))} pairs, found {n}")
    estimate = statistics.median(ratios)
    low, high = interval or bootstrap_interval(ratios)
    medians = [statistics.median(ratios[:c]) for c in checkpoints if c <= n]
    looks_needed = 1 if tuple(checkpoints) == (3,) else SPAN_LOOKS
    recent = medians[-looks_needed:]
    span = (max(recent) - min(recent)) / recent[-1] if len(recent) == looks_needed else None
    gates = {
        "span": span is not None and span <= SPAN,
        "cv": variation(ratios) < RATIO_CV,
        "interval": (high - low) / estimate < INTERVAL_WIDTH,
        "outliers": not outliers(ratios),
        "load": load_fine,
    }
    faster = sum(r > 1.0 for r in ratios)
    win = estimate >= WIN and low > 1.0 and faster >= faster_needed(n)
    no_win = estimate < NO_WIN and high < WIN
    valid = all(gates.values()) and (win or no_win)
    last = n == checkpoints[-1]
    if valid:
        decision = "converged_candidate_win" if win else "converged_no_meaningful_win"
    else:
        decision = "max_samples_no_convergence" if last else "continue"
    return Look(n, estimate, low, high, span, faster, gates, win, no_win, decision, valid or last)


class SingleLook(NamedTuple):
    """What it knew at a checkpoint of a single ref: medians of invocations, all samples of all of them."""

    invocations: int
    estimate: float
    low: float
    high: float
    gates: dict[str, bool]
    stops: bool


def single_look(
    samples: Sequence[Sequence[float]], checkpoints: Sequence[int], load_fine: bool
) -> SingleLook:
    """The state of a calibration after these invocations, each a list of its repeats' values."""
    n = len(samples)
    if n not in checkpoints:
        raise ValueError(f"expected {' or '.join(map(str, checkpoints))} invocations, found {n}")
    values = [statistics.median(s) for s in samples]
    estimate = statistics.median(values)
    low, high = bootstrap_interval(values)
    medians = [statistics.median(values[:c]) for c in checkpoints if c <= n]
    looks_needed = 1 if len(checkpoints) == 1 else SPAN_LOOKS
    recent = medians[-looks_needed:]
    gates = {
        "span": len(recent) == looks_needed and (max(recent) - min(recent)) / recent[-1] <= SPAN,
        "interval": (high - low) / estimate < INTERVAL_WIDTH,
        "cv": variation(values) < INVOCATION_CV,
        "sample_cv": variation([v for s in samples for v in s]) < SAMPLE_CV,
        "outliers": not outliers(values),
        "load": load_fine,
    }
    return SingleLook(
        n, estimate, low, high, gates, (gates["span"] and gates["interval"]) or n == checkpoints[-1]
    )


def status_of(
    tier: str, at: Look, load_fine: bool, load_ignored: bool = False, limit_reached: bool = False
) -> str:
    """The status that the predecessor inferred from a finished run."""
    if tier == "screen":
        if at.estimate >= WIN:
            return "triage_promote"
        return "triage_discard" if at.estimate < NO_WIN else "inconclusive"
    if tier == "accept-stack":
        if at.valid and (load_fine or load_ignored) and at.estimate >= WIN and at.faster >= 6:
            return "keep_stack"
        return "discard_stack" if at.no_win or at.estimate <= 1.0 else "inconclusive"
    if tier == "accept":
        if at.decision == "converged_candidate_win" and at.valid and load_fine:
            return "keep"
        enough = at.faster >= faster_needed(at.pairs)
        if at.stable and at.estimate > 1.0 and at.low >= 1.0 and enough and not limit_reached:
            return "keep_small_gain"
        return "discard" if at.no_win or at.estimate <= 1.0 else "inconclusive"
    return "inconclusive"


def verdict_of(
    tier: str, at: Look, load_fine: bool, load_ignored: bool = False, limit_reached: bool = False
) -> Verdict:
    """The same as a verdict, marked as legacy."""
    seen = (
        f"{at.decision}: median ratio {at.estimate:.4f}, bootstrap {at.low:.4f} to {at.high:.4f}, "
        f"{at.faster} of {at.pairs} pairs faster"
    )
    return _marked(status_of(tier, at, load_fine, load_ignored, limit_reached), at, seen)


def cells_of(at: Look, load_fine: bool, load_ignored: bool) -> dict[str, object]:
    """The results.tsv cells that only this policy fills."""
    return {
        "measured_pairs": at.pairs,
        "median_pair_ratio": at.estimate,
        "pair_ratio_bootstrap_ci95": [at.low, at.high],
        "candidate_faster_pairs": at.faster,
        "candidate_faster_pairs_required_for_win": faster_needed(at.pairs),
        "validity_passed": at.valid,
        "load_gate_passed": load_fine,
        "load_gate_ignored_for_validity": load_ignored,
    }


def single_verdict_of(at: SingleLook) -> Verdict:
    """A calibration's end as a verdict. The predecessor gave it no status of its own: anything else is
    inconclusive.
    """
    seen = (
        f"median of {at.invocations} invocations {at.estimate:.1f} a second, bootstrap {at.low:.1f} to "
        f"{at.high:.1f}"
    )
    return _marked("inconclusive", at, seen)


def _marked(status: str, at: Look | SingleLook, seen: str) -> Verdict:
    """A verdict that says what was seen, which gates failed, and that it proves nothing."""
    row = STATUSES[status]
    failed = [name for name, held in at.gates.items() if not held]
    reasons = (
        seen,
        f"gates failed: {', '.join(failed)}" if failed else "all stability gates held",
        "legacy policy: for comparison only, proves nothing in a round",
    )
    return Verdict(row.name, row.decision, row.exit_code, reasons, None, at.stops, (MARK,))


def single_cells_of(at: SingleLook, load_fine: bool, load_ignored: bool) -> dict[str, object]:
    """The results.tsv cells of a calibration."""
    return {
        "measured_invocation_count": at.invocations,
        "measured_pairs": None,
        "official_median_sps": at.estimate,
        "bootstrap_ci95_invocation_median_sps": [at.low, at.high],
        "median_pair_ratio": None,
        "mean_pair_ratio": None,
        "candidate_faster_pairs": None,
        "validity_passed": all(at.gates.values()),
        "load_gate_passed": load_fine,
        "load_gate_ignored_for_validity": load_ignored,
    }
