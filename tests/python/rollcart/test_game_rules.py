"""Values, rewards and ends are those of stable-retro's own evaluator, for every NES game that it ships.

stable-retro evaluates on the memory of a running core, so one runs (the bundled game's), and random bytes
are put into its RAM. Only files of the integrations are used; no ROM but ours.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vec_model import GAME

from rollcart import GameRules

_SPEC = importlib.util.find_spec("stable_retro")
ROOT = Path(next(iter(_SPEC.submodule_search_locations or [""]))) / "data/stable" if _SPEC else Path()
GAMES = sorted(path.name for path in ROOT.glob("*-Nes-v*")) if _SPEC else []
WORK_RAM = 0x2000


@pytest.fixture(scope="module")
def emulator() -> Iterator[Any]:
    retro = pytest.importorskip("stable_retro", reason="the extra `peers` has the oracle")
    core = retro.RetroEmulator(str(GAME / "rom.nes"))
    core.step()
    yield core
    del core


def oracle(emulator: Any, folder: Path) -> Any:
    from stable_retro.data import GameData

    data = GameData(data=str(folder / "data.json"), scenario=str(folder / "scenario.json"))
    emulator.configure_data(data)
    return data


def put(data: Any, ram: np.ndarray) -> None:
    for address in range(0, 2048, 8):
        word = int.from_bytes(ram[address : address + 8].tobytes(), "little", signed=True)
        data.memory.assign(address, "<i8", word)
    data.update_ram()


def files(folder: Path) -> tuple[str, str, list[tuple[str, str]]]:
    """The texts of data.json, scenario.json and the scripts that lie beside them."""
    scripts = [(path.name, path.read_text()) for path in sorted(folder.glob("*.lua"))]
    return (folder / "data.json").read_text(), (folder / "scenario.json").read_text(), scripts


def compare(emulator: Any, folder: Path, images: list[np.ndarray]) -> None:
    """Values, both players' rewards and the end after each image; the first is that of a reset."""
    text, scenario, scripts = files(folder)
    rules = GameRules(text, scenario, WORK_RAM, scripts)
    data = oracle(emulator, folder)
    data.reset()
    before: list[int] | None = None
    for image in images:
        put(data, image)
        memory = np.concatenate([image, np.zeros(WORK_RAM, np.uint8)])
        if before is None:
            now = rules.begin(memory)
        else:
            rewards, done, now = rules.frame(memory)
            bound = rounding(json.loads(scenario), rules.names, before, now)
            for player, reward in enumerate(rewards):
                assert abs(reward - data.current_reward(player)) <= bound
            assert done == data.is_done()
            if not scripts:
                assert rules.judge(before, now) == (rewards[0], done)
        outside = {name for name, entry in _info(folder).items() if entry["address"] >= 0x800}
        ours = dict(zip(rules.names, now, strict=True))
        assert {k: v for k, v in ours.items() if k not in outside} == {
            k: v for k, v in data.lookup_all().items() if k not in outside
        }
        before = now


def _info(folder: Path) -> dict[str, Any]:
    info: dict[str, Any] = json.loads((folder / "data.json").read_text())["info"]
    return info


def rounding(scenario: Any, names: list[str], before: list[int], now: list[int]) -> float:
    """What the order of a sum of 32-bit floats can change: stable-retro adds in the order of a hash table.

    Nothing while no partial sum needs more than 24 bits, which is so in play but not with random bytes.
    """
    sections = [scenario.get("reward", {}), *scenario.get("rewards", [])]
    rules = [rule for section in sections for rule in section.get("variables", {}).items()]
    changes = {name: abs(b - a) for name, a, b in zip(names, before, now, strict=True)}
    terms = [changes[n] * max(abs(r.get("reward", 0)), abs(r.get("penalty", 0)), 0) for n, r in rules]
    largest = sum(terms)
    return 0.0 if largest < 2**24 else len(terms) * float(np.spacing(np.float32(largest)))


def images_of(seed: int) -> list[np.ndarray]:
    """Random memory; then small numbers and equal images: conditions hold, changes are small or none."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(256, size=2048, dtype=np.uint8) for _ in range(4)]
    images += [rng.integers(4, size=2048, dtype=np.uint8) for _ in range(3)]
    return [*images, images[-1], np.zeros(2048, np.uint8)]


def test_rr11_all_of_stable_retros_nes_games_are_there() -> None:
    assert not _SPEC or len(GAMES) == 298


@pytest.mark.parametrize("game", GAMES)
def test_rr6_to_rr18_an_integration_evaluates_as_stable_retro_does(game: str, emulator: Any) -> None:
    for seed in range(3):
        compare(emulator, ROOT / game, images_of(1000 * seed + len(game)))


TYPES = [
    f"{endian}{kind}{width}"
    for endian in ("<", ">", "|", "=", "><", "<>", ">=", "<=")
    for kind in "uidn"
    for width in ((4,) if endian in ("><", "<>", ">=", "<=") else range(1, 9))
]
OPERATORS = [
    "equal", "not-equal", "negative-equal", "less-than", "greater-than", "less-or-equal", "greater-or-equal",
    "nonzero", "zero", "positive", "negative", "sign", "no-such",
]  # fmt: skip


def test_rr7_every_type_reads_as_stable_retro_does(tmp_path: Path, emulator: Any) -> None:
    info = {f"v{at}": {"address": 16 * at, "type": text} for at, text in enumerate(TYPES)}
    (tmp_path / "data.json").write_text(json.dumps({"info": info}))
    (tmp_path / "scenario.json").write_text("{}")
    rng = np.random.default_rng(7)
    compare(emulator, tmp_path, [rng.integers(256, size=2048, dtype=np.uint8) for _ in range(20)])


@pytest.mark.parametrize("measurement", [None, "delta", "absolute"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_rr13_every_operator_judges_as_stable_retro_does(
    operator: str, measurement: str | None, tmp_path: Path, emulator: Any
) -> None:
    rule = {"op": operator, "reference": 2, **({"measurement": measurement} if measurement else {})}
    info = {"a": {"address": 3, "type": "|i1"}, "b": {"address": 9, "type": "|u1"}}
    (tmp_path / "data.json").write_text(json.dumps({"info": info}))
    scenario = {
        "reward": {"variables": {"a": {**rule, "reward": 1.5, "penalty": 0.25}, "b": {"reward": -1.0}}},
        "done": {
            "variables": {"a": rule},
            "nodes": {"n": {"condition": "all", "variables": {"a": {"op": "negative"}, "b": rule}}},
        },
    }
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    rng = np.random.default_rng(3)
    images = []
    for a, b in rng.integers(-4, 5, size=(60, 2)):
        image = np.zeros(2048, np.uint8)
        image[3], image[9] = a & 255, abs(b)
        images.append(image)
    compare(emulator, tmp_path, images)


def test_bad_arguments_are_named() -> None:
    rules = GameRules('{"info": {"a": {"address": 3, "type": "|i1"}}}', "{}")
    with pytest.raises(ValueError, match="2048"):
        rules.values(np.zeros(10, np.uint8))
    with pytest.raises(ValueError, match="expected 1"):
        rules.judge([1, 2], [1])
    assert rules.names == ["a"] and rules.warnings == []
