"""LC32: training through a launcher of the user's, which counts only as the one that was approved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import small_campaign
import small_experiment

from cartlab.cli.talk import Talk
from cartlab.errors import BadInput, NotLegalNow
from cartlab.ledger import Ledger
from cartlab.loops import approvals
from cartlab.loops.campaign import compute, driver, experiment, generation, opening, records
from cartlab.loops.campaign.opening import Wish
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.desk import Desk, Options
from cartlab.model import digest_of


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Desk, str, Path]:
    """A campaign whose training goes through a script that notes what it ran."""
    made = small_experiment.make(tmp_path)
    monkeypatch.chdir(made.repo)
    assert made.handoff() == 0
    log, script = tmp_path / "launched", tmp_path / "launch.sh"
    script.write_text(f'echo "$1" >> {log}; sh -c "$1"; echo done >> {log}\n')
    launcher = f"sh {script} {{command}}"
    wish = Wish(
        "slope",
        protocol=made.folder / "autoresearch-protocol.md",
        provider="command",
        launcher=launcher,
        approve="the lab's host",
    )
    ledger = Ledger.open(made.root)
    place = tmp_path / "runs"
    desk = opening.open_campaign(made.repo, made.root, ledger, place, wish, Talk(as_json=True), Options())
    return desk, launcher, log


def campaign_of(desk: Desk) -> Campaign:
    return records.read(desk.ledger.events(), desk.goal_id)


def test_lc32_training_runs_through_the_launcher_and_the_evaluation_here(
    opened: tuple[Desk, str, Path],
) -> None:
    desk, launcher, log = opened
    campaign = campaign_of(desk)
    assert driver.measure_baseline(generation.limited(desk, campaign), campaign)
    lines = log.read_text().splitlines()
    assert len(lines) == 6 and lines[1::2] == ["done"] * 3
    assert all(line.endswith("train.py") for line in lines[::2])
    bodies = [event["body"] for event in desk.ledger.events() if event["type"] == "measurement"]
    assert [body["role"] for body in bodies] == ["train", "eval"] * 3
    assert {body.get("launcher") for body in bodies} == {digest_of(launcher), None}
    assert campaign_of(desk).baseline == "2.451218"


def test_lc32_a_launcher_that_was_not_approved_runs_nothing(opened: tuple[Desk, str, Path]) -> None:
    desk, launcher, log = opened
    campaign = campaign_of(desk)
    path = Path(campaign.folder) / "COMPUTE.md"
    text = path.read_text()
    for changed, error, what in (
        (text.replace(launcher, f"{launcher}; true"), NotLegalNow, "must be one that was approved"),
        (text.replace(launcher, "sh x"), BadInput, "must hold {command}"),
        (text.replace(f"launcher = {launcher}", ""), BadInput, "needs `launcher ="),
    ):
        path.write_text(changed)
        with pytest.raises(error, match=what.replace("{", r"\{")):
            generation.limited(desk, campaign)
    path.write_text(text.replace("provider = command", "provider = local"))
    assert compute.launcher_of(desk.ledger.events(), campaign) == ""
    assert not log.exists()


def approved(desk: Desk, reason: str) -> Desk:
    return replace(desk, options=replace(desk.options, approve=reason))


def test_lc33_a_launcher_with_a_delete_needs_a_word_for_each_run(opened: tuple[Desk, str, Path]) -> None:
    desk, launcher, log = opened
    path = Path(campaign_of(desk).folder)
    (path / "DATA.md").write_text(small_campaign.NO_DATA)
    dangerous = f"rm -rf nothing; {launcher}"
    text = (path / "COMPUTE.md").read_text()
    (path / "COMPUTE.md").write_text(text.replace(launcher, dangerous))
    plan, hands = experiment.Plan("true"), driver.Hands(lambda _: None)
    with pytest.raises(NotLegalNow, match="must be one that was approved"):
        driver.run(approved(desk, "only the researcher was meant"), plan, hands)
    approvals.record(desk.ledger, desk.goal_id, dangerous, "the lab's host")
    assert driver.run(desk, plan, hands).goal.state == "paused"
    assert len(log.read_text().splitlines()) == 6
    with pytest.raises(NotLegalNow, match="held for one run"):
        driver.run(desk, plan, hands)
    assert driver.run(approved(desk, "once more"), plan, hands).goal.state == "paused"
    with pytest.raises(NotLegalNow, match="held for one run"):
        driver.run(desk, plan, hands)
