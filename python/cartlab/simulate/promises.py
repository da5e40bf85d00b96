"""The error rates that SPECS.md section 5 promises, each measured on each machine beside the predecessor's.

To promise another rate: add a row to `promises_on`; the tests hold every row that has a target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cartlab.model import TIERS
from cartlab.simulate import predecessor
from cartlab.simulate.machines import Floats, Noise, block_values
from cartlab.simulate.runs import accept_twin, ever_wrong, screened_once
from cartlab.simulate.table import Rates, rates
from cartlab.stats import hodges_lehmann

RERUNS = 10
# Ten runs a trial: a quarter of the trials is enough work.
LOTTERY_SHARE = 4
# A true +3 % is kept at least this often within the budget of `accept`.
FOUND = {"quiet": 0.98, "workstation": 0.98, "shared": 0.80}
LEAK = 0.0005
TRUE = 1.03


class Promise(NamedTuple):
    """One rate. at_least, at_most: its target, None where there is none on that side. legacy: the same of the
    predecessor, None where it has no such thing.
    """

    machine: str
    what: str
    found: float
    at_least: float | None
    at_most: float | None
    legacy: float | None

    @property
    def holds(self) -> bool:
        """Is the rate within its target."""
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= self.found <= high


def promises_on(noise: Noise, trials: int, seed: int) -> list[Promise]:
    """Every promised rate on one machine, over so many trials each."""

    def row(what: str, found: float, low: float | None, high: float | None, old: float | None) -> Promise:
        return Promise(noise.name, what, found, low, high, old)

    def at(ratio: float) -> Rates:
        return rates(noise, ratio, trials, seed)

    lotteries = math.ceil(trials / LOTTERY_SHARE)

    def lottery_of(tier: str) -> float:
        return predecessor.legacy_lottery(noise, lotteries, seed, tier, RERUNS)

    def drawn(ratio: float, blocks: int, salt: int, runs: int = trials) -> Floats:
        rng = np.random.default_rng([seed, salt, round(noise.sd * 1e6)])
        return block_values(noise, ratio, runs, blocks, rng)[0]

    budget = TIERS["accept"].blocks
    same, seven, ten, twelve = at(1.0), at(1.07), at(1.10), at(1.12)
    gain = at(TRUE)
    null, true = drawn(1.0, budget, 11), drawn(TRUE, budget, 12)
    wrong = [ever_wrong(y, r, up) for y, r in ((null, 1.0), (true, TRUE)) for up in (False, True)]
    missed = predecessor.legacy_interval_misses(noise, TRUE, trials, seed)
    estimates = [math.exp(hodges_lehmann(list(values))) for values in true]
    leak = abs(float(np.mean(estimates)) - TRUE)
    long = accept_twin(drawn(1.0, RERUNS * budget, 13, lotteries))
    lottery = sum(end.status.startswith("keep") for end in long) / lotteries
    screens = screened_once(drawn(1.0, RERUNS * TIERS["screen"].blocks, 14, lotteries))
    even = predecessor.legacy_kept(noise._replace(position=0.0), 1.10, trials, seed)
    leaked = predecessor.legacy_leak(noise, TRUE, trials, seed)
    return [
        row("A/A kept", same.kept, None, 0.01, same.legacy_kept),
        row(f"A/A kept in any of {RERUNS} runs", lottery, None, 0.01, lottery_of("accept")),
        row("A/A promoted by one screen", float(screens[:, 0].mean()), None, 0.10, None),
        row(
            f"A/A promoted in any of {RERUNS} screens",
            float(screens.any(axis=1).mean()),
            None,
            None,
            lottery_of("screen"),
        ),
        row("+3 % kept within 48 blocks", gain.kept, FOUND.get(noise.name, 0.80), None, gain.legacy_kept),
        row("+10 % kept", ten.kept, None, None, ten.legacy_kept),
        row("+10 % kept, no position effect", ten.kept, None, None, even),
        row("round complete at A/A", same.completed, None, 0.0, None),
        row("round complete at +7 %", seven.completed, None, 0.01, None),
        row("round complete at +10 %", ten.completed, None, None, None),
        row("confirm run alone at +10 %", ten.confirm_alone, 0.40, 0.60, None),
        row("round complete at +12 %", twelve.completed, 0.95, None, None),
        row("lower bound too high at any block", max(wrong[0], wrong[2]), None, 0.01, missed),
        row("upper bound too low at any block", max(wrong[1], wrong[3]), None, 0.01, missed),
        row("left of a 1 % position effect", leak, None, LEAK, leaked),
    ]


HEADING = ("machine", "rate", "target", "found", "legacy", "")


def promise_lines(found: Sequence[Promise]) -> Iterator[str]:
    """The promises as text, a line at a time."""
    form = "{:<12} {:<33} {:>13} {:>8} {:>8}  {}"
    yield form.format(*HEADING).rstrip()
    for row in found:
        old = "" if row.legacy is None else _share(row.legacy)
        word = "" if row.at_least is None and row.at_most is None else "holds" if row.holds else "MISSED"
        yield form.format(row.machine, row.what, _target(row), _share(row.found), old, word).rstrip()


def _target(row: Promise) -> str:
    if row.at_least is not None and row.at_most is not None:
        return f"{row.at_least:.0%} to {row.at_most:.0%}"
    if row.at_least is not None:
        return f">= {row.at_least:.0%}"
    return "" if row.at_most is None else f"<= {row.at_most:.2%}".replace(".00%", "%")


def _share(value: float) -> str:
    return f"{value:.3%}" if 0.0 < value < 0.001 else f"{value:.1%}"
