"""LC: `campaign run`, `ladder` and `done` from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import campaign_lab
import pytest
from campaign_lab import Lab

from cartlab import processes
from cartlab.loops import commands

RATES = {"A": 0.2, "F": 0.5, "K": 0.3}
EXPERIMENT = """
idea = json.loads(Path(os.environ["AR_HYPOTHESIS"]).read_text())
config(**idea["settings"]); say(idea["change"])
"""


@pytest.fixture
def ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run counts as ten seconds, whatever this machine needs for it."""

    def run(*words: Any, **options: Any) -> processes.Outcome:
        return replace(processes.run_shell(*words, **options), seconds=10.0)

    monkeypatch.setattr(commands, "run_shell", run)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return campaign_lab.make(tmp_path, monkeypatch)


def seed(lab: Lab, **limits: Any) -> None:
    """A campaign with three queued experiments."""
    words = [word for key, value in limits.items() for word in ("--set", f"{key}={value}")]
    assert lab.init("--set", "compute_cap=10 h", "--set", "parallelism=1", *words) == 0
    lab.documents()
    (lab.folder / "DATA.md").write_text("source = none\nno_split = there is no data\n")
    ideas = [
        {
            **one,
            "change": f"rate {RATES[one['angle']]}",
            "settings": {"rate": RATES[one["angle"]]},
            "expected_delta": 0.4,
            "direction": "higher",
        }
        for one in campaign_lab.matrix("AFK")
    ]
    assert lab.cartlab("campaign", "plan", "--hypotheses", str(lab.write("matrix.json", ideas))) == 0


