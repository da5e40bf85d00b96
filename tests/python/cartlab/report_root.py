"""A root as a session leaves it: a calibration, a round, candidates that were kept, refused, broken, dropped,
forced, left unrecorded and imported. From made-up blocks with the noise of a workstation, always the same.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from ledger_runs import WORKLOAD, a_plan, record, ref

from cartlab import host, stats
from cartlab import round as rounds
from cartlab.ledger import Ledger
from cartlab.model import Block, Plan, Ref, Validity

SCRIPT_TEXT = "<script>document.title = 'owned'</script>"


def clock(start: datetime, seconds: float = 8.0) -> Callable[[], str]:
    """A clock that goes on by some seconds each time it is asked."""
    steps = itertools.count()

    def now() -> str:
        at = start + timedelta(seconds=seconds * next(steps))
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    return now


def blocks(ratio: float, count: int, seed: int, *, sd: float = 0.008, drift: float = 0.0, busy: float = 0.0,
           cpu: float | None = None, role: float = 0.003) -> list[Block]:  # fmt: skip
    """Blocks of this true ratio. drift: of the log ratio over the whole sequence; busy: share that is
    dropped; cpu: the CPU time's own ratio; role: what playing role 1 gains.
    """
    dice = random.Random(seed)
    out = []
    for index in range(count):
        coin = dice.randrange(2)
        y = math.log(ratio) + (role if coin else -role) + drift * index / count + dice.gauss(0.0, sd)
        slices = [20_000_000 + dice.randrange(200_000) for _ in range(4)]
        cand = [round(ns * math.exp(-y)) for ns in slices]
        dropped = None
        if dice.random() < busy:
            dropped = f"busy: waited_share {0.71 + 0.2 * dice.random():.2f} is above 0.70"
        times = (tuple(slices), tuple(cand))
        seen = {"base": 200.0, "cand": 200.0 / (cpu or ratio) * math.exp(dice.gauss(0.0, 0.002))}
        witness = {"cpu_ns_per_step": seen}
        out.append(
            Block(index, coin, "BCCBCBBC", *times, 100, stats.block_value(*times), dropped, witness, {})
        )
    return out


def calibrate(ledger: Ledger, it: Ref, seed: int = 1, count: int = 24) -> None:
    """A calibration of this revision on this machine."""
    plan = dataclasses.replace(
        a_plan(f"calibrate-{seed}", "calibrate"), base=it, cand=it, host_class=host.host_class()
    )
    record(ledger, plan, blocks(1.0, count, seed), relink_floor=0.0041)


def plan_of(base: Ref, name: str, tier: str, idea: str, **changes: Any) -> Plan:
    """A candidate against `base`, with its mechanism; its branch has its name."""
    stated = {"mechanism": idea, "falsify": "the same number of instructions"}
    plan = a_plan(f"{tier}-{name}", tier, cand=name)
    return dataclasses.replace(plan, base=base, host_class=host.host_class(), **{**stated, **changes})


def realistic_root(folder: Path, base: Ref | None = None) -> Ledger:
    """The root in `folder`, which is made; it began an hour ago. base: a revision of the repository that the
    round is of, where there is one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    began = datetime.now(timezone.utc) - timedelta(hours=1)
    ledger = Ledger.open(folder, now=clock(began), round_part=rounds.round_part)
    ledger.init()
    main = base or ref("main")
    candidate = functools.partial(plan_of, main)
    calibrate(ledger, main)
    opened = {
        "workload_hash": WORKLOAD.hash,
        "harness_hash": "h" * 64,
        "protected_hash": "p" * 64,
        "calibration": None,
    }
    rounds.open_round(ledger, main, ledger.events()[-1]["time"], opened, goal="cheaper scanlines")
    record(
        ledger, candidate("tile-cache", "screen", "decode each tile row once a frame"), blocks(1.043, 6, 2)
    )
    record(ledger, candidate("lazy-apu", "screen", "skip the APU between reads"), blocks(1.022, 6, 3))
    record(ledger, candidate("simd-blend", "screen", "blend sixteen pixels at once"), blocks(0.965, 6, 4))
    ledger.append("note", None, {"file": None, "kind": "checks", "text": "full checks passed: native, python",
                                 "checks": {}})  # fmt: skip
    record(
        ledger, candidate("tile-cache", "accept", "decode each tile row once a frame"), blocks(1.045, 48, 5)
    )
    record(ledger, candidate("branchless", "accept", SCRIPT_TEXT), blocks(1.0, 48, 6))
    record(
        ledger, candidate("lazy-apu", "accept", "skip the APU between reads"), blocks(1.021, 48, 7, busy=0.15)
    )
    record(ledger, candidate("threads", "accept", "one more thread a lane"),
           blocks(1.062, 48, 8, cpu=0.93, drift=0.03))  # fmt: skip
    wrong = Validity(problem="behaviour_changed", reason="the outputs differ, first in: step 41 observations")
    record(ledger, candidate("skip-sprites", "accept", "no sprites off the screen"), [], wrong)
    broken = Validity(problem="build_failed", reason="error[E0382]: use of moved value: `row`")
    record(ledger, candidate("arena", "screen", "one arena for all lanes"), [], broken)
    record(
        ledger,
        candidate("prefetch", "accept", "prefetch the next bank", recorded=False),
        blocks(1.012, 20, 9),
    )
    record(
        ledger,
        candidate("busy-day", "accept", "the same, on a busy day", forced=True, approval="a demo"),
        blocks(1.04, 30, 10, busy=0.5),
    )
    record(ledger, candidate("stack", "accept-stack", "tile rows and the lazy APU"), blocks(1.072, 48, 11))
    row = {
        "commit": ref("elsewhere").commit,
        "baseline_commit": main.commit,
        "mode": "accept",
        "status": "keep",
        "decision": "keep",
        "hl_ratio": 1.09,
        "lcb": 1.06,
        "ucb": 1.12,
        "guard": 1.01,
        "measured_pairs": 20,
        "description": "from the lab machine",
    }
    ledger.append("import", "imported-1", {"source": "aggregate.json", "row": row})
    record(ledger, candidate("wide-rows", "screen", "two rows at a time"), blocks(1.006, 6, 12))
    ledger.project()
    return ledger
