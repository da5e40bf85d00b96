"""Which commit changed the speed: a search by halves in which every answer is a bound, not a guess.

Source: noisy binary search (M. Ben-Or and A. Hassidim, "The Bayesian learner is optimal for noisy binary
search", FOCS 2008, treats it with fixed error rates; here each question is asked until its answer is sure
enough) with the skips of `git bisect`. Pure: measuring is the pipeline's.

Commits are numbered along the first parents: 0 is GOOD, the last is BAD. A commit counts as changed once a
bound of its ratio to GOOD has passed a threshold, as unchanged once the other bound has. Before each
question the error that is left is divided by the questions that the range still takes, so all answers
together are wrong at most ERROR of the time, however many there are. (Each bound holds at any time, so it
matters neither when a question stops nor that its blocks continue older ones.) This supposes one change of
speed on the way; with several, the answer is a commit at which the threshold is crossed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cartlab.model import POLICY, Evidence, Policy
from cartlab.stats import blocks_to_show

ERROR = 0.05
CHANGED, UNCHANGED = "changed", "unchanged"
# Blocks of one request: enough that starting it costs little, few enough that little is measured in vain.
FEWEST, MOST = 2, 16
STEP_BLOCKS = 48


def halfway(ratio: float) -> float:
    """The threshold where none is given: half of the whole effect, as a factor. Of all thresholds it is the
    farthest from both an unchanged commit and one with the whole effect, so it takes the fewest blocks.
    """
    return round(math.sqrt(ratio), 6)


def answer(evidence: Evidence | None, threshold: float, faster: bool) -> str | None:
    """CHANGED, UNCHANGED, or None while neither bound has passed the threshold."""
    if evidence is None:
        return None
    above = evidence.lcb is not None and evidence.lcb >= threshold
    below = evidence.ucb is not None and evidence.ucb <= threshold
    if above == below:
        # None yet, or bounds that cross: blocks that are not of one kind answer nothing.
        return None
    return CHANGED if above == faster else UNCHANGED


def more_blocks(
    used: int,
    ratio: float | None,
    threshold: float,
    residuals: Sequence[float],
    alpha: float,
    policy: Policy = POLICY,
) -> int:
    """How many blocks to ask for next: what the noise so far forecasts, in reasonable portions."""
    if used < policy.min_blocks or ratio is None:
        return max(FEWEST, policy.min_blocks - used)
    total = blocks_to_show(abs(math.log(ratio / threshold)), residuals, alpha, policy)
    return MOST if total is None else min(MOST, max(FEWEST, total - used))


@dataclass
class Search:
    """A range that gets smaller. last: BAD's number. skipped: number -> why nothing is known of it."""

    last: int
    error: float = ERROR
    low: int = 0
    high: int = 0
    skipped: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.last < 1:
            raise ValueError(f"expected at least one commit after GOOD, found {self.last}")
        self.high = self.last

    @property
    def open(self) -> list[int]:
        """Numbers inside the range that can still be asked about."""
        return [at for at in range(self.low + 1, self.high) if at not in self.skipped]

    @property
    def questions(self) -> int:
        """Questions that halving still takes."""
        return math.ceil(math.log2(len(self.open) + 1))

    def next(self) -> int | None:
        """The commit to ask about: the one nearest to the middle; None where the search is over."""
        middle = (self.low + self.high) / 2
        return min(self.open, key=lambda at: (abs(at - middle), at), default=None)

    def spend(self, beside: int = 0) -> float:
        """The error probability of the next answer, taken from what is left. beside: questions that come
        besides those of the range (is there a difference at all).
        """
        share = self.error / max(1, self.questions + beside)
        self.error -= share
        return share

    def refund(self, share: float) -> None:
        """Take back what was set aside for an answer where no block could have given any."""
        self.error += share

    def learn(self, at: int, found: str) -> None:
        """Narrow the range by an answer."""
        if found == CHANGED:
            self.high = min(self.high, at)
        else:
            self.low = max(self.low, at)

    def skip(self, at: int, why: str) -> None:
        """Nothing can be known about this commit."""
        self.skipped[at] = why

    @property
    def suspects(self) -> list[int]:
        """The commits one of which changed the speed; one alone where the search succeeded."""
        return list(range(self.low + 1, self.high + 1))
