"""Blocks of kinds "command" and "pytest-benchmark": whole processes instead of slices.

A slice is one process here: interleaved like slices of a resident worker, by the same coin. What a process
says is

    METRIC name=value        one number; also a JSON object on one line, {"name": value}
    DIGEST name=text         what both sides must agree on, in every process of the block

for "command"; "pytest-benchmark" reads the medians of pytest's own --benchmark-json. `metric` names the
number, `*` all of a suite (their geometric mean), `wall_seconds` the controller's clock around the process.
CARTLAB_SEED is another number in every run; CARTLAB_HELD_OUT is there in the held-out half of a confirm run
alone, and a workload that has inputs of its own draws others from it.
A command runs in an empty folder, a suite in the controller's checkout, both with the build first on
PYTHONPATH and in CARTLAB_BUILD_DIR.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cartlab import processes
from cartlab.errors import (
    BehaviourChanged,
    MetricError,
    Tampered,
    UsageError,
    WorkerCrashed,
    WorkerTimeout,
)
from cartlab.measure import contention, schedule, worker
from cartlab.measure.blocks import check_leftovers, log_ratio
from cartlab.measure.equality import Equality, first_difference
from cartlab.measure.slices import NAMES
from cartlab.model import Block, Build, Plan, Workload, digest_of, parsed_json

WALL = "wall_seconds"
EVERY = "*"
# Processes a side and block where the workload does not say (params["runs"]).
DEFAULT_RUNS = 4
TIMEOUT_S = 600.0
PLUGIN = "build_first"
_SECONDS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_TAIL = 4000


@dataclass(frozen=True)
class Run:
    """One process. metrics: name -> value; digests: name -> text; wall and CPU time by the controller's
    clocks.
    """

    metrics: Mapping[str, float]
    digests: Mapping[str, str]
    wall_ns: int
    cpu_ns: int


def run(plan: Plan, index: int, coin: int, builds: Mapping[str, Build], repo: Path) -> Block:
    """Measure one block; `steps` of the block is a scale, so that steps / slice time is the metric's rate."""
    workload = plan.workload
    runs = int(workload.params.get("runs", DEFAULT_RUNS))
    if runs < 2 or runs % 2:
        raise UsageError(f"runs a side must be even and at least 2, so that orders balance; found {runs}")
    pads = schedule.pads(plan.attempt_id, index, coin)
    seed = schedule.number(plan.attempt_id, index, "seed", 2**31)
    before = contention.read([])
    found: dict[str, list[Run]] = {"base": [], "cand": []}
    for number, pair in enumerate(schedule.pairs(coin, runs)):
        for side in pair:
            found[side].append(once(workload, side, builds[side], repo, pads[side], seed + number, 0))
        _compare(number, found["base"][-1], found["cand"][-1])
    after = contention.read([])
    costs = {side: [cost(workload, each.metrics) for each in rows] for side, rows in found.items()}
    scale = 10 ** max(0, 7 - math.floor(math.log10(min(min(values) for values in costs.values()))))
    times = {side: tuple(round(value * scale) for value in values) for side, values in costs.items()}
    everything = [each for rows in found.values() for each in rows]
    busy = contention.over(
        [(before, after)],
        sum(each.wall_ns for each in everything),
        sum(each.cpu_ns for each in everything),
    )
    return Block(
        index=index,
        coin=coin,
        order=schedule.order(coin, runs),
        base_ns=times["base"],
        cand_ns=times["cand"],
        steps=scale,
        y=log_ratio(times["base"], times["cand"]),
        dropped=contention.reason_to_drop(busy),
        witness={
            "seed": seed,
            "pad_bytes": pads,
            "cpu_ns_per_run": {
                side: statistics.median(r.cpu_ns for r in rows) for side, rows in found.items()
            },
            "wall_ns_per_run": {
                side: statistics.median(r.wall_ns for r in rows) for side, rows in found.items()
            },
            "log_ratios": _log_ratios(workload, found),
            "contention": busy.to_json(),
        },
        digests={side: digest_of([dict(each.digests) for each in rows]) for side, rows in found.items()},
    )


