"""`verify` over a campaign's planning: each forged step is found, and an honest ledger is not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from campaign_events import Events, hypothesis
from hypothesis import given
from hypothesis import strategies as st

from cartlab.loops.campaign import critique
from cartlab.loops.campaign.critique import Rules, Score
from cartlab.verify.planning import PlanReplay

Bend = Callable[[Events], None]


def honest() -> Events:
    """A seed matrix of three, then a generation of four with two survivors, one of which is champion."""
    events = Events().opened()
    listed(events, 0, "123", "AFK", seed=True)
    for number in "123":
        events.step(number, "queued", 0)
    events.generation(0, "closed", champion=None)
    listed(events, 1, "4567", "ABCD")
    qualities = {"4": 9.0, "5": 8.0, "6": 5.0, "7": 7.0}
    scores = [
        Score(name, f"c{at}", q, name != "7" or at == 0) for name, q in qualities.items() for at in (0, 1)
    ]
    found = critique.judge(list(zip("4567", "ABCD", strict=True)), scores, Rules())
    assert [one.survives for one in found] == [True, True, True, False]
    events.generation(
        1, "critiqued", quality=6.0, half_passes=False, keep=4, verdicts=[one.to_json() for one in found]
    )
    for number in "456":
        events.step(number, "queued", 1)
    events.tell("decision", "x", gen=1, exp_id="4", champion=True)
    return events.generation(1, "closed", champion="4")


def listed(events: Events, gen: int, numbers: str, letters: str, seed: bool = False) -> None:
    bodies = {n: hypothesis(f"h{n}", letter) for n, letter in zip(numbers, letters, strict=True)}
    rows = [{"exp_id": n, "hypothesis": body, "duplicate": None} for n, body in bodies.items()]
    events.generation(gen, "opened", seed=seed, listed=rows)
    for number, letter in zip(numbers, letters, strict=True):
        events.proposed(number, gen, angle=letter)


def findings(events: Events) -> list[str]:
    said: list[str] = []
    replay = PlanReplay(lambda _, what: said.append(what))
    for event in events:
        {"goal": replay.goal, "proposal": replay.proposal, "decision": replay.decision}[event["type"]](event)
    return said


def test_an_honest_campaign_has_no_finding() -> None:
    assert findings(honest()) == []


def phase(events: Events, gen: int, name: str) -> dict[str, Any]:
    bodies: list[dict[str, Any]] = [event["body"] for event in events]
    return next(body for body in bodies if (body.get("gen"), body.get("phase")) == (gen, name))


def verdict(events: Events, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = phase(events, 1, "critiqued")["verdicts"]
    return next(one for one in found if one["exp_id"] == name)


@pytest.mark.parametrize(
    ("bend", "what"),
    [
        (lambda e: verdict(e, "6").update(quality=8.0), "experiment 6: its scores give 5"),
        (
            lambda e: verdict(e, "7").update(survives=True),
            "7 survives, and its critics did not find it novel",
        ),
        (lambda e: verdict(e, "5").update(survives=False), "it was queued and did not survive"),
        (lambda e: phase(e, 1, "critiqued").update(keep=2), "3 experiments survive, 2 may"),
        (lambda e: phase(e, 1, "closed").update(champion="5"), "names champion 5, which it did not bring"),
        (lambda e: phase(e, 1, "opened").update(gen=4), "generation 4 was opened out of its turn"),
        (lambda e: phase(e, 0, "closed").update(gen=9), "generation 9 is closed and is not open"),
        (lambda e: phase(e, 1, "opened")["listed"].pop(), "its hypothesis is none of those"),
        (lambda e: phase(e, 0, "opened").update(seed=False), "it was queued and did not survive"),
        (lambda e: phase(e, 1, "opened").update(seed=True), "the seed matrix has fewer than five angles"),
    ],
)
def test_a_bent_plan_is_found(bend: Bend, what: str) -> None:
    events = copy.deepcopy(honest())
    bend(events)
    assert any(what in found for found in findings(events)), findings(events)


ROWS = st.lists(
    st.tuples(
        st.sampled_from("ABCD"),
        st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=8,
)


@given(ROWS, st.integers(1, 5), st.booleans())
def test_lc12_whatever_the_scores_the_survivors_follow_the_rules_and_verify_agrees(
    rows: list[tuple[str, list[tuple[int, bool]]]], keep: int, half: bool
) -> None:
    names = [str(at) for at in range(1, len(rows) + 1)]
    scores = [
        Score(name, f"c{at}", float(quality), novel)
        for name, (_, opinions) in zip(names, rows, strict=True)
        for at, (quality, novel) in enumerate(opinions)
    ]
    candidates = [(name, letter) for name, (letter, _) in zip(names, rows, strict=True)]
    found = critique.judge(candidates, scores, Rules(half_passes=half, keep=keep))
    survivors = [one for one in found if one.survives]
    passed = [one for one in found if one.novel and one.quality >= 6]
    assert bool(survivors) == bool(passed) and len(survivors) <= keep
    assert all(one.novel for one in survivors)
    possible = min(3, keep, len({one.angle for one in found if one.novel}))
    assert not survivors or len({one.angle for one in survivors}) >= possible
    assert all(one.reason for one in found)

    events = Events().opened()
    bodies = {name: hypothesis(f"h{name}", letter) for name, letter in candidates}
    rows_of = [{"exp_id": name, "hypothesis": body, "duplicate": None} for name, body in bodies.items()]
    events.generation(0, "opened", listed=rows_of)
    events.generation(
        0, "critiqued", quality=6.0, half_passes=half, keep=keep, verdicts=[one.to_json() for one in found]
    )
    assert findings(events) == []
