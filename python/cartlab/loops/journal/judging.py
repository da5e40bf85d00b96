"""What is run on a journal's submission, and what its verdict is.

The script runs in a fresh copy of the attempt's commit with the pinned scripts laid over it; its METRIC lines
are the only numbers. Checks run after a benchmark that passed, outside of what it measured. The policy's word
can be changed by three rules: a guard that breaks takes a keep back, less code at an equal value is a keep
(not under `paired`), and who hands in may ask for a discard.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartlab.errors import NotLegalNow
from cartlab.loops import commands, compliance, intake, metrics, rounds
from cartlab.loops.compliance import Finding
from cartlab.loops.desk import Desk
from cartlab.loops.goals import Goal, Try
from cartlab.loops.journal import session
from cartlab.loops.journal.session import Terms
from cartlab.loops.running import TRANSIENT, Bench, Failed, Value
from cartlab.loops.views import Best, protocol_of
from cartlab.model import digest_of

MAX_METRICS = 64


@dataclass
class Verdict:
    """status and the rest as the decision records them; advice: remarks that decide nothing."""

    status: str
    insight: str
    value: Value | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    advice: list[str] = field(default_factory=list)


@dataclass
class ScriptBench(Bench):
    """A bench whose evaluation is the session's script. found: the METRIC values by their event's seq."""

    terms: Terms = field(kw_only=True)
    found: dict[int, dict[str, float]] = field(default_factory=dict, kw_only=True)

    def value(self, seed: int, name: str = "") -> Value:
        """One run of the script; Failed where it gives no number."""
        folder = self._lay_scripts("benchmark")
        protected = self._protected(folder)
        limit = self.terms.limit_s
        self.desk.voice.progress(f"experiment {self.one.round}: the benchmark (at most {limit:g} s)")
        nonce = secrets.token_hex(8) if self.terms.nonce else None
        told = {} if nonce is None else {"AR_NONCE": nonce}
        ran = self.run(f"bash {session.SCRIPT}", "benchmark", folder, limit, f"benchmark{name}", seed, told)
        values, problem = self._values(ran.output, nonce) if ran.returncode == 0 else ({}, "")
        primary = values.get(self.terms.metric)
        seq = self.desk.measured(
            self.one,
            "eval",
            tree=self._tree(),
            command=digest_of(self.terms.script),
            value=primary,
            text="" if primary is None else _written(ran.output, self.terms.metric, primary),
            metrics={key: value for key, value in values.items() if key != self.terms.metric},
            problem=problem or None,
            seconds=ran.seconds,
            returncode=ran.returncode,
            left=ran.left,
            seed=seed,
            workload=self.workload(protected),
        )
        if ran.returncode is None:
            raise Failed("timeout", f"timeout after {limit:g} s: {session.SCRIPT} did not end")
        if ran.returncode != 0:
            words = commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)
            transient = bool(TRANSIENT.search(ran.complaint)) or ran.returncode in (-9, 137)
            raise Failed("crashed", f"crash: exit code {ran.returncode}: {words}", transient)
        self._unchanged(protected, folder, "the benchmark")
        if primary is None:
            raise Failed("metric_error", problem)
        self.found[seq] = {key: value for key, value in values.items() if key != self.terms.metric}
        return Value(primary, _written(ran.output, self.terms.metric, primary), seq)

    def checks(self) -> str | None:
        """None where the checks pass or there are none, else why not."""
        if not self.terms.checks:
            return None
        folder = self._lay_scripts("checks")
        limit = self.terms.checks_limit_s
        self.desk.voice.progress(f"experiment {self.one.round}: the checks (at most {limit:g} s)")
        ran = self.run(f"bash {session.CHECKS}", "checks", folder, limit, "checks")
        self.desk.measured(
            self.one,
            "checks",
            tree=self._tree(),
            command=digest_of(self.terms.checks),
            seconds=ran.seconds,
            returncode=ran.returncode,
            left=ran.left,
        )
        if ran.returncode is None:
            return f"the checks did not end within {limit:g} s"
        if ran.returncode != 0:
            words = commands.plain((ran.complaint.splitlines() or ["no output"])[-1], 300)
            return f"the checks failed with exit code {ran.returncode}: {words}"
        return None

    def _lay_scripts(self, name: str) -> Path:
        folder = self.lay(name)
        for path, text in ((session.SCRIPT, self.terms.script), (session.CHECKS, self.terms.checks)):
            place = folder / path
            if place.is_symlink() or place.exists():
                place.unlink()
            if text:
                place.write_text(text, encoding="utf-8")
                place.chmod(0o755)
        return folder

    def _values(self, stdout: str, nonce: str | None) -> tuple[dict[str, float], str]:
        """The METRIC values, and why the primary one is not among them."""
        read = metrics.ours(stdout, nonce)
        values = dict(list(read.values.items())[:MAX_METRICS])
        name = self.terms.metric
        if name in read.repeats:
            values.pop(name, None)
            return values, f"METRIC {name}=... was printed more than once; print the primary metric once"
        if name not in read.values:
            had = ", ".join(read.values) or "none that is well formed"
            mark = "" if nonce is None else "[$AR_NONCE]"
            return values, f"no line METRIC{mark} {name}=<number> was printed; its METRIC lines name {had}"
        values[name] = read.values[name]
        return values, ""


def _written(stdout: str, name: str, value: float) -> str:
    """The value as it was printed."""
    for line in metrics.lines(stdout):
        head, _, text = line.rpartition("=")
        if head.endswith(f" {name}") and head.startswith("METRIC") and _is(text, value):
            return text
    return f"{value:.15g}"


def _is(text: str, value: float) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False


def bench_of(desk: Desk, goal: Goal, one: Try, commit: str) -> ScriptBench:
    """The bench of one attempt of a session."""
    return ScriptBench(desk, one, protocol_of(goal), "", commit, terms=session.terms_of(goal))


# --- the baseline -------------------------------------------------------------------------------------


def judge_baseline(desk: Desk, goal: Goal, one: Try, commit: str) -> Verdict:
    """The accepted tree's own value: the median of the runs asked for, and how far they lay apart. Failed
    where the script or the checks do not pass: there is nothing to compare with then.
    """
    bench = bench_of(desk, goal, one, commit)
    runs = [
        bench.value(rounds.draw_seed(goal), f"-{number}" if number else "")
        for number in range(bench.terms.baseline_runs)
    ]
    desk.step(one, "checking")
    why = bench.checks()
    if why is not None:
        raise Failed("checks_failed", why)
    ordered = sorted(runs, key=lambda value: value.number)
    shown = ordered[(len(ordered) - 1) // 2]
    spread = ordered[-1].number - ordered[0].number
    inputs = {"measurements": [value.seq for value in runs], "spread": spread}
    words = f"the baseline: {shown.text}" + (f", {len(runs)} runs within {spread:.6g}" if spread else "")
    return Verdict("baseline", words, shown, bench.found[shown.seq], inputs)


# --- a submission -------------------------------------------------------------------------------------


def judge(
    desk: Desk, goal: Goal, one: Try, finding: Finding, lines: int, *, lowered: str = "", forced: bool = False
) -> Verdict:
    """The verdict on what was taken in. lines: net code lines of the change; lowered: why whoever handed in
    wants no keep; forced: let the names of the secondary metrics differ (NotLegalNow otherwise).
    """
    best = session.best_of(goal)
    assert best is not None
    known = intake.verdict_without_a_run(
        desk, one, finding, "no change: what was handed in is what the session stands on"
    )
    if known is not None:
        return Verdict(*known)
    desk.step(one, "screened", complies=True, code_lines=lines)
    desk.step(one, "measuring")
    commit = str(next(t for t in desk.goal().tries if t.id == one.id).commit)
    bench = bench_of(desk, goal, one, commit)
    policy, k = str(goal.body["policy"]), int(goal.body["k"])
    try:
        value, found = rounds.measure(desk, goal, one, bench, best, policy, k)
    except Failed as failed:
        return Verdict(failed.verdict, failed.insight)
    inputs = dict(found.inputs)
    if inputs.get("pooled"):
        return Verdict(str(found.status), found.reason, value, _earlier_metrics(goal, inputs), inputs)
    names = bench.found[value.seq]
    _same_names(goal, names, forced)
    desk.step(one, "checking")
    failing = bench.checks()
    if failing is not None:
        return Verdict("checks_failed", failing, value, names, inputs)
    return weighed(goal, best, Verdict(str(found.status), found.reason, value, names, inputs), lines, lowered)


def weighed(goal: Goal, best: Best, verdict: Verdict, lines: int, lowered: str) -> Verdict:
    """The policy's word after the three rules."""
    terms = session.terms_of(goal)
    assert verdict.value is not None
    value = verdict.value.number
    equal = abs(value - best.number) <= session.noise_of(goal)
    if (
        verdict.status == "discard"
        and goal.body["policy"] != "paired"
        and equal
        and lines <= -max(1, terms.simpler_by)
    ):
        verdict.status = "keep"
        verdict.inputs["simplification"] = {"lines": lines, "noise": session.noise_of(goal)}
        verdict.insight = f"simplification: {-lines} code lines less at an equal value ({verdict.insight})"
    broken = session.broken_guard(terms, verdict.metrics)
    if verdict.status == "keep" and broken is not None:
        verdict.status = "discard"
        verdict.inputs["guard"] = broken
        verdict.insight = f"guard: {broken} ({verdict.insight})"
    if verdict.status == "keep" and lowered:
        verdict.status = "discard"
        verdict.inputs["lowered"] = lowered
        verdict.insight = f"lowered by who handed it in: {lowered}"
    gained = abs(value - best.number) / abs(best.number) * 100 if best.number else math.inf
    if verdict.status == "keep" and lines > 0 and gained and lines > terms.complex_lines * gained:
        verdict.advice.append(
            f"complex: {lines} code lines for {gained:.2g} %, more than {terms.complex_lines} a percent; "
            "perhaps not worth it"
        )
    return verdict


