"""The soak, a short one: what `make soak-env` does for 20 million steps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollcart.bench import soak


def test_two_runs_are_equal_and_memory_is_flat(capsys: Any) -> None:
    assert soak.main(["--steps", "6000", "--lanes", "8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["flat"] and told["equal"]
    assert told["runs"][0]["steps"] == 6000 and told["runs"][0]["resets"] > 40


def test_u20_growth_and_drift_are_told(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    sums = iter("ab")
    monkeypatch.setattr(soak, "play", lambda *_: soak.Run(1, 0, next(sums), 9 << 20, 9 << 20, 0.0))
    assert soak.main([]) == 1
    assert "GREW" in (told := capsys.readouterr().out) and "DIFFER" in told


def test_another_seed_is_other_work() -> None:
    assert soak.play(640, 4, 1).checksum != soak.play(640, 4, 2).checksum
