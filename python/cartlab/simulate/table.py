"""How often accept and confirm err, for candidates of known ratios on each machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cartlab.model import POLICY, TIERS, Policy
from cartlab.simulate.machines import MACHINES, Noise, block_values
from cartlab.simulate.predecessor import legacy_kept
from cartlab.simulate.runs import accept_twin, confirmed


class Rates(NamedTuple):
    """What happened to candidates of one true ratio on one machine, as shares of the trials."""

    machine: str
    ratio: float
    trials: int
    kept: float
    discarded: float
    inconclusive: float
    completed: float  # accept kept it at the target, and the confirm run passed
    confirm_alone: float  # the confirm run by itself, had accept let all of them through
    median_blocks: float
    legacy_kept: float  # the predecessor's accept on the same machine
    legacy_stack: float  # its accept-stack


@lru_cache(maxsize=64)
def rates(
    noise: Noise, ratio: float, trials: int, seed: int, target: float = 1.10, policy: Policy = POLICY
) -> Rates:
    """Accept and, where the estimate reaches the target, confirm `trials` candidates of this true ratio."""
    rng = np.random.default_rng([seed, round(ratio * 1000), round(noise.sd * 1e6)])
    y, _ = block_values(noise, ratio, trials, TIERS["accept"].blocks, rng)
    ends = accept_twin(y, policy)
    kept = np.array([end.status.startswith("keep") for end in ends])
    candidates = np.array([k and end.estimate >= target for k, end in zip(kept, ends, strict=True)])
    # Drawn for all trials: what confirm does alone is the second of the two hurdles.
    again, _ = block_values(noise, ratio, trials, TIERS["confirm"].blocks, rng)
    passed = confirmed(again, target, policy=policy)
    statuses = [end.status for end in ends]
    return Rates(
        machine=noise.name,
        ratio=ratio,
        trials=trials,
        kept=float(kept.mean()),
        discarded=statuses.count("discard") / trials,
        inconclusive=statuses.count("inconclusive") / trials,
        completed=float((candidates & passed).mean()),
        confirm_alone=float(passed.mean()),
        median_blocks=float(np.median([end.blocks for end in ends])),
        legacy_kept=legacy_kept(noise, ratio, trials, seed),
        legacy_stack=legacy_kept(noise, ratio, trials, seed, "accept-stack"),
    )


TABLE_RATIOS = (1.0, 1.01, 1.02, 1.03, 1.05, 1.07, 1.10, 1.12, 0.97)


def error_table(
    trials: int = 2000,
    seed: int = 1,
    ratios: Sequence[float] = TABLE_RATIOS,
    machines: Sequence[Noise] = MACHINES,
    progress: Callable[[str], None] = lambda line: None,
) -> list[Rates]:
    """The rates of every machine and ratio; `progress` hears each row as it is ready."""
    out = []
    for noise in machines:
        for ratio in ratios:
            out.append(rates(noise, ratio, trials, seed))
            progress(next(lines_of(out[-1:], heading=False)))
    return out


HEADING = (
    "machine",
    "true ratio",
    "kept",
    "discarded",
    "undecided",
    "blocks",
    "confirm alone",
    "round complete",
    "legacy accept",
    "legacy stack",
)


def lines_of(table: Sequence[Rates], heading: bool = True) -> Iterator[str]:
    """The table as text, a line at a time."""
    form = "{:<12} {:>10} {:>7} {:>9} {:>9} {:>6} {:>13} {:>14} {:>13} {:>12}"
    if heading:
        yield form.format(*HEADING)
    for row in table:
        shares = (row.confirm_alone, row.completed, row.legacy_kept, row.legacy_stack)
        yield form.format(
            row.machine,
            f"{row.ratio:.2f}",
            *(f"{share:.1%}" for share in (row.kept, row.discarded, row.inconclusive)),
            f"{row.median_blocks:.0f}",
            *(f"{share:.1%}" for share in shares),
        )
