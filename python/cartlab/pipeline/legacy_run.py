"""`--policy legacy`: an attempt measured and judged as the predecessor did, for comparison only.

A smoke run, warm-up pairs that are thrown away, then pairs of invocations, baseline first in even ones,
and a look at each checkpoint. Before the first pair it waits until the machine's load is low, before each
further one until it is below the limit; what counts as the load gate is the load after the newest pair.
The predecessor waited for ever; here all waiting together has a limit (`--lease-wait`, an hour by
default), and so has the run (`--max-wall-clock-minutes`, `--max-measured-invocations`): either ends it at
the pair it has reached.

Its pairs are blocks of the ledger that no other policy reads, and it reads none: each run starts afresh.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cartlab import legacy
from cartlab.lease import DEFAULT_WAIT_S
from cartlab.ledger.rows import speeds
from cartlab.model import Block, Evidence, Plan, Validity, Verdict
from cartlab.pipeline.attempt import Attempt
from cartlab.pipeline.lab import no_count
from cartlab.pipeline.request import Request
from cartlab.pipeline.signals import uninterrupted
from cartlab.plan import SINGLE_TIERS

# Indices of what is measured and thrown away: no block has one below zero.
SMOKE = -1


def request_of(request: Request) -> Request:
    """The request as this policy carries it out: no earlier block, no verdict of the ledger, no round."""
    return replace(request, pool=False) if request.runner.policy == legacy.MARK else request


@dataclass
class LegacyAttempt(Attempt):
    """A plan of the legacy policy on its way to its verdict."""

    waited: float = 0.0
    look_facts: dict[str, Any] | None = None
    row: dict[str, Any] | None = None

    def _measure(self) -> Verdict:
        self.lab = replace(self.lab, instructions=no_count)
        reached = self._wait_for(self.sizes.start_load)
        if reached is None:
            for index, sizes in self._thrown_away():
                self.voice.progress("smoke run" if index == SMOKE else "warm-up pair")
                self._pair(index, replace(self.plan, legacy=sizes.to_json()))
        while reached is None and (reached := self._limit() or self._busy()) is None:
            self._record(self._pair(len(self.blocks), self.plan))
            verdict = self._looked()
            if verdict is not None and verdict.final:
                return verdict
        self.limit_stop_reason = reached
        if not self.blocks:
            return self._problem("busy_invalid", f"no pair was measured: {reached}")
        return self._judge(self._count())

    # --- measuring -------------------------------------------------------------------------------------

    @property
    def sizes(self) -> legacy.Sizes:
        return legacy.Sizes.from_json(self.plan.legacy or {})

    @property
    def single(self) -> bool:
        """One ref alone, whose invocations are looked at instead of pairs."""
        return self.plan.tier in SINGLE_TIERS

    def _thrown_away(self) -> list[tuple[int, legacy.Sizes]]:
        smoke = replace(self.sizes, steps=legacy.SMOKE_STEPS, repeats=1)
        return [(SMOKE, smoke)] + [(SMOKE - 1 - n, self.sizes) for n in range(self.sizes.warmups)]

    def _pair(self, index: int, plan: Plan) -> Block:
        base, cand = self._both()
        for build in {build.build_id: build for build in (base, cand)}.values():
            self.lab.check_build(build)
        first = 0 if legacy.baseline_first(index) else 1
        with self._timed("blocks"):
            block = self.lab.run_block(plan, index, first, base, cand, self.repo)
        return replace(block, witness={**block.witness, "load_1m": self.lab.load()})

    def _record(self, block: Block) -> None:
        with uninterrupted():
            body = block.to_json()
            stored = body if self.plan.recorded else {**body, "unrecorded": True}
            self.last_seq = self.ledger.append("block", self.id, stored)["seq"]
            self.folder.write(f"raw/block-{block.index:02d}.json", body)
            self.blocks.append(block)

    def _limit(self) -> str | None:
        """Why no further pair may begin."""
        most = self.sizes.max_invocations
        if most is not None and 2 * (len(self.blocks) + 1) > most:
            return f"max_measured_invocations {most}"
        limit = self.plan.max_seconds
        if limit is not None and self.lab.clock() - self.began >= limit:
            return f"wall clock limit of {limit / 60:g} minutes"
        return None

    def _busy(self) -> str | None:
        return self._wait_for(self.sizes.max_load) if self.blocks else None

    def _wait_for(self, below: float) -> str | None:
        """Return once the load is below the limit; why it was given up where it stays above too long."""
        if self.plan.forced:
            return None
        most = DEFAULT_WAIT_S if self.plan.lease_wait is None else self.plan.lease_wait
        while (load := self.lab.load()) is not None and load >= below:
            if (reached := self._limit()) is not None:
                return reached
            if self.waited + legacy.POLL_SECONDS > most:
                return f"the 1-minute load {load:.2f} did not fall below {below:.2f} in {self.waited:.0f} s"
            self.voice.progress(f"waiting for a 1-minute load below {below:.2f}, it is {load:.2f}")
            self.lab.sleep(legacy.POLL_SECONDS)
            self.waited += legacy.POLL_SECONDS
        return None

    # --- judging ---------------------------------------------------------------------------------------

    def _count(self) -> int:
        """Pairs, or invocations of a single ref."""
        return len(self.blocks) * (2 if self.single else 1)

    def _looked(self) -> Verdict | None:
        """The look at the newest checkpoint that these blocks complete, None between two."""
        count = self._count()
        due = [c for c in self.sizes.checkpoints if c in ((count - 1, count) if self.single else (count,))]
        self.voice.progress(f"pair {len(self.blocks)} of at most {self.plan.max_blocks}")
        return self._judge(due[-1]) if due else None

    def _judge(self, count: int) -> Verdict:
        """The verdict after so many pairs or invocations."""
        fine, ignored = load_fine(self.blocks, self.sizes.max_load), self.plan.forced
        limited = self.limit_stop_reason is not None
        checkpoints = legacy.looks_until(self.sizes.checkpoints, count) if limited else self.sizes.checkpoints
        if self.single:
            samples = invocations(self.blocks, self.plan)[:count]
            alone = legacy.single_look(samples, checkpoints, fine or ignored)
            verdict, facts = legacy.single_verdict_of(alone), alone._asdict()
            cells = legacy.single_cells_of(alone, fine, ignored)
        else:
            ratios = [legacy.pair_ratio(block.base_ns, block.cand_ns) for block in self.blocks]
            at = legacy.look(ratios, checkpoints, fine or ignored)
            verdict = legacy.verdict_of(self.plan.tier, at, fine, ignored, limited)
            facts = at._asdict()
            cells = legacy.cells_of(at, fine, ignored) | self._speed_cells(ratios)
        marks = (*verdict.marks, *(("forced",) if ignored else ()))
        marks += () if self.plan.recorded else ("unrecorded",)
        self.look_facts = {**facts, "load_fine": fine, "load_ignored": ignored, "limit_reached": limited}
        self.row = {
            **cells,
            "benchmark_limits": self._limits(),
            "discarded_incomplete_pair_raw_files": [],
        }
        self.decided_from = (Validity(forced=self.plan.forced, marks=marks), verdict.final)
        return replace(verdict, marks=marks)

    def _speed_cells(self, ratios: Sequence[float]) -> dict[str, Any]:
        """The candidate's invocations in the workload's own unit."""
        values = [statistics.median(found) for found in speeds(self.blocks, self.plan.workload)]
        return {
            "measured_invocation_count": 2 * len(ratios),
            "mean_pair_ratio": statistics.fmean(ratios),
            "official_median_sps": statistics.median(values),
            "mean_invocation_median_sps": statistics.fmean(values),
            "bootstrap_ci95_invocation_median_sps": list(legacy.bootstrap_interval(values)),
        }

    def _limits(self) -> dict[str, Any]:
        return {
            "max_measured_invocations": self.sizes.max_invocations,
            "max_seconds": self.plan.max_seconds,
            "max_load": self.sizes.max_load,
        }

    # --- the record ------------------------------------------------------------------------------------

    def _evidence(self) -> Evidence | None:
        return None  # its pairs are none: neither bounds nor an estimate come from them

    def _problem(self, status: str, reason: str) -> Verdict:
        marks = (legacy.MARK,)
        return self._decide(Validity(status, reason, forced=self.plan.forced, marks=marks), True)

    def decided_besides(self) -> dict[str, Any]:
        return {"legacy": self.look_facts}

    def finished_besides(self) -> dict[str, Any]:
        return {} if self.row is None else {"row": self.row}


def load_fine(blocks: Sequence[Block], limit: float) -> bool:
    """Was the load below the limit after the newest pair; a system that tells none is taken as quiet."""
    load: Mapping[str, Any] = blocks[-1].witness if blocks else {}
    return load.get("load_1m") is None or float(load["load_1m"]) < limit


def invocations(blocks: Sequence[Block], plan: Plan) -> list[list[float]]:
    """The speeds of every invocation of a single ref in the order run, each a list of its repeats."""
    sides = {"B": speeds(blocks, plan.workload, "base"), "C": speeds(blocks, plan.workload, "cand")}
    return [sides[letter][at] for at, block in enumerate(blocks) for letter in dict.fromkeys(block.order)]
