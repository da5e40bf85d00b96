"""Clauses of Stable Retro's files, states and buttons that need no oracle: each by its smallest example.

test_game_rules.py and test_retro_parity.py hold the same rules against stable-retro itself.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest
from vec_common import RIGHT, mk
from vec_model import GAME

import rollcart
from rollcart import GameRules
from rollcart.errors import ConfigError

BYTE = {"address": 3, "type": "|u1"}


def rules(info: Any, scenario: Any = None, work_ram: int = 0) -> GameRules:
    return GameRules(json.dumps({"info": info}), json.dumps(scenario or {}), work_ram)


def memory(**at: int) -> np.ndarray:
    """RAM of zeros but for some bytes: m3=255."""
    ram = np.zeros(2048, np.uint8)
    for place, value in at.items():
        ram[int(place[1:])] = value
    return ram


def test_rr6_a_variable_needs_address_and_type_and_one_without_a_width_is_left_out() -> None:
    for missing in ({"a": {"address": 3}}, {"a": {"type": "|u1"}}):
        with pytest.raises(ConfigError, match=r'"a".*address.*type'):
            rules(missing)
    with pytest.raises(ConfigError, match="info"):
        GameRules("{}", "{}")
    for text in ("u1", "", "|u", "|u0", "|u9"):
        assert rules({"a": {"address": 3, "type": text}, "b": BYTE}).names == ["b"], text


def test_rr8_a_mask_is_applied_to_what_was_decoded() -> None:
    masked = {"a": {**BYTE, "mask": 12}, "b": {"address": 4, "type": "|i1", "mask": 0x1F0}}
    assert rules(masked).values(memory(m3=0xFF, m4=0xFE)) == [12, 0x1F0], "-2 has every higher bit"
    env = mk(1)
    assert env.reset(seed=0)[1]["lives"].dtype == np.int64


def test_rr9_memory_is_ram_and_work_ram_and_what_lies_outside_is_no_variable() -> None:
    outside = {"far": {"address": 0x5000, "type": "|u1"}, "edge": {"address": 2047, "type": ">u2"}}
    found = rules({**outside, "a": BYTE})
    assert found.names == ["a"] and len(found.warnings) == 2
    work = {"w": {"address": 0x6000, "type": "|u1"}}
    assert rules(work).names == [] and rules(work, work_ram=0x2000).names == ["w"]
    for section in ({"reward": {"variables": {"far": {"reward": 1}}}}, {"done": {"variables": {"far": {}}}}):
        with pytest.raises(ConfigError, match="far"):
            rules(outside, section)
    assert mk(1, obs="ram").single_observation_space.shape == (10240,)


def test_rr10_a_change_across_two_pages_is_the_whole_change() -> None:
    across = rules({"a": {"address": 1023, "type": ">u2"}}, {"reward": {"variables": {"a": {"reward": 1}}}})
    across.begin(memory(m1023=0, m1024=255))
    (reward, _), _, values = across.frame(memory(m1023=1, m1024=0))
    assert (reward, values) == (1.0, [256])


def test_rr12_the_change_is_taken_times_reward_or_penalty_by_its_sign() -> None:
    for penalty, wanted in ((3, -9.0), (-3, 9.0), (0, 0.0)):
        one = rules({"a": BYTE}, {"reward": {"variables": {"a": {"reward": 2, "penalty": penalty}}}})
        assert one.judge([5], [2]) == (wanted, False)
        assert one.judge([2], [5]) == (6.0, False)
    absolute = rules({"a": BYTE}, {"reward": {"variables": {"a": {"reward": 2, "measurement": "absolute"}}}})
    assert absolute.judge([5], [2]) == (4.0, False)


def test_rr14_time_adds_its_reward_and_a_penalty_is_warned_of() -> None:
    timed = rules({"a": BYTE}, {"reward": {"time": {"reward": 0.5, "penalty": 3}}})
    timed.begin(memory())
    assert [timed.frame(memory())[0][0] for _ in range(3)] == [0.5] * 3
    assert len(timed.warnings) == 1 and "no effect" in timed.warnings[0]


@pytest.mark.parametrize(
    ("done", "ends"),
    [
        ({"condition": "all"}, [True, True, True]),
        ({"condition": "any"}, [False, False, False]),
        ({"variables": {"a": {}}}, [False, True, False]),
        ({"variables": {"a": {"op": "no-such"}}}, [False, True, False]),
        ({"variables": {"a": {"op": "equal", "reference": -1}}}, [False, False, True]),
        ({"variables": {"a": {"measurement": "delta"}}}, [False, False, False]),
        (
            {"condition": "all", "variables": {"a": {}}, "nodes": {"n": {"variables": {"b": {}}}}},
            [False, False, False],
        ),
        ({"nodes": {"n": {"condition": "all"}}}, [True, True, True]),
    ],
    ids=str,
)
def test_rr15_done_is_any_or_all_of_its_variables_and_nodes(done: Any, ends: list[bool]) -> None:
    known = rules({"a": {"address": 3, "type": "|i1"}, "b": {"address": 4, "type": "|u1"}}, {"done": done})
    found = []
    for value in (0, 1, 255):
        known.begin(memory(m3=value))
        found.append(known.frame(memory(m3=value))[1])
    assert found == ends


def test_rr18_rr19_a_reset_runs_one_frame_fills_the_infos_and_no_change_leaks_across_it() -> None:
    env, console = mk(1, "Disabled"), rollcart.Console(GAME / "rom.nes")
    console.load((GAME / "Level1.state").read_bytes())
    console.step()
    _, infos = env.reset(seed=0)
    assert np.array_equal(env.ram()[0], console.ram)
    names = json.loads((GAME / "data.json").read_text())["info"]
    assert all(name in infos and infos[f"_{name}"].all() for name in names), "also those of no rule"
    first = env.step([0])[1]
    for _ in range(20):
        env.step([RIGHT])
    env.reset(seed=0)
    assert env.step([0])[1] == first, "the way back to the start is no reward"


def test_rr21_nothing_has_run_before_the_first_reset() -> None:
    env = mk(2)
    first = env.reset(seed=0)[0]
    assert env.profile()["frames"] == 2
    assert np.array_equal(env.reset(seed=0)[0], first)


def test_rr22_states_are_read_by_the_ids_of_their_chunks() -> None:
    blob = gzip.decompress((GAME / "Level1.state").read_bytes())
    assert blob[:4] == b"FCS\xff" and int.from_bytes(blob[4:8], "little") == len(blob) - 16

    def chunk(name: bytes, size: int) -> np.ndarray:
        at = blob.index(name.ljust(4, b"\0") + size.to_bytes(4, "little")) + 8
        return np.frombuffer(blob[at : at + size], np.uint8)

    console = rollcart.Console(GAME / "rom.nes")
    console.load(gzip.compress(blob))
    assert np.array_equal(console.ram, chunk(b"RAM", 2048))
    assert np.array_equal(console.vram(), chunk(b"NTAR", 2048))
    assert np.array_equal(console.oam(), chunk(b"SPRA", 256))
    # Entry 0 of a sprite palette is the background's of the same number.
    own = np.arange(32) & 0x13 != 0x10
    assert np.array_equal(console.palette_ram()[own], chunk(b"PRAM", 32)[own] & 0x3F)
    assert console.cpu.pc == int.from_bytes(chunk(b"PC", 2).tobytes(), "little")
    assert [console.cpu.a, console.cpu.x, console.cpu.y, console.cpu.s] == [
        int(chunk(name, 1)[0]) for name in (b"A", b"X", b"Y", b"S")
    ]


def test_rr25_flags_press_b_nothing_select_start_the_cross_and_a() -> None:
    env = mk(9, actions="all", state="NONE")
    env.reset(seed=0)
    env.log_inputs()
    env.step(np.eye(9, dtype=np.int8))
    pressed = [env.movie(lane).inputs[0][0] for lane in range(9)]
    assert pressed == [2, 0, 4, 8, 16, 32, 64, 128, 1]


@pytest.mark.parametrize("number", [36, 99, -1])
def test_rr26_a_number_beyond_the_combinations_is_refused_not_wrapped(number: int) -> None:
    env = mk(1, actions="discrete")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"action {number}.*0 to 35"):
        env.step([number])


def test_rr26_two_players_choose_in_every_mode() -> None:
    sizes = {"all": (18,), "filtered": (18,), "discrete": (), "multi_discrete": (6,)}
    for actions, shape in sizes.items():
        env = mk(1, actions=actions, players=2)
        assert env.single_action_space.shape == shape
        env.reset(seed=0)
        env.step(env.action_space.sample())


def test_rr27_colours_are_five_six_and_five_bits_widened_by_shifts() -> None:
    env = mk(1, grayscale=False, crop=(0, 0, 0, 0), resize=None, frame_stack=1, layout="hwc")
    picture = env.reset(seed=0)[0][0]
    assert picture.shape == (224, 240, 3) and picture.dtype == np.uint8
    assert not (picture[..., 0] % 8).any() and not (picture[..., 1] % 4).any()
    assert not (picture[..., 2] % 8).any() and picture.max() <= 252
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 4


def test_rr28_a_process_may_have_many_environments_and_their_pictures() -> None:
    envs = [rollcart.NesEnv(state=f"Level{n}", render_mode="rgb_array") for n in (1, 2)]
    for env in envs:
        env.reset(seed=0)
    first, second = (env.render() for env in envs)
    assert first is not None and second is not None and not np.array_equal(first, second)
    for env in envs:
        env.close()


def test_re2_what_ale_py_offers_has_its_counterpart() -> None:
    """AtariVectorEnv's arguments in our words, all at once; lives and counts in the infos, with masks."""
    env = rollcart.NesVectorEnv(
        num_envs=4,
        batch_size=2,
        num_threads=1,
        max_episode_steps=100,
        sticky_action_prob=0.25,
        autoreset_mode="SameStep",
        resize=(20, 20),
        grayscale=True,
        frame_stack=4,
        frame_skip=4,
        maxpool=True,
        noop_reset_max=30,
        episodic_life=True,
        reward_clip=True,
    )
    env.async_reset(seed=0)
    for _ in range(6):
        observation, reward, _, _, infos = env.recv()
        assert observation.shape == (2, 4, 20, 20) and np.isin(reward, (-1, 0, 1)).all()
        for key in ("env_id", "lives", "elapsed_steps", "episode_return", "raw_reward"):
            assert infos[f"_{key}"].all() and len(infos[key]) == 2
        env.send([RIGHT, RIGHT], infos["env_id"])
