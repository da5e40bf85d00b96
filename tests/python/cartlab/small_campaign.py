"""A campaign over the tiny experiment, and what proposes in it: hypotheses that set a key of config.json."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import small_experiment
from campaign_events import hypothesis
from small_experiment import Experiment, git

from cartlab.ledger import Ledger
from cartlab.loops.campaign import driver, experiment, opening, planning, records
from cartlab.loops.campaign.hypotheses import parse
from cartlab.loops.desk import Desk, Options

RESEARCHER = """
idea = json.loads(Path(os.environ["AR_HYPOTHESIS"]).read_text())
if idea["settings"]: config(**idea["settings"])
say(idea["change"])
"""
NO_DATA = "source = none\nno_split = the data is a formula\n"


class Quiet:
    """A voice that keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def warn(self, line: str) -> None:
        self.lines.append(line)

    def progress(self, line: str) -> None:
        self.lines.append(line)


class SmallCampaign:
    """Its repository, root and folder. ideas: each generation's hypotheses, as changes of a whole one."""

    def __init__(self, made: Experiment, policy: str = "verified", **limits: Any) -> None:
        self.made, self.voice = made, Quiet()
        self.ledger = Ledger.open(_folder(made.root))
        wish = opening.Wish(
            "slope",
            protocol=made.folder / "autoresearch-protocol.md",
            limits={"compute_cap": "10 h", "parallelism": "2", **{k: str(v) for k, v in limits.items()}},
            policy=policy,
        )
        self.folder = made.repo.parent / "runs" / "slope"
        self.desk = opening.open_campaign(
            made.repo, made.root, self.ledger, self.folder, wish, self.voice, Options()
        )
        (self.folder / "DATA.md").write_text(NO_DATA)

    @property
    def campaign(self) -> records.Campaign:
        return records.read(self.ledger.events(), self.desk.goal_id)

    def propose(self, ideas: Sequence[Sequence[dict[str, Any]]]) -> Any:
        """A proposer that queues these, generation by generation, and then nothing."""

        def hand(desk: Desk) -> None:
            queue(desk, ideas)

        return hand

    def run(
        self, ideas: Sequence[Sequence[dict[str, Any]]], body: str = RESEARCHER, slots: int = 2, **more: Any
    ) -> records.Campaign:
        """The loop to its end."""
        plan = experiment.Plan(self.made.researcher(body), slots, limit_s=30.0, **more.pop("plan", {}))
        hands = driver.Hands(render=lambda desk: None, propose=self.propose(ideas), **more.pop("hands", {}))
        return driver.run(self.desk, plan, hands, **more)

    def statuses(self) -> list[str | None]:
        return [one.one.status for one in self.campaign.experiments]


def queue(desk: Desk, ideas: Sequence[Sequence[dict[str, Any]]]) -> None:
    """The next generation as a plan opens it; its hypotheses are queued as they are."""
    campaign = planning.complete(desk)
    if driver.open_generation(campaign) is not None:
        return
    gen, lever = len(campaign.generations), campaign.lever
    first = int(campaign.next_id())
    listed = [
        {"exp_id": str(at), "hypothesis": parse(hypothesis(f"h{at}", **changes)).to_json(), "duplicate": None}
        for at, changes in enumerate(ideas[gen] if gen < len(ideas) else [], first)
    ]
    desk.tell(
        "generation", gen=gen, phase="opened", lever=lever.id, rung=lever.rung, seed=True, listed=listed
    )
    planning.complete(desk)


def rate(value: float, expected: float = 0.1, **more: Any) -> dict[str, Any]:
    """A hypothesis that sets the rate; higher is better in the bare experiment."""
    return {
        "change": f"rate {value:g}",
        "settings": {"rate": value},
        "expected_delta": expected,
        "direction": "higher" if expected > 0 else "lower",
        **more,
    }


def bare(tmp_path: Path, eval_py: str = "", **more: Any) -> SmallCampaign:
    """Over the experiment that trains nothing: its metric is the rate that config.json names."""
    made = small_experiment.make_bare(tmp_path)
    return _over(made, {"eval.py": eval_py}, **more)


def trained(
    tmp_path: Path, eval_py: str = "", train_py: str = "print('step=1 loss=1')", **more: Any
) -> SmallCampaign:
    """The same with a train command; its protocol's time limit is 20 s."""
    made = small_experiment.make_bare(tmp_path)
    path = made.folder / "autoresearch-protocol.md"
    text = path.read_text().replace("- files: config.json", "- files: config.json, train.py")
    path.write_text(text + f"\n## Train\n- command: {small_experiment.PYTHON} train.py\n")
    files = {"eval.py": eval_py, "train.py": train_py}
    return _over(made, files, **more)


def _over(made: Experiment, files: dict[str, str], **more: Any) -> SmallCampaign:
    for name, text in files.items():
        if text:
            (made.folder / name).write_text(text)
    if git(made.repo, "status", "--porcelain", "--untracked-files=no"):
        git(made.repo, "commit", "-q", "-am", "another experiment")
    os.chdir(made.repo)
    return SmallCampaign(made, **more)


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
