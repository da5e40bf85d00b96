"""`bisect GOOD BAD`: which commit made it slower, or with `--faster` faster.

Each question (is this commit changed against GOOD?) is a run of the pipeline, recorded like any other, tier
`single`: it judges nothing and can keep nothing. Its blocks continue the sequence of their pair, so a bisect
that was killed goes on where it was, and a later `accept` of the pair counts them. The search itself, and
what its answers are worth, is bisection.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cartlab import bisection
from cartlab.bisection import CHANGED, Search
from cartlab.errors import UsageError
from cartlab.ledger import Ledger
from cartlab.ledger.attempts import is_calibration
from cartlab.model import POLICY, STATUSES, Block, Evidence, PairKey, Ref
from cartlab.outcome import Outcome, Report
from cartlab.pipeline import answer
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request, Runner
from cartlab.pipeline.run import open_ledger, run
from cartlab.pipeline.voice import Voice
from cartlab.sources import first_parents, matches
from cartlab.sources.refs import Step
from cartlab.stats import blocks_to_show, evidence, residuals_of, used_values
from cartlab.words import counted

COMMAND = "bisect"
# Ends of a run after which the next commit is tried: this one tells nothing about speed.
TELLS_NOTHING = ("build_failed", "behaviour_changed", "crashed", "timeout", "metric_error", "tampered")
SECONDS_A_BLOCK = 4.0


@dataclass(frozen=True)
class Asked:
    """What `bisect` was asked for. threshold: a ratio to GOOD's speed, None = half of the whole effect."""

    good: str
    bad: str
    faster: bool = False
    threshold: float | None = None
    again: bool = False
    dry_run: bool = False
    runner: Runner = field(default_factory=Runner)


