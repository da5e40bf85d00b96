"""`simulate`: how often the rules err, on machines that are made up. Measures, reads and records nothing.

Two tables: what happens to candidates of known ratios, and each error rate that is promised, with its target
and what the predecessor's rules give on the same machine. With --loops another one: whole sessions of a
research loop in which nothing gets better, and how many rounds each policy keeps of them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cartlab.cli.context import Context
from cartlab.cli.options import whole
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.words import counted

NAMES = ("quiet", "workstation", "shared")
TRIALS = 2000
# A rate of 1 % shows in fewer trials by luck alone.
LEAST = 100
SESSIONS = 200


@dataclass(frozen=True)
class Request:
    """machines: which of NAMES, in their order."""

    trials: int
    seed: int
    machines: tuple[str, ...]
    loops: bool
    attempts: int
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trials",
        type=whole,
        metavar="N",
        help=f"runs a rate ({TRIALS}); with --loops sessions a policy ({SESSIONS})",
    )
    parser.add_argument(
        "--loops", action="store_true", help="the loops' policies on sessions of pure noise instead"
    )
    parser.add_argument(
        "--attempts", type=whole, default=20, metavar="N", help="with --loops: attempts a session (20)"
    )
    parser.add_argument(
        "--seed", type=whole, default=1, metavar="S", help="the same seed, the same table (1)"
    )
    parser.add_argument(
        "--machine", action="append", choices=NAMES, help="this machine alone; may be given again"
    )


def translate(space: argparse.Namespace) -> Request:
    trials = (SESSIONS if space.loops else TRIALS) if space.trials is None else space.trials
    if trials < LEAST:
        raise UsageError(
            f"expected --trials of at least {LEAST}, found {trials}", "leave it out: 2000 take a minute"
        )
    if space.loops and space.machine:
        raise UsageError("--loops has noises of its own; found --machine", "leave one of them out")
    if space.attempts < 1:
        raise UsageError(f"expected --attempts of 1 or more, found {space.attempts}")
    if space.seed < 0:
        raise UsageError(f"expected --seed of 0 or more, found {space.seed}")
    chosen = space.machine or NAMES
    named = tuple(name for name in NAMES if name in chosen)
    return Request(trials, space.seed, named, space.loops, space.attempts, space.dry_run)


def run(context: Context, request: Request) -> Outcome:
    out = context.answer()
    if request.loops:
        return _loops(context, out, request)
    what = f"{request.trials} trials, seed {request.seed}, {' '.join(request.machines)}"
    out.report.inputs = [what]
    if request.dry_run:
        out.status, out.text = "planned", [f"would simulate {what}"]
        return out
    from cartlab import simulate

    machines = [noise for noise in simulate.MACHINES if noise.name in request.machines]
    table = simulate.error_table(
        request.trials, request.seed, machines=machines, progress=context.talk.progress
    )
    promises = []
    for noise in machines:
        context.talk.progress(f"the promised rates on a {noise.name} machine")
        promises += simulate.promises_on(noise, request.trials, request.seed)
    out.details = {
        "trials": request.trials,
        "seed": request.seed,
        "machines": [noise._asdict() for noise in machines],
        "rates": [row._asdict() for row in table],
        "promises": [{**row._asdict(), "holds": row.holds} for row in promises],
    }
    out.text = [*simulate.lines_of(table), "", *simulate.promise_lines(promises)]
    missed = [row for row in promises if not row.holds]
    out.reasons = [f"missed on a {row.machine} machine: {row.what}, found {row.found:.4f}" for row in missed]
    return out


def _loops(context: Context, out: Outcome, request: Request) -> Outcome:
    what = f"{counted(request.trials, 'session')} of {request.attempts} attempts, seed {request.seed}"
    out.report.inputs = [what]
    if request.dry_run:
        out.status, out.text = "planned", [f"would simulate {what}"]
        return out
    from cartlab.loops import nullruns

    rows = nullruns.table(
        request.trials, request.seed, attempts=request.attempts, progress=context.talk.progress
    )
    out.details = {
        "sessions": request.trials,
        "attempts": request.attempts,
        "seed": request.seed,
        "rows": [{**row._asdict(), "holds": row.holds} for row in rows],
    }
    out.text = nullruns.lines(rows)
    out.reasons = [f"missed: {row.policy} on {row.noise} noise" for row in rows if row.holds is False]
    return out
