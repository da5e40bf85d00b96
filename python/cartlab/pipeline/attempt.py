"""One attempt: build, compare, check, measure, decide; and one attempt_finished event whatever happens.

Every block is in the ledger, and in a file of its own, before the next begins. A failure ends the attempt
with the status of what failed; Ctrl-C ends it as interrupted; an error of ours does too, and goes on as an
error. The ledger's own lock on a running attempt is dropped by the kernel when the process dies, so that
the next run can close it. What it leaves besides its blocks is put together in remains.py.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cartlab.artefacts import RunFolder
from cartlab.decide import decide
from cartlab.errors import BehaviourChanged, CartlabError, NotLegalNow, Tampered
from cartlab.ledger import Ledger
from cartlab.ledger.store import written
from cartlab.model import POLICY, STATUSES, TIERS, Block, Build, Evidence, Plan, Validity, Verdict
from cartlab.outcome import Outcome
from cartlab.pipeline import answer, beside, halves, remains, rounds
from cartlab.pipeline.checking import full_checks
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request
from cartlab.pipeline.signals import uninterrupted
from cartlab.pipeline.voice import Voice
from cartlab.stats.evidence import counts, evidence

# A dropped block is replaced, but not for ever: a run may measure this share of its budget beyond it.
SPARE_SHARE = 0.3
SIDES = ("baseline", "candidate")


@dataclass
class Attempt:
    """A plan on its way to a verdict."""

    plan: Plan
    request: Request
    lab: Lab
    config: Any
    repo: Path
    root: Path
    ledger: Ledger
    voice: Voice
    began: float
    queued: float = 0.0  # seconds, for another controller, before this one's turn
    builds: list[Build | None] = field(default_factory=lambda: [None, None])
    earlier: list[Block] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    equality: Any = None
    drawn_equality: Any = None
    counted: Any = None
    checks: str = "not_run"
    failed_checks: str = ""
    limit_stop_reason: str | None = None
    seconds: dict[str, float] = field(default_factory=lambda: {"build": 0.0, "verify": 0.0, "blocks": 0.0})
    problem_details: dict[str, Any] = field(default_factory=dict)
    decided_from: tuple[Validity, bool] = (Validity(), True)
    last_seq: int = 0
    marks: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.plan.attempt_id

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.root, self.id)

    def carry_out(self) -> Outcome:
        """All steps, and the record of how they ended."""
        with self.ledger.running(self.id):
            with uninterrupted():
                self.last_seq = self.ledger.append("attempt_started", self.id, self.plan.to_json())["seq"]
                self.folder.write("plan.json", self.plan.to_json())
            try:
                verdict = self._steps()
            except KeyboardInterrupt:
                with uninterrupted(again=False):
                    self.limit_stop_reason = "interrupted"
                    return self._finish(self._problem("interrupted", "stopped by the user"))
            except CartlabError as error:
                # `refused` is no status of an attempt: what should never have started is an error of ours.
                if error.status not in STATUSES or error.status == "refused":
                    self._give_up(error)
                    raise
                self.problem_details = error.details
                verdict = self._problem(error.status, error.message)
            except Exception as error:
                self._give_up(error)
                raise
            with uninterrupted(again=False):
                return self._finish(verdict)

    def _give_up(self, error: Exception) -> None:
        """Close the attempt so that a later run continues it; the error itself goes on to the user."""
        with uninterrupted(again=False), contextlib.suppress(Exception):
            self.limit_stop_reason = f"{type(error).__name__}: {error}"
            self._finish(self._problem("interrupted", f"ended by an error: {error}"))

    def _problem(self, status: str, reason: str) -> Verdict:
        return self._decide(Validity(problem=status, reason=reason, forced=self.plan.forced), True)

    # --- the steps -------------------------------------------------------------------------------------

    def _steps(self) -> Verdict:
        pooling = self.request.pool and self.plan.recorded
        self.earlier = (
            self.ledger.blocks_of(self.plan.pair, self.plan.unit, before=self.id) if pooling else []
        )
        waived = ("**",) if self.request.any_paths else rounds.may_touch(self.ledger)
        self.lab.compliance(self.repo, self.plan.base, self.plan.cand, self.config, waived)
        if None in self.builds:
            with self._timed("build"):
                self._build()
        with self._timed("verify"):
            self._verify()
        if self.plan.equal_only:
            return Verdict("ok", "defer", 0, ("the outputs are equal; nothing was measured",), None)
        if TIERS[self.plan.tier].proves and self.plan.checks and self.checks == "not_run":
            if self.plan.base.tree == self.plan.cand.tree:
                # What fails on both sides counts against neither, and what changes nothing is never kept.
                self.voice.say("checks: not run, both sides are the same tree")
            else:
                self._check()
        verdict = self._measure()
        if TIERS[self.plan.tier].proves and self.blocks:
            self.voice.progress("counting instructions")
            self.counted = self.lab.instructions(self.plan, *self._both(), self.repo)
        found = beside.measure(self, verdict)
        if found.problem is not None:
            return self._problem(*found.problem)
        self.marks = found.marks
        return self._decide(self._validity(), self._budget_ended()) if found.marks else verdict

    def _build(self) -> None:
        for at, ref in enumerate((self.plan.base, self.plan.cand)):
            self.voice.progress(f"building the {SIDES[at]} {ref.name} ({ref.commit[:12]})")
            try:
                built = self.lab.build(
                    self.config,
                    ref,
                    self.root,
                    fresh=self.plan.fresh_build,
                    progress=self.voice.progress,
                    keep_sources=self.plan.keep_sources,
                )
            except CartlabError as error:
                error.details["side"] = SIDES[at]
                if tail := error.details.get("log_tail"):
                    self.folder.write_text(f"build-{SIDES[at]}.log", tail)
                    for line in tail.rstrip().splitlines()[-20:]:
                        self.voice.warn(f"  | {line}")
                raise
            self.builds[at] = built
            with contextlib.suppress(OSError):
                self.folder.write_text(
                    f"build-{SIDES[at]}.log",
                    self.lab.build_log(built).read_text(encoding="utf-8", errors="replace"),
                )

    def _verify(self) -> None:
        """Equal work on the public workload, and in a confirm run on the held-out draw too."""
        workload = self.plan.workload
        self.voice.progress(f"comparing outputs over {workload.verify_steps} steps")
        base, cand = self._both()
        public = replace(self.plan, workload=workload.public)
        self.equality = self.lab.verify_equal(public, base, cand, self.repo)
        if self.equality.equal and workload.held_out is not None:
            self.drawn_equality = self.lab.verify_equal(self.plan, base, cand, self.repo)
        for found, where in ((self.equality, ""), (self.drawn_equality, " on the held-out draw")):
            if found is not None and not found.equal:
                raise BehaviourChanged(
                    f"the outputs differ{where}, first in: {found.first_difference}",
                    "a speed-up must do the same work; nothing was timed",
                )

    def _check(self) -> None:
        self.voice.progress("running the full checks")
        passed, reason = full_checks(
            self.lab, self.ledger, self.plan, self.builds, self.config, self.repo, self.root, self.voice
        )
        self.checks = "passed" if passed else "failed"
        self.failed_checks = reason

    def _measure(self) -> Verdict:
        verdict = self._decide(self._validity(), self._budget_ended())
        if verdict.final and self._enough(verdict):
            return verdict
        self._nobody_came_before()
        while not (verdict.final and self._enough(verdict)):
            self._block()
            verdict = self._decide(self._validity(), self._budget_ended())
            self.voice.progress(remains.progress_line(self.plan, self.blocks, verdict))
        return verdict

    def _nobody_came_before(self) -> None:
        """NotLegalNow where the pair got blocks since this run began: its bets would leave them out.

        The lease prevents it, but not between controllers that keep their leases in different places.
        """
        if not (self.request.pool and self.plan.recorded):
            return
        if self.ledger.blocks_of(self.plan.pair, self.plan.unit) != self.earlier:
            raise NotLegalNow(
                "another run measured this pair while this one was built and checked",
                "run the same command again: it continues those blocks",
            )

    def _nobody_wrote_meanwhile(self) -> None:
        """Tampered where this attempt, or its pair, got blocks or a decision that this process did not write:
        a build runs as the user and may reach the ledger.
        """
        mine = {digest for _, digest in written}
        for event in reversed(self.ledger.events()):
            if event["seq"] <= self.last_seq:
                return
            if event["type"] in ("block", "decision") and event["hash"] not in mine:
                body = event["body"]
                if event["attempt"] == self.id or self._is_of_pair(event["attempt"]):
                    raise Tampered(
                        f"the ledger's blocks of this pair must be its controller's; event {event['seq']} "
                        f"({event['type']}, block {body.get('index')}) was written by another process",
                        "look at what the build did, or for a second controller with a lease of its own",
                        details={"seq": event["seq"]},
                    )

    def _is_of_pair(self, attempt: str | None) -> bool:
        known = self.ledger.attempts().get(str(attempt))
        return known is not None and known.plan.pair == self.plan.pair

    def _enough(self, verdict: Verdict) -> bool:
        # A pool that was decided before this run began still needs the new blocks that --again asks for.
        return self._budget_ended() or (not self.plan.again and bool(self.blocks or self.earlier))

    def _block(self) -> None:
        base, cand = self._both()
        for build in {build.build_id: build for build in (base, cand)}.values():
            self.lab.check_build(build)
        index = len(self.blocks)
        half, plan = halves.next_half(self.plan, [*self.earlier, *self.blocks])
        with self._timed("blocks"):
            block = self.lab.run_block(plan, index, self.lab.coin(), base, cand, self.repo)
        block = halves.marked(block, half)
        self._nobody_wrote_meanwhile()
        with uninterrupted():
            body = block.to_json()
            stored = body if self.plan.recorded else {**body, "unrecorded": True}
            self.last_seq = self.ledger.append("block", self.id, stored)["seq"]
            self.folder.write(f"raw/block-{index:02d}.json", body)
            self.blocks.append(block)

    # --- what is known ---------------------------------------------------------------------------------

    def _both(self) -> tuple[Build, Build]:
        base, cand = self.builds
        assert base is not None and cand is not None
        return base, cand

    def _validity(self) -> Validity:
        marks = (*self.marks, *(() if self.plan.recorded else ("unrecorded",)))
        return Validity(forced=self.plan.forced, checks=self.checks, reason=self.failed_checks, marks=marks)

    def _evidence(self) -> Evidence | None:
        if not self.earlier and not self.blocks:
            return None
        return evidence(
            [*self.earlier, *self.blocks],
            floor=self.plan.floor,
            alpha=self.plan.alpha,
            pooled=len(self.earlier),
            forced=self.plan.forced,
            design=self.plan.design,
        )

    def _decide(self, validity: Validity, budget_ended: bool) -> Verdict:
        self.decided_from = (validity, budget_ended)
        return decide(self.plan.tier, self._evidence(), validity, budget_ended)

    def _budget_ended(self) -> bool:
        """Is no further block allowed; notes why, where it is not for the plan's own number."""
        valid = sum(counts(block, self.plan.forced) for block in self.blocks)
        most = math.ceil(self.plan.max_blocks * (1 + SPARE_SHARE))
        if self.checks == "failed" or valid >= self._wanted():
            return True
        dropped = len(self.blocks) - valid
        # Past this share of all that may be measured no run becomes valid any more, whatever comes.
        if len(self.blocks) >= most or dropped > POLICY.max_dropped * most:
            self.limit_stop_reason = f"{dropped} of {len(self.blocks)} blocks dropped"
            return True
        limit = self.plan.max_seconds
        if limit is not None and self.lab.clock() - self.began >= limit:
            self.limit_stop_reason = f"wall clock limit of {limit / 60:g} minutes"
            return True
        return False

    def _wanted(self) -> int:
        # An interrupted screen or confirm run is continued: what it had counts towards its number.
        adds = TIERS[self.plan.tier].proves and self.plan.tier != "confirm"
        if adds or self.plan.again or not self.earlier:
            return self.plan.max_blocks
        return max(0, self.plan.max_blocks - sum(counts(block, self.plan.forced) for block in self.earlier))

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = self.lab.clock()
        try:
            yield
        finally:
            self.seconds[part] += self.lab.clock() - start

    # --- the record ------------------------------------------------------------------------------------

    def _finish(self, verdict: Verdict) -> Outcome:
        """The decision, the one attempt_finished event, the files, the views; then the answer."""
        seconds = {
            **self.seconds,
            "other": max(0.0, self.lab.clock() - self.began - self.queued - sum(self.seconds.values())),
        }
        seconds = {part: round(value, 3) for part, value in seconds.items()}
        self.folder.write("aggregate.json", remains.aggregate(self, verdict, seconds))
        self.ledger.append("decision", self.id, remains.decision(self, verdict))
        finished = remains.finished(self, verdict, seconds)
        self.ledger.append("attempt_finished", self.id, finished)
        proposed = rounds.after(self.ledger, self.plan, self.voice)
        self.folder.close(remains.manifest(self))
        self.ledger.project()
        out = answer.outcome_of(
            self.plan,
            verdict,
            self.builds,
            seconds,
            ledger=str(self.root / "events.jsonl"),
            recorded=self.plan.recorded,
            outputs=[
                self.folder.relative("aggregate.json"),
                *(["results.tsv"] if self.plan.recorded else []),
            ],
            notes=remains.notes(self, verdict),
            details={
                "remembered": False,
                "artifact": self.folder.relative("aggregate.json"),
                "equality": self.equality.to_json() if self.equality is not None else None,
                "checks": self.checks,
                "halves": remains.halves_of(self),
                "limit_stop_reason": self.limit_stop_reason,
                "problem": self.problem_details or None,
                "queued_s": round(self.queued, 3),
            },
        )
        if proposed is not None:
            out.report.next = proposed
        return out

    def decided_besides(self) -> dict[str, Any]:
        """What another policy has to say in its decision and in aggregate.json."""
        return {}

    def finished_besides(self) -> dict[str, Any]:
        """What another policy has to say in attempt_finished."""
        return {}
