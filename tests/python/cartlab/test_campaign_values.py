"""A campaign's values: hypotheses, the matrix's rules, the budget, and what its events tell."""

from __future__ import annotations

import json
from typing import Any

import pytest
from campaign_events import GOAL, Events, hypothesis
from hypothesis import given
from hypothesis import strategies as st

from cartlab.errors import BadInput
from cartlab.loops.campaign import budget, hypotheses, matrix, records
from cartlab.loops.campaign.budget import Budget, Spent
from cartlab.loops.campaign.hypotheses import REQUIRED, Hypothesis, Seen


def of_angles(letters: str) -> list[Hypothesis]:
    return [hypotheses.parse(hypothesis(f"h{n}", letter)) for n, letter in enumerate(letters)]


@pytest.mark.parametrize("field", REQUIRED)
def test_lc7_a_hypothesis_without_a_field_is_refused_by_its_name(field: str) -> None:
    body = hypothesis()
    del body[field]
    with pytest.raises(BadInput, match=f": {field} is missing") as caught:
        hypotheses.parse(body)
    assert caught.value.details == {"field": field}
    with pytest.raises(BadInput, match=f": {field} is missing"):
        hypotheses.parse({**hypothesis(), field: "  "})


@pytest.mark.parametrize(
    ("given", "word", "delta"),
    [
        (-0.5, None, -0.5),
        (0.5, "lower", -0.5),
        ("\u22120.002 bpb, ~0.3% relative", None, -0.002),
        ("+3e-2", "higher", 0.03),
        ({"value": 2, "direction": "down"}, None, -2.0),
    ],
)
def test_lc7_the_expected_move_is_a_number_with_its_direction(
    given: object, word: object, delta: float
) -> None:
    found = hypotheses.parse({**hypothesis(), "expected_delta": given, "direction": word})
    assert found.expected_delta == delta
    assert found.direction == ("higher" if delta > 0 else "lower")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"expected_delta": "much better"}, "expected_delta must begin with a number"),
        ({"expected_delta": 0}, "expected_delta must be finite and not 0"),
        ({"expected_delta": float("nan")}, "expected_delta must be finite"),
        ({"expected_delta": True}, "expected_delta must be a number"),
        ({"expected_delta": -1, "direction": "higher"}, "direction says higher"),
        ({"direction": "sideways"}, "direction must be higher or lower"),
        ({"change": "one thing\nand another"}, "change has several lines"),
        ({"source": "a paper I read"}, "source must be a URL or file:line"),
        ({"settings": {"rate": 1, "steps": 2}}, "settings must set one variable"),
    ],
)
def test_lc7_what_cannot_be_tested_is_refused(changes: dict[str, object], what: str) -> None:
    with pytest.raises(BadInput, match=what):
        hypotheses.parse({**hypothesis(), **changes})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELD = st.sampled_from((*REQUIRED, "direction", "parent", "transformation", "settings"))


@given(st.dictionaries(FIELD, JSON, max_size=4), JSON)
def test_lc7_whatever_is_handed_in_is_a_hypothesis_or_is_refused(changes: dict[str, Any], other: Any) -> None:
    for body in ({**hypothesis(), **changes}, other):
        try:
            found = hypotheses.parse(body)
        except BadInput as error:
            assert error.message.startswith(("hypothesis ", "a hypothesis must be"))
        else:
            again = json.loads(json.dumps(found.to_json(), allow_nan=False))
            assert Hypothesis.from_json(again).to_json() == found.to_json()
            assert json.dumps(again, ensure_ascii=False).encode()


def test_lc8_the_angles_are_a_to_k_and_can_be_extended() -> None:
    assert "".join(hypotheses.ANGLES) == "ABCDEFGHIJK"
    with pytest.raises(BadInput, match="angle must be one of A, B"):
        hypotheses.parse(hypothesis(angle="L"))
    more = {**hypotheses.ANGLES, "L": "thermodynamics"}
    assert hypotheses.parse(hypothesis(angle="l"), more).angle == "L"


