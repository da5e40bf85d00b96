"""Opening a campaign: its goal in the ledger and its folder with the documents that people then write in.

Compute, data and budget are asked once, on a terminal; without one the defaults are written and
`approval_required` is told, so that nothing ever waits. Without a protocol, or with no compute, the campaign
is design-only: it plans and never measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cartlab.errors import BadInput, UsageError
from cartlab.ledger import Ledger
from cartlab.ledger.store import utc_now
from cartlab.loops import approvals, goals, opening, protocol, trees
from cartlab.loops.campaign import budget, folder, records
from cartlab.loops.campaign.budget import Budget, Spent
from cartlab.loops.campaign.folder import Folder
from cartlab.loops.campaign.hypotheses import ANGLES
from cartlab.loops.campaign.records import LOOP, Campaign
from cartlab.loops.desk import Desk, Options
from cartlab.loops.protocol import Protocol
from cartlab.model import digest_of
from cartlab.pipeline.voice import Voice
from cartlab.words import counted

PROVIDERS = ("local", "ray", "command", "none")
DEFAULT_POLICY = "verified"
_GPUS = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class Wish:
    """What `campaign init` was given. limits: BUDGET.md's keys; asked: did a person answer for compute, data
    and budget; launcher: the shell line that runs `{command}` elsewhere.
    """

    slug: str
    task: str = ""
    protocol: Path | None = None
    provider: str = ""
    launcher: str = ""
    data: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    policy: str = DEFAULT_POLICY
    k: int = 3
    asked: bool = False
    approve: str = ""


def parallel_default() -> int:
    """Experiments at once where nobody said: 1 on a single local GPU, else the document's 4."""
    try:
        return 1 if len(list(_GPUS.iterdir())) == 1 else 4
    except OSError:
        return 4


def assumptions(wish: Wish, limits: Budget) -> str:
    """What was taken for granted, in one line."""
    return (
        f"compute {wish.provider or 'local'}, data {wish.data or 'as the experiment has it'}, "
        f"{counted(limits.seed_experiments, 'experiment')} first, {limits.seconds_per_experiment:g} s each, "
        f"{limits.parallelism} at once, {limits.compute_cap} in all"
    )


def limits_of(wish: Wish, asked: Protocol | None) -> Budget:
    """The budget that a wish means; BadInput where it contradicts the protocol."""
    given: dict[str, Any] = {"parallelism": parallel_default(), **wish.limits}
    if asked is not None:
        fixed = {
            "metric": asked.metric,
            "direction": asked.direction,
            "seconds_per_experiment": asked.time_limit_s,
        }
        given = {**fixed, **given}
    for key in ("metric", "direction"):
        if not given.get(key):
            raise UsageError(
                f"a campaign must know its {key}; neither a protocol nor --set names it",
                f"add --protocol FILE, or --set {key}=...",
            )
    made = budget.of_values(given)
    if asked is not None:
        fits(made, asked)
    return made


def fits(limits: Budget, asked: Protocol) -> None:
    """BadInput where a budget says other than the protocol what a number means."""
    for key, value in (
        ("metric", asked.metric),
        ("direction", asked.direction),
        ("seconds_per_experiment", asked.time_limit_s),
    ):
        if getattr(limits, key) != value:
            raise BadInput(
                f"BUDGET.md: {key} must be the protocol's {budget.shown(value)}; found "
                f"{budget.shown(getattr(limits, key))}",
                "the baseline was measured so: to change it, hand off again and open a new campaign",
            )


def open_campaign(
    repo: Path, root: Path, ledger: Ledger, place: Path, wish: Wish, voice: Voice, options: Options
) -> Desk:
    """The desk of a slug's campaign: the one that is open, or a new one. Documents that are there keep their
    bytes.
    """
    launcher = wish.launcher
    if launcher:
        approvals.require(launcher, wish.approve)
    if wish.provider in ("ray", "command") and not launcher:
        raise UsageError(
            f"provider {wish.provider} needs the command that runs an experiment there and waits for it",
            "add --launcher 'CMD {command}'",
        )
    if wish.provider in ("ray", "command") and not wish.approve:
        raise UsageError(
            "a launcher of yours runs outside this machine's confinement and needs an approval",
            'add --approve "why"; it is recorded',
        )
    with ledger.holding():  # two who open the same slug at once open one campaign
        goal = records.goal_of(ledger.events(), wish.slug)
        if goal is None:
            goal = _open(repo, ledger, place, wish)
    desk = Desk(repo, root, ledger, goal, voice, options)
    campaign = records.read(ledger.events(), goal)
    if launcher:
        approvals.record(ledger, goal, launcher, wish.approve)
        if not campaign.goal.body.get("protocol", {}).get("train_command", "x"):
            voice.warn("the protocol trains nothing: the launcher, which runs training, is never used")
    _documents(Folder(Path(campaign.folder)), campaign, wish)
    return desk