def verify(plan: Plan, builds: Mapping[str, Build], repo: Path) -> Equality:
    """Run both sides once with CARTLAB_VERIFY_STEPS set and compare their digests and the names of their
    metrics.
    """
    seed = schedule.number(plan.attempt_id, 0, "verify", 2**31)
    steps = plan.workload.verify_steps
    items = {}
    for side in schedule.SIDES:
        found = once(plan.workload, side, builds[side], repo, 0, seed, steps)
        items[side] = [[f"metric {name}", ""] for name in sorted(found.metrics)]
        items[side] += [[f"digest {name}", text] for name, text in sorted(found.digests.items())]
        cost(plan.workload, found.metrics)
    return Equality(
        equal=items["base"] == items["cand"],
        steps=steps,
        items=len(items["base"]),
        seed=seed,
        base_digest=digest_of(items["base"]),
        cand_digest=digest_of(items["cand"]),
        first_difference=first_difference(items["base"], items["cand"]),
    )


def cost(workload: Workload, metrics: Mapping[str, float]) -> float:
    """What one unit of work cost, in nanoseconds where the metric is a rate or a time; MetricError without
    it.
    """
    values = [_one_cost(workload, metrics[name]) for name in _names(workload, metrics)]
    return math.exp(statistics.fmean(math.log(value) for value in values))


def _names(workload: Workload, metrics: Mapping[str, float]) -> list[str]:
    if workload.metric == EVERY and metrics:
        return sorted(metrics)
    if workload.metric not in metrics:
        raise MetricError(
            f"the workload must give the metric {workload.metric!r}; it gave {', '.join(metrics) or 'none'}",
            "print METRIC name=value, or correct `metric` in autoresearch.toml",
        )
    return [workload.metric]


def _one_cost(workload: Workload, value: float) -> float:
    if not math.isfinite(value) or value <= 0:
        raise MetricError(f"the metric {workload.metric} must be a number above 0; found {value}")
    if workload.direction == "higher":
        return 1e9 / value
    return value * _SECONDS.get(workload.unit, 1.0) * 1e9


def _log_ratios(workload: Workload, found: Mapping[str, list[Run]]) -> dict[str, float]:
    """Per metric the median over pairs of ln(cost of the baseline / cost of the candidate)."""
    out = {}
    for name in _names(workload, found["base"][0].metrics):
        pairs = zip(found["base"], found["cand"], strict=True)
        out[name] = statistics.median(
            math.log(_one_cost(workload, base.metrics[name]) / _one_cost(workload, cand.metrics[name]))
            for base, cand in pairs
            if name in base.metrics and name in cand.metrics
        )
    return out


def _compare(number: int, base: Run, cand: Run) -> None:
    if set(base.metrics) != set(cand.metrics):
        name = sorted(set(base.metrics) ^ set(cand.metrics))[0]
        raise BehaviourChanged(f"both sides must give the same metrics; {name} comes from one of them alone")
    for name in sorted({*base.digests, *cand.digests}):
        if base.digests.get(name) != cand.digests.get(name):
            raise BehaviourChanged(
                f"the outputs of run {number} differ: digest {name}",
                details={"base": base.digests.get(name), "cand": cand.digests.get(name)},
            )