def test_lc9_the_default_matrix_has_a_to_e_f_and_k() -> None:
    assert matrix.matrix_faults(of_angles("ABCDEFK")) == []


@pytest.mark.parametrize(
    ("letters", "rule"),
    [
        ("AABCFK", "no two hypotheses may share an angle .* angle A has 2"),
        ("ABFK", "at least 5 distinct angles; it has 4"),
        ("ABCDEGK", r"must have angle F \("),
        ("ABCDEFG", r"must have angle K \("),
        ("ABCDFKG", r"must have angle E \("),
        ("AAAABCDEFGKK", "no angle may hold more than 30% of the matrix; A holds 4 of 12"),
    ],
)
def test_lc9_each_rule_of_the_matrix_fails_in_its_own_words(letters: str, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        assert not matrix.matrix_faults(of_angles(letters)), "\n".join(
            matrix.matrix_faults(of_angles(letters))
        )


def test_lc9_below_seven_a_to_e_yield_to_f_and_k() -> None:
    assert matrix.matrix_faults(of_angles("ABCFK")) == []
    assert matrix.matrix_faults(of_angles("ABCDFK")) == []
    assert [fault[:23] for fault in matrix.matrix_faults(of_angles("ABCDEG"))] == [
        "the matrix must have an"
    ] * 2


def test_lc9_a_matrix_of_three_is_a_single_pass() -> None:
    assert matrix.matrix_faults(of_angles("AFK")) == []
    assert len(matrix.matrix_faults(of_angles("FFK"))) == 1


def test_lc30_where_there_are_ideas_for_g_i_and_j_the_matrix_has_them() -> None:
    faults = matrix.matrix_faults(of_angles("ABCDEFHK"), with_ideas=("G", "H"))
    assert [fault[:28] for fault in faults] == ["the matrix must have angle G"]
    assert matrix.matrix_faults(of_angles("ABCDEFGK"), with_ideas=("G", "H")) == []


def test_lc10_a_change_that_was_seen_is_a_duplicate_by_text_settings_or_patch() -> None:
    seen = Seen()
    seen.add("experiment 1", "Raise the  rate to 0.1.", {"rate": 0.1}, "patch1")
    assert seen.why("raise the rate TO 0.1") == "the same change as experiment 1"
    assert seen.why("a tenth", {"rate": 0.1}) == "the same settings as experiment 1"
    assert seen.why("rewritten", None, "patch1") == "the same patch as experiment 1"
    assert seen.why("raise the rate to 0.2", {"rate": 0.2}, "patch2") is None


def test_lc10_a_configuration_s_difference_is_its_changed_keys() -> None:
    before = {"rate": 0.1, "steps": 10, "net": {"width": 8, "depth": 2}, "old": 1}
    after = {"rate": 0.1, "steps": 20, "net": {"depth": 2, "width": 16}}
    assert hypotheses.changed_settings(before, after) == {"net.width": 16, "old": None, "steps": 20}
    assert hypotheses.changed_settings(before, dict(before)) == {}


def test_lc11_proposers_get_the_least_explored_angles_and_they_rotate() -> None:
    counts: dict[str, int] = {}
    given = []
    for _ in range(4):
        chosen = matrix.least_explored(counts, 3)
        given.append("".join(chosen))
        for letter in chosen:
            counts[letter] = counts.get(letter, 0) + 1
    assert given == ["ABC", "DEF", "GHI", "JKA"]
    assert matrix.least_explored({}, 13)[-2:] == ["G", "I"]


def test_lc31_a_spun_idea_names_its_parent_and_its_transformation() -> None:
    spun = hypotheses.parse(hypothesis(parent="h0", transformation="inversion"))
    assert (spun.parent, spun.transformation) == ("h0", "inversion")
    with pytest.raises(BadInput, match="transformation is missing"):
        hypotheses.parse(hypothesis(parent="h0"))
    with pytest.raises(BadInput, match="parent is missing"):
        hypotheses.parse(hypothesis(transformation="scale"))
    with pytest.raises(BadInput, match="transformation must be one of scale, inversion"):
        hypotheses.parse(hypothesis(parent="h0", transformation="mirroring"))


def test_a_hypothesis_survives_its_json() -> None:
    found = hypotheses.parse(hypothesis(settings={"rate": 0.1}))
    assert Hypothesis.from_json(found.to_json()) == found


# --- budget ---------------------------------------------------------------------------------------

WRITTEN = """\
# agreed with the group
metric = val_bpb     # e.g. val_loss
direction = lower
compute_cap = 90 min   # a night later
seed_experiments = 7
owner = the lab       # not a key of ours
--- spent ---
generations_run = 0
best_metric = <baseline>
cost_centre = 42
"""


def test_lc4_a_rewrite_keeps_comments_order_and_unknown_keys() -> None:
    found = budget.parse(WRITTEN)
    assert (found.metric, found.cap_s, found.parallelism, found.max_generations) == ("val_bpb", 5400.0, 4, 8)
    text = budget.render(found, Spent(2, 9, 600.0, "0.97", "4"), WRITTEN)
    assert text.startswith(WRITTEN.partition("--- spent ---")[0])
    assert text.splitlines()[7:] == [
        "generations_run = 2",
        "best_metric = 0.97",
        "cost_centre = 42",
        "experiments_run = 9",
        "gpu_min_used    = 10.00",
        "champion        = 4",
    ]
    assert budget.render(found, Spent(2, 9, 600.0, "0.97", "4"), text) == text


COUNT = st.integers(1, 10**6)
BUDGETS = st.builds(
    Budget,
    st.from_regex(r"[a-z_]{1,9}", fullmatch=True),
    st.sampled_from(["lower", "higher"]),
    COUNT,
    st.floats(0.01, 1e7),
    st.integers(1, 16),
    st.sampled_from(["2", "2 GPU-h", "90 min", "1.5 h", "40 s"]),
    COUNT,
    COUNT,
    COUNT,
    COUNT,
    COUNT,
    st.sampled_from(["on", "off"]),
)


@given(BUDGETS, BUDGETS)
def test_lc4_every_budget_survives_its_file_and_takes_another_s_place(first: Budget, second: Budget) -> None:
    text = budget.render(first, Spent())
    assert budget.parse(text) == first
    assert budget.parse(budget.render(second, Spent(), text)) == second
    assert budget.parse(budget.render(second, Spent(), "metric = m\ndirection = lower\n")) == second


def test_lc4_a_new_file_says_what_each_key_means_and_reads_back() -> None:
    made = Budget("error", "higher", seconds_per_experiment=2.5, compute_cap="40 s", ladder="off")
    text = budget.render(made, Spent())
    assert budget.parse(text) == made
    assert "the only limit that ends it" in text


def test_lc4_the_defaults_are_the_document_s_but_for_the_matrix() -> None:
    made = budget.parse("metric = m\ndirection = lower_is_better\n")
    assert made == Budget("m", "lower", 7, 300.0, 4, "2 GPU-h", 8, 4, 3, 3, 3)
    assert made.cap_s == 7200


@given(st.dictionaries(st.sampled_from((*budget.KEYS, "owner")), st.text(max_size=12)), st.text(max_size=40))
def test_lc4_whatever_stands_in_the_file_is_a_budget_or_is_refused(limits: dict[str, str], more: str) -> None:
    lines = {"metric": "m", "direction": "lower", **limits}
    text = "".join(f"{key} = {value}\n" for key, value in lines.items())
    try:
        found = budget.parse(text + more)
    except BadInput as error:
        assert error.message
    else:
        assert found.cap_s > 0 and budget.parse(budget.render(found, Spent(), text + more)) == found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("parallelism = 17", "parallelism must be at most 16"),
        ("parallelism = 0", "parallelism must be a whole number of at least 1"),
        (f"proposers = {'9' * 5000}", "proposers must be a whole number"),
        (f"compute_cap = {'9' * 400}", "compute_cap must be a time"),
        ("compute_cap = 1\ncompute_cap = 2", "compute_cap must stand once"),
        ("compute_cap = plenty", "compute_cap must be a time"),
        ("seconds_per_experiment = -3", "seconds_per_experiment must be seconds above 0"),
        ("ladder = maybe", "ladder must be on or off"),
        ("direction = sideways", "direction must be one of"),
    ],
)
def test_lc4_a_bad_limit_is_named(line: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        budget.parse(f"metric = m\n{line}\n" + ("" if "direction" in line else "direction = lower\n"))


def test_lc5_spent_is_the_sum_of_the_runs_in_the_ledger() -> None:
    events = Events().opened()
    events.generation(1, "opened").proposed("1").proposed("2")
    events.ran("1", 1, "keep", 1.5, champion=True, verified="yes").ran("2", 1, "crashed", None)
    events.generation(1, "closed", champion="1")
    assert budget.spent(events, GOAL) == Spent(1, 2, 72.0, "1.5", "1")
    assert budget.spent(events, "another") == Spent()


def test_lc5_the_worst_case_of_a_launch_counts_every_run_that_its_policy_may_make() -> None:
    made = Budget("error", "lower", seconds_per_experiment=100.0, compute_cap="10 min")
    once = budget.worst_case_s(made, budget.runs_of("greedy"), grace_s=30, eval_s=20)
    assert once == 150
    assert budget.worst_case_s(made, budget.runs_of("verified"), grace_s=30, eval_s=20) == 300
    assert budget.remaining_s(made, Spent(compute_s=310.0), reserved_s=once) == 140


# --- what the events tell -------------------------------------------------------------------------


def test_lc22_a_new_champion_resets_stagnation_and_a_missing_verdict_is_none() -> None:
    events = Events().opened().generation(1, "opened").proposed("1").ran("1", 1, "discard", 2.5)
    events.generation(1, "closed", champion=None).generation(2, "opened").proposed("2", 2)
    events.generation(2, "closed", champion=None)
    assert records.read(events, GOAL).stagnation == 2
    events.generation(3, "opened").proposed("3", 3).ran("3", 3, "keep", 1.0, champion=True, verified="yes")
    events.proposed("4", 3).ran("4", 3, "keep", 0.5)
    events.generation(3, "closed", champion="3")
    found = records.read(events, GOAL)
    assert found.stagnation == 0
    assert found.champion is not None and found.champion.exp_id == "3"
    assert [one.verified for one in found.experiments] == ["no", "", "yes", "no"]
    assert [one.exp_id for one in found.leaderboard()] == ["3"]


def test_a_campaign_tells_where_each_experiment_is() -> None:
    events = Events().opened().generation(1, "opened")
    for number in "12345":
        events.proposed(number)
    events.step("1", "closed", reason="the same change as experiment 0")
    events.step("2", "critiqued").step("2", "queued")
    events.step("3", "queued").step("3", "dispatched")
    events.ran("4", 1, "unverified", 1.0, verified="no")
    events.tell("goal", op="not_run", gen=1, exp_id="2", worst_case_s=660.0, remaining_s=12.0)
    found = records.read(events, GOAL)
    assert [one.status for one in found.experiments] == ["pruned", "queued", "running", "dropped", "proposed"]
    assert found.experiments[1].not_run == "not-run: it may cost 660 s, 12.0 s are left"
    assert [one.exp_id for one in found.running()] == ["3"]
    assert [one.exp_id for one in found.queued()] == ["2"]
    assert found.next_id() == "6"
    assert found.angle_counts() == {"A": 5}


def test_a_lever_is_opened_and_resets_stagnation() -> None:
    events = Events().opened().generation(1, "opened").generation(1, "closed", champion=None)
    assert records.read(events, GOAL).lever.id == "1"
    events.tell("lever", id="2", rung=3, op="queued", title="another solver", source="https://example.org")
    assert records.read(events, GOAL).lever.id == "1"
    events.tell("lever", id=None, rung=3, op="searched", source="a search")
    events.tell("lever", id="2", rung=3, op="opened", program="program-2.md", baseline="1.9", base="b" * 40)
    found = records.read(events, GOAL)
    assert (found.lever.id, found.lever.title, found.lever.baseline) == ("2", "another solver", "1.9")
    assert (found.stagnation, found.searches) == (0, ["a search"])
