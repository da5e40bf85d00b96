"""The report's facts and words: which attempts it shows, what it makes of their blocks, and that nothing a
ledger holds becomes markup.
"""

from __future__ import annotations

import dataclasses
import html.parser
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_runs import WORKLOAD, a_block, a_plan, record, ref
from report_root import SCRIPT_TEXT, blocks, calibrate, realistic_root

from cartlab import host
from cartlab import round as rounds
from cartlab.disk import Disk
from cartlab.ledger import Ledger, attempts_of
from cartlab.pipeline.reporting import CARDS, Surroundings, page_of
from cartlab.report import Candidate, Page, diagnose, html_page, markdown_lines
from cartlab.report.markup import _CONTROL, el
from cartlab.report.scale import e_value, ratio_scale, ticks
from cartlab.report.sections import OPEN_ROWS


def page(ledger: Ledger, instructions: Any = lambda attempt: None, **changes: Any) -> Page:
    given = Surroundings(
        root="state",
        project="made-up",
        written_at=ledger.events()[-1]["time"] if ledger.events() else "2026-01-01T00:00:00.000Z",
        host_class=host.host_class(),
        branch="main",
        commit=None,
        next=[{"action": "probe", "reason": "learn", "command": "scripts/autoresearch.py probe"}],
        session={},
        session_text=[],
    )
    return page_of(ledger.events(), given._replace(**changes), instructions)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return realistic_root(tmp_path_factory.mktemp("report") / "state")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    opened = Ledger.open(tmp_path, round_part=rounds.round_part)
    opened.init()
    return opened


def by_name(found: Page) -> dict[str, Candidate]:
    return {c.name or c.attempt_id: c for c in found.candidates}


