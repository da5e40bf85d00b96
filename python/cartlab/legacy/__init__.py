"""`--policy legacy`: the predecessor's tiers, gates and statuses, for comparison only.

Pure: `rules` judges pair ratios, `sizes` says how much a run measures. Nothing of it is used by the
policy that decides, a legacy verdict is marked, and it can complete no round.
"""

from cartlab.legacy.rules import (
    LOAD_SHARE,
    MARK,
    POLL_SECONDS,
    SMOKE_STEPS,
    START_SHARE,
    TIERS,
    LegacyTier,
    Look,
    SingleLook,
    baseline_first,
    bootstrap_interval,
    cells_of,
    faster_needed,
    load_limit,
    look,
    looks_until,
    outliers,
    pair_ratio,
    single_cells_of,
    single_look,
    single_verdict_of,
    status_of,
    variation,
    verdict_of,
)
from cartlab.legacy.sizes import Sizes, policy_hash, sizes_of

__all__ = [
    "LOAD_SHARE",
    "MARK",
    "POLL_SECONDS",
    "SMOKE_STEPS",
    "START_SHARE",
    "TIERS",
    "LegacyTier",
    "Look",
    "SingleLook",
    "Sizes",
    "baseline_first",
    "bootstrap_interval",
    "cells_of",
    "faster_needed",
    "load_limit",
    "look",
    "looks_until",
    "outliers",
    "pair_ratio",
    "policy_hash",
    "single_cells_of",
    "single_look",
    "single_verdict_of",
    "sizes_of",
    "status_of",
    "variation",
    "verdict_of",
]