class Stopped(Exception):
    """A run ended in a way that ends the search: its outcome is the command's."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.status)
        self.outcome = outcome


class Late(Exception):
    """The search has taken as long as it may."""


class Hushed:
    """The voice of the runs inside: their progress, each warning once, and none of their lines."""

    def __init__(self, voice: Voice) -> None:
        self.voice = voice
        self.where = ""
        self._said: set[str] = set()

    def say(self, line: str) -> None:
        """Nothing: the search has lines of its own."""

    def warn(self, line: str) -> None:
        if line not in self._said and "mechanism" not in line:
            self._said.add(line)
            self.voice.warn(line)

    def progress(self, line: str) -> None:
        self.voice.progress(f"{self.where}: {line}")


@dataclass
class Bisect:
    """One search on its way."""

    asked: Asked
    lab: Lab
    repo: Path
    root: Path
    voice: Voice

    def __post_init__(self) -> None:
        self.began = self.lab.clock()
        self.config = self.lab.load_config(self.repo)
        self.workload, self.source = self.lab.workload(self.config, self.repo, self.asked.runner)
        self.good = self.lab.resolve(self.repo, self.asked.good)
        self.bad = self.lab.resolve(self.repo, self.asked.bad)
        self.line = first_parents(self.repo, self.good, self.bad)
        inputs = self.config.build.inputs
        built = [s for s in self.line if not inputs or any(matches(path, inputs) for path in s.paths)]
        self.steps: Sequence[Step] = built
        self.harness = self.lab.harness_hash(self.repo, self.workload)
        self.host = self.lab.host_class()
        self.inside = Hushed(self.voice)
        self.told: list[dict[str, Any]] = []
        self._ledger: Ledger | None = None
        self.threshold = self.asked.threshold
        if not built:
            raise UsageError(
                f"none of the {len(self.line)} commits changes what is built ([build] inputs)",
                "nothing that a build could show changed between these two",
            )

    # --- one question -----------------------------------------------------------------------------------

    def ref(self, at: int) -> Ref:
        """GOOD, the commit of this number, or BAD as it was typed."""
        if at == len(self.steps):
            return self.bad
        commit = self.steps[at - 1].commit
        return replace(self.lab.resolve(self.repo, commit), name=commit[:12])

    @property
    def past(self) -> Ledger | None:
        """The ledger once there is one; opened once, read on from where it was."""
        if self._ledger is None and self.root.is_dir():
            self._ledger = Ledger.open(self.root, mend=False)
        return self._ledger

    def pair(self, ref: Ref) -> PairKey:
        return PairKey(self.good.tree, ref.tree, self.workload.hash, self.harness, self.host)

    def blocks(self, ref: Ref) -> list[Block]:
        """All blocks of GOOD against this commit, older ones first."""
        past = self.past
        return past.blocks_of(self.pair(ref), self.asked.runner.unit) if past is not None else []

    def known_silence(self, ref: Ref) -> tuple[str, str] | None:
        """(status, reason) where an earlier bisect found that this commit tells nothing."""
        past = self.past
        if self.asked.again or past is None:
            return None
        for attempt in reversed(list(past.attempts().values())):
            if attempt.plan.command == COMMAND and attempt.plan.pair == self.pair(ref) and attempt.finished:
                status = str(attempt.status)
                reason = str(attempt.finished.get("reason") or status)
                return (status, reason) if status in TELLS_NOTHING else None
        return None

    def measure(self, ref: Ref, count: int) -> Outcome:
        """`count` more blocks of GOOD against this commit."""
        request = Request(
            command=COMMAND,
            tier="single",
            base=self.good.commit,
            cand=ref.commit,
            pool=False,
            any_paths=True,
            runner=replace(self.asked.runner, max_blocks=count, max_minutes=None),
        )
        return run(request, self.lab, self.repo, self.root, self.inside)

    def late(self) -> bool:
        """Has the whole search taken as long as it may."""
        minutes = self.asked.runner.max_minutes
        return minutes is not None and self.lab.clock() - self.began >= minutes * 60

    def evidence(self, ref: Ref, threshold: float, alpha: float) -> tuple[Evidence | None, list[float]]:
        blocks = self.blocks(ref)
        values = used_values(blocks, self.asked.runner.force_busy)
        found = evidence(blocks, alpha=alpha, thresholds=(threshold,), forced=self.asked.runner.force_busy)
        return (found if values else None), values

    def ask(self, at: int, threshold: float, alpha: float) -> tuple[str | None, Evidence | None, str]:
        """(CHANGED, UNCHANGED or None, what the blocks say, why nothing is known)."""
        ref = self.ref(at)
        silent = self.known_silence(ref)
        budget = self.asked.runner.max_blocks or bisection.STEP_BLOCKS
        spent = 0
        while silent is None:
            found, values = self.evidence(ref, threshold, alpha)
            told = bisection.answer(found, threshold, self.asked.faster)
            if told is not None:
                return told, found, ""
            if self.late():
                raise Late()
            if spent >= budget:
                shown = answer.number(found.hl if found else None)
                return None, found, f"{spent} blocks (estimate {shown}) do not decide it"
            residuals = residuals_of(values) if len(values) > 1 else []
            hl = found.hl if found else None
            count = min(budget - spent, bisection.more_blocks(len(values), hl, threshold, residuals, alpha))
            ended = self.measure(ref, count)
            spent += count
            if ended.status in ("interrupted", "compliance_failed"):
                raise Stopped(ended)
            if ended.status in TELLS_NOTHING:
                silent = ended.status, ended.reasons[0] if ended.reasons else ended.status
        return None, None, f"{silent[0]}: {silent[1]}"

    # --- the search -------------------------------------------------------------------------------------

    def search(self) -> Outcome:
        """Is there a difference at all; then halve the range until one commit or no question is left."""
        search = Search(len(self.steps))
        alpha = search.spend(beside=1)
        self.inside.where = f"{self.good.name} against {self.bad.name}"
        first = 1.0 if self.threshold is None else self.threshold
        told, found, why = self.ask(len(self.steps), first, alpha)
        self.tell(len(self.steps), told, found, why, alpha, first)
        if told != CHANGED:
            return self.no_difference(told, found, why)
        assert found is not None and found.hl is not None
        if self.threshold is None:
            self.threshold = bisection.halfway(found.hl)
        self.voice.say(
            f"the whole effect is {answer.percent(found.hl)}; a commit counts as changed beyond "
            f"{self.threshold:.4f} of {self.good.name}'s speed; about {search.questions} questions"
        )
        while (at := search.next()) is not None:
            self.inside.where = f"{self.steps[at - 1].commit[:12]}, about {search.questions} questions left"
            silent = self.known_silence(self.ref(at))
            alpha = search.spend() if silent is None else 0.0
            told, found, why = self.ask(at, self.threshold, alpha)
            self.tell(at, told, found, why, alpha, self.threshold)
            if told is None:
                search.skip(at, why)
                search.refund(alpha if found is None else 0.0)
            else:
                search.learn(at, told)
        return self.found(search)

    def tell(
        self, at: int, told: str | None, found: Evidence | None, why: str, alpha: float, threshold: float
    ) -> None:
        """Keep one answer, and say it."""
        step = self.steps[at - 1]
        commit = self.ref(at).commit
        row: dict[str, Any] = {
            "commit": commit,
            "subject": step.subject,
            "answer": told,
            "reason": why or None,
            "threshold": threshold,
            "alpha": alpha,
            "ratio": found.hl if found else None,
            "lcb": found.lcb if found else None,
            "ucb": found.ucb if found else None,
            "blocks": found.used if found else 0,
        }
        self.told.append(row)
        shown = f"{why}  " if why else bounds(found)
        self.voice.say(f"{commit[:12]} {told or 'unknown':<9} {shown}{step.subject}")

    # --- the answer -------------------------------------------------------------------------------------

    def outcome(self, status: str, text: list[str], reasons: list[str], **more: Any) -> Outcome:
        row = STATUSES[status]
        out = Outcome(
            command=COMMAND,
            report=Report(
                phase="diagnose",
                inputs=[f"{ref.name} {ref.commit[:12]}" for ref in (self.good, self.bad)],
                outputs=["events.jsonl"],
                decision=row.decision,
                next=f"{answer.SCRIPT} next",
            ),
            status=status,
            exit_code=row.exit_code,
            reasons=reasons,
            recorded=True,
            baseline=answer.side(self.good, None),
            candidate=answer.side(self.bad, None),
            workload_hash=self.workload.hash,
            harness_hash=self.harness,
            policy_hash=POLICY.hash,
            ledger=str(self.root / "events.jsonl"),
            text=text,
        )
        whole = self.told[0] if self.told else {}
        out.ratio, out.lcb, out.ucb = whole.get("ratio"), whole.get("lcb"), whole.get("ucb")
        out.alpha = bisection.ERROR
        out.details = {
            "faster": self.asked.faster,
            "threshold": self.threshold,
            "error": bisection.ERROR,
            "commits": len(self.line),
            "building_commits": len(self.steps),
            "first_bad": None,
            "range": [],
            "skipped": {},
            "answers": self.told,
            **more,
        }
        return out

    def no_difference(self, told: str | None, found: Evidence | None, why: str) -> Outcome:
        """GOOD and BAD themselves do not show what is looked for."""
        status = why.partition(":")[0]
        if status in TELLS_NOTHING:
            out = self.outcome(status, [f"{self.good.name} and {self.bad.name} cannot be compared"], [why])
            if status == "behaviour_changed":
                self.where_behaviour_changes(out)
            return out
        word = "faster" if self.asked.faster else "slower"
        reason = f"{self.bad.name} is not {word} than {self.good.name}" if told else why
        text = [f"{reason}: {bounds(found).strip()}", "no commit was asked about"]
        out = self.outcome("inconclusive", text, [reason])
        if told is None:
            out.report.next = f"{answer.SCRIPT} {self.words()}"
        return out

    def where_behaviour_changes(self, out: Outcome) -> None:
        """The sides do other work, so there is nothing to rank; where that begins is found without timing."""
        search = Search(len(self.steps))
        while (at := search.next()) is not None:
            ref = self.ref(at)
            self.inside.where = f"{ref.name}, outputs alone"
            request = Request(
                command=COMMAND, tier="screen", base=self.good.commit, cand=ref.commit,
                equal_only=True, recorded=False, pool=False, any_paths=True,
                runner=replace(self.asked.runner, max_blocks=None),
            )  # fmt: skip
            ended = run(request, self.lab, self.repo, self.root, self.inside)
            if ended.status == "interrupted":
                raise Stopped(ended)
            if ended.status == "behaviour_changed":
                search.learn(at, CHANGED)
            elif ended.status == "ok":
                search.learn(at, bisection.UNCHANGED)
            else:
                search.skip(at, ended.status)
        rows = [self.steps[at - 1] for at in search.suspects]
        out.details = {**(out.details or {}), "behaviour_changed_in": [row.commit for row in rows]}
        out.text += ["the outputs change in " + (" or ".join(named(row) for row in rows))]
        hint = f"speeds compare on either side of it: bisect {self.good.name} {rows[0].commit[:12]}~1"
        out.text.append(hint)
        out.report.next = f"{answer.SCRIPT} bisect {self.good.commit[:12]} {rows[0].commit[:12]}~1"

    def found(self, search: Search) -> Outcome:
        """One commit, or the range that remains and why."""
        rows = [self.steps[at - 1] for at in search.suspects]
        skipped = {self.steps[at - 1].commit: why for at, why in search.skipped.items()}
        word = "faster" if self.asked.faster else "slower"
        more = {"range": [row.commit for row in rows], "skipped": skipped}
        sure = f"all answers together are right with {1 - bisection.ERROR:.0%}, if one commit made the change"
        if len(rows) == 1:
            text = [f"first {word} commit: {named(rows[0])}", f"  {sure}"]
            out = self.outcome("ok", text, [], first_bad=rows[0].commit, **more)
            out.report.next = f"{answer.SCRIPT} screen {rows[0].commit[:12]}~1 {rows[0].commit[:12]}"
            return out
        text = [f"the first {word} commit is one of these {len(rows)}:"]
        for row in rows:
            why = skipped.get(row.commit)
            text.append(f"  {named(row)}" + (f"  ({why})" if why else ""))
        text.append(f"  {sure}")
        reason = f"{len(rows)} commits remain, for {len(rows) - 1} of them tell nothing"
        out = self.outcome("inconclusive", text, [reason], **more)
        out.report.next = f"{answer.SCRIPT} {self.words()} --again"
        return out

    def cut_off(self) -> Outcome:
        """The time limit passed: what is known so far is in the ledger."""
        reason = f"wall clock limit of {self.asked.runner.max_minutes:g} minutes; the same command continues"
        out = self.outcome("inconclusive", [f"not decided yet: {reason}"], [reason])
        out.report.next = f"{answer.SCRIPT} {self.words()}"
        return out

    def words(self) -> str:
        return f"bisect {self.good.commit[:12]} {self.bad.commit[:12]}" + (
            " --faster" if self.asked.faster else ""
        )

    # --- a dry run --------------------------------------------------------------------------------------

    def plan(self) -> Outcome:
        """How many questions, and what they would cost by the noise that is known."""
        search = Search(len(self.steps))
        questions = search.questions + 1
        alpha = bisection.ERROR / questions
        budget = self.asked.runner.max_blocks or bisection.STEP_BLOCKS
        values, seconds, source = self.noise()
        rows = []
        for effect in (0.02, 0.05, 0.10):
            blocks = blocks_to_show(effect / 2, residuals_of(values), alpha) if len(values) > 1 else None
            minutes = None if blocks is None else questions * blocks * seconds / 60
            rows.append({"effect": effect, "blocks_a_question": blocks, "minutes": minutes})
        out = self.outcome("planned", [], [])
        out.recorded, out.report.outputs = False, []
        out.report.next = f"{answer.SCRIPT} {self.words()}"
        out.details = {**(out.details or {}), "questions": questions, "max_blocks": budget, "costs": rows}
        out.text = [
            f"plan: {counted(len(self.line), 'commit')}, {len(self.steps)} of them change what is built; "
            f"about {questions} questions, the first of them whether there is a difference",
            f"  each answer errs at most {alpha:.1%} of the time, all of them {bisection.ERROR:.0%}; at most "
            f"{budget} new blocks a question, {budget * questions * seconds / 60:.0f} minutes in all",
            f"  noise: {source}",
        ]
        for row in rows:
            cost = "unknown" if row["minutes"] is None else f"about {row['minutes']:.0f} minutes"
            many = "?" if row["blocks_a_question"] is None else row["blocks_a_question"]
            out.text.append(
                f"  a change of {row['effect']:.0%}: {many} blocks a question, {cost}, and the builds"
            )
        return out

    def noise(self) -> tuple[list[float], float, str]:
        """(block values, seconds a block, where they come from): this pair's, else a calibration's."""
        past = self.past
        own = used_values(self.blocks(self.bad))
        if past is None or len(own) > 1:
            source = "earlier blocks of this pair" if own else "unknown: nothing was measured"
            return own, SECONDS_A_BLOCK, source
        for attempt in reversed(list(past.attempts().values())):
            plan = attempt.plan
            here = is_calibration(attempt) and plan.host_class == self.host
            if here and plan.workload.hash == self.workload.hash:
                spent = ((attempt.finished or {}).get("seconds") or {}).get("blocks") or 0.0
                values = used_values(attempt.blocks)
                # What a block that counts took, the dropped ones beside it included.
                each = spent / len(values) if spent and values else SECONDS_A_BLOCK
                return values, each, f"the calibration {attempt.id}"
        return [], SECONDS_A_BLOCK, "unknown: `calibrate` measures it"


def bounds(found: Evidence | None) -> str:
    if found is None:
        return ""
    low, high = answer.number(found.lcb), answer.number(found.ucb)
    return f"{answer.number(found.hl)} [{low}, {high}] in {counted(found.used, 'block')}  "


def named(step: Step) -> str:
    return f"{step.commit[:12]} {step.subject}"


def bisect(asked: Asked, lab: Lab, repo: Path, root: Path, voice: Voice) -> Outcome:
    """Search, and answer. Raises BadRef where the two are not on one line; LeaseTimeout and other refusals
    pass through, and the same command continues.
    """
    if asked.threshold is not None and (asked.threshold > 1.0) != asked.faster:
        side = "above 1 with --faster" if asked.faster else "below 1 (or add --faster)"
        raise UsageError(f"expected a --threshold {side}, found {asked.threshold:g}")
    if root.is_dir():
        open_ledger(root, voice, mend=not asked.dry_run)
    found = Bisect(asked, lab, repo, root, voice)
    voice.say(found.source)
    if asked.dry_run:
        return found.plan()
    try:
        return found.search()
    except Late:
        return found.cut_off()
    except Stopped as stopped:
        out = stopped.outcome
        out.command, out.report.next = COMMAND, f"{answer.SCRIPT} {found.words()}"
        return out
