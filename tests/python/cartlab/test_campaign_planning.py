"""`campaign plan` and `campaign critique`: what is refused, what is queued, and what a kill leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import campaign_lab
import pytest
from campaign_events import GOAL, Events, hypothesis
from campaign_lab import Lab, matrix
from small_experiment import PYTHON

from cartlab.cli.talk import Talk
from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.loops import manifest
from cartlab.loops.campaign import critique, planning, proposers, records
from cartlab.loops.campaign.critique import Rules, Score
from cartlab.loops.campaign.planning import Raw
from cartlab.loops.desk import Desk


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = campaign_lab.make(tmp_path, monkeypatch)
    assert made.init("--set", "critics=2", "--set", "hypotheses_per_gen=3", "--set", "proposers=2") == 0
    made.documents()
    return made


def plan(lab: Lab, found: Any, *words: str) -> int:
    return lab.cartlab("campaign", "plan", "--hypotheses", str(lab.write("plan.json", found)), *words)


def close(lab: Lab, champion: str | None = None) -> None:
    """Close the generation as if all its experiments had run."""
    ledger = Ledger.open(lab.experiment.root)
    campaign = lab.campaign()
    for one in campaign.queued():
        ledger.append(
            "proposal",
            one.one.id,
            {"goal": campaign.goal.id, "round": one.gen, "state": "closed", "reason": "x"},
        )
    number = campaign.generations[-1].number
    body = {
        "goal": campaign.goal.id,
        "op": "generation",
        "gen": number,
        "phase": "closed",
        "champion": champion,
    }
    ledger.append("goal", None, body)


def script(lab: Lab, body: str) -> str:
    path = lab.write("agent.py", "import json, os, sys\nfrom pathlib import Path\n" + body)
    return f"{PYTHON} {path}"


# --- the seed matrix ------------------------------------------------------------------------------


def test_lc2_lc9_a_diverse_cited_matrix_is_queued_and_everybody_is_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(lab, matrix(), "--json") == 0
    details = json.loads(capsys.readouterr().out)["details"]
    assert (details["generation"], len(details["hypotheses"])) == (0, 7)
    found = lab.campaign()
    assert [one.status for one in found.experiments] == ["queued"] * 7
    assert [one.exp_id for one in found.experiments] == list("1234567")
    told = [event["body"]["event"] for event in lab.events() if event["body"].get("op") == "told"]
    assert told[-3:] == ["research_ready", "plan_ready", "code_ready"]
    assert lab.cartlab("verify") == 0


def test_show_tells_the_campaign_and_an_experiment_s_hypothesis(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(lab, matrix())
    assert "predicted to make rate worse (higher is better)" in capsys.readouterr().err
    assert lab.cartlab("show") == 0
    shown = capsys.readouterr().out
    assert "campaign slope: not_started; generation 0" in shown and "| 7 | K | change h7 |" in shown
    close(lab)
    assert lab.cartlab("status") == 0
    assert "is not_started, 1 round closed, best 0.01" in capsys.readouterr().out
    assert lab.cartlab("show", "e3") == 0
    shown = capsys.readouterr().out
    assert "hypothesis: change h3" in shown and "expected: -0.5; wrong if: the error stays" in shown


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (matrix("ABCDEFG"), "must have angle K"),
        (matrix("ABCDEFGK"), "at most seed_experiments = 7; it has 8"),
        ([], "it has none"),
        ([{**hypothesis(), "mechanism": ""}], "hypothesis h1: mechanism is missing"),
        ({"hypotheses": 3}, "must hold a list"),
        ("{", "must be JSON or JSON lines"),
    ],
)
def test_lc7_lc9_a_plan_that_breaks_a_rule_is_refused_whole(
    lab: Lab, found: Any, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(lab.events())
    assert plan(lab, found) == 25
    assert what in capsys.readouterr().err
    assert len(lab.events()) == before


def test_lc30_without_its_research_nothing_is_planned(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.documents(DEEPRESEARCH="- everybody knows\n")
    assert plan(lab, matrix()) == 23
    assert "DEEPRESEARCH.md line 1" in capsys.readouterr().err
    lab.documents(IDEA_ANGLES="## G: other fields\n- annealing\n")
    assert plan(lab, matrix()) == 25
    assert "must have angle G" in capsys.readouterr().err


def test_lc2_an_edit_before_its_hypothesis_is_refused(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    (lab.experiment.folder / "config.json").write_text('{"rate": 0.5}')
    assert plan(lab, matrix(), "--dry-run") == 23
    assert plan(lab, matrix()) == 23
    assert "slope/config.json was changed" in capsys.readouterr().err


def test_lc2_an_adopted_edit_is_an_experiment_and_is_measured_as_it_is(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab.experiment.folder / "config.json").write_text('{"rate": 0.5, "steps": 10}')
    (lab.folder / "DATA.md").write_text("no_split = a formula\n")
    before = manifest.digest(manifest.scan(lab.experiment.repo))
    assert plan(lab, matrix("AFK"), "--adopt", "nobody") == 2
    assert "one of h1, h2, h3" in capsys.readouterr().err
    assert plan(lab, matrix("AFK"), "--adopt", "h2") == 0
    assert lab.cartlab("campaign", "run", "--researcher", script(lab, "print('nothing')")) == 0
    found = lab.campaign()
    assert [one.one.status for one in found.experiments] == ["no_change", "keep", "no_change"]
    assert found.experiments[1].value == 0.5
    assert [body["role"] for _, body in found.experiments[1].one.measurements] == ["eval", "eval"]
    assert manifest.digest(manifest.scan(lab.experiment.repo)) == before
    assert plan(lab, [hypothesis("new", change="another")]) == 0
    assert lab.cartlab("verify") == 0


def test_lc2_there_has_to_be_an_edit_to_adopt(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(lab, matrix(), "--adopt", "h1") == 2
    assert "the checkout has none" in capsys.readouterr().err


def test_a_dry_run_checks_everything_and_writes_nothing(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    before = (lab.experiment.root / "events.jsonl").read_bytes()
    assert plan(lab, matrix(), "--dry-run") == 0
    assert "would plan generation 0 with 7 hypotheses" in capsys.readouterr().out
    assert plan(lab, matrix("ABCDEFG"), "--dry-run") == 25
    assert (lab.experiment.root / "events.jsonl").read_bytes() == before


def test_a_generation_is_planned_when_the_one_before_is_closed(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(lab, matrix()) == 0
    assert plan(lab, matrix()) == 23
    assert "`campaign run` goes on" in capsys.readouterr().err
    assert lab.cartlab("campaign", "critique", "--scores", "x.json") == 23
    assert "the seed matrix was checked as a whole" in capsys.readouterr().err


def test_lc10_what_was_proposed_before_is_dropped_as_a_duplicate(lab: Lab) -> None:
    plan(lab, matrix())
    close(lab)
    again = [hypothesis("x", change="CHANGE  h3."), hypothesis("y", "B", change="something new")]
    assert plan(lab, again) == 0
    found = lab.campaign().of_generation(1)
    assert [one.pruned for one in found] == ["the same change as experiment 3", None]
    assert plan(lab, again) == 23


def test_lc13_a_generation_of_duplicates_is_stagnant_and_the_next_is_due(lab: Lab) -> None:
    plan(lab, matrix())
    close(lab)
    assert plan(lab, matrix("AB")) == 0
    found = lab.campaign()
    assert (found.generations[1].closed, found.stagnation) == (True, 2)
    assert plan(lab, [hypothesis("new", change="another")]) == 0


# --- proposers ------------------------------------------------------------------------------------

PROPOSER = """
assert os.environ["AR_ROLE"] == "propose"
letter = os.environ["AR_ANGLE"]
prompt = Path(os.environ["AR_PROMPT"]).read_text()
assert prompt.startswith("# Propose for angle " + letter) and not Path(".git").exists()
body = {"angle": letter, "change": "idea of " + letter + os.environ["AR_GENERATION"], "mechanism": "m",
        "expected_delta": 0.1, "falsification": "f", "source": "train.py:1", "builds_on": "baseline"}