def _open(repo: Path, ledger: Ledger, place: Path, wish: Wish) -> str:
    asked, top = None, ""
    if wish.protocol is not None:
        asked = opening.read_protocol(wish.protocol)
        _, top = opening.place_of(repo, wish.protocol)
    limits = limits_of(wish, asked)
    goal_id = goals.new_id(ledger.events(), wish.slug, utc_now())
    provider = wish.provider or "local"
    mode = "design_only" if asked is None or provider == "none" else "run"
    describes: dict[str, Any] = {
        "campaign": {
            "slug": wish.slug,
            "folder": str(place),
            "mode": mode,
            "budget": limits.to_json(),
            "compute": {
                "provider": provider,
                "launcher": digest_of(wish.launcher) if wish.launcher else None,
            },
        },
        "worktree": str(_worktree(repo, ledger, wish.slug)),
        "top": top,
        "policy": wish.policy,
        "k": wish.k,
        "zero": {"strategy": "baseline", "note": ""},
    }
    if asked is not None and mode == "run":
        written = replace(asked, max_rounds=limits.max_generations).to_json()
        describes |= {"protocol": written, "file": written}
    ledger.append(
        "goal",
        None,
        {
            "goal": goal_id,
            "op": "opened",
            "loop": LOOP,
            "baseline_commit": trees.commit_of(repo, "HEAD"),
            "describes": describes,
        },
    )
    if mode == "design_only":
        ledger.append("goal", None, {"goal": goal_id, "op": "state", "state": "design_only"})
    return goal_id


def _worktree(repo: Path, ledger: Ledger, slug: str) -> Path:
    """Where the campaign's result can be seen: not where another loop of that name has its own."""
    place = repo.resolve().parent / f"autoresearch-{slug}"
    taken = {str(goal.body["worktree"]) for goal in goals.fold(ledger.events()).values()}
    return place.with_name(f"{place.name}-campaign") if str(place) in taken else place


def _documents(place: Folder, campaign: Campaign, wish: Wish) -> None:
    why = "Chosen by a person." if wish.asked else "Nobody was asked: these are the defaults."
    provider = campaign.goal.body["campaign"]["compute"]["provider"]
    place.make("COMPUTE.md", folder.compute_text(provider, wish.launcher, why))
    place.make("DATA.md", folder.data_text(wish.data or "as the experiment has it", why))
    place.make("BUDGET.md", budget.render(campaign.budget, Spent(best_metric=campaign.baseline)))
    place.make("TASK.md", folder.task_text(campaign.slug, wish.task))
    place.make("PREVIOUS_WORK.md", folder.previous_work_text())
    place.make("DEEPRESEARCH.md", folder.research_text())
    place.make("IDEA_ANGLES.md", folder.angles_text(ANGLES))
    if "protocol" in campaign.goal.body:
        asked = Protocol.from_json(campaign.goal.body["protocol"])
        place.make("program.md", protocol.render(asked, "en"))


def budget_now(campaign: Campaign) -> Budget:
    """The limits as BUDGET.md has them now, which people edit; a damaged file is BadInput."""
    text = Folder(Path(campaign.folder)).read("BUDGET.md")
    if text is None:
        return campaign.budget
    found = budget.parse(text)
    if found != campaign.budget and "protocol" in campaign.goal.body:
        fits(found, Protocol.from_json(campaign.goal.body["protocol"]))
    return found


def take_up_budget(desk: Desk, campaign: Campaign) -> Campaign:
    """The campaign with the limits of BUDGET.md, recorded where they were changed."""
    found = budget_now(campaign)
    if found == campaign.budget:
        return campaign
    desk.tell("budget", budget=found.to_json())
    return records.read(desk.ledger.events(), desk.goal_id)
