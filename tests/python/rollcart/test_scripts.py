"""RR16: a scenario's Lua scripts do what they do in stable-retro, and belong to their lane."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_game_rules import emulator as emulator
from test_game_rules import oracle, put
from vec_model import GAME

import rollcart
from rollcart import GameRules
from rollcart.errors import ConfigError, StateError

INFO = {
    "x": {"address": 3, "type": "|u1"},
    "w": {"address": 16, "type": "<i2"},
    "m": {"address": 32, "type": "|u1", "mask": 15},
}
BOTH = {"reward": {"script": "lua:r"}, "done": {"script": "lua:d"}}
NEVER = "function d() return false end "


def write(folder: Path, script: str, scenario: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "data.json").write_text(json.dumps({"info": INFO}))
    (folder / "script.lua").write_text(script)
    (folder / "scenario.json").write_text(json.dumps({"scripts": ["script.lua"], **scenario}))


def rules_of(folder: Path) -> GameRules:
    texts = [(folder / file).read_text() for file in ("data.json", "scenario.json", "script.lua")]
    return GameRules(texts[0], texts[1], 0, [("script.lua", texts[2])])


SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "variables of its own": (
        "n=0 function r() n=n+1 data.c=1.75 data.b=true data.z=nil data.neg=-2.5 data['q']=n return n+.5 end "
        "function d() return scenario.frame>=2 end",
        BOTH,
    ),
    "writing memory": (
        "function r() data.w=-5 data.m=0xAB data.x=300.7 return data.w end function d() return data.m end",
        BOTH,
    ),
    "bytes and names that are numbers": (
        "function r() data[5]=7 return data[3]+data['16'] end " + NEVER,
        BOTH,
    ),
    "texts and tables are nothing": (
        "function r() return '3' end function d() if data.x > 9 then return {} end return 'x' end",
        BOTH,
    ),
    "not a number is true": ("function r() return 1/0 end function d() return 0/0 end", BOTH),
    "timesteps": (
        "function r() return scenario.timestep end function d() return scenario.frame == 5 end",
        BOTH,
    ),
    "scenario cannot be written": ("function r() scenario.frame=9 return scenario.frame end " + NEVER, BOTH),
    "libraries": (
        "function r() local t={3,1,2} table.sort(t) return math.floor(3.7)+string.len('ab')+t[1] end "
        "function d() return os ~= nil or io ~= nil or require ~= nil end",
        BOTH,
    ),
    "true is one": ("function r() return data.x % 2 == 1 end " + NEVER, BOTH),
    "no scope": ("function r() return 4 end", {"reward": {"script": "r"}, "done": {"variables": {"x": {}}}}),
    "a player each, and a change beside what a script wrote": (
        "function r() data.x = data.x+1 return data.x end",
        {
            "rewards": [
                {"script": "lua:r"},
                {"variables": {"x": {"reward": 2, "penalty": 3}}, "time": {"reward": 0.5}},
            ]
        },
    ),
    "a script comes before variables": (
        "function r() return 7 end function d() return false end",
        {
            "reward": {"script": "lua:r", "variables": {"x": {"reward": 1}}},
            "done": {"script": "lua:d", "variables": {"x": {}}},
        },
    ),
    "a reward of its own variable": (
        "n=0 function d() n=n+1 data.cc=n return false end",
        {
            "reward": {"variables": {"cc": {"reward": 1, "measurement": "absolute"}}},
            "rewards": [{}, {"variables": {"cc": {"reward": 5}}}],
            "done": {"script": "lua:d"},
        },
    ),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_rr16_a_script_does_what_it_does_in_stable_retro(case: str, tmp_path: Path, emulator: Any) -> None:
    write(tmp_path, *SCRIPTS[case])
    rules, data = rules_of(tmp_path), oracle(emulator, tmp_path)
    rng = np.random.default_rng(5)
    for _ in range(2):  # A second episode begins anew.
        data.reset()
        for at in range(8):
            image = rng.integers(256, size=2048, dtype=np.uint8)
            put(data, image)
            if at == 0:
                values = rules.begin(image)
            else:
                rewards, done, values = rules.frame(image)
                assert rewards == [data.current_reward(player) for player in range(2)]
                assert done == data.is_done()
            assert dict(zip(rules.names, values, strict=True)) == data.lookup_all()
            changed = {address for address, _ in rules.written}
            assert all(data.memory.extract(address, "|u1") == byte for address, byte in rules.written)
            assert all(data.memory.extract(a, "|u1") == image[a] for a in (3, 16, 17, 32) if a not in changed)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "function r() return data.nope end " + NEVER,
            r"script\.lua:1.*data\.nope: no variable of this name",
        ),
        ("function r() return data[99999] end " + NEVER, r"script\.lua:1: data\[99999\]: no memory"),
        ("function r() return data[-1] end " + NEVER, "no memory"),
        ("function r()\nerror('boo') end " + NEVER, r"script\.lua:2: boo"),
        ("function r() data.x = 'three' end " + NEVER, "takes a number"),
        ("function r() return scenario.level end " + NEVER, r"scenario\.frame or scenario\.timestep"),
        ("function r() while true do end end " + NEVER, "instructions"),
        ("function r() return math.random() end " + NEVER, "random"),
        ("function q() end " + NEVER, r"calls \"r\".*script\.lua"),
        ("error('early')", "early"),
    ],
)
def test_rr16_a_script_that_fails_raises_runtime_error(script: str, words: str, tmp_path: Path) -> None:
    write(tmp_path, script, BOTH)
    rules = rules_of(tmp_path)
    with pytest.raises(RuntimeError, match=words):
        rules.begin(np.zeros(2048, np.uint8))


def test_rr16_a_script_that_cannot_be_read_is_refused_when_the_files_are() -> None:
    data, scenario = json.dumps({"info": INFO}), json.dumps({"scripts": ["s.lua"], **BOTH})
    with pytest.raises(ConfigError, match=r"s\.lua:1"):
        GameRules(data, scenario, 0, [("s.lua", "function r( return")])
    with pytest.raises(ConfigError, match=r"s\.lua.*not there"):
        GameRules(data, scenario)
    with pytest.raises(ConfigError, match="lua:FUNCTION"):
        GameRules(
            data, json.dumps({"scripts": ["s.lua"], "reward": {"script": "python:r"}}), 0, [("s.lua", "")]
        )
    rules = GameRules(data, json.dumps({"scripts": ["s.py"]}))
    assert "left out" in rules.warnings[0]
    rules = GameRules(data, scenario, 0, [("s.lua", "")])
    with pytest.raises(ValueError, match="begin"):
        rules.judge([0, 0, 0], [0, 0, 0])
    with pytest.raises(RuntimeError, match="begin"):
        rules.frame(np.zeros(2048, np.uint8))


# ------------------------------------------------------------------------------------ in lanes

# The distance that was walked, kept in a global, a table and a variable of its own; dead after 40 frames.
WALK = """
far, seen = 0, {steps = 0}
function further()
  local moved = data.xpos - far
  far = data.xpos
  seen.steps = seen.steps + 1
  data.distance = far
  return moved
