"""Everything that the ledger claims, derived again from the raw slices.

Contract: SPECS.md section 6. Nothing here is shared with the code that writes the ledger or decides,
but the e-process and the exact Wilcoxon bounds: the chain is checked by parsing and writing each line
again, block values come from the slices, the estimate and the status from their own words. A finding names
the line and the attempt; none means that all holds.
"""

from cartlab.verify.replay import Finding, Report, verify_events
from cartlab.verify.root import verify_root

__all__ = ["Finding", "Report", "verify_events", "verify_root"]
