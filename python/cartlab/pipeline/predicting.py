"""`plan`: what a true effect would take here, from the noise that this host's blocks had.

Gathers the noise, the seconds of a block and the floor from the ledger; the forecast itself is
cartlab.simulate's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cartlab.ledger import Attempt, Ledger
from cartlab.model import PairKey, Workload
from cartlab.outcome import Outcome, Report
from cartlab.pipeline.answer import number, side
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Runner
from cartlab.plan import SLICE_MS, SLICES, seconds_per_block
from cartlab.round import fold
from cartlab.simulate import Foresight, foresee
from cartlab.stats import hodges_lehmann, robust_sd, used_values
from cartlab.stats.planner import residuals_of
from cartlab.words import counted

# Fewer blocks than these say too little of their own scatter.
AT_LEAST = 4
EFFECT = 1.03
EFFECTS = (1.02, 1.03, 1.05, 1.10)
TARGET = 1.10
DEFAULT_SD = 0.01


@dataclass(frozen=True)
class Noise:
    """Deviations of block values (log ratios) from their centre, where they come from, and the seconds that a
    valid block takes there.
    """

    residuals: tuple[float, ...]
    source: str
    seconds: float

    @property
    def sd(self) -> float:
        return robust_sd(self.residuals)


def noise_here(
    attempts: Iterable[Attempt], host_class: str, workload: Workload, unit: str, pair: PairKey | None
) -> Noise:
    """From the newest calibration of this host, workload and unit; else from the pair's own blocks; else a
    stated default.
    """
    known = list(attempts)

    def fits(attempt: Attempt) -> bool:
        plan = attempt.plan
        same = (plan.host_class, plan.workload.hash, plan.unit) == (host_class, workload.hash, unit)
        return same and plan.recorded and plan.policy != "legacy"

    for attempt in reversed(known):
        if attempt.plan.tier == "calibrate" and attempt.status == "baseline" and fits(attempt):
            found = _noise([attempt], f"calibration {attempt.id}")
            if found is not None:
                return found
    if pair is not None:
        own = [one for one in known if one.plan.pair == pair and fits(one)]
        found = _noise(own, "the pair's own blocks")
        if found is not None:
            return found
    spread = tuple(statistics.NormalDist(0.0, DEFAULT_SD).quantiles(49))
    return Noise(
        spread,
        f"a default of {DEFAULT_SD:.0%} a block: nothing was measured here yet, `calibrate` does",
        seconds_per_block(SLICES, SLICE_MS),
    )


def _noise(attempts: Sequence[Attempt], source: str) -> Noise | None:
    blocks = [block for attempt in attempts for block in attempt.blocks]
    values = used_values(blocks)
    if len(values) < AT_LEAST:
        return None
    spent = sum(((one.finished or {}).get("seconds") or {}).get("blocks") or 0.0 for one in attempts)
    each = spent / len(values) if spent else seconds_per_block(SLICES, SLICE_MS)
    return Noise(tuple(residuals_of(values)), f"{counted(len(values), 'block')} of {source}", each)


def predict(
    lab: Lab,
    repo: Path,
    ledger: Ledger | None,
    runner: Runner,
    refs: tuple[str, str] | None,
    effects: Sequence[float],
) -> Outcome:
    """The forecast of every tier for each true ratio. refs: the pair, whose blocks the run would continue;
    without an effect its own estimate is taken for true.
    """
    config = lab.load_config(repo)
    workload, _ = lab.workload(config, repo, runner)
    host_class = lab.host_class()
    attempts = ledger.attempts() if ledger is not None else {}
    out = Outcome(command="plan", report=Report(phase="orient", next="scripts/autoresearch.py next"))
    out.workload_hash = workload.hash
    pair = None
    if refs is not None:
        base, cand = lab.resolve(repo, refs[0]), lab.resolve(repo, refs[1])
        out.harness_hash = lab.harness_hash(repo, workload)
        pair = PairKey(base.tree, cand.tree, workload.hash, out.harness_hash, host_class)
        out.baseline, out.candidate = side(base, None), side(cand, None)
        out.report.inputs = [f"{ref.name} {ref.commit[:12]}" for ref in (base, cand)]
        out.report.next = f"scripts/autoresearch.py accept {base.name} {cand.name}"
    earlier = used_values(ledger.blocks_of(pair, runner.unit)) if ledger is not None and pair else []
    noise = noise_here(attempts.values(), host_class, workload, runner.unit, pair)
    floor = ledger.floor_of(host_class) if ledger is not None else None
    found = fold(ledger.events()) if ledger is not None else None
    target = found.target if found is not None and found.active else TARGET
    rows = [
        row
        for effect in effects or _effects(pair, earlier)
        for row in foresee(effect, noise.residuals, floor=floor or 1.0, target=target, earlier=earlier)
    ]
    out.details = {
        "noise": {"source": noise.source, "sd": noise.sd, "seconds_per_block": noise.seconds},
        "floor": floor,
        "target": target,
        "earlier_blocks": len(earlier),
        "forecasts": [_facts(row, noise) for row in rows],
    }
    out.text = lines(rows, noise, floor, len(earlier))
    return out


def _effects(pair: PairKey | None, earlier: Sequence[float]) -> tuple[float, ...]:
    if pair is None:
        return EFFECTS
    if len(earlier) < AT_LEAST:
        return (EFFECT,)
    return (math.exp(hodges_lehmann(earlier)),)


def _facts(row: Foresight, noise: Noise) -> Mapping[str, Any]:
    return {
        **row._asdict(),
        "minutes": row.blocks * noise.seconds / 60,
        "proven_minutes": None if row.proven is None else row.proven * noise.seconds / 60,
    }


HEADING = ("true ratio", "tier", "budget", "blocks", "minutes", "proven after", "passes", "smallest shown")


def lines(rows: Sequence[Foresight], noise: Noise, floor: float | None, earlier: int) -> list[str]:
    """The forecast as people read it."""
    form = "{:>10}  {:<14} {:>6} {:>7} {:>8} {:>13} {:>7} {:>15}"
    shown = [
        f"noise: sd {noise.sd:.2%} a block, {noise.seconds:.1f} s each, from {noise.source}",
        f"floor: {number(floor) if floor else '1.00, no calibration of this host measured one'}",
    ]
    if earlier:
        shown.append(
            f"the pair has {counted(earlier, 'block')}: accept goes on, and needs what is shown besides"
        )
    shown.append(form.format(*HEADING))
    for row in rows:
        proven = "" if row.tier in ("screen", "round confirm") else "not within" if row.proven is None else ""
        shown.append(
            form.format(
                f"{row.effect:.3f}",
                row.tier,
                row.budget,
                f"{row.blocks:.0f}",
                f"{row.blocks * noise.seconds / 60:.1f}",
                f"{row.proven:.0f}" if row.proven is not None else proven,
                f"{row.passes:.0%}",
                "" if row.smallest is None else f"{row.smallest:.4f}",
            )
        )
    shown.append(
        "blocks and minutes of the middle run, without builds and checks; proven after: the blocks that put "
        "the lower bound above the guard"
    )
    return shown