class Reader(html.parser.HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def of_class(self, name: str) -> int:
        return sum(name in (attributes.get("class") or "").split() for _, attributes in self.elements)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


# ------------------------------------------------------------------------------------- what is shown


def test_each_pair_is_shown_once_with_its_newest_attempt_in_the_order_of_time(full: Ledger) -> None:
    found = page(full)
    shown = [c.attempt_id for c in found.candidates]
    assert len(set(shown)) == len(shown) == 12
    assert [c.at for c in found.candidates] == sorted(c.at for c in found.candidates)
    assert "accept-tile-cache" in shown and "screen-tile-cache" not in shown
    assert not any(c.command == "calibrate" for c in found.candidates)
    kinds = {c.name: c.kind.name for c in found.candidates}
    assert kinds["tile-cache"] == "kept" and kinds["lazy-apu"] == "small"
    assert (
        kinds["branchless"] == "slower" and kinds["arena"] == "failed" and kinds["wide-rows"] == "undecided"
    )


def test_a_verdict_stays_when_the_same_pair_is_measured_again_without_being_recorded(ledger: Ledger) -> None:
    record(ledger, a_plan("kept"), blocks(1.06, 48, 1))
    record(ledger, a_plan("aside", recorded=False), blocks(0.95, 48, 2))
    found = page(ledger)
    assert [(c.attempt_id, c.status, c.own) for c in found.candidates] == [
        ("kept", "keep", True),
        ("aside", "discard", False),
    ]
    assert found.candidates[1].marks == ("unrecorded",)


def test_an_unfinished_rerun_does_not_hide_a_verdict_and_is_remarked(ledger: Ledger) -> None:
    record(ledger, a_plan("kept"), blocks(1.06, 48, 1))
    again = a_plan("again", again=True)
    ledger.append("attempt_started", again.attempt_id, again.to_json())
    found = page(ledger)
    assert [c.attempt_id for c in found.candidates] == ["kept"]
    assert any("1 run is not finished" in remark for remark in found.remarks)


def test_only_an_unfinished_attempt_is_shown_as_such(ledger: Ledger) -> None:
    plan = a_plan("open")
    ledger.append("attempt_started", plan.attempt_id, plan.to_json())
    ledger.append("block", plan.attempt_id, a_block(0, 0.01).to_json())
    (one,) = page(ledger).candidates
    assert one.status == "unfinished" and one.reasons == ("not finished: 1 block so far",)
    assert one.diagnostics is not None and len(one.diagnostics.points) == 1


def test_imported_results_are_marked_and_neither_counted_nor_drawn_as_blocks(full: Ledger) -> None:
    one = next(c for c in page(full).candidates if c.attempt_id == "imported-1")
    assert not one.own and one.marks == ("imported, never counted",) and one.diagnostics is None
    text = Reader(html_page(page(full))).text
    assert "5 kept of 10" in text  # twelve rows: one of them imported, one unrecorded


def test_a_further_workload_and_a_confirm_run_are_told_apart_from_what_they_belong_to(ledger: Ledger) -> None:
    record(ledger, a_plan("kept"), blocks(1.12, 48, 1))
    guard = dataclasses.replace(WORKLOAD, name="rollout")
    record(ledger, a_plan("beside", workload=guard, part_of="kept"), blocks(1.11, 48, 2))
    drawn = dataclasses.replace(WORKLOAD, params={**WORKLOAD.params, "held_out": "seed"})
    sides = [("public", "held-out")[i % 2] for i in range(24)]
    had = [
        dataclasses.replace(block, witness={**block.witness, "half": half})
        for block, half in zip(blocks(1.12, 24, 3), sides, strict=True)
    ]
    record(ledger, a_plan("confirm", "confirm", workload=drawn), had)
    found = page(ledger)
    assert [(c.attempt_id, c.own) for c in found.candidates] == [
        ("kept", True),
        ("beside", False),
        ("confirm", True),
    ]
    assert found.candidates[1].marks == ("beside another, workload rollout",)
    (public, n0, hl0), (held_out, n1, hl1) = found.candidates[2].halves
    assert (public, n0, held_out, n1) == ("public", 12, "held-out", 12)
    assert abs((hl0 or 0.0) - 1.12) < 0.01 and abs((hl1 or 0.0) - 1.12) < 0.01
    text = Reader(html_page(found)).text
    assert "held-out half (12)" in text and "1 kept of 1" in text


def test_a_calibration_alone_gives_the_noise_floor_and_its_age(ledger: Ledger) -> None:
    calibrate(ledger, ref("main"))
    found = page(ledger, written_at="2999-01-01T00:00:00.000Z")
    (noise,) = found.noise
    assert found.candidates == () and noise.this_host and noise.age_days > 7.0
    assert 0.004 < (noise.diagnostics.sd or 0.0) < 0.02 and noise.relink_floor == 0.0041
    text = Reader(html_page(found)).text
    assert "calibrate again" in text and "0.41 %" in text and "No candidate was measured" in text


def test_the_rounds_candidates_are_judged_together_without_forced_evidence(full: Ledger) -> None:
    together = page(full).together
    assert together is not None
    rows = {name.partition(" ")[2]: (value, stands) for name, value, stands in together.rows}
    assert rows["the same, on a busy day"] == (None, False)
    assert rows["skip the APU between reads"][1]
    assert "prefetch the next bank" not in rows and "from the lab machine" not in rows


# ------------------------------------------------------------------------------ what the blocks show


def test_the_wealth_path_ends_at_the_recorded_e_value(full: Ledger) -> None:
    compared = 0
    for one in page(full).candidates:
        if one.diagnostics is None or one.e_value is None:
            continue
        assert len(one.diagnostics.wealth_for) == one.used
        assert math.isclose(10.0 ** one.diagnostics.wealth_for[-1], one.e_value, rel_tol=1e-9)
        compared += 1
    assert compared == 9


def test_an_attempt_that_pooled_shows_the_earlier_blocks_first(full: Ledger) -> None:
    one = by_name(page(full))["tile-cache"]
    assert one.diagnostics is not None and one.pooled == 6
    assert [p.earlier for p in one.diagnostics.points] == [True] * 6 + [False] * (one.used - 6)


def test_the_sides_of_the_coin_show_what_going_first_gains() -> None:
    found = diagnose((), blocks(1.05, 200, 3, sd=0.002, role=0.01), 1.01)
    (n0, first), (n1, second) = found.by_coin
    assert n0 + n1 == 200 and first is not None and second is not None
    assert math.isclose(found.role_effect or 0.0, 0.01, abs_tol=0.001)
    assert second > 1.05 > first


def test_a_drift_is_found_where_there_is_one_and_not_where_there_is_none() -> None:
    drifting = diagnose((), blocks(1.05, 48, 4, drift=0.05), 1.01)
    assert (drifting.drift_p or 1.0) < 0.001 and (drifting.drift_rho or 0.0) > 0.5
    steady = diagnose((), blocks(1.05, 48, 5), 1.01)
    assert (steady.drift_p or 0.0) > 0.01


def test_dropped_blocks_are_shown_and_count_for_nothing_unless_the_run_was_forced() -> None:
    sequence = [a_block(i, 0.02 + 0.001 * (i % 3)) for i in range(10)]
    odd = a_block(10, 3.0, "busy: waited_share 0.90 is above 0.70")
    plain, mixed = diagnose((), sequence, 1.01), diagnose((), [*sequence, odd], 1.01)
    assert mixed.wealth_for == plain.wealth_for and mixed.by_coin == plain.by_coin and mixed.bca == plain.bca
    assert len(mixed.points) == 11 and not mixed.points[-1].counts
    assert len(diagnose((), [*sequence, odd], 1.01, forced=True).wealth_for) == 11


def test_what_cannot_be_computed_says_why() -> None:
    for few in ([], [a_block(0, 0.01)]):
        found = diagnose((), few, 1.01)
        assert found.bca is None and found.drift_p is None and "fewer than" in found.missing[0]
    alike = diagnose((), [a_block(0, 0.01)] * 9, 1.01)
    assert alike.bca is None and "too alike" in alike.missing[0]


def test_witnesses_that_point_the_other_way_are_said(full: Ledger) -> None:
    found = page(full, lambda attempt: {"base": 90.0, "cand": 100.0} if attempt == "accept-stack" else None)
    threads, stack = by_name(found)["threads"], by_name(found)["stack"]
    assert threads.disagree and "CPU time 0.9" in threads.disagree[0]
    assert stack.attempt_id != "accept-stack" and stack.instructions is None
    again = page(full, lambda attempt: {"base": 90.0, "cand": 100.0} if attempt == stack.attempt_id else None)
    told = by_name(again)["stack"]
    assert told.instructions == 0.9 and "instructions 0.900" in told.disagree[0]
    assert told.disagree[0] in Reader(html_page(again)).text


# ------------------------------------------------------------------------------------- sensible pages


def test_a_root_without_anything_gives_a_page_that_says_so(ledger: Ledger) -> None:
    empty = page(ledger)
    text = Reader(html_page(empty)).text
    for words in ("No round was opened", "No candidate was measured", "No calibration is recorded"):
        assert words in text
    assert "scripts/autoresearch.py probe" in text
    assert json.dumps(empty.to_json(), allow_nan=False)
    assert "No candidate was measured." in markdown_lines(empty)


class Unsynced(Disk):
    """A disk that does not wait: many events in a test of what is made of them."""

    def fsync(self, fd: int) -> None:
        pass


def test_two_hundred_candidates_are_all_there_and_the_page_stays_small(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path, disk=Unsynced())
    for i in range(200):
        ledger.append(
            "attempt_started", f"screen-{i}", a_plan(f"screen-{i}", "screen", cand=f"c{i}").to_json()
        )
        for block in blocks(1.0 + 0.001 * (i % 40), 3, i):
            ledger.append("block", f"screen-{i}", block.to_json())
        evidence = {"hl": 1.0 + 0.001 * (i % 40), "used": 3, "dropped": 0, "pooled": 0, "guard": 1.01}
        ledger.append("decision", f"screen-{i}", {"status": "triage_promote", "evidence": evidence})
        ledger.append("attempt_finished", f"screen-{i}", {"status": "triage_promote"})
    found = page(ledger)
    written = html_page(found)
    reader = Reader(written)
    assert reader.of_class("row") == 200 and reader.of_class("evidence") == CARDS
    assert f"{200 - OPEN_ROWS} older candidates" in reader.text
    assert len(written) < 1_000_000
    assert len(found.to_json()["candidates"]) == 200


@pytest.mark.parametrize("status", ["paused", "abandoned", "complete"])
def test_a_round_that_is_not_going_on_says_why(full: Ledger, status: str) -> None:
    found = page(full)
    assert found.round is not None
    ended = dataclasses.replace(found.round, state=status, why=f"{status} because of <that>")
    reader = Reader(html_page(dataclasses.replace(found, round=ended)))
    assert f"{status} because of <that>" in reader.texts


def test_a_repair_of_the_ledger_is_remarked(tmp_path: Path) -> None:
    Ledger.open(tmp_path).init()
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"v":1,"se')
    found = page(Ledger.open(tmp_path))
    assert any("torn last line" in remark for remark in found.remarks)
    assert "torn last line" in Reader(html_page(found)).text


# ------------------------------------------------------------------------------- drawings and escaping


def test_a_bar_reaches_from_bound_to_bound_and_is_open_where_there_is_none(full: Ledger) -> None:
    found = page(full)
    reader = Reader(html_page(found))
    both = sum(c.lcb is not None and c.ucb is not None for c in found.candidates)
    neither = sum(c.hl is not None and c.lcb is None and c.ucb is None for c in found.candidates)
    assert (both, neither) == (8, 2)
    assert reader.of_class("bar") == 2 * both + neither and reader.of_class("interval") == both
    assert reader.of_class("chart") == 2 * reader.of_class("evidence") + reader.of_class("noise")


def test_every_drawing_has_words_for_those_who_do_not_see_it(full: Ledger) -> None:
    written = html_page(page(full))
    drawings = written.split("<svg")[1:]
    told = [d for d in drawings if 'role="img"' in d.partition(">")[0]]
    assert told and all(d.partition(">")[2].startswith("<title>") for d in told)
    silent = [d.partition(">")[0] for d in drawings if 'role="img"' not in d.partition(">")[0]]
    # Legends are hidden from readers, marks lie inside a drawing that has its words.
    assert all("aria-hidden" in d or "overflow" in d for d in silent)


def test_what_the_ledger_holds_stays_text(full: Ledger) -> None:
    written = html_page(page(full, project='"><img src=x onerror=alert(1)>'))
    reader = Reader(written)
    assert not {tag for tag, _ in reader.elements} & {"script", "img", "iframe", "object", "link", "base"}
    assert SCRIPT_TEXT in reader.texts
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    lines = "\n".join(markdown_lines(page(full)))
    assert "<script" not in lines.replace("\\<script", "")


@given(st.text(), st.text())
def test_any_text_comes_back_from_content_and_attribute_as_it_was(content: str, attribute: str) -> None:
    reader = Reader(el("p", content, title=attribute))
    # What HTML does not allow in any form comes back as the replacement character.
    assert reader.texts == ([_CONTROL.sub("\ufffd", content)] if content else [])
    assert reader.elements == [("p", {"title": _CONTROL.sub("\ufffd", attribute)})]


def test_markdown_cells_hold_one_line_and_no_bar(ledger: Ledger) -> None:
    record(ledger, a_plan("odd", "screen", mechanism="a | b\n<i>c"), blocks(1.0, 6, 1))
    (row,) = [line for line in markdown_lines(page(ledger)) if line.startswith("| 20")]
    assert row.replace("\\|", "").count("|") == 11 and "a \\| b \\<i\\>c" in row


@given(st.floats(0.2, 5.0), st.floats(0.001, 4.0), st.integers(2, 9))
def test_ticks_are_round_few_and_inside(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    assert len(found) <= most
    assert all(low - 1e-6 <= t <= low + span + 1e-6 for t in found)
    steps = {round(b - a, 9) for a, b in itertools.pairwise(found)}
    assert len(steps) <= 1


@given(st.lists(st.floats(0.3, 3.0), min_size=1), st.lists(st.floats(0.5, 2.0)))
def test_the_scale_holds_every_estimate_and_every_mark(estimates: list[float], bounds: list[float]) -> None:
    scale = ratio_scale(estimates, bounds, [1.0, 1.01, 1.03], 0.0, 100.0)
    assert all(scale.holds(v) for v in (*estimates, 1.0, 1.03))
    assert all(0.0 <= scale.at(v) <= 100.0 for v in (*estimates, *bounds, 9.0))


def test_e_values_are_short_at_any_size() -> None:
    assert [e_value(v) for v in (None, 0.0, 2e-7, 0.15, 4.25, 110.4, 9999.0, 3.2e12)] == [
        "none", "0e0", "2e-7", "0.15", "4.2", "110", "9999", "3e12",
    ]  # fmt: skip


def test_the_attempts_behind_the_page_are_those_of_the_ledger(full: Ledger) -> None:
    assert page(full).attempts == len(attempts_of(full.events()))
