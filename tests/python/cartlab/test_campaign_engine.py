"""The engine's campaign: its hypotheses and its edits fit each other and the sources as they are now."""

from __future__ import annotations

import json
from pathlib import Path

from cartlab.loops.campaign import hypotheses, matrix

TOP = Path(__file__).parents[3]
HERE = TOP / "scripts" / "campaigns" / "engine"
IDEAS = [hypotheses.parse(one) for one in json.loads((HERE / "matrix.json").read_text())]
EDITS = json.loads((HERE / "edits.json").read_text())


def test_the_three_ideas_are_a_matrix_that_may_run() -> None:
    assert len(IDEAS) == 3 and matrix.matrix_faults(IDEAS) == []


def test_each_idea_has_edits_whose_old_text_stands_in_the_sources() -> None:
    assert set(EDITS) == {one.id for one in IDEAS}
    for edits in EDITS.values():
        for edit in edits:
            text = (TOP / edit["file"]).read_text(encoding="utf-8")
            assert text.count(edit["old"]) == edit["times"], edit
            assert edit["new"] != edit["old"] and edit["file"].startswith("src/")


def test_each_idea_cites_a_line_that_there_is() -> None:
    for one in IDEAS:
        name, _, line = one.source.partition(":")
        assert len((TOP / name).read_text(encoding="utf-8").splitlines()) >= int(line)
