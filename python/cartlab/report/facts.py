"""What a report is made of: plain values, gathered by cartlab.pipeline.reporting and shown by this package.

All frozen, all JSON by to_json(); unknown is None. Ratios are candidate speed / baseline speed, shares are
fractions, times are RFC 3339 in UTC.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cartlab.model import Json

SCHEMA = "cartlab.report/1"


class Kind(NamedTuple):
    """How a status is drawn: a colour's name in the style, a shape, and the word of the legend."""

    name: str
    shape: str
    word: str


KEPT = Kind("kept", "circle", "kept")
SMALL = Kind("small", "diamond", "kept, a small gain")
PROMOTED = Kind("promoted", "up", "promoted, not proven")
UNDECIDED = Kind("undecided", "ring", "undecided")
SLOWER = Kind("slower", "down", "not faster")
FAILED = Kind("failed", "cross", "failed or refused")
KINDS = (KEPT, SMALL, PROMOTED, UNDECIDED, SLOWER, FAILED)

_KIND_OF = {
    "keep": KEPT,
    "keep_stack": KEPT,
    "keep_small_gain": SMALL,
    "triage_promote": PROMOTED,
    "inconclusive": UNDECIDED,
    "interrupted": UNDECIDED,
    "unfinished": UNDECIDED,
    "discard": SLOWER,
    "discard_stack": SLOWER,
    "triage_discard": SLOWER,
}


def kind_of(status: str) -> Kind:
    """How this status is drawn; what is neither a verdict nor open has failed."""
    return _KIND_OF.get(status, FAILED)


@dataclass(frozen=True)
class Point:
    """One block. coin: 0, the baseline played role 1; 1, the candidate did. counts: is it in the evidence.
    earlier: an attempt before this one measured it.
    """

    y: float
    coin: int
    counts: bool
    earlier: bool
    dropped: str | None = None


@dataclass(frozen=True)
class Diagnostics:
    """What the blocks of one sequence show besides the verdict. None of it decides anything.

    wealth_for, wealth_against: log10 of the wealth after each block that counts, against "ratio <= guard"
    and against "ratio >= guard". sd: robust, of the log ratio. by_coin: (blocks, Hodges-Lehmann) of coin 0
    and 1. role_effect: by how much playing role 1 raises the ratio, as a share. drift_rho, drift_p: Spearman
    of value and position. bca: interval of the Hodges-Lehmann estimate at `bca_level`, for a number of blocks
    fixed beforehand. missing: why a number is None, one line each.
    """

    points: tuple[Point, ...]
    wealth_for: tuple[float, ...]
    wealth_against: tuple[float, ...]
    sd: float | None
    by_coin: tuple[tuple[int, float | None], tuple[int, float | None]]
    role_effect: float | None
    drift_rho: float | None
    drift_p: float | None
    bca: tuple[float, float] | None
    bca_level: float
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """The newest attempt of one pair of revisions. marks: forced, unrecorded, imported, ... own: False where
    it was not recorded, was imported, or belongs to another attempt. halves: of a confirm run, (public or
    held-out, blocks, estimate).
    """

    attempt_id: str
    at: str
    command: str
    name: str
    commit: str
    baseline: str
    title: str
    status: str
    decision: str
    reasons: tuple[str, ...]
    marks: tuple[str, ...]
    checks: str | None
    own: bool
    in_round: bool
    used: int
    pooled: int
    dropped: int
    faster: int | None
    hl: float | None
    lcb: float | None
    ucb: float | None
    e_value: float | None
    guard: float
    margin: float
    alpha: float
    cpu: float | None = None
    instructions: float | None = None
    disagree: tuple[str, ...] = ()
    halves: tuple[tuple[str, int, float | None], ...] = ()
    diagnostics: Diagnostics | None = None

    @property
    def kind(self) -> Kind:
        """How it is drawn."""
        return kind_of(self.status)


@dataclass(frozen=True)
class Noise:
    """The newest calibration of one class of host: a revision against itself."""

    attempt_id: str
    commit: str
    at: str
    age_days: float
    host_class: str
    this_host: bool
    used: int
    hl: float | None
    relink_floor: float | None
    diagnostics: Diagnostics


@dataclass(frozen=True)
class Accepted:
    """A result that the round counts."""

    commit: str
    status: str
    estimate: float
    lcb: float


@dataclass(frozen=True)
class Round:
    """The newest round. confirm_bar: the lower bound that its confirm run must reach."""

    id: str
    title: str
    state: str
    baseline: str
    target: float
    confirm_bar: float
    strict: bool
    best_estimate: float | None
    best_lcb: float | None
    why: str
    accepted: tuple[Accepted, ...] = ()


@dataclass(frozen=True)
class Together:
    """e-BH over the round's candidates: (label, e-value or None, does it stand), best first."""

    alpha: float
    rows: tuple[tuple[str, float | None, bool], ...]


@dataclass(frozen=True)
class Page:
    """The whole report. next: what `next` answers, {"action", "reason", "command"}. session: the body of
    `report --session`, session_text the same as lines.
    """

    root: str
    project: str
    written_at: str
    branch: str | None
    commit: str | None
    events: int
    attempts: int
    round: Round | None
    candidates: tuple[Candidate, ...]
    noise: tuple[Noise, ...]
    together: Together | None
    checks: tuple[str, ...]
    next: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_text: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Every field but the text; what is not finite is null."""
        body = {"schema": SCHEMA, **_plain(dataclasses.asdict(self))}
        del body["session_text"]
        return body


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
