"""The append-only, hash-chained record of everything that was measured and decided, and its views.

Contract: SPECS.md section 6. chain: the bytes; store: the file under its lock;
attempts: which blocks are evidence; rows, columns, current: the views. Statistics and verdicts are not made
here.
"""

from cartlab.disk import Disk
from cartlab.ledger.attempts import Attempt, attempts_of, blocks_of, floor_of, latest_accepted, verdict_of
from cartlab.ledger.chain import Event, read
from cartlab.ledger.columns import RESULTS_TSV_COLUMNS, parse_table
from cartlab.ledger.current import current_of, no_round
from cartlab.ledger.rows import results_tsv
from cartlab.ledger.store import Ledger

__all__ = [
    "RESULTS_TSV_COLUMNS",
    "Attempt",
    "Disk",
    "Event",
    "Ledger",
    "attempts_of",
    "blocks_of",
    "current_of",
    "floor_of",
    "latest_accepted",
    "no_round",
    "parse_table",
    "read",
    "results_tsv",
    "verdict_of",
]
