"""The values that cartlab passes around: refs, builds, workloads, plans, blocks, evidence, verdicts, and
two tables.

Contract: SPECS.md sections 5 and 6. Everything is frozen and plain; what is stored has to_json /
from_json, and from_json(to_json(x)) == x. Nothing here reads a clock, a file or the environment, and
nothing here decides.

To add a tier or a status: add a row to TIERS or STATUSES; test_model.py names what else has to know it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

Json = dict[str, Any]
T = TypeVar("T", bound="Stored")


def canonical_json(value: object) -> bytes:
    """The one byte form of a JSON value that is hashed: sorted keys, no spaces, UTF-8, no NaN."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return utf8(text)


def parsed_json(text: str | bytes) -> Any:
    """The JSON value of a text from elsewhere; ValueError for whatever is none, also for one that is nested
    deeper than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def utf8(text: str) -> bytes:
    """The text's bytes. Python hands in arguments and file names that are not of the locale's encoding with
    surrogates for their bytes: those that are UTF-8 become it again, others are replaced.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode("utf-8")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode("utf-8", "replace")


def digest_of(value: object) -> str:
    """sha256 of the canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


# --- tables ---------------------------------------------------------------------------------------


class Tier(NamedTuple):
    """One row a tier. Budgets count the new blocks of one run."""

    name: str
    command: str
    benchmark_tier: str
    blocks: int
    full_blocks: int
    proves: bool  # may it give a keep*
    fresh_build: bool  # are both sides built in fresh target folders
    stack: bool  # is the candidate judged as a stack


TIERS: dict[str, Tier] = {
    row.name: row
    for row in (
        Tier("screen", "screen", "local_triage", 6, 6, False, False, False),
        Tier("accept-stack", "accept-stack", "stack_acceptance", 48, 192, True, True, True),
        Tier("accept", "accept", "local_acceptance", 48, 192, True, True, False),
        Tier("confirm", "round confirm", "local_acceptance", 24, 48, True, True, False),
        Tier("calibrate", "calibrate", "local_diagnosis", 24, 96, False, False, False),
        Tier("single", "single", "local_diagnosis", 24, 96, False, False, False),
    )
}

DIAGNOSIS_TIER = "local_diagnosis"
"""benchmark_tier of anything whose sizes were changed."""


class Status(NamedTuple):
    """One row a status: the word of the `decision` column, the exit code, and what it means."""

    name: str
    decision: str
    exit_code: int
    keeps: bool
    meaning: str


STATUSES: dict[str, Status] = {
    row.name: row
    for row in (
        Status("triage_promote", "defer", 0, False, "worth an acceptance run: a filter, not evidence"),
        Status("triage_discard", "discard", 10, False, "not worth an acceptance run"),
        Status("keep", "keep", 0, True, "proven faster by the full margin"),
        Status("keep_stack", "keep_stack", 0, True, "the stack is proven faster; its members are not judged"),
        Status("keep_small_gain", "keep_small_gain", 0, True, "proven faster, by less than the full margin"),
        Status("discard", "discard", 10, False, "not faster by a margin that matters"),
        Status(
            "discard_stack", "discard_stack", 10, False, "the stack is not faster by a margin that matters"
        ),
        Status("inconclusive", "inconclusive", 11, False, "the blocks measured so far do not decide it"),
        Status("behaviour_changed", "discard", 12, False, "the two sides do not do the same work"),
        Status("busy_invalid", "inconclusive", 13, False, "too many blocks were disturbed by other load"),
        Status("build_failed", "discard", 14, False, "a ref does not build"),
        Status("crashed", "discard", 15, False, "a worker ended before its work was done"),
        Status("timeout", "discard", 15, False, "a worker did not answer in time"),
        Status("tampered", "discard", 16, False, "clocks or digests that no honest run gives"),
        Status("checks_failed", "discard", 17, False, "the candidate's checks fail"),
        Status("compliance_failed", "discard", 18, False, "the candidate touches protected paths"),
        Status("parity_violation", "discard", 18, False, "the candidate and its counterpart differ"),
        Status("metric_error", "inconclusive", 19, False, "the workload gave no usable number"),
        Status("no_change", "discard", 19, False, "the candidate changes nothing"),
        Status("unverified", "inconclusive", 19, False, "a win that its repetition did not confirm"),
        Status("interrupted", "inconclusive", 130, False, "stopped by the user; the next run continues it"),
        Status("baseline", "defer", 0, False, "a calibration: context, not a comparison"),
        Status("planned", "defer", 0, False, "a dry run: nothing was measured"),
        Status("ok", "defer", 0, False, "nothing was judged"),
        Status("refused", "defer", 23, False, "not carried out; the reason says why"),
    )
}

DECISIONS = (
    "keep",
    "keep_small_gain",
    "keep_stack",
    "discard",
    "discard_stack",
    "inconclusive",
    "defer",
    "pause",
)
PHASES = ("orient", "diagnose", "prototype", "screen", "acceptance", "record", "pause")


class Policy(NamedTuple):
    """Every number that a verdict depends on (SPECS.md section 5). Ratios are candidate / baseline
    speed.
    """

    name: str = "anytime"
    version: int = 1
    alpha: float = 0.01  # each bound errs at most this often, at any stopping time
    guard: float = 1.01  # below this a gain is not worth its commit; a calibration's floor may raise it
    margin: float = 1.03  # a full keep
    triage_blocks: int = 6  # screen: no verdict by the share of positive blocks from fewer
    promote: float = 1.01  # screen: Hodges-Lehmann at least this and ...
    promote_share: tuple[int, int] = (5, 6)  # ... at least this share of the blocks positive
    demote: float = 1.0  # screen: Hodges-Lehmann below this and ...
    demote_share: tuple[int, int] = (1, 3)  # ... at most this share positive
    min_blocks: int = 8  # no bound from fewer
    max_dropped: float = 0.3  # more dropped than this share makes a run busy_invalid
    sign_bets: tuple[float, ...] = (0.4, 0.7, 0.95)
    tanh_cap: float = 0.99
    tanh_bets: tuple[float, ...] = (0.8, 1.8)
    first_blocks: int = 3  # the tanh bettors know no scale yet and stake on the sign:
    first_stakes: tuple[float, ...] = (0.66, 0.95)
    grid: tuple[int, int] = (500, 2000)  # r0 = i / 1000 for i in this range, both ends included

    @property
    def hash(self) -> str:
        """sha256 of all numbers above."""
        return digest_of(self._asdict())


POLICY = Policy()


# --- stored values --------------------------------------------------------------------------------


class Stored:
    """to_json / from_json for flat dataclasses; nested ones are named in `_nested`, tuples in `_tuples`."""

    _nested: Mapping[str, type[Stored]] = {}
    _tuples: Sequence[str] = ()

    def to_json(self) -> Json:
        """A JSON object with every field, also those that are null."""
        out: Json = {}
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, Stored):
                value = value.to_json()
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            out[item.name] = value
        return out

    @classmethod
    def from_json(cls: type[T], body: Mapping[str, Any]) -> T:
        """The value again. Unknown keys are left out, a missing key without a default is a ValueError."""
        known: Json = {}
        for item in dataclasses.fields(cls):  # type: ignore[arg-type]
            if item.name not in body:
                continue
            value = body[item.name]
            if item.name in cls._nested and value is not None:
                value = cls._nested[item.name].from_json(value)
            elif item.name in cls._tuples and value is not None:
                value = tuple(value)
            known[item.name] = value
        try:
            return cls(**known)
        except TypeError as error:
            raise ValueError(f"{cls.__name__}: {error}") from None


@dataclass(frozen=True)
class Ref(Stored):
    """A revision: the name as typed, the full commit id, the full tree id."""

    name: str
    commit: str
    tree: str


@dataclass(frozen=True)
class Build(Stored):
    """A built revision. build_id is the cache key; path the folder that goes on sys.path; artifact the
    native file in it.
    """

    ref: Ref
    build_id: str
    path: str
    artifact: str
    artifact_sha256: str
    seconds: float
    cached: bool

    _nested = {"ref": Ref}  # noqa: RUF012


# What never enters a workload's hash: sizes that a tier chooses, and places on this machine.
UNHASHED_PARAMS = (
    "steps",
    "verify_steps",
    "warmup_steps",
    "slice_steps",
    "slices",
    "slice_ms",
    "tier",
    "seed",
)
UNHASHED_ENDINGS = ("_path", "_dir")
# The param that names a held-out draw of start states and inputs. It enters the hash, so that blocks of one
# draw are never pooled with others.
HELD_OUT = "held_out"


@dataclass(frozen=True)
class Workload(Stored):
    """What is timed. kind: "slices" | "command" | "pytest-benchmark"; direction: "higher" | "lower" is
    better.

    params: JSON values for the adapter. Those named in UNHASHED_PARAMS, those ending in `_path` or `_dir`
    and absolute paths do not enter the hash: name a ROM by its digest there as well. guards: the acceptance
    tiers measure it beside the default workload, whose win it has to share.
    """

    name: str
    kind: str
    command: str
    metric: str
    direction: str
    unit: str
    verify_steps: int
    params: Mapping[str, Any] = field(default_factory=dict)
    guards: bool = False

    @property
    def held_out(self) -> str | None:
        """The seed of a held-out draw; None for the public workload."""
        return self.params.get(HELD_OUT)

    @property
    def public(self) -> Workload:
        """The same workload without a draw."""
        kept = {key: value for key, value in self.params.items() if key != HELD_OUT}
        return dataclasses.replace(self, params=kept)

    def drawn(self, seed: str) -> Workload:
        """The same workload on start states and inputs that are drawn from `seed`."""
        return dataclasses.replace(self, params={**self.params, HELD_OUT: seed})

    @functools.cached_property
    def hash(self) -> str:
        """sha256 over what the work is: no absolute path, no step count, no tier."""
        params = {
            key: value
            for key, value in self.params.items()
            if key not in UNHASHED_PARAMS
            and not key.endswith(UNHASHED_ENDINGS)
            and not (isinstance(value, str) and value.startswith(("/", "~", "\\\\")))
        }
        return digest_of(
            {
                "name": self.name,
                "kind": self.kind,
                "command": self.command,
                "metric": self.metric,
                "direction": self.direction,
                "unit": self.unit,
                "params": params,
            }
        )


@dataclass(frozen=True)
class PairKey(Stored):
    """Names one block sequence: reruns and other tiers of the same five things continue it."""

    baseline_tree: str
    candidate_tree: str
    workload_hash: str
    harness_hash: str
    host_class: str


@dataclass(frozen=True)
class Plan(Stored):
    """A run, decided before anything is built. plan() makes it; it is stored as plan.json and in
    `attempt_started`.

    max_blocks: new blocks of this run. max_seconds: wall clock limit or None. slices: slices a side and
    block. slice_ms: their aimed length. unit: "block" | "process". design: "betting" | "groupseq". policy:
    "anytime" | "legacy". floor: 1 + the newest relink floor of this host, 1.0 if there is none. recorded:
    False for `--no-record`. part_of: the attempt that this one measures a further workload for.
    legacy: the sizes of a run under that policy (cartlab.legacy.Sizes), None under any other.
    """

    attempt_id: str
    command: str
    tier: str
    benchmark_tier: str
    base: Ref
    cand: Ref
    workload: Workload
    policy: str
    unit: str
    design: str
    max_blocks: int
    max_seconds: float | None
    slices: int
    slice_ms: float
    harness_hash: str
    policy_hash: str
    host_class: str
    alpha: float = 0.01
    floor: float = 1.0
    floor_known: bool = False
    full: bool = False
    recorded: bool = True
    again: bool = False
    equal_only: bool = False
    checks: bool = True
    fresh_build: bool = False
    forced: bool = False
    approval: str | None = None
    keep_sources: bool = False
    lease_wait: float | None = None
    sizes_changed: bool = False
    mechanism: str | None = None
    falsify: str | None = None
    round_id: str | None = None
    part_of: str | None = None
    legacy: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()

    _nested = {"base": Ref, "cand": Ref, "workload": Workload}  # noqa: RUF012
    _tuples = ("warnings",)

    @functools.cached_property
    def pair(self) -> PairKey:
        """The block sequence that this run continues."""
        return PairKey(self.base.tree, self.cand.tree, self.workload.hash, self.harness_hash, self.host_class)


BUSY = "busy"
"""First word of Block.dropped where the contention rule dropped the block; a forced run uses such blocks
all the same.
"""


@dataclass(frozen=True)
class Block(Stored):
    """One block: the sample. Body of a `block` event (SPECS.md section 6).

    index: 0, 1, ... within its attempt. coin: 0 = the baseline played role 1, 1 = the candidate did. order:
    one letter a slice, in the order run: "B" baseline, "C" candidate. base_ns[i] and cand_ns[i] are the
    i-th slices of the two sides, each of `steps` steps. y = median over i of ln(base_ns[i] / cand_ns[i]), >
    0 where the candidate is faster. dropped: None, or the reason ("busy: ..." from the contention rule).
    digests: {"base": hex, "cand": hex}.
    """

    index: int
    coin: int
    order: str
    base_ns: tuple[int, ...]
    cand_ns: tuple[int, ...]
    steps: int
    y: float
    dropped: str | None = None
    witness: Mapping[str, Any] = field(default_factory=dict)
    digests: Mapping[str, Any] = field(default_factory=dict)

    _tuples = ("base_ns", "cand_ns")


@dataclass(frozen=True)
class Evidence(Stored):
    """What the block sequence says. Ratios are candidate speed / baseline speed; unknown is None.

    used: valid blocks of the whole sequence; pooled: how many of them earlier attempts measured; dropped:
    dropped blocks of this attempt. hl: Hodges-Lehmann estimate. lcb, ucb: bounds that hold at all times,
    each at `alpha`. e_value: the wealth now against ratio <= guard. faster: used blocks
    with y > 0. resolvable: the smallest true ratio that this many blocks of this noise would have shown.
    blocks_needed: blocks still needed if the estimate is true.
    """

    used: int
    dropped: int
    pooled: int
    hl: float | None
    lcb: float | None
    ucb: float | None
    e_value: float | None
    guard: float
    floor: float
    alpha: float
    faster: int
    resolvable: float | None = None
    blocks_needed: int | None = None


@dataclass(frozen=True)
class Validity(Stored):
    """What besides the numbers a verdict depends on.

    problem: the status of what went wrong (a row of STATUSES), or None; reason: one line about it. forced:
    the contention rule was waived. checks: "passed" | "failed" | "not_run". marks: further words that a
    verdict carries ("benchmark-only", "unrecorded", ...).
    """

    problem: str | None = None
    reason: str = ""
    forced: bool = False
    checks: str = "not_run"
    marks: tuple[str, ...] = ()

    _tuples = ("marks",)


@dataclass(frozen=True)
class Verdict(Stored):
    """A status with its reasons. final: False while the run should measure further blocks."""

    status: str
    decision: str
    exit_code: int
    reasons: tuple[str, ...]
    evidence: Evidence | None
    final: bool = True
    marks: tuple[str, ...] = ()

    _nested = {"evidence": Evidence}  # noqa: RUF012
    _tuples = ("reasons", "marks")

    @property
    def keeps(self) -> bool:
        """Is this one of the keep* statuses."""
        return STATUSES[self.status].keeps
