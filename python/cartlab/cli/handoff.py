"""`handoff DESIGN.md`: is an experiment ready for a loop; then its protocol and the table of rounds."""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass

from cartlab.artefacts import read_text
from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.cli.options import positive
from cartlab.errors import UsageError
from cartlab.outcome import Outcome
from cartlab.root import make_folder


@dataclass(frozen=True)
class Request:
    design: str
    experiment: str | None
    run_vp: bool
    evidence: str | None
    hints: str
    locale: str
    tiny: float
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "design", metavar="DESIGN", help="the design document, with `## Autoresearch Protocol`"
    )
    parser.add_argument(
        "--experiment", metavar="DIR", help="the experiment's folder (default: the document's own)"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--run-vp", action="store_true", help="run train and eval once now and record it: VP L1"
    )
    group.add_argument("--vp-evidence", metavar="FILE", help="the record of a VP L1 that was run")
    parser.add_argument("--hints", default="", metavar="TEXT", help="for the first round's Note cell")
    parser.add_argument(
        "--pressure-seconds",
        type=positive,
        default=5.0,
        metavar="S",
        help="the time limit under which training has to end by itself (default: 5)",
    )
    loopdesk.declare_locale(parser)


def translate(space: argparse.Namespace) -> Request:
    if not space.run_vp and not space.vp_evidence:
        raise UsageError(
            "handoff needs the evidence of VP L1: its metric is the loop's baseline",
            "add --run-vp to run train and eval once now, or --vp-evidence FILE",
        )
    return Request(
        space.design,
        space.experiment,
        space.run_vp,
        space.vp_evidence,
        space.hints,
        space.locale,
        space.pressure_seconds,
        space.dry_run,
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops import handoff, trees
    from cartlab.loops.design import parse_design

    path = context.cwd / request.design
    text = read_text(path, "a design document")
    design = parse_design(text)
    folder = context.cwd / request.experiment if request.experiment else path.parent
    context.about = folder
    out = context.answer()
    out.report.inputs = [request.design]
    if request.dry_run:
        out.status = "planned"
        out.text = ["would check: git state, eval's script, speed, limits, VP L1, eval, profile, kernels"]
        return out
    make_folder(context.root.path)
    tree = trees.tree_of(context.repo, "HEAD")
    mark = hashlib.sha256(f"{tree}\0{text}".encode()).hexdigest()[:12]
    place = context.root.path / "benchmarks" / "handoff" / f"{folder.resolve().name}-{mark}"
    work = handoff.Handoff(context.repo, folder, design, place, context.talk, request.tiny)
    given = context.cwd / request.evidence if request.evidence else None
    ready = work.carry_out(given, run_vp=request.run_vp, hints=request.hints, locale=request.locale)
    out.report.outputs = ["autoresearch-protocol.md", "experiences.md"]
    out.report.next = context.line(f'supervise {folder} --researcher "CMD"')
    out.details = {
        "baseline": ready.evidence.value,
        "metric": design.protocol.metric,
        "evaluated_again": ready.again,
        "first_line_seconds": round(ready.first_line_s, 3),
        "added": work.told,
        "runs": work.runs,
    }
    out.text = [*work.told, *work.launch()]
    return out
