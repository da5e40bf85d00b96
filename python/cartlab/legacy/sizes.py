"""How much a legacy run measures: the tier's sizes, and the flags that changed them.

Parsed once and frozen into the plan; a changed size makes the run a diagnosis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cartlab.errors import UsageError
from cartlab.legacy import rules
from cartlab.model import Stored, digest_of


@dataclass(frozen=True)
class Sizes(Stored):
    """steps x repeats an invocation (one process), warm-up pairs that are thrown away, after how many pairs
    (calibrate: invocations) it looks, the 1-minute load that it must stay below and the one that it may start
    below, and how many invocations it may measure (None: as many as the last look needs).
    """

    steps: int
    repeats: int
    warmups: int
    checkpoints: tuple[int, ...]
    max_load: float
    start_load: float
    max_invocations: int | None = None

    _tuples = ("checkpoints",)


def policy_hash() -> str:
    """sha256 of every number that a legacy verdict depends on."""
    numbers = {name: value for name, value in vars(rules).items() if name.isupper() and name != "STATUSES"}
    numbers["TIERS"] = {name: list(row) for name, row in rules.TIERS.items()}
    return digest_of({"name": rules.MARK, **numbers})


def sizes_of(tier: str, full: bool, flags: Mapping[str, str], cpus: int) -> tuple[Sizes, bool]:
    """(sizes, were they changed) of a tier with the predecessor's flags as typed. UsageError for a tier that
    the predecessor lacks and for what is no size.
    """
    row = rules.TIERS.get("calibrate" if tier == "single" else tier)
    if row is None:
        raise UsageError(
            f"the legacy policy has the tiers {', '.join(rules.TIERS)}; found {tier}",
            "it is for comparison only and completes no round: leave --policy out",
        )
    given = {name.split("=")[0]: value for name, value in flags.items()}
    steps = _whole(given, "--steps", row.steps, 1)
    repeats = _whole(given, "--repeats", row.repeats, 1)
    warmups = _whole(given, "--warmups", row.warmups, 0)
    most = _whole(given, "--max-measured-invocations", None, 2)
    limit, start = rules.load_limit(cpus)
    if "--max-load" in given:
        limit = _load(given["--max-load"])
        start = limit * rules.START_SHARE
    assert steps is not None and repeats is not None and warmups is not None  # their defaults are numbers
    changed = (steps, repeats, warmups) != (row.steps, row.repeats, row.warmups)
    looks = row.full if full else row.checkpoints
    return Sizes(steps, repeats, warmups, looks, limit, start, most), changed


def _whole(given: Mapping[str, str], flag: str, default: int | None, least: int) -> int | None:
    text = given.get(flag)
    if text is None:
        return default
    if not text.isdecimal() or int(text) < least:
        raise UsageError(f"expected {flag} of {least} or more, found {text!r}", "it is a whole number")
    return int(text)


def _load(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise UsageError(f"expected --max-load above 0, found {text!r}", "it is a 1-minute load average")
    return value