end
function over() return scenario.frame >= 40 end
"""


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes environments of the bundled game under another script."""

    def make(script: str = WALK, reward: str = "further", done: str = "over", **options: Any) -> Any:
        folder = tmp_path / "stable/Scripted-Nes-v0"
        if not folder.exists():
            shutil.copytree(GAME, folder)
        (folder / "script.lua").write_text(script)
        scenario = {
            "scripts": ["script.lua"],
            "reward": {"script": f"lua:{reward}"},
            "done": {"script": f"lua:{done}"},
        }
        (folder / "scenario.json").write_text(json.dumps(scenario))
        monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
        return rollcart.NesVectorEnv("Scripted-Nes-v0", **options)

    return make


def play(env: Any, steps: int, seed: int = 1) -> list[Any]:
    actions = np.random.default_rng(seed).integers(36, size=(steps, env.num_envs))
    out = []
    for action in actions:
        obs, reward, terminated, _, infos = env.step(action)
        out.append([obs.tobytes(), reward.tolist(), terminated.tolist(), infos["distance"].tolist()])
    return out


def test_rr16_each_lane_has_its_scripts_and_every_episode_begins_anew(scripted: Any) -> None:
    env = scripted(num_envs=5, num_threads=2)
    env.reset(seed=0)
    first = play(env, 10)
    # 40 frames after the one of the reset: nine steps of four, and the tenth ends in its fourth frame.
    assert [any(step[2]) for step in first] == [False] * 9 + [True]
    assert all(step[3][lane] for step in first[3:] for lane in range(5))
    alone = scripted(num_envs=1)
    alone.reset(seed=0)
    column = np.random.default_rng(1).integers(36, size=(10, 5))[:, :1]
    for action, step in zip(column, first, strict=True):
        assert alone.step(action)[1].tolist() == step[1][:1]
    env.reset(seed=0)
    assert play(env, 10) == first


