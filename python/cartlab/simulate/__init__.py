"""How often the rules err, on machines that we make up: the error table, and the runs behind it.

Contract: the targets in SPECS.md section 5. Everything is drawn from a seed and given back; nothing is
printed, read or timed.

    error_table(trials, seed)       -> rates of accept and confirm for candidates of known ratios
    foresee(effect, residuals)      -> what a true effect takes on a machine of this noise, per tier
    promises_on(noise, trials, seed) -> each promised rate with its target, beside the predecessor's
"""

from cartlab.simulate.foresight import Foresight, foresee
from cartlab.simulate.machines import MACHINES, Noise, block_values, records
from cartlab.simulate.predecessor import legacy_interval, legacy_kept, legacy_lottery, legacy_ratios
from cartlab.simulate.promises import Promise, promise_lines, promises_on
from cartlab.simulate.runs import Outcome, accept_run, accept_twin, confirmed, ever_wrong, screened_once
from cartlab.simulate.table import TABLE_RATIOS, Rates, error_table, lines_of, rates

__all__ = [
    "MACHINES",
    "TABLE_RATIOS",
    "Foresight",
    "Noise",
    "Outcome",
    "Promise",
    "Rates",
    "accept_run",
    "accept_twin",
    "block_values",
    "confirmed",
    "error_table",
    "ever_wrong",
    "foresee",
    "legacy_interval",
    "legacy_kept",
    "legacy_lottery",
    "legacy_ratios",
    "lines_of",
    "promise_lines",
    "promises_on",
    "rates",
    "records",
    "screened_once",
]
