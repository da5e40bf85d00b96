"""The campaign's documents: round trips, what the original tools write, and that people's text stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import campaign_lab
import pytest
from campaign_events import GOAL, Events
from campaign_lab import Lab, matrix
from hypothesis import given
from hypothesis import strategies as st

from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.loops import manifest
from cartlab.loops.campaign import board, documents, folder, reading, records, tables
from cartlab.loops.campaign.board import Entry
from cartlab.loops.campaign.records import Campaign
from cartlab.loops.campaign.tables import Row

FIXTURES = Path(__file__).parent / "fixtures" / "campaign"
TEXT = st.text(st.characters(blacklist_categories=("Cc", "Cs")) | st.sampled_from("|\\\n<br>"), max_size=30)
CELL = TEXT.map(lambda text: "".join(c for c in text if c.isprintable() or c == "\n").strip())
ROWS = st.lists(
    st.builds(
        Row,
        exp_id=st.from_regex(r"[0-9a-z-]{1,8}", fullmatch=True),
        angle=CELL,
        change=CELL,
        source=CELL,
        status=st.sampled_from(tables.STATUSES),
        metric=CELL,
        delta=CELL,
        verified=st.sampled_from(tables.VERIFIED),
        seconds=CELL,
        note=CELL,
    ),
    max_size=4,
)
NUMBER = st.none() | st.floats(allow_nan=False, allow_infinity=False)
MORE = st.dictionaries(st.sampled_from(["seconds_used", "error"]), st.integers() | st.text())
ENTRIES = st.lists(
    st.builds(
        Entry, st.integers(0, 99), st.text(), NUMBER, NUMBER, st.booleans(), st.booleans(), st.text(), MORE
    ),
    max_size=4,
)


@given(ROWS)
def test_lc19_the_table_of_experiments_survives_its_file(rows: list[Row]) -> None:
    text = tables.render(rows)
    assert tables.parse(text) == tuple(rows)
    assert tables.render(tables.parse(text)) == text
    assert len(text.splitlines()) == len(rows) + 2


@given(ENTRIES)
def test_lc20_the_board_survives_its_file(entries: list[Entry]) -> None:
    text = board.render(entries)
    assert board.parse(text) == tuple(entries)
    assert board.render(board.parse(text)) == text
    keys = {"gen", "exp_id", "metric", "delta", "keep", "verified", "note"}
    assert all(set(json.loads(line)) >= keys for line in text.split("\n")[:-1])
    assert board.merged(text, ()) == text


def test_lc19_the_original_table_is_read() -> None:
    rows = tables.parse((FIXTURES / "EXPERIMENTS.md").read_text(encoding="utf-8"))
    assert [(row.exp_id, row.status, row.verified) for row in rows] == [
        ("0", "passed", "n/a"),
        ("g0-lr-warmup", "passed", "yes"),
        ("g0-dropout", "passed", "no"),
        ("g1-moe", "failed", "n/a"),
        ("g1-ema", "queued", ""),
    ]
    assert rows[0].angle == "\u2014" and rows[1].metric == "0.9712" and rows[1].delta == "-0.0031"
    assert rows[1].source == "https://example.org/warmup" and rows[3].note == "CUDA OOM | at step 12"
    assert tables.parse(tables.render(rows)) == rows


def test_lc20_the_original_board_is_read_and_a_missing_verdict_is_none() -> None:
    text = (FIXTURES / "board.jsonl").read_text(encoding="utf-8")
    found = board.parse(text)
    assert [(one.gen, one.exp_id, one.keep, one.verified) for one in found] == [
        (0, "g0-lr-warmup", True, True),
        (0, "g0-dropout", False, False),
        (1, "g1-moe", False, False),
        (1, "g1-ema", True, False),
    ]
    assert found[2].metric is None and found[3].other == {"seconds_used": 288}
    assert board.parse(board.render(found)) == found


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("# nothing\n", "must have a table with the columns exp_id and status"),
        ("| exp_id | status |\n|--|--|\n| 1 | passed | x |\n", "line 3: expected 2 cells, found 3"),
        ("| exp_id | status |\n|--|--|\n| 1 | won |\n", "line 3: status must be one of queued"),
    ],
)
def test_lc19_a_table_that_cannot_be_read_is_named_by_its_line(text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        tables.parse(text)
    with pytest.raises(BadInput, match=r"board\.jsonl line 2"):
        board.parse('{"gen": 0, "exp_id": "1"}\n[]\n')


# --- from the ledger ------------------------------------------------------------------------------


def played() -> Campaign:
    """Two generations: a champion, a loser, a failed win, a crash, one that the budget did not cover."""
    events = Events().opened(stagnation=2).generation(0, "opened", seed=True)
    for number, letter in zip("12345", "ABCDE", strict=True):
        events.proposed(number, 0, angle=letter)
    events.ran("2", 0, "discard", 2.5, delta=0.5, verified="no", note="worse | much\nworse")
    events.ran("1", 0, "keep", 1.5, champion=True, delta=-0.5, verified="yes", audit="Mechanism confirmed.")
    events.ran("3", 0, "unverified", 1.4, delta=-0.6, verified="no", note="the second seed was worse")
    events.ran("4", 0, "crashed", None, verified="n/a", note="Traceback")
    events.step("5", "queued", 0)
    events.tell("goal", op="not_run", gen=0, exp_id="5", worst_case_s=660.0, remaining_s=12.0)
    events.generation(0, "closed", champion="1").generation(1, "opened", rejected=["hypothesis x: no source"])
    events.proposed("6", 1, change="  CHANGE h1 ").step(
        "6", "closed", 1, reason="the same change as experiment 1"
    )
    events.generation(1, "closed", champion=None)
    events.tell("lever", id="2", rung=3, op="queued", title="another solver", source="https://example.org/s")
    return records.read(events, GOAL)


def test_lc19_the_table_has_the_baseline_first_and_the_five_words() -> None:
    rows = tables.rows_of(played())
    assert [(row.exp_id, row.status, row.verified, row.delta) for row in rows] == [
        ("0", "passed", "n/a", "0"),
        ("1", "passed", "yes", "-0.5"),
        ("2", "passed", "no", "+0.5"),
        ("3", "dropped", "no", "-0.6"),
        ("4", "failed", "n/a", ""),
        ("5", "queued", "", ""),
    ]
    assert rows[5].note == "not-run: it may cost 660 s, 12.0 s are left"
    assert rows[1].seconds == "36.0"
    text = tables.render(rows)
    assert "worse \\| much<br>worse" in text and tables.parse(text) == rows


def test_lc20_the_board_has_a_line_a_verdict_in_their_order() -> None:
    entries = board.entries_of(played())
    assert [(one.exp_id, one.keep, one.verified, one.delta) for one in entries] == [
        ("2", False, False, 0.5),
        ("1", True, True, -0.5),
        ("3", False, False, -0.6),
        ("4", False, False, None),
    ]


def test_lc20_the_board_only_grows_and_what_others_wrote_in_it_stays() -> None:
    entries = board.entries_of(played())
    first = board.merged(None, entries[:2])
    strange = first.replace('"keep": true', '"keep": false') + '{"gen": 7, "exp_id": "theirs"}\nno json\n'
    text = board.merged(strange, entries)
    assert text.startswith(first)
    assert text.splitlines()[2:4] == ['{"gen": 7, "exp_id": "theirs"}', "no json"]
    assert board.merged(text, entries) == text


def test_lc20_the_leaderboard_has_verified_rows_alone_sorted_by_the_direction() -> None:
    def ranked(direction: str) -> list[str]:
        events = Events().opened().generation(0, "opened")
        events[0]["body"]["describes"]["campaign"]["budget"]["direction"] = direction
        for number, value in (("1", 1.5), ("2", 0.9), ("3", 1.2), ("4", 0.1)):
            verdict = "no" if number == "4" else "yes"
            events.proposed(number, 0).ran(number, 0, "keep", value, delta=0.1, verified=verdict)
        text = board.leaderboard(records.read(events, GOAL))
        return [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| ")][1:]

    assert ranked("lower") == ["2", "3", "1"]
    assert ranked("higher") == ["1", "3", "2"]


def test_lc20_findings_has_its_sections_and_keeps_what_people_wrote() -> None:
    found = board.findings(played())
    assert tuple(found) == board.SECTIONS
    assert "Mechanism confirmed." in found["What works"]
    assert (
        found["What does NOT work"].count("\n- ") == 2
        and "dropped, unverified" in found["What does NOT work"]
    )
    assert "stagnant generations now: 1 of 2" in found["Stagnation log"]
    assert found["Next levers"] == "- another solver (rung 3, https://example.org/s)\n"
    text = folder.with_sections(None, found, "# Findings")
    people = (
        text.replace("## What works\n", "## What works\n\nI think it is the warm-up.\n") + "\n## Mine\nkept\n"
    )
    newer = {**found, "What works": "- other\n"}
    after = folder.with_sections(people, newer, "# Findings")
    assert "I think it is the warm-up." in after and after.endswith("## Mine\nkept\n")
    assert "Mechanism confirmed." not in after and after.count(folder.BEGIN) == len(found)
    assert folder.with_sections(after, newer, "# Findings") == after


def test_lc28_results_name_the_verified_configuration_or_say_that_the_baseline_is_unbeaten() -> None:
    text = board.results(played())
    assert "Best verified configuration: experiment 1, error = 1.5 (-0.5)" in text
    assert f"git diff {'b' * 12} {'d' * 12}" in text and "- not covered: F, G, H, I, J, K" in text
    events = Events().opened().generation(0, "opened").proposed("1", 0).ran("1", 0, "discard", 3.0, delta=1.0)
    assert "**baseline unbeaten**; the baseline is 2.0." in board.results(records.read(events, GOAL))
    assert "Nothing was measured yet." in board.results(records.read(Events().opened(), GOAL))


def test_lc31_a_spun_idea_stands_in_the_plan_and_in_the_coverage() -> None:
    events = Events().opened().generation(0, "opened")
    events.proposed("1", 0, angle="B", parent="h0", transformation="inversion")
    found = records.read(events, GOAL)
    assert "baseline; inversion of h0" in board.plan(found)
    assert "| B | regularisation | 1 | 0 | 0 | 1 is inversion of h0 |" in board.coverage(found)


# --- on disk --------------------------------------------------------------------------------------


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = campaign_lab.make(tmp_path, monkeypatch)
    assert made.init() == 0
    made.documents()
    return made


def rendered(lab: Lab) -> list[str]:
    from cartlab.loops.campaign import budget

    campaign = lab.campaign()
    return documents.write(campaign, budget.spent(lab.events(), campaign.goal.id))


def test_lc20_documents_are_deleted_and_rebuilt_and_a_second_time_nothing_is_written(lab: Lab) -> None:
    path = lab.write("plan.json", matrix(parent="h0", transformation="scale"))
    assert lab.cartlab("campaign", "plan", "--hypotheses", str(path)) == 0
    names = {"EXPERIMENTS.md", "FINDINGS.md", "leaderboard.md", "RESULTS.md", "PLAN.md", "BUDGET.md"}
    assert names <= {path.name for path in lab.folder.iterdir()}
    before = {name: (lab.folder / name).read_bytes() for name in names}
    assert rendered(lab) == []
    for name in names:
        (lab.folder / name).unlink()
    assert set(rendered(lab)) == names
    assert {name: (lab.folder / name).read_bytes() for name in names - {"BUDGET.md"}} == {
        name: text for name, text in before.items() if name != "BUDGET.md"
    }
    rows = tables.parse((lab.folder / "EXPERIMENTS.md").read_text())
    assert [row.status for row in rows] == ["passed"] + ["queued"] * 7


def test_lc20_what_is_rendered_counts_neither_as_an_idea_nor_as_a_citation(lab: Lab) -> None:
    from cartlab.loops.campaign import gates

    path = lab.write("plan.json", matrix())
    before = gates.idea_angles((lab.folder / "IDEA_ANGLES.md").read_text())
    assert lab.cartlab("campaign", "plan", "--hypotheses", str(path)) == 0
    assert gates.idea_angles((lab.folder / "IDEA_ANGLES.md").read_text()) == before
    gates.may_plan(folder.Folder(lab.folder))


def test_lc20_a_document_is_never_believed(lab: Lab) -> None:
    path = lab.write("plan.json", matrix())
    assert lab.cartlab("campaign", "plan", "--hypotheses", str(path)) == 0
    ledger = Ledger.open(lab.experiment.root)
    table = lab.folder / "EXPERIMENTS.md"
    table.write_text(table.read_text().replace("| queued |", "| passed |"))
    (lab.folder / "board.jsonl").write_text('{"gen": 0, "exp_id": "1", "metric": 9, "keep": true}\n')
    assert records.newest(ledger.events()).champion is None
    rendered(lab)
    assert [row.status for row in tables.parse(table.read_text())][1:] == ["queued"] * 7


def test_the_repository_is_as_it_was_and_a_lost_folder_is_made_again(lab: Lab) -> None:
    before = manifest.digest(manifest.scan(lab.experiment.repo))
    shutil.rmtree(lab.folder)
    assert lab.init() == 0
    assert (lab.folder / "BUDGET.md").is_file() and (lab.folder / "FINDINGS.md").is_file()
    assert manifest.digest(manifest.scan(lab.experiment.repo)) == before


# --- what the original tools write ----------------------------------------------------------------


def test_lc4_the_original_budget_is_read_its_spending_is_not_believed_and_its_comments_stay() -> None:
    from cartlab.loops.campaign import budget

    text = (FIXTURES / "BUDGET.md").read_text(encoding="utf-8")
    found = budget.parse(text)
    assert found == budget.Budget("val_bpb", "lower", 6, 300.0, 1, "2", 8, 4, 3, 3, 3)
    again = budget.render(found, budget.Spent(1, 5, 90.0, "0.98", "2"), text)
    assert again.partition("--- spent ---")[0] == text.partition("--- spent ---")[0]
    assert "experiments_run = 5" in again and "champion        = 2" in again and "g0-lr" not in again


def test_lc20_the_original_findings_keep_their_words_beside_the_rendered_ones() -> None:
    text = (FIXTURES / "FINDINGS.md").read_text(encoding="utf-8")
    after = folder.with_sections(text, board.findings(played()), "# Findings")
    kept = [line for line in text.splitlines() if line.strip()]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert after.count("## ") == 6 and after.count(folder.BEGIN) == 6


def test_lc8_the_original_angles_are_read() -> None:
    from cartlab.loops.campaign import gates

    angles, ideas = gates.idea_angles((FIXTURES / "IDEA_ANGLES.md").read_text(encoding="utf-8"))
    assert angles["L"] == "Tokenisation"
    assert {letter: len(found) for letter, found in ideas.items()} == {"A": 2, "G": 1, "L": 1}


# --- read back ------------------------------------------------------------------------------------


@given(st.lists(CELL, min_size=1, max_size=3))
def test_lc20_leaderboard_findings_and_results_survive_their_files(changes: list[str]) -> None:
    events = Events().opened().generation(0, "opened")
    for at, change in enumerate(changes, 1):
        events.proposed(str(at), 0, change=change)
        events.ran(str(at), 0, "keep", 2.0 - at / 10, champion=True, delta=-0.1, verified="yes", note=change)
    found = records.read(events, GOAL)
    leaders = board.leaders(found)
    assert [one.exp_id for one in leaders] == [str(at) for at in range(len(changes), 0, -1)]
    assert reading.leaderboard(folder.with_block(None, board.leaderboard(found), "# Leaderboard")) == leaders
    said = reading.findings(folder.with_sections(None, board.findings(found), "# Findings"))
    assert tuple(said) == board.SECTIONS and len(said["What works"]) == len(changes)
    text = board.results(found)
    assert reading.results(text) == reading.Results(str(len(changes)), False, tables.rows_of(found))


def test_lc20_an_empty_leaderboard_and_an_unbeaten_baseline_are_read() -> None:
    events = Events().opened().generation(0, "opened").proposed("1", 0).ran("1", 0, "discard", 3.0, delta=1.0)
    found = records.read(events, GOAL)
    assert reading.leaderboard(board.leaderboard(found)) == ()
    assert reading.results(board.results(found)) == reading.Results(None, True, tables.rows_of(found))


def test_lc20_the_original_findings_are_read() -> None:
    said = reading.findings((FIXTURES / "FINDINGS.md").read_text(encoding="utf-8"))
    assert tuple(said) == board.SECTIONS
    assert said["Next levers"] == ("distillation (https://example.org/distil)",)
