"""gym-super-mario-bros' interface (RM1-RM10, U27-U29), over a cartridge that stands in for the game."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import smb_stand_in
from gymnasium.utils.env_checker import check_env

import rollcart
from rollcart.compat import gym_super_mario_bros as smb
from rollcart.compat.gym_super_mario_bros.actions import COMPLEX_MOVEMENT, RIGHT_ONLY, SIMPLE_MOVEMENT

A, B, SELECT, START, UP, DOWN, LEFT, RIGHT = (1 << bit for bit in range(8))


@pytest.fixture(scope="session")
def rom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rom") / "smb.nes"
    path.write_bytes(smb_stand_in.rom())
    return path


@pytest.fixture
def stage(rom: Path) -> gymnasium.Env[Any, Any]:
    return smb.make("SuperMarioBros-1-1-v0", rom_path=rom)


@pytest.fixture
def game(rom: Path) -> gymnasium.Env[Any, Any]:
    return smb.make("SuperMarioBros-v0", rom_path=rom)


def test_rm1_ids_are_those_of_the_package() -> None:
    expected = {f"SuperMarioBros-v{v}" for v in range(4)} | {
        f"SuperMarioBrosRandomStages-v{v}" for v in range(4)
    }
    expected |= {f"SuperMarioBros-{w}-{s}-v{v}" for w in range(1, 9) for s in range(1, 5) for v in range(4)}
    expected |= {"SuperMarioBros2-v0", "SuperMarioBros2-v1"}
    assert expected <= gymnasium.registry.keys()
    assert all(gymnasium.spec(name).max_episode_steps == 9_999_999 for name in expected)


def test_rm1_gymnasium_makes_them_too(rom: Path) -> None:
    env = gymnasium.make("rollcart.compat.gym_super_mario_bros:SuperMarioBros-4-2-v0", rom_path=rom)
    assert env.reset(seed=0)[1]["world"] == 4


@pytest.mark.parametrize("name", ["SuperMarioBros-v3", "SuperMarioBros-1-1-v1", "SuperMarioBros2-v1"])
def test_rm1_versions_with_changed_roms_are_refused_by_name(name: str, rom: Path) -> None:
    for make in (smb.make, gymnasium.make):
        with pytest.raises(rollcart.errors.ConfigError, match=f"{name}.*modified ROM.*-v0"):
            make(name, rom_path=rom)
    with pytest.raises(rollcart.errors.ConfigError, match="there is no 'SuperMarioBros-9-1-v0'"):
        smb.make("SuperMarioBros-9-1-v0", rom_path=rom)


def test_rm2_pictures_and_masks_of_buttons(stage: gymnasium.Env[Any, Any]) -> None:
    assert stage.action_space == gymnasium.spaces.Discrete(256)
    assert stage.observation_space == gymnasium.spaces.Box(0, 255, (240, 256, 3), np.uint8)
    obs, info = stage.reset(seed=0)
    assert stage.observation_space.contains(obs) and info["x_pos"] == 40
    assert [stage.step(RIGHT)[1] for _ in range(3)] == [2.0, 2.0, 2.0]
    assert stage.step(LEFT)[4]["x_pos"] == 44
    for bad in (256, -1):
        with pytest.raises(ValueError, match="0 to 255"):
            stage.unwrapped.step(bad)


def test_rm3_action_lists_and_joypad_space(stage: gymnasium.Env[Any, Any]) -> None:
    assert [len(each) for each in (RIGHT_ONLY, SIMPLE_MOVEMENT, COMPLEX_MOVEMENT)] == [5, 7, 12]
    assert SIMPLE_MOVEMENT[5:] == [["A"], ["left"]]
    assert COMPLEX_MOVEMENT[7:] == [["left", "A"], ["left", "B"], ["left", "A", "B"], ["down"], ["up"]]
    env = smb.JoypadSpace(stage, SIMPLE_MOVEMENT)
    assert env.action_space == gymnasium.spaces.Discrete(7)
    assert env.get_action_meanings() == ["NOOP", "right", "right A", "right B", "right A B", "A", "left"]
    assert set(env.buttons()) == {"A", "B", "select", "start", "up", "down", "left", "right", "NOOP"}
    assert env.reset(seed=3, options={})[1]["x_pos"] == 40
    assert env.step(np.int64(1))[4]["x_pos"] == 42 and env.step(6)[4]["x_pos"] == 40
    assert env.step(0)[4]["x_pos"] == 40
    for bad in (7, -1):
        with pytest.raises(ValueError, match="0 to 6"):
            env.step(bad)
    with pytest.raises(ValueError, match="there is no button 'jump'"):
        smb.JoypadSpace(stage, [["jump"]])
    with pytest.raises(ValueError, match="lists of button names"):
        smb.JoypadSpace(stage, ["right"])
    with pytest.raises(ValueError, match="at least one"):
        smb.JoypadSpace(stage, [])
    with pytest.raises(ValueError, match=r"Discrete\(256\)"):
        smb.JoypadSpace(env, RIGHT_ONLY)


def test_rm4_the_frames_reward_counts_the_clock(stage: gymnasium.Env[Any, Any]) -> None:
    stage.reset()
    steps = [stage.step(0) for _ in range(30)]
    ticks = [-reward for _, reward, *_ in steps]
    times = [info["time"] for *_, info in steps]
    assert sum(ticks) == 399 - times[-1] == 3


def test_rm5_rm7_a_stage_ends_in_the_step_of_death_or_flag(stage: gymnasium.Env[Any, Any]) -> None:
    stage.reset()
    _, reward, terminated, truncated, info = stage.step(B)
    assert (reward, terminated, truncated, info["flag_get"]) == (-15.0, True, False, False)
    stage.reset()
    _, reward, terminated, _, info = stage.step(SELECT)
    assert terminated and info["flag_get"] and reward == 0.0
    stage.reset()
    assert stage.step(UP)[4]["flag_get"]


def test_rm7_lives_are_lost_one_by_one_in_the_whole_game_and_waits_are_skipped(
    game: gymnasium.Env[Any, Any],
) -> None:
    assert game.reset()[1]["life"] == 2
    lives = []
    for _ in range(3):
        _, reward, terminated, _, died = game.step(B)
        assert reward == -15.0 and not terminated
        _, _, terminated, _, info = game.step(0)
        lives.append(info["life"])
        if terminated:
            break
        # The entrance that takes 200 frames was skipped within the step: the player moves at once, and the
        # clock did not run on meanwhile.
        assert game.step(RIGHT)[4]["x_pos"] == 42 and died["time"] - info["time"] <= 2
    assert lives == [1, 0, 255] and terminated


def test_rm7_scenes_that_cannot_be_played_are_skipped(game: gymnasium.Env[Any, Any]) -> None:
    game.reset()
    _, _, terminated, _, _ = game.step(UP)
    assert not terminated
    info = game.step(RIGHT)[4]
    assert (info["world"], info["x_pos"]) == (2, 42)
    before = game.step(DOWN)[4]
    after = game.step(RIGHT)[4]
    assert (before["x_pos"], after["x_pos"]) == (42, 512 + 44)
    assert before["time"] - after["time"] <= 2


@pytest.mark.parametrize(
    ("name", "area"), [("1-1", 0), ("1-2", 2), ("1-4", 4), ("3-2", 1), ("8-4", 3), ("7-3", 3)]
)
def test_rm7_a_stage_is_chosen_by_world_stage_and_area(name: str, area: int, rom: Path) -> None:
    env = smb.make(f"SuperMarioBros-{name}-v0", rom_path=rom).unwrapped
    info = env.reset()[1]
    assert f"{info['world']}-{info['stage']}" == name and env.ram[0x760] == area  # type: ignore[attr-defined]


def test_rm1_random_stages_are_drawn_by_seed(rom: Path) -> None:
    env = smb.make("SuperMarioBrosRandomStages-v0", rom_path=rom, stages=["1-1", "2-2", "5-3"])

    def drawn(seed: int) -> list[str]:
        infos = [env.reset(seed=seed if first else None)[1] for first in (True, *[False] * 11)]
        return [f"{info['world']}-{info['stage']}" for info in infos]

    stages = drawn(4)
    assert set(stages) == {"1-1", "2-2", "5-3"} and drawn(4) == stages and drawn(5) != stages
    info = env.reset(options={"stages": ["8-1"]})[1]
    assert (info["world"], info["stage"]) == (8, 1)
    assert env.step(B)[2]
    with pytest.raises(rollcart.errors.ConfigError, match="found '9-1'"):
        env.reset(options={"stages": ["9-1"]})
    with pytest.raises(rollcart.errors.ConfigError, match="random_stages"):
        smb.make("SuperMarioBros-1-1-v0", rom_path=rom, stages=["1-1"])
    with pytest.raises(rollcart.errors.ConfigError, match="no random stages"):
        smb.make("SuperMarioBros-1-1-v0", rom_path=rom).reset(options={"stages": ["1-1"]})


def test_rm8_a_step_after_the_end_raises_and_closing_twice_does_not(stage: gymnasium.Env[Any, Any]) -> None:
    with pytest.raises(ValueError, match="reset"):
        stage.unwrapped.step(0)
    stage.reset()
    stage.step(B)
    with pytest.raises(ValueError, match="reset"):
        stage.step(0)
    stage.close()
    stage.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        stage.unwrapped.step(0)


def test_rm8_pictures_in_a_list_stay_as_they_were(stage: gymnasium.Env[Any, Any]) -> None:
    frames = [stage.reset()[0]] + [stage.step(RIGHT)[0] for _ in range(5)]
    copies = [frame.copy() for frame in frames]
    stage.step(RIGHT)
    assert all(np.array_equal(*pair) for pair in zip(frames, copies, strict=True))
    assert len({frame.tobytes() for frame in frames}) == 6


def test_rm9_the_tutorials_stack_of_wrappers(stage: gymnasium.Env[Any, Any]) -> None:
    class SkipFrame(gymnasium.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            total = 0.0
            for _ in range(4):
                obs, reward, terminated, truncated, info = self.env.step(action)
                total += float(reward)
                if terminated or truncated:
                    break
            return obs, total, terminated, truncated, info

    env: Any = SkipFrame(smb.JoypadSpace(stage, [["right"], ["right", "A"]]))
    env = gymnasium.wrappers.GrayscaleObservation(env)
    env = gymnasium.wrappers.ResizeObservation(env, (84, 84))
    env = gymnasium.wrappers.FrameStackObservation(env, 4)
    obs, info = env.reset(seed=0)
    assert obs.shape == (4, 84, 84) and not info["flag_get"]
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert reward == 8.0 and not terminated and not truncated and info["x_pos"] == 48 and not info["flag_get"]


def test_rm10_every_episode_begins_with_the_same_whole_picture(
    stage: gymnasium.Env[Any, Any], rom: Path
) -> None:
    first, info = stage.reset()
    assert first.any()
    for _ in range(5):
        stage.step(RIGHT)
    again, info_again = stage.reset()
    fresh, info_fresh = smb.make("SuperMarioBros-1-1-v0", rom_path=rom).reset()
    assert np.array_equal(first, again) and np.array_equal(first, fresh)
    assert info == info_again == info_fresh


def test_u27_nothing_overflows_or_warns(rom: Path) -> None:
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        env = smb.JoypadSpace(smb.make("SuperMarioBros-v0", rom_path=rom), SIMPLE_MOVEMENT)
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(100):
            if env.step(env.action_space.sample())[2]:
                env.reset()


def test_u29_four_values_by_choice_and_five_by_default(rom: Path) -> None:
    env: Any = smb.make("SuperMarioBros-1-1-v0", rom_path=rom, old_api=True, render_mode="rgb_array")
    env = smb.JoypadSpace(env, RIGHT_ONLY)
    obs = env.reset()
    assert obs.shape == (240, 256, 3)
    obs, reward, done, info = env.step(1)
    assert (reward, done, info["x_pos"]) == (2.0, False, 42)
    assert env.render().shape == (240, 256, 3) and env.unwrapped.reward_range == (-15, 15)
    limited: Any = smb.make("SuperMarioBros-1-1-v0", rom_path=rom, old_api=True, max_episode_steps=1)
    limited.reset()
    assert limited.step(0)[2:] == (
        True,
        {**limited.step.__self__.unwrapped.reset()[1], "TimeLimit.truncated": True},
    )
    assert len(smb.make(rom_path=rom, apply_api_compatibility=True).reset()) == 2
    with pytest.raises(rollcart.errors.ConfigError, match="one of them"):
        smb.make(rom_path=rom, apply_api_compatibility=True, old_api=True)


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_the_checker_finds_nothing_to_say(rom: Path, render_mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(smb.make("SuperMarioBros-1-1-v0", rom_path=rom, render_mode=render_mode).unwrapped)


def test_a_window_is_gymnasiums(rom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = smb.make("SuperMarioBros-1-1-v0", rom_path=rom, render_mode="human")
    env.reset()
    env.step(RIGHT)
    env.close()


def test_the_rom_is_found_by_argument_variable_or_folder(
    rom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLLCART_SMB_ROM", raising=False)
    monkeypatch.setenv("RETRO_DATA_PATH", str(tmp_path))
    with pytest.raises(rollcart.errors.RomError, match=r"rom_path=.*ROLLCART_SMB_ROM.*rollcart import"):
        smb.make("SuperMarioBros-1-1-v0")
    with pytest.raises(rollcart.errors.RomError, match=r"Lost Levels.*ROLLCART_SMB2_ROM"):
        smb.make("SuperMarioBros2-v0")
    with pytest.raises(FileNotFoundError, match="rom_path: cannot read"):
        smb.make("SuperMarioBros-1-1-v0", rom_path=tmp_path / "none.nes")
    folder = tmp_path / "stable" / "SuperMarioBros-Nes-v0"
    folder.mkdir(parents=True)
    (folder / "rom.nes").write_bytes(rom.read_bytes())
    assert smb.make("SuperMarioBros-1-1-v0").reset()[1]["x_pos"] == 40
    monkeypatch.setenv("ROLLCART_SMB_ROM", str(tmp_path / "none.nes"))
    with pytest.raises(FileNotFoundError, match="ROLLCART_SMB_ROM: cannot read"):
        smb.make("SuperMarioBros-1-1-v0")
    monkeypatch.setenv("ROLLCART_SMB_ROM", str(rom))
    assert smb.make("SuperMarioBros-1-1-v0").reset()[1]["x_pos"] == 40
    monkeypatch.setenv("ROLLCART_SMB2_ROM", str(rom))
    assert smb.make("SuperMarioBros2-v0").reset()[1]["life"] == 2


def test_another_game_is_told_and_does_not_hang() -> None:
    bundled = Path(rollcart.__file__).parent / "data/stable/CartRunner-Nes-v0/rom.nes"
    with pytest.raises(rollcart.errors.RomError, match=r"is the ROM that of Super Mario Bros\.\?"):
        smb.make("SuperMarioBros-1-1-v0", rom_path=bundled)


def test_importing_needs_no_rom_registers_once_and_keeps_gymnasium_from_advising(rom: Path) -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "import importlib, gymnasium\n"
        "from rollcart.compat import gym_super_mario_bros as smb\n"
        "smb.register(); print(sum('SuperMarioBros' in name for name in gymnasium.registry))\n"
        "gymnasium.make('SuperMarioBros-1-1-v0', rom_path=sys.argv[1])\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(rom)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    # 138 of the package, and rollcart's own SuperMarioBros-Nes-v0.
    assert run.stdout.strip() == "139", run.stderr