def answer(lab: Lab, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = lab.cartlab("campaign", *words, "--json")
    return code, json.loads(capsys.readouterr().out)


def test_lc16_lc28_a_campaign_from_its_plan_to_done(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    seed(lab)
    code, found = answer(lab, capsys, "done")
    assert code == 23 and "the campaign is not_started: no exit condition was met" in found["reasons"]
    code, found = answer(lab, capsys, "run", "--researcher", "x", "--dry-run")
    assert (code, found["details"]["queued"]) == (0, 3)
    researcher = lab.experiment.researcher(EXPERIMENT)
    code, found = answer(lab, capsys, "run", "--researcher", researcher)
    told = found["details"]
    assert (code, told["state"]) == (0, "paused")
    assert [(one["status"], one["verified"]) for one in told["experiments"]] == [
        ("passed", "yes"),
        ("passed", "yes"),
        ("passed", "no"),
    ]
    assert told["best"] == {"value": 0.5, "text": "0.5", "experiment": "2"}
    assert "Best verified configuration: experiment 2, rate = 0.5" in (lab.folder / "RESULTS.md").read_text()
    code, found = answer(lab, capsys, "done")
    assert code == 23 and any("is paused: nothing is queued" in what for what in found["reasons"])
    assert lab.cartlab("verify") == 0


def test_a_dry_run_reads_the_limits_that_a_person_wrote_since(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    seed(lab, compute_cap="2 h")
    budget, words = lab.folder / "BUDGET.md", ("run", "--researcher", "x", "--dry-run")
    before = answer(lab, capsys, *words)[1]["details"]["remaining_s"]
    known = len(lab.events())
    budget.write_text(budget.read_text().replace("2 h", "3 h"))
    assert answer(lab, capsys, *words)[1]["details"]["remaining_s"] == before + 3600
    assert len(lab.events()) == known  # it is read, and recorded by a real run alone
    budget.write_text(budget.read_text().replace("3 h", "soon"))
    code, found = answer(lab, capsys, *words)
    assert code == 25 and "compute_cap" in found["reasons"][0]


def test_next_says_what_a_campaign_waits_for(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """With and without an autoresearch.toml; the line that it prints is taken as it stands."""

    def due() -> str:
        capsys.readouterr()
        assert lab.cartlab("next", "--json") == 0
        return str(json.loads(capsys.readouterr().out)["details"]["actions"][0]["command"]).partition(" ")[2]

    assert lab.init("--set", "compute_cap=10 h") == 0
    assert due() == "campaign plan --hypotheses FILE"
    seed(lab)
    assert due() == "campaign run --researcher CMD"
    researcher = lab.experiment.researcher(EXPERIMENT)
    assert lab.cartlab("campaign", "run", "--researcher", researcher) == 0
    assert due() == "campaign plan --researcher CMD"
    later = [
        {"change": f"rate {rate}", "settings": {"rate": rate}, "expected_delta": 0.1, "direction": "higher"}
        for rate in (0.6, 0.7, 0.8)
    ]
    ideas = [{**one, **change} for one, change in zip(campaign_lab.matrix("BCD"), later, strict=True)]
    path = str(lab.write("later.json", ideas))
    assert lab.cartlab("campaign", "plan", "--hypotheses", path) == 0
    assert due() == "campaign critique --researcher CMD"
    # Where speed can be measured as well the campaign that is open is named all the same.
    (lab.experiment.repo / "autoresearch.toml").write_text("")
    assert due() == "campaign critique --researcher CMD"


def test_lc5_lc6_the_cap_ends_it_and_what_it_does_not_cover_is_not_run(
    lab: Lab, capsys: pytest.CaptureFixture[str], ten_seconds: None
) -> None:
    # The baseline takes 30 s; a launch may cost two evaluations of 40 s, and the first takes two of 10 s.
    seed(lab, compute_cap="121 s", seconds_per_experiment=20)
    researcher = lab.experiment.researcher(EXPERIMENT)
    code, found = answer(lab, capsys, "run", "--researcher", researcher, "--eval-limit", "40")
    told = found["details"]
    assert (code, told["state"]) == (0, "budget_exhausted")
    assert [one["status"] for one in told["experiments"]] == ["passed", "not-run", "not-run"]
    code, found = answer(lab, capsys, "done")
    assert (code, found["reasons"]) == (0, [])
    assert "not-run: it may cost 80 s" in (lab.folder / "RESULTS.md").read_text()
    # A larger cap, and the same command goes on with what was not run.
    budget = lab.folder / "BUDGET.md"
    budget.write_text(budget.read_text().replace("121 s", "10 h"))
    code, found = answer(lab, capsys, "run", "--researcher", researcher, "--eval-limit", "40")
    assert [one["status"] for one in found["details"]["experiments"]] == ["passed"] * 3


def test_lc28_done_holds_results_against_the_ledger(
    lab: Lab, capsys: pytest.CaptureFixture[str], ten_seconds: None
) -> None:
    seed(lab, compute_cap="121 s", seconds_per_experiment=20)
    worse = lab.experiment.researcher("config(rate=-0.1 * int(os.environ['AR_EXPERIMENT'])); say('less')")
    assert lab.cartlab("campaign", "run", "--researcher", worse, "--eval-limit", "40") == 0
    results = lab.folder / "RESULTS.md"
    assert "**baseline unbeaten**" in results.read_text()
    assert lab.cartlab("campaign", "done") == 0
    results.write_text("Best verified configuration: experiment 1, rate = 9\n")
    code, found = answer(lab, capsys, "done")
    assert code == 23 and 'must say "baseline unbeaten"' in found["reasons"][0]


def test_lc28_a_design_only_campaign_names_no_value(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--set", "metric=rate", "--set", "direction=higher", "--compute", "none")
    assert lab.cartlab("campaign", "init", campaign_lab.SLUG, *words) == 0
    lab.documents()
    ideas = campaign_lab.matrix("AFK", expected_delta=0.4, direction="higher")
    assert lab.cartlab("campaign", "plan", "--hypotheses", str(lab.write("matrix.json", ideas))) == 0
    code, found = answer(lab, capsys, "run", "--researcher", "x")
    assert code == 0 and not any(event["type"] == "measurement" for event in lab.events())
    assert answer(lab, capsys, "done")[0] == 0
    (lab.folder / "notes.md").write_text("we saw rate = 0.7 once\n")
    code, found = answer(lab, capsys, "done")
    assert code == 23 and "notes.md line 1" in found["reasons"][0]
