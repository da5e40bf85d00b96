"""The round: every state against every event, the whole way from open to complete, and each refusal."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from ledger_runs import WORKLOAD, a_plan, record, ref

from cartlab import round as rounds
from cartlab.errors import NotLegalNow, UsageError
from cartlab.ledger import Ledger
from cartlab.model import Evidence, Validity, Verdict
from cartlab.round import CandidateFacts, NextFacts
from cartlab.round.actions import bundle_reason
from cartlab.round.fold import accepted_before
from cartlab.round.states import TRANSITIONS, Candidate

WHY = {"mechanism": "fewer loads", "falsify": "no change in loads"}
NOW = "2026-01-10T00:00:00.000Z"
PINNED = {
    "workload_hash": WORKLOAD.hash,
    "harness_hash": "h" * 64,
    "protected_hash": "p" * 64,
    "calibration": None,
}


def spread(ratio_log: float, n: int) -> list[float]:
    """n block values around this log ratio, a little apart."""
    return [ratio_log + 0.002 * ((i % 3) - 1) for i in range(n)]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    opened = Ledger.open(tmp_path, round_part=rounds.round_part)
    opened.init()
    return opened


def open_one(ledger: Ledger, **changes: Any) -> rounds.Round:
    given: dict[str, Any] = {"goal": "ten percent", **changes}
    rounds.open_round(ledger, ref("main"), NOW, PINNED, **given)
    return now(ledger)


def now(ledger: Ledger) -> rounds.Round:
    found = rounds.fold(ledger.events())
    assert found is not None
    return found


def facts_of(name: str, **changes: Any) -> CandidateFacts:
    it = ref(name)
    return CandidateFacts(it.commit, it.tree, f"patch-{name}", True, True, (), True)._replace(**changes)


def to_stacked(ledger: Ledger, name: str = "topic", gain: float = 0.12, **changes: Any) -> None:
    open_one(ledger)
    record(ledger, a_plan("s1", "screen", cand=name, **{**WHY, **changes}), spread(gain, 6))
    record(ledger, a_plan("st1", "accept-stack", cand=name, **{**WHY, **changes}), spread(gain, 48))


def test_every_state_takes_the_moves_of_the_table_and_refuses_all_others() -> None:
    table = {
        "open": {"screened": "candidates", "kept": "stacked", "abandon": "abandoned", "pause": "paused"},
        "candidates": {
            "screened": "candidates",
            "kept": "stacked",
            "confirm": "confirming",
            "abandon": "abandoned",
            "pause": "paused",
        },
        "stacked": {
            "screened": "stacked",
            "kept": "stacked",
            "confirm": "confirming",
            "abandon": "abandoned",
            "pause": "paused",
        },
        "confirming": {
            "confirm": "confirming",
            "confirm_failed": "candidates",
            "complete": "complete",
            "abandon": "abandoned",
            "pause": "paused",
        },
        "paused": {"resume": "confirming", "abandon": "abandoned"},
        "complete": {},
        "abandoned": {},
    }
    assert set(table) == set(rounds.STATES)
    for state, event in itertools.product(rounds.STATES, TRANSITIONS):
        if event in table[state]:
            assert rounds.transition(state, event, "confirming") == table[state][event]
        else:
            with pytest.raises(NotLegalNow) as caught:
                rounds.transition(state, event)
            assert caught.value.exit_code == 23


def test_a_whole_round_from_open_to_complete(ledger: Ledger) -> None:
    assert open_one(ledger).state == "open"
    record(ledger, a_plan("s1", "screen", **WHY), spread(0.12, 6))
    assert now(ledger).state == "candidates"
    record(ledger, a_plan("st1", "accept-stack", **WHY), spread(0.13, 48))
    found = now(ledger)
    told = rounds.session.cumulative(found)
    assert told is not None and told["estimate"] == found.kept[0].estimate
    assert (found.state, found.kept[0].status, found.kept[0].attempt) == ("stacked", "keep_stack", "st1")
    ready = rounds.confirm_candidate(found)
    assert ready is not None
    rounds.start_confirm(ledger, facts_of("topic"), "seed")
    assert now(ledger).state == "confirming"
    made = record(ledger, a_plan("c1", "confirm", **WHY), spread(0.12, 24))
    assert made.evidence is not None
    done = rounds.complete(ledger, facts_of("topic"), "c1", made, True, "anytime", "benchmarks/runs/c1")
    assert done["body"]["action"] == "complete"
    found = now(ledger)
    assert (found.state, found.active) == ("complete", False)
    # What was proven is what the confirm run says, not the best of what was looked at before.
    told = rounds.session.cumulative(found)
    assert told == {"estimate": made.evidence.hl, "lcb": made.evidence.lcb}
    assert told["estimate"] != found.kept[0].estimate
    text = rounds.lesson(found)
    assert "ten percent" in text
    assert "fewer loads" in text
    first = rounds.next_actions(found, NextFacts(NOW, "c", "t", NOW))[0]
    assert first.action == "stop"
    ledger.project()
    current = json.loads((ledger.root / "current.json").read_text())
    assert (current["state"], current["round_id"]) == ("complete", found.id)
    assert current["accepted_stack"][0]["attempt_id"] == "st1"
    assert current["best_lcb"] > 1.07
    assert current["next_actions"][0] == {
        "action": "stop",
        "command": "report --session",
        "reason": "the round is complete: report it and stop",
        "legal": True,
    }


def test_current_json_proposes_something_before_any_round(ledger: Ledger) -> None:
    ledger.project()
    current = json.loads((ledger.root / "current.json").read_text())
    assert [a["action"] for a in current["next_actions"]] == ["calibrate", "round open"]
    assert (current["state"], current["baseline_commit"], current["goal"]["id"]) == (None, None, None)


def test_a_failed_confirm_run_returns_to_candidates_and_is_had_once(ledger: Ledger) -> None:
    to_stacked(ledger)
    rounds.start_confirm(ledger, facts_of("topic"), "seed")
    other = dataclasses.replace(WORKLOAD, params={"lanes": 4, "held_out": "seed"})
    made = record(ledger, a_plan("c1", "confirm", workload=other, **WHY), spread(0.06, 24))
    event = rounds.complete(ledger, facts_of("topic"), "c1", made, True, "anytime", None)
    assert event["body"]["action"] == "confirm_failed"
    assert "does not reach 1.10" in event["body"]["reason"]
    found = now(ledger)
    assert found.state == "candidates"
    assert rounds.confirm_candidate(found) is None
    record(ledger, a_plan("a9", "accept", **WHY), spread(0.12, 48))
    with pytest.raises(NotLegalNow, match="confirm run was had"):
        rounds.start_confirm(ledger, facts_of("topic"), "again")


def test_an_interrupted_confirm_run_is_continued(ledger: Ledger) -> None:
    to_stacked(ledger)
    rounds.start_confirm(ledger, facts_of("topic"), "seed")
    record(ledger, a_plan("c1", "confirm", **WHY), spread(0.12, 3), Validity("interrupted", "stopped"))
    assert now(ledger).confirms == {ref("topic").tree: "interrupted"}
    assert rounds.start_confirm(ledger, facts_of("topic"), "seed")["body"]["action"] == "confirm"


def kept_verdict(**changes: Any) -> Verdict:
    evidence = Evidence(24, 0, 0, 1.12, 1.08, None, 1e6, 1.01, 1.0, 0.01, 24)
    return dataclasses.replace(Verdict("keep", "keep", 0, ("why",), evidence), **changes)


@pytest.mark.parametrize(
    ("hl", "lcb", "strict", "completes"),
    [
        (1.10, 1.07, False, True),
        (1.0999, 1.08, False, False),
        (1.12, 1.069, False, False),
        (1.12, 1.07, True, False),
        (1.12, 1.10, True, True),
    ],
)
def test_completion_needs_the_estimate_at_target_and_the_bound_at_its_bar(
    ledger: Ledger, hl: float, lcb: float, strict: bool, completes: bool
) -> None:
    found = open_one(ledger, strict=strict)
    evidence = Evidence(48 if strict else 24, 0, 0, hl, lcb, None, 1e6, 1.01, 1.0, 0.01, 24)
    lacking = rounds.completes(found, kept_verdict(evidence=evidence), True, "anytime")
    assert (lacking == []) == completes


@pytest.mark.parametrize(
    ("verdict", "recorded", "policy"),
    [
        (kept_verdict(status="inconclusive"), True, "anytime"),
        (kept_verdict(status="busy_invalid"), True, "anytime"),
        (kept_verdict(marks=("forced",)), True, "anytime"),
        (kept_verdict(marks=("imported",)), True, "anytime"),
        (kept_verdict(marks=("benchmark-only",)), True, "anytime"),
        (kept_verdict(), False, "anytime"),
        (kept_verdict(), True, "legacy"),
        (kept_verdict(evidence=None), True, "anytime"),
    ],
)
def test_busy_forced_imported_unrecorded_and_legacy_evidence_never_completes(
    ledger: Ledger, verdict: Verdict, recorded: bool, policy: str
) -> None:
    found = open_one(ledger)
    assert rounds.completes(found, kept_verdict(), True, "anytime") == []
    assert rounds.completes(found, verdict, recorded, policy)


def test_the_bar_is_seven_tenths_of_the_gain_or_all_of_it_if_strict() -> None:
    assert rounds.confirm_bar(1.10) == 1.07
    assert rounds.confirm_bar(1.20) == 1.14
    assert rounds.confirm_bar(1.10, strict=True) == 1.10


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"checks_passed": False}, "checks"),
        ({"on_branch": False}, "HEAD"),
        ({"descends": False}, "descend"),
        ({"outside": ("abc",)}, "outside accepted attempts"),
        ({"known_trees": frozenset({ref("topic").tree})}, "tree was accepted"),
        ({"known_patches": frozenset({"patch-topic"})}, "patch was accepted"),
        ({"touched": ("scripts/x.py",)}, "protected paths"),
        ({"tree": ref("stranger").tree}, "kept it"),
    ],
)
def test_a_candidate_that_breaks_a_rule_has_no_confirm_run(
    ledger: Ledger, changes: dict[str, Any], word: str
) -> None:
    to_stacked(ledger)
    with pytest.raises(NotLegalNow, match=word):
        rounds.start_confirm(ledger, facts_of("topic", **changes), "seed")
    assert now(ledger).state == "stacked"


@pytest.mark.parametrize(("missing", "word"), [("mechanism", "mechanism"), ("falsify", "falsification")])
def test_a_candidate_must_state_its_mechanism_and_what_would_falsify_it(
    ledger: Ledger, missing: str, word: str
) -> None:
    to_stacked(ledger, **{missing: None})
    with pytest.raises(NotLegalNow, match=word):
        rounds.start_confirm(ledger, facts_of("topic"), "seed")


def test_a_gain_below_the_target_or_forced_or_of_changed_sizes_is_not_offered_for_confirm(
    ledger: Ledger,
) -> None:
    open_one(ledger)
    record(ledger, a_plan("a1", "accept", cand="small", **WHY), spread(0.05, 48))
    record(
        ledger, a_plan("a2", "accept", cand="forced", forced=True, approval="why", **WHY), spread(0.12, 48)
    )
    record(
        ledger,
        a_plan("a3", "accept", cand="sized", sizes_changed=True, benchmark_tier="local_diagnosis", **WHY),
        spread(0.12, 48),
    )
    found = now(ledger)
    assert len(found.kept) == 3
    assert rounds.confirm_candidate(found) is None
    with pytest.raises(NotLegalNow, match="forced"):
        rounds.start_confirm(ledger, facts_of("forced"), "seed")


def test_a_result_against_another_baseline_is_no_progress(ledger: Ledger) -> None:
    open_one(ledger)
    record(ledger, a_plan("a1", "accept", base="older", **WHY), spread(0.12, 48))
    assert now(ledger).kept == []
    assert now(ledger).best is None


def test_what_was_accepted_before_the_round_opened_is_history(ledger: Ledger) -> None:
    record(ledger, a_plan("old", "accept", **WHY), spread(0.12, 48))
    assert open_one(ledger).kept == []
    assert now(ledger).state == "open"


def test_a_second_round_knows_what_earlier_ones_accepted(ledger: Ledger) -> None:
    to_stacked(ledger)
    rounds.abandon(ledger, "enough")
    second = open_one(ledger)
    trees, _ = accepted_before(ledger.events(), second.id)
    assert trees == {ref("topic").tree}
    assert accepted_before(ledger.events(), rounds.history(ledger.events())[0].id) == (set(), set())
    assert second.id != rounds.history(ledger.events())[0].id


def test_one_round_at_a_time_and_the_refusal_says_what_else(ledger: Ledger) -> None:
    open_one(ledger)
    with pytest.raises(NotLegalNow) as caught:
        open_one(ledger)
    assert "abandon" in caught.value.hint
    assert "confirm" in caught.value.hint
    assert caught.value.exit_code == 23


def test_a_target_below_ten_percent_is_refused(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match=r"1\.10"):
        open_one(ledger, target=1.05)


def test_a_pause_stops_measuring_until_it_is_resumed_to_where_it_was(ledger: Ledger) -> None:
    to_stacked(ledger)
    rounds.pause(ledger, "user_stop", "lunch")
    found = now(ledger)
    assert (found.state, found.pause_rule) == ("paused", "user_stop")
    for command in ("screen", "accept", "accept-stack", "confirm"):
        with pytest.raises(NotLegalNow, match="user_stop"):
            rounds.require_legal(found, command)
    for command in ("status", "next", "probe", "checks", "round abandon", "round resume", "verify"):
        rounds.require_legal(found, command)
    assert rounds.next_actions(found, NextFacts(NOW, "c", "t", NOW))[0].action == "round resume"
    with pytest.raises(UsageError, match="reason"):
        rounds.resume(ledger, "  ")
    rounds.resume(ledger, "back")
    assert (now(ledger).state, now(ledger).pause_rule) == ("stacked", None)
    with pytest.raises(NotLegalNow, match="not paused"):
        rounds.require_legal(now(ledger), "round resume")
    with pytest.raises(UsageError, match="pause rule"):
        rounds.pause(ledger, "tired", "")


def fail(ledger: Ledger, name: str, cand: str, status: str, **changes: Any) -> None:
    record(ledger, a_plan(name, "accept", cand=cand, **changes), [], Validity(status, "why"))


@pytest.mark.parametrize(
    ("ends", "rule"),
    [
        ([("a", "tampered")], "untrustworthy"),
        ([("a", "checks_failed"), ("b", "checks_failed")], "regressions_persist"),
        ([("a", "checks_failed"), ("a", "checks_failed")], "regressions_persist"),
        ([("a", "busy_invalid"), ("a", "busy_invalid")], "untrustworthy"),
        ([("a", "behaviour_changed"), ("b", "behaviour_changed")], "same_reason_twice"),
        ([("a", "behaviour_changed"), ("a", "behaviour_changed")], None),
        ([("a", "behaviour_changed"), ("b", "crashed")], None),
        ([("a", "checks_failed")], None),
        ([("a", "checks_failed"), ("b", "interrupted"), ("c", "checks_failed")], "regressions_persist"),
        ([("a", "checks_failed"), ("b", "interrupted")], None),
    ],
)
def test_the_pause_rules_that_the_ledger_shows(
    ledger: Ledger, ends: list[tuple[str, str]], rule: str | None
) -> None:
    open_one(ledger)
    for i, (cand, status) in enumerate(ends):
        fail(ledger, f"x{i}", cand, status)
    due = rounds.pause_due(now(ledger))
    assert (due[0] if due else None) == rule
    if due:
        rounds.pause(ledger, *due)
        rounds.resume(ledger, "looked at it")
        assert rounds.pause_due(now(ledger)) is None


def test_two_discards_of_one_idea_pause_and_of_two_ideas_do_not(ledger: Ledger) -> None:
    open_one(ledger)
    record(ledger, a_plan("a", "accept", cand="a", mechanism="Bigger tables"), spread(-0.05, 48))
    record(ledger, a_plan("b", "accept", cand="b", mechanism="fewer calls"), spread(-0.05, 48))
    assert rounds.pause_due(now(ledger)) is None
    record(
        ledger,
        a_plan("c", "accept", cand="c", mechanism="fewer  calls".replace("  ", " ")),
        spread(-0.05, 48),
    )
    assert (rounds.pause_due(now(ledger)) or ("",))[0] == "same_reason_twice"


def test_a_users_limit_that_was_reached_pauses(ledger: Ledger) -> None:
    open_one(ledger)
    record(ledger, a_plan("a", "accept"), spread(0.0, 2), limit_stop_reason="wall clock limit of 1 minutes")
    assert (rounds.pause_due(now(ledger)) or ("",))[0] == "limits_exhausted"


def test_the_baseline_the_workload_and_the_harness_are_fixed(ledger: Ledger) -> None:
    found = open_one(ledger)
    rounds.require_legal(found, "accept", ref("main").tree, WORKLOAD.hash, "h" * 64)
    rounds.require_legal(found, "screen", ref("other").tree)
    for changed, word in (
        ((ref("other").tree, WORKLOAD.hash, "h" * 64), "baseline is fixed"),
        ((ref("main").tree, "0" * 64, "h" * 64), "workload"),
        ((ref("main").tree, WORKLOAD.hash, "0" * 64), "harness"),
    ):
        with pytest.raises(NotLegalNow, match=word):
            rounds.require_legal(found, "accept", *changed)
    with pytest.raises(NotLegalNow, match="reaches the target"):
        rounds.require_legal(found, "confirm")


def test_no_act_is_possible_without_a_round_or_out_of_its_turn(ledger: Ledger) -> None:
    finish = lambda: rounds.complete(ledger, facts_of("topic"), "c", kept_verdict(), True, "anytime", None)  # noqa: E731
    acts = (
        lambda: rounds.abandon(ledger, "why"),
        lambda: rounds.pause(ledger, "user_stop", "why"),
        lambda: rounds.resume(ledger, "why"),
        lambda: rounds.start_confirm(ledger, facts_of("topic"), "seed"),
        finish,
    )
    for act in acts:
        with pytest.raises(NotLegalNow, match="no round is open"):
            act()
    to_stacked(ledger)
    before = len(ledger.events())
    for act in (
        finish,
        lambda: rounds.resume(ledger, "why"),
    ):
        with pytest.raises(NotLegalNow, match="stacked does not allow"):
            act()
    assert len(ledger.events()) == before
    rounds.abandon(ledger, "enough")
    with pytest.raises(NotLegalNow, match="no round is open"):
        rounds.abandon(ledger, "again")


def test_without_a_round_every_command_works_but_those_that_need_one() -> None:
    for command in ("screen", "accept", "accept-stack", "calibrate", "checks", "round open"):
        rounds.require_legal(None, command, "any", "any", "any")
    for command in ("confirm", "round resume", "round abandon"):
        with pytest.raises(NotLegalNow, match="no round is open"):
            rounds.require_legal(None, command)


def names(actions: list[rounds.Action]) -> list[str]:
    return [a.action for a in actions]


def test_next_without_a_round_proposes_a_calibration_when_due_and_a_round() -> None:
    assert names(rounds.next_actions(None, NextFacts(NOW, "c", "t", None))) == ["calibrate", "round open"]
    assert names(rounds.next_actions(None, NextFacts(NOW, "c", "t", "2026-01-09T00:00:00Z"))) == [
        "round open"
    ]
    assert names(rounds.next_actions(None, NextFacts(NOW, "c", "t", "2026-01-01T00:00:00Z"))) == [
        "calibrate",
        "round open",
    ]


def test_next_in_a_round_learns_first_then_screens_then_proves_then_confirms(ledger: Ledger) -> None:
    main, topic = ref("main"), ref("topic")
    at_main = NextFacts(NOW, main.commit, main.tree, NOW)
    at_topic = NextFacts(NOW, topic.commit, topic.tree, NOW)
    found = open_one(ledger)
    assert names(rounds.next_actions(found, at_main)) == ["diagnose", "probe"]
    screen = rounds.next_actions(found, at_topic)[0]
    assert screen.command == f"screen {main.commit[:12]} {topic.commit[:12]}"
    contract = rounds.next_actions(found, at_topic._replace(contract_paths=("src/api.rs",)))[0]
    assert (contract.action, "src/api.rs" in contract.reason) == ("accept", True)
    record(ledger, a_plan("s1", "screen", **WHY), spread(0.12, 6))
    stack = rounds.next_actions(now(ledger), at_topic)[0]
    assert stack.command == f"accept-stack {main.commit[:12]} {topic.commit[:12]}"
    record(ledger, a_plan("st1", "accept-stack", **WHY), spread(0.12, 48))
    confirm = rounds.next_actions(now(ledger), at_topic)[0]
    assert confirm.command == f"round confirm {topic.commit[:12]}"
    assert "accept-stack" not in names(rounds.next_actions(now(ledger), at_topic))


def a_candidate(hl: float) -> Candidate:
    return Candidate(str(hl), "c" * 40, "x", "b", hl=hl, promoted=True)


@pytest.mark.parametrize(
    ("estimates", "worth"),
    [
        ([1.05], True),
        ([1.049], False),
        ([1.02, 1.03], True),
        ([1.02, 1.02], False),
        ([1.015, 1.015, 1.015], True),
        ([1.0149, 1.0149, 1.0149], False),
        ([1.005] * 8, True),
        ([1.005] * 7, False),
        ([], False),
    ],
)
def test_a_bundle_is_worth_its_proof_by_the_four_rules(estimates: list[float], worth: bool) -> None:
    assert bool(bundle_reason([a_candidate(hl) for hl in estimates])) == worth


def test_a_gain_that_takes_too_long_to_prove_is_deferred_and_a_loss_discarded(ledger: Ledger) -> None:
    found = open_one(ledger)
    for hl, word in ((1.004, "defer"), (0.996, "discard")):
        candidate = Candidate(word, "c" * 40, "x", "b", status="inconclusive", hl=hl, blocks_needed=900)
        candidate.seconds_per_block = 3.0
        found.candidates = {word: candidate}
        actions = rounds.next_actions(found, NextFacts(NOW, "h", found.baseline_tree, NOW))
        assert actions[0].action == word
        assert "45 minutes" in actions[0].reason
        patient = NextFacts(NOW, "h", found.baseline_tree, NOW, max_proof_minutes=60.0)
        assert word not in names(rounds.next_actions(found, patient))


def test_the_session_report_has_every_key_of_the_document(ledger: Ledger) -> None:
    to_stacked(ledger)
    record(
        ledger, a_plan("bad", "accept", cand="slow", **WHY), spread(-0.05, 48), artifact="benchmarks/runs/bad"
    )
    facts = rounds.session.SessionFacts("main", "c", ("src/lib.rs",), (), (), ("full checks passed",))
    report = rounds.session_report(
        ledger.events(), facts, rounds.next_actions(now(ledger), NextFacts(NOW, "c", "t", NOW))
    )
    assert set(report) == {
        "branch",
        "baseline",
        "candidate",
        "latest_aggregate",
        "accepted",
        "rejects",
        "checks",
        "changed_files",
        "cleanup",
        "benchmark_limits",
        "artefacts",
        "round",
        "round_baseline",
        "next_baseline",
        "round_target",
        "cumulative_ratio",
        "next_experiment",
    }
    assert report["round_baseline"] == ref("main").commit
    assert report["accepted"][0]["attempt_id"] == "st1"
    assert report["rejects"][0]["status"] == "discard"
    assert report["rejects"][0]["reasons"]
    assert report["cumulative_ratio"]["lcb"] > 1.1
    assert report["latest_aggregate"] == "benchmarks/runs/bad"
    assert json.dumps(report)
    text = "\n".join(rounds.session_lines(report))
    assert "round target: 1.1000" in text
    empty = rounds.session_report([], facts, [])
    assert set(empty) == set(report)
    assert empty["round"] is None


def test_a_proposed_experiment_is_reported_as_a_command_line_with_its_reason() -> None:
    proposed = {"action": "screen", "command": "screen A B", "reason": "it is new", "legal": True}
    (line,) = rounds.session_lines({"next_experiment": proposed})
    assert line == "next experiment: scripts/autoresearch.py screen A B (it is new)"