def _same_names(goal: Goal, names: Mapping[str, float], forced: bool) -> None:
    base = session.baseline_of(goal)
    fixed = set((base.decision or {}).get("metrics") or {}) if base is not None else set()
    missing, new = sorted(fixed - set(names)), sorted(set(names) - fixed)
    if (missing or new) and not forced:
        told = [f"missing {', '.join(missing)}"] * bool(missing) + [f"new {', '.join(new)}"] * bool(new)
        raise NotLegalNow(
            f"the secondary metrics must be those of the baseline; {'; '.join(told)}",
            "correct it, or `journal log --force`; nothing was recorded and nothing was taken back",
        )


def _earlier_metrics(goal: Goal, inputs: Mapping[str, Any]) -> Mapping[str, float]:
    earlier = next(one for one in goal.tries if one.id == inputs["attempt"])
    return dict((earlier.decision or {}).get("metrics") or {})


def rules_of(goal: Goal) -> compliance.Rules:
    """What a submission may change."""
    protocol = protocol_of(goal)
    # The two scripts are pinned and laid over every copy: whatever a tree has there counts for nothing.
    return compliance.Rules(
        fixed=session.terms_of(goal).off_limits,
        variable=protocol.variable,
        strict=protocol.strict_variable,
        views=session.FILES,
        free=not protocol.variable,
        diff_cap=protocol.diff_cap,
    )