wrong = {**body, "angle": "A" if letter != "A" else "B"}
Path(os.environ["AR_SUBMISSION"]).write_text(json.dumps({"hypotheses": [body, wrong][: EACH]}))
"""


def test_lc11_proposers_are_asked_by_angle_the_least_explored_first(lab: Lab) -> None:
    command = script(lab, "EACH = 1\n" + PROPOSER)
    assert lab.cartlab("campaign", "plan", "--researcher", command) == 0
    found = lab.campaign()
    assert [one.hypothesis.angle for one in found.experiments] == list("ABCDEFK")
    close(lab)
    command = script(lab, "EACH = 2\n" + PROPOSER)
    assert lab.cartlab("campaign", "plan", "--researcher", command) == 0
    last = lab.campaign().generations[1]
    assert last.angles == ("G", "H")
    assert [one.hypothesis.angle for one in lab.campaign().of_generation(1)] == ["G", "H"]
    assert (
        last.rejected[0]
        == "proposer G: hypothesis proposer G2: angle must be G, the one it was given; found A"
    )
    roles = [e["body"]["role"] for e in lab.events() if e["type"] == "measurement"]
    assert roles == ["propose"] * 9


def test_lc11_where_no_proposer_answers_nothing_is_planned(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.cartlab("campaign", "plan", "--researcher", script(lab, "sys.exit('no key')")) == 25
    assert "no key" in capsys.readouterr().err
    assert lab.campaign().generations == []


def test_lc11_on_a_wider_rung_the_champion_s_own_angle_is_left_out() -> None:
    events = Events().opened().generation(0, "opened").proposed("1", 0, angle="C")
    events.ran("1", 0, "keep", 1.0, champion=True, verified="yes").generation(0, "closed", champion="1")
    campaign = records.read(events, GOAL)
    angles = {letter: letter for letter in "ABCD"}
    assert proposers.angles_for(campaign, angles, 1, {}) == ["A", "B", "D"]
    assert proposers.angles_for(campaign, {"C": "c", "D": "d"}, 2, {}) == ["D", "G", "I"]


def test_lc33_a_proposer_with_a_forced_push_needs_an_approval(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(lab.events())
    words = ("campaign", "plan", "--researcher", "git push --force origin main")
    assert lab.cartlab(*words) == 23
    assert "a forced push" in capsys.readouterr().err
    assert len(lab.events()) == before
    assert lab.cartlab("campaign", "critique", "--researcher", "rm -rf x") == 23


# --- critique -------------------------------------------------------------------------------------


def scored(*rows: tuple[str, float, str]) -> list[Score]:
    """(exp_id, quality, votes as y and n), a critic a letter."""
    return [
        Score(exp_id, f"critic {at}", quality, vote == "y")
        for exp_id, quality, votes in rows
        for at, vote in enumerate(votes)
    ]


def survivors(candidates: dict[str, str], scores: list[Score], **rules: Any) -> list[str]:
    found = critique.judge(list(candidates.items()), scores, Rules(**rules))
    return [one.exp_id for one in found if one.survives]


def test_lc12_survivors_have_quality_and_more_than_half_of_the_votes() -> None:
    angles = {"1": "A", "2": "B", "3": "C", "4": "D"}
    scores = scored(("1", 6.0, "yyn"), ("2", 5.99, "yyy"), ("3", 9.0, "ynn"), ("4", 8.0, "yyy"))
    # Three angles are wanted of the survivors: the one that is novel but weak comes in for its angle.
    assert survivors(angles, scores) == ["1", "2", "4"]
    assert survivors({"1": "A", "3": "C"}, scores) == ["1"]


def test_lc12_an_exact_half_passes_only_where_that_was_asked_for() -> None:
    scores = scored(("1", 7, "yynn"))
    assert survivors({"1": "A"}, scores) == []
    assert survivors({"1": "A"}, scores, half_passes=True) == ["1"]


def test_lc12_an_alike_set_gives_its_weakest_double_for_another_angle() -> None:
    angles = {"1": "A", "2": "A", "3": "A", "4": "A", "5": "B", "6": "C", "7": "C"}
    rows = [("1", 9, "y"), ("2", 8.9, "y"), ("3", 8.8, "y"), ("4", 8.7, "y"), ("5", 7, "y"), ("6", 5, "y")]
    found = critique.judge(list(angles.items()), scored(*rows, ("7", 9.9, "n")), Rules(keep=4))
    assert [one.exp_id for one in found if one.survives] == ["1", "2", "5", "6"]
    reasons = {one.exp_id: one.reason for one in found}
    assert reasons["4"] == "gave its place to experiment 5: angle A has others"
    assert reasons["6"].startswith("for its angle C")
    assert reasons["7"] == "novel for only 0 of 1"


def test_lc12_no_survivor_is_swapped_in_where_none_passed() -> None:
    assert survivors({"1": "A", "2": "B"}, scored(("1", 5, "yy"), ("2", 9, "nn"))) == []


def test_lc12_a_hypothesis_without_a_score_stops_the_critique() -> None:
    with pytest.raises(BadInput, match="experiment 2 has no score"):
        critique.judge([("1", "A"), ("2", "B")], scored(("1", 7, "y")))


def second_generation(lab: Lab, letters: str = "ABCD") -> None:
    plan(lab, matrix())
    close(lab)
    assert plan(lab, [hypothesis(f"n{n}", letter) for n, letter in enumerate(letters)]) == 0


def scores_of(lab: Lab, qualities: list[float], critics: int = 2) -> list[dict[str, Any]]:
    waiting = lab.campaign().of_generation(1)
    return [
        {"id": one.hypothesis.id, "critic": f"c{at}", "quality": quality, "novel": True}
        for one, quality in zip(waiting, qualities, strict=True)
        for at in range(critics)
    ]


def test_lc12_the_best_are_queued_and_the_others_closed_with_their_reason(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    second_generation(lab)
    path = lab.write("scores.json", scores_of(lab, [7, 8, 9, 6.5]))
    assert lab.cartlab("campaign", "critique", "--scores", str(path)) == 0
    assert "3 of 4 survive" in capsys.readouterr().out
    found = lab.campaign().of_generation(1)
    assert [one.status for one in found] == ["queued", "queued", "queued", "pruned"]
    assert found[3].pruned == "good, but 3 better ones go first"
    assert found[0].one.steps["critiqued"]["scores"][0] == {"critic": "c0", "quality": 7.0, "novel": True}
    assert lab.cartlab("campaign", "critique", "--scores", str(path)) == 23
    assert lab.cartlab("verify") == 0


def test_lc13_without_a_survivor_the_generation_is_stagnant_and_the_next_is_planned(lab: Lab) -> None:
    second_generation(lab)
    path = lab.write("scores.json", scores_of(lab, [1, 2, 3, 4]))
    assert lab.cartlab("campaign", "critique", "--scores", str(path)) == 0
    found = lab.campaign()
    assert (found.stagnation, found.queued(), found.generations[1].closed) == (2, [], True)
    assert plan(lab, [hypothesis("z", change="yet another")]) == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"quality": 11}, "quality must be a number from 0 to 10"),
        ({"quality": True}, "quality must be a number"),
        ({"novel": "yes"}, "novel must be true or false"),
        ({"id": "nobody"}, "id must name a hypothesis"),
        ({"critic": ""}, "critic must say who gave it"),
        ({"critic": "c1"}, "must have one score a critic"),
    ],
)
def test_lc12_a_bad_score_is_named(
    lab: Lab, change: dict[str, Any], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    second_generation(lab)
    scores = scores_of(lab, [7, 7, 7, 7])
    scores[0] |= change
    assert lab.cartlab("campaign", "critique", "--scores", str(lab.write("s.json", scores))) == 25
    assert what in capsys.readouterr().err


def test_lc12_fewer_critics_than_the_budget_wants_are_refused(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    second_generation(lab)
    path = lab.write("s.json", scores_of(lab, [7, 7, 7, 7], critics=1))
    assert lab.cartlab("campaign", "critique", "--scores", str(path)) == 25
    assert "must be scored by critics = 2; it was by 1" in capsys.readouterr().err


CRITIC = """
assert os.environ["AR_ROLE"] == "critique"
text = Path(os.environ["AR_PROMPT"]).read_text()
shown = json.loads(text.split("```json")[1].split("```")[0])
scores = [{"id": one["exp_id"], "quality": 6 + n, "novel": True} for n, one in enumerate(shown)]
Path(os.environ["AR_SUBMISSION"]).write_text(json.dumps({"scores": scores}))
"""


def test_lc12_critics_are_a_command_run_once_each(lab: Lab) -> None:
    second_generation(lab)
    assert lab.cartlab("campaign", "critique", "--researcher", script(lab, CRITIC)) == 0
    found = lab.campaign().of_generation(1)
    assert [one.status for one in found] == ["pruned", "queued", "queued", "queued"]
    assert {s["critic"] for s in found[1].one.steps["critiqued"]["scores"]} == {"critic 1", "critic 2"}


# --- a kill between two events --------------------------------------------------------------------


def test_a_plan_and_a_critique_killed_between_any_two_events_are_completed(lab: Lab, tmp_path: Path) -> None:
    second_generation(lab)
    path = lab.write("scores.json", scores_of(lab, [7, 8, 9, 1]))
    assert lab.cartlab("campaign", "critique", "--scores", str(path)) == 0
    lines = (lab.experiment.root / "events.jsonl").read_bytes().splitlines(keepends=True)
    expected = [(one.exp_id, one.status, one.pruned) for one in lab.campaign().experiments]
    kinds = [json.loads(line)["body"].get("phase") for line in lines]
    opened = [at for at, kind in enumerate(kinds) if kind == "opened"][1]
    criticised = kinds.index("critiqued")
    seen = 0
    for start, stop in ((opened, criticised - 1), (criticised, len(lines) - 1)):
        for cut in range(start + 1, stop + 1):
            root = tmp_path / f"root{cut}"
            root.mkdir()
            (root / "events.jsonl").write_bytes(b"".join(lines[:cut]))
            ledger = Ledger.open(root)
            goal = records.goal_of(ledger.events())
            desk = Desk(lab.experiment.repo, root, ledger, str(goal), Talk(as_json=True))
            campaign = planning.complete(desk)
            if cut > criticised:
                assert [(o.exp_id, o.status, o.pruned) for o in campaign.experiments] == expected
            else:
                assert [o.status for o in campaign.of_generation(1)] == ["proposed"] * 4
            count = len(ledger.events())
            planning.complete(desk)
            assert len(ledger.events()) == count
            seen += 1
    assert seen > 8


def test_two_files_forms_are_read(tmp_path: Path) -> None:
    bodies = matrix("AB")
    for text in (json.dumps(bodies), json.dumps({"hypotheses": bodies}), "\n".join(map(json.dumps, bodies))):
        path = tmp_path / "x"
        path.write_text(text)
        assert planning.read_file(path) == [Raw(body) for body in bodies]


def test_lc23_a_plan_is_as_wide_as_the_ladder_s_rung(lab: Lab) -> None:
    plan(lab, matrix())
    close(lab)
    ledger, campaign = Ledger.open(lab.experiment.root), lab.campaign()
    body = {"goal": campaign.goal.id, "op": "opened", "id": "2", "rung": 2, "title": "other families"}
    ledger.append("lever", None, body)
    assert plan(lab, [hypothesis("new", change="another")]) == 0
    last = lab.campaign().generations[-1]
    assert (last.lever, last.rung) == ("2", 2)