def test_rr16_snapshots_and_forks_carry_the_scripts_values(scripted: Any) -> None:
    env = scripted(num_envs=2, frame_skip=3)
    env.reset(seed=0)
    play(env, 6)
    states = env.snapshot()
    after = play(env, 5, seed=2)
    env.restore(states)
    assert play(env, 5, seed=2) == after
    other = scripted(num_envs=2, frame_skip=3)
    other.restore(states)
    assert play(other, 5, seed=2) == after
    env.restore(states)
    env.fork(0, np.array([False, True]))
    forked = play(env, 5, seed=2)
    assert [step[3][0] for step in forked] == [step[3][0] for step in after]
    plain = rollcart.NesVectorEnv(num_envs=2, frame_skip=3)
    with pytest.raises(StateError, match="script"):
        other.restore([*(plain.reset(), plain.snapshot())[1]])


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("local n = 0 function r() n = n + 1 return n end " + NEVER, "local variable"),
        ("t = {} t.t = t function r() return 1 end " + NEVER, "t is a table that"),
        (
            "function r() c = string.rep return 1 end " + NEVER,
            "c is a function",
        ),
    ],
)
def test_rr16_a_snapshot_that_would_lose_a_scripts_values_is_refused(
    script: str, words: str, scripted: Any
) -> None:
    env = scripted(script, "r", "d")
    env.reset()
    env.step([0])
    with pytest.raises(StateError, match=words):
        env.snapshot()


def test_rr16_what_a_script_writes_stays_in_memory_also_when_a_frame_is_drawn_again(scripted: Any) -> None:
    script = (
        "n = 0 function r() n = n + 1 data.score = n return n end function d() return scenario.frame == 6 end"
    )
    env = scripted(script, "r", "d", obs="dict")
    address = json.loads((GAME / "data.json").read_text())["info"]["score"]["address"]
    env.reset()
    before = env.ram()[0]
    env.step([0])
    _, reward, terminated, _, infos = env.step([0])  # ends in its second frame, and is drawn again
    assert terminated[0] and reward[0] == 6 + 7 and infos["score"][0] == 7
    ram = env.ram()[0]
    picture = env.render_lane(0)
    assert (env.ram()[0] == ram).all() and (env.render_lane(0) == picture).all()
    assert (ram[address : address + 6] != before[address : address + 6]).any()
    state = env.snapshot()
    other = scripted(script, "r", "d", obs="dict")
    other.restore(state)
    assert (other.ram()[0] == ram).all() and (other.render_lane(0) == picture).all()


def test_rr16_a_fault_names_the_lane_and_the_line_and_all_lanes_have_to_be_reset(scripted: Any) -> None:
    env = scripted(
        "function r()\nif scenario.frame > 9 then error('boo') end\nreturn 0 end " + NEVER, "r", "d"
    )
    env.reset()
    with pytest.raises(RuntimeError, match=r"lane 0: .*script\.lua:2: boo.*reset all"):
        for _ in range(5):
            env.step([0])
    with pytest.raises(Exception, match="never reset"):
        env.step([0])
    env.reset()
    env.step([0])
