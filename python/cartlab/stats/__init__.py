"""Statistics of block sequences: pure functions over numbers, no clock, no file, no environment.

Contract: MEASUREMENT.md section 3. `evidence` turns block records into an Evidence; what that means is
decide's. Importing this package imports numpy; scipy is imported inside the functions that need it.
"""

from cartlab.stats.betting import Bets, grid_of, wealth_paths
from cartlab.stats.evidence import evidence, evidence_path, used_values
from cartlab.stats.planner import blocks_to_show, smallest_shown
from cartlab.stats.robust import block_value, hodges_lehmann, median, robust_sd

__all__ = [
    "Bets",
    "block_value",
    "blocks_to_show",
    "evidence",
    "evidence_path",
    "grid_of",
    "hodges_lehmann",
    "median",
    "robust_sd",
    "smallest_shown",
    "used_values",
    "wealth_paths",
]
