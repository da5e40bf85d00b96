"""Was a kept win what its hypothesis had predicted: one sentence, computed from the two numbers. Pure.

A win whose size or sign is another is kept all the same, because it was measured; but its mechanism is
refuted, and that is often the better lead.
"""

from __future__ import annotations

from dataclasses import dataclass

# A prediction made before the run is right within a factor of two.
BAND = (0.5, 2.0)


@dataclass(frozen=True)
class Audit:
    """confirmed: do sign and size agree with the prediction. line: the sentence for the board."""

    confirmed: bool
    line: str


def audit(name: str, change: str, predicted: float, observed: float) -> Audit:
    """Hold a win against its prediction. predicted, observed: signed deltas in units of the metric."""
    confirmed, why = _judge(predicted, observed)
    word = "confirmed" if confirmed else "refuted"
    what = " ".join(change.split())
    return Audit(
        confirmed,
        f"Winner: {name}, {what}. Predicted: {predicted:+.6g}. Observed: {observed:+.6g}. "
        f"Mechanism {word} because {why}.",
    )


def _judge(predicted: float, observed: float) -> tuple[bool, str]:
    if observed == 0 or predicted == 0 or (predicted > 0) != (observed > 0):
        return False, "the delta has not the predicted sign"
    share = observed / predicted
    low, high = BAND
    if low <= share <= high:
        return True, f"sign and size agree ({share:.2g} times the prediction, between {low:g} and {high:g})"
    return False, (
        f"the delta is {share:.2g} times the predicted one, outside {low:g} to {high:g}: something else acts"
    )