def once(
    workload: Workload, side: str, build: Build, repo: Path, pad: int, seed: int, verify_steps: int
) -> Run:
    """Run the workload's command for one side; raises WorkerCrashed, WorkerTimeout, MetricError or
    Tampered.
    """
    with _scratch() as scratch:
        report = scratch / "benchmark.json"
        suite = workload.kind == "pytest-benchmark"
        command = workload.command
        if suite:
            shutil.copy(Path(__file__).with_name(f"{PLUGIN}.py"), scratch)
            command += f" -p {PLUGIN} -p no:cacheprovider --benchmark-only --benchmark-json={report}"
        mark_free = worker.environment(scratch, "", pad)
        mark_free.pop(processes.MARK)
        env = {
            **mark_free,
            "CARTLAB_BUILD_DIR": build.path,
            "CARTLAB_PYTHON": sys.executable,
            "CARTLAB_SEED": str(seed),
            "CARTLAB_VERIFY_STEPS": str(verify_steps),
            **({} if workload.held_out is None else {"CARTLAB_HELD_OUT": workload.held_out}),
            "PYTHONPATH": f"{build.path}{os.pathsep}{scratch}" if suite else build.path,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        limit = float(workload.params.get("timeout_s", TIMEOUT_S))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter_ns()
        outcome = processes.run_shell(
            command,
            cwd=repo if suite else scratch,
            env=env,
            timeout_s=limit,
            log=scratch / "output",
            strays=True,
        )
        wall_ns = time.perf_counter_ns() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = (scratch / "output").read_text(errors="replace")
        _ended_well(outcome, side, limit, text)
        metrics, digests = (suite_metrics(report), {}) if suite else parse(text)
    metrics = {**metrics, WALL: wall_ns / 1e9} if workload.metric == WALL else metrics
    _clock_agrees(workload, side, metrics, wall_ns)
    spent = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return Run(metrics=metrics, digests=digests, wall_ns=wall_ns, cpu_ns=round(spent * 1e9))


def parse(text: str) -> tuple[dict[str, float], dict[str, str]]:
    """METRIC and DIGEST lines, and numbers of JSON objects that stand on a line; a later line wins."""
    metrics: dict[str, float] = {}
    digests: dict[str, str] = {}
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        name, _, value = rest.partition("=")
        if word == "DIGEST" and name:
            digests[name.strip()] = value.strip()
        elif word == "METRIC" and name:
            try:
                metrics[name.strip()] = float(value)
            except ValueError:
                raise MetricError(f"a METRIC line must be name=number; found {line.strip()!r}") from None
        elif line.lstrip().startswith("{"):
            metrics |= _numbers(line)
    return metrics, digests


def _numbers(line: str) -> dict[str, float]:
    try:
        body = parsed_json(line)
        return {
            k: float(v) for k, v in body.items() if isinstance(v, (int, float)) and not isinstance(v, bool)
        }
    except (ValueError, OverflowError):
        return {}


def suite_metrics(report: Path) -> dict[str, float]:
    """Test name -> median seconds, of pytest-benchmark's report."""
    try:
        tests = parsed_json(report.read_text())["benchmarks"]
        return {str(test["fullname"]): float(test["stats"]["median"]) for test in tests}
    except (OSError, ValueError, KeyError, TypeError):
        raise MetricError(
            "the suite must write pytest-benchmark's report; found none that can be read",
            "install pytest-benchmark, and give at least one test the `benchmark` fixture",
        ) from None


def _ended_well(outcome: processes.Outcome, side: str, limit: float, text: str) -> None:
    details = {"side": side, "stderr": text[-_TAIL:]}
    if outcome.returncode is None:
        raise WorkerTimeout(
            f"the {NAMES[side]}'s command must end within {limit:g} s; it was killed", details=details
        )
    if outcome.returncode != 0:
        last = (text.strip().splitlines() or ["nothing"])[-1]
        raise WorkerCrashed(
            f"the {NAMES[side]}'s command ended with exit code {outcome.returncode}; it said: {last}",
            details=details,
        )
    check_leftovers({side: outcome.left})


def _clock_agrees(workload: Workload, side: str, metrics: Mapping[str, float], wall_ns: int) -> None:
    """A process cannot have measured a time longer than it lived."""
    unit = _SECONDS.get(workload.unit)
    if workload.direction != "lower" or unit is None or workload.kind != "command":
        return
    for name in _names(workload, metrics):
        if metrics[name] * unit * 1e9 > wall_ns * 1.05 + 1e6:
            raise Tampered(
                f"the {NAMES[side]} says that {name} took {metrics[name] * unit:.3f} s; its process lived "
                f"{wall_ns / 1e9:.3f} s"
            )


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cartlab-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
