"""How rates are taken in turns and reported: against sides with a counted number of steps."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import rollcart
from rollcart.bench import main, sps

BUNDLED = Path(rollcart.__file__).parent / "data/stable/CartRunner-Nes-v0/rom.nes"


def side(name: str, log: list[str]) -> sps.Side:
    return sps.Side(name, 4, prepare=lambda n: None, run=lambda: log.append(name), close=lambda: None)


def test_sides_take_turns_in_mirrored_order() -> None:
    log: list[str] = []
    sides = [side("a", log), side("b", log)]
    rates = sps.in_turns(sides, seconds=0.001, repeats=2, warm_up=0.0)
    changes = [log[0]] + [y for x, y in itertools.pairwise(log) if x != y]
    assert changes == ["a", "b", "a", "b", "a"]  # warm-up a b, then a b, then b a: b's two turns join
    assert [len(v) for v in rates.values()] == [2, 2]


def test_the_report_gives_medians_frames_and_the_ratio_of_the_first_side() -> None:
    sides = [side("rollcart", []), side("stable-retro", [])]
    rates = {"rollcart": [100.0, 300.0, 200.0], "stable-retro": [10.0, 20.0, 40.0]}
    result = sps.report(sides, rates, {"frame_skip": 4})
    assert result["env_steps_per_sec"] == 200.0
    assert result["sides"]["rollcart"]["frames_per_sec"] == 800.0
    ratio = result["ratios"]["stable-retro"]
    assert ratio["ratio_of_medians"] == 10.0 and ratio["median_of_turn_ratios"] == 10.0
    assert sps.lines(result)[-1] == "evidence: learning"


@pytest.mark.parametrize(("source_age", "stale"), [(10, True), (1000, False)])
def test_a_native_module_older_than_a_source_is_stale(tmp_path: Path, source_age: int, stale: bool) -> None:
    native, now = tmp_path / "module.so", 2_000_000_000
    for path, age in (
        (native, 100),
        (tmp_path / "Cargo.toml", 2000),
        (tmp_path / "src" / "lib.rs", source_age),
    ):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (now - age, now - age))
    assert sps.stale_module(native, tmp_path) is stale


def test_outside_a_checkout_no_module_is_stale(tmp_path: Path) -> None:
    (tmp_path / "module.so").touch()
    assert not sps.stale_module(tmp_path / "module.so", tmp_path)


def test_a_bare_rom_becomes_a_game_that_both_sides_begin_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "FRAMES_TO_START", 96)
    monkeypatch.setattr(main, "FRAMES_BETWEEN_STATES", 16)
    params = main.wrapped_game(BUNDLED, tmp_path, seed=1)
    assert params["states"] == ("State0", "State1", "State2", "State3")
    own, loaded = rollcart.Console(BUNDLED), rollcart.Console(params["rom_path"])
    own.step()  # stable-retro's core has run a frame before it takes buttons
    states = iter(sorted((tmp_path / params["game"]).glob("*.state")))

    def compare() -> bytes:
        loaded.load(next(states).read_bytes())
        assert loaded.ram.tobytes() == own.ram.tobytes()
        return b""

    main.random_play(1, own.step, compare)
