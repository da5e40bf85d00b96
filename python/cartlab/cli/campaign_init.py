"""`campaign init SLUG`: open a campaign, make its folder; on a terminal ask for compute, data and budget."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cartlab.cli import loopdesk
from cartlab.cli.context import Context
from cartlab.cli.options import positive_int
from cartlab.errors import UsageError
from cartlab.outcome import Outcome

if TYPE_CHECKING:
    from cartlab.loops.campaign.opening import Wish

PROVIDERS = ("local", "ray", "command", "none")


@dataclass(frozen=True)
class Request:
    slug: str
    task: str
    protocol: str | None
    compute: str | None
    launcher: str
    data: str
    limits: tuple[tuple[str, str], ...]
    policy: str
    k: int
    approve: str
    dry_run: bool


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "slug", metavar="SLUG", help="the campaign's name: lower-case letters, digits, dashes"
    )
    parser.add_argument(
        "--protocol",
        metavar="FILE",
        help="the experiment's autoresearch-protocol.md (`handoff` writes it), or its folder; without one "
        "the campaign is design-only and never measures",
    )
    parser.add_argument("--task", default="", metavar="TEXT", help="TASK.md: what is asked, in one paragraph")
    parser.add_argument(
        "--compute",
        choices=PROVIDERS,
        help="where experiments run; ray and command need --launcher; none plans only (default: local)",
    )
    parser.add_argument(
        "--launcher",
        default="",
        metavar="CMD",
        help="a shell line that runs {command} elsewhere and waits for it; needs --approve",
    )
    parser.add_argument("--data", default="", metavar="TEXT", help="where the data comes from")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="limits",
        metavar="KEY=VALUE",
        help="a limit of BUDGET.md, such as compute_cap=8 or parallelism=2; repeat it for others",
    )
    parser.add_argument(
        "--policy",
        choices=loopdesk.POLICIES,
        default="verified",
        help="when an experiment is kept (default: verified; paired for speed)",
    )
    parser.add_argument(
        "--k", type=positive_int, default=3, metavar="K", help="runs of repeat-k (default: 3)"
    )
    parser.add_argument("--approve", default="", metavar="REASON", help="allow the launcher; recorded")


def translate(space: argparse.Namespace) -> Request:
    limits = []
    for text in space.limits:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"--set expects KEY=VALUE, found {text!r}", "for example: --set compute_cap=8")
        limits.append((key.strip(), value.strip()))
    return Request(
        space.slug,
        space.task.strip(),
        space.protocol,
        space.compute,
        space.launcher.strip(),
        space.data.strip(),
        tuple(limits),
        space.policy,
        space.k,
        space.approve.strip(),
        space.dry_run,
    )


def run(context: Context, request: Request) -> Outcome:
    from cartlab.loops.campaign import budget, documents, folder, opening, records, told
    from cartlab.loops.campaign.opening import Wish
    from cartlab.loops.desk import Options

    strangers = [key for key, _ in request.limits if key not in budget.KEYS]
    if strangers:
        raise UsageError(f"BUDGET.md has no limit {strangers[0]!r}", "one of " + ", ".join(budget.KEYS))
    protocol = None
    if request.protocol is not None:
        protocol = loopdesk.protocol_file(context, request.protocol)
        context.about = protocol.parent
    loopdesk.here(context)
    place = folder.place(request.slug, context.environ, context.repo)
    wish = Wish(
        request.slug,
        request.task,
        protocol,
        request.compute or "",
        request.launcher,
        request.data,
        dict(request.limits),
        request.policy,
        request.k,
        approve=request.approve,
    )
    out = context.answer()
    out.report.inputs = [request.slug, *([request.protocol] if request.protocol else [])]
    if request.dry_run:
        out.status = "planned"
        out.text = [f"would open the campaign {request.slug} and make what is missing in {place}"]
        return out
    ledger = loopdesk.open_ledger(context)
    known = records.goal_of(ledger.events(), request.slug) is not None
    wish = wish if known else _asked(context, wish)
    desk = opening.open_campaign(
        context.repo, context.root.path, ledger, place, wish, context.talk, Options()
    )
    campaign = opening.take_up_budget(desk, records.read(ledger.events(), desk.goal_id))
    if not known and not wish.asked:
        told.tell(desk, "approval_required", opening.assumptions(wish, campaign.budget))
    if not known and campaign.mode == "design_only":
        told.tell(
            desk, "approval_required", "design-only: no protocol or no compute; nothing will be measured"
        )
    documents.render(desk)
    ledger.project()
    out.ledger, out.recorded = str(context.root.path / "events.jsonl"), True
    out.report.outputs = [campaign.folder]
    out.report.next = context.line("campaign plan --hypotheses FILE")
    out.details = {
        "goal": desk.goal_id,
        "slug": campaign.slug,
        "folder": campaign.folder,
        "mode": campaign.mode,
        "budget": campaign.budget.to_json(),
        "asked": wish.asked,
        "opened": not known,
    }
    out.text = [
        f"campaign {campaign.slug} ({campaign.mode}): {'opened' if not known else 'is open already'}",
        f"folder: {campaign.folder}",
        f"metric: {campaign.metric}, {campaign.direction} is better"
        + (f", baseline {campaign.baseline}" if campaign.baseline else ""),
        opening.assumptions(wish, campaign.budget),
        "now write TASK.md, PREVIOUS_WORK.md, DEEPRESEARCH.md and IDEA_ANGLES.md there, then plan",
    ]
    return out


def _asked(context: Context, wish: Wish) -> Wish:
    """The wish with a person's answers; as it is where nobody sits there, or everything was said already."""
    if context.talk.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return wish
    limits = dict(wish.limits)
    provider = wish.provider or _ask("compute: local, ray, command or none", "local")
    if provider not in PROVIDERS:
        raise UsageError(f"compute must be one of {', '.join(PROVIDERS)}; found {provider!r}")
    data = wish.data or _ask("data: where it comes from", "as the experiment has it")
    if "compute_cap" not in limits:
        limits["compute_cap"] = _ask("budget: hours of one slot in all", "2 GPU-h")
    return replace(wish, provider=provider, data=data, limits=limits, asked=True)


def _ask(question: str, default: str) -> str:
    print(f"{question} [{default}]: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or default
