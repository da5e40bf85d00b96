"""Statistics of block sequences: pure functions over numbers, no clock, no file, no environment.

Contract: SPECS.md section 5. `evidence` turns block records into an Evidence; what that means is
decide's. Importing this package imports numpy; scipy is imported inside the functions that need it.
"""

from cartlab.stats.betting import Bets, grid_of, wealth_paths
from cartlab.stats.ebh import discoveries, e_bh
from cartlab.stats.evidence import evidence, evidence_path, used_values
from cartlab.stats.groupseq import group_bounds, looks, signed_rank_p
from cartlab.stats.planner import blocks_to_show, residuals_of, smallest_shown
from cartlab.stats.relink import relink_floor
from cartlab.stats.robust import block_value, hodges_lehmann, median, robust_sd
from cartlab.stats.second_opinion import Drift, bca_interval, drift
from cartlab.stats.signs import sign_chance

__all__ = [
    "Bets",
    "Drift",
    "bca_interval",
    "block_value",
    "blocks_to_show",
    "discoveries",
    "drift",
    "e_bh",
    "evidence",
    "evidence_path",
    "grid_of",
    "group_bounds",
    "hodges_lehmann",
    "looks",
    "median",
    "relink_floor",
    "residuals_of",
    "robust_sd",
    "sign_chance",
    "signed_rank_p",
    "smallest_shown",
    "used_values",
    "wealth_paths",
]
