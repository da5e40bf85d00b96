"""`SuperMarioBrosEnv`: one console as gym-super-mario-bros' environment, a frame a step."""

from __future__ import annotations

import operator
import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from numpy.typing import NDArray

from rollcart import Console
from rollcart.compat.gym_super_mario_bros import ram as rules
from rollcart.compat.gym_super_mario_bros import rom
from rollcart.errors import ConfigError, RomError, StateError

_START = 8
_SNAPSHOT = b"RCSM\x01"
# No scene of the game that is skipped lasts longer.
_PATIENCE = 3_600
_STAGES = [f"{world}-{stage}" for world in range(1, 9) for stage in range(1, 5)]
# Worlds whose second stage is entered through a scene of its own, which counts as an area.
_WORLDS_WITH_A_SCENE = (1, 2, 4, 7)


class SuperMarioBrosEnv(gymnasium.Env[Any, Any]):
    """Super Mario Bros. from a ROM of the user's.

    Observations are pictures of their own, uint8[240, 256, 3]; actions masks of buttons (A=1 B=2 select=4
    start=8 up=16 down=32 left=64 right=128); rewards, ends and infos those of `ram`. Title screen, entrances,
    pipes and the wait after a death are skipped.

    Args:
        rom_path: The ROM, path or bytes; by default ROLLCART_SMB_ROM, or what `rollcart import` found.
        stage: "WORLD-STAGE": an episode is one try at it. None: the whole game, until the last life.
        random_stages: Each reset draws one of `stages` with the environment's random numbers.
        stages: Those to draw from; all 32 by default. `reset(options={"stages": [...]})` draws from others.
        lost_levels: The ROM is Super Mario Bros. 2 (The Lost Levels).
        render_mode: None or "rgb_array"; `gymnasium.make` makes a window of "human".
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012
    reward_range = (-15.0, 15.0)

    def __init__(
        self,
        rom_path: str | os.PathLike[str] | bytes | None = None,
        *,
        stage: str | None = None,
        random_stages: bool = False,
        stages: Sequence[str] | None = None,
        lost_levels: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f'render_mode: expected None or "rgb_array", found {render_mode!r}')
        if stages is not None and not random_stages:
            raise ConfigError("stages: expected random_stages=True with it (SuperMarioBrosRandomStages-v0)")
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, 255, (240, 256, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(256)
        self._random = random_stages
        self._stages = _known(_STAGES if stages is None else stages)
        self._stage = None if stage is None else _known([stage])[0]
        # RAM as that package's console has it at power-on.
        self._console: Console | None = Console(rom.find(rom_path, lost_levels=lost_levels), ram_fill=0)
        self._begun: dict[str | None, bytes] = {}
        self._before: bytes | None = None
        if not random_stages:
            self._start(self._stage)

    # ------------------------------------------------------------------------------------- Gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begins an episode, always in the same frame of a stage."""
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options: expected a dict or None, found {options!r}")
        super().reset(seed=seed)
        console = self._open()
        stages = (options or {}).get("stages")
        if stages is not None and not self._random:
            raise ConfigError('options["stages"]: this environment plays no random stages')
        if self._random:
            choice = self._stages if stages is None else _known(stages)
            self._stage = choice[int(self.np_random.integers(len(choice)))]
        console.load(self._start(self._stage))
        # The frame after the loaded one is drawn from it alone, so every episode's first picture is whole.
        console.step()
        self._before = self._ram()
        return console.rgb(), rules.info(self._before)

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Holds buttons for a frame, then skips what cannot be played."""
        console = self._open()
        if self._before is None:
            raise EpisodeOver("step: the episode is over or none has begun; call reset()")
        mask = operator.index(action)
        if not 0 <= mask < 256:
            raise ValueError(f"action: expected a mask of buttons, 0 to 255, found {mask}")
        console.step(mask)
        now = self._ram()
        reward = rules.reward(self._before, now)
        done = rules.done(now, stage=self._single)
        self._before = None if done else now
        if not done:
            self._skip(now)
        return console.rgb(), reward, done, False, rules.info(now)

    def render(self) -> NDArray[np.uint8] | None:
        """The picture, uint8[240, 256, 3]; None without a render mode."""
        return None if self.render_mode is None else self._open().rgb()

    def close(self) -> None:
        """Lets the console go; may be called again."""
        self._console = None

    @property
    def ram(self) -> NDArray[np.uint8]:
        """The console's RAM, uint8[2048], a copy: `poke` changes it."""
        return self._open().ram

    def poke(self, address: int, value: int) -> None:
        """Changes a byte of RAM."""
        self._open().poke(address, value)

    def snapshot(self) -> bytes:
        """The whole state as bytes: `restore` goes on from it, here or in another environment of the ROM."""
        before = b"" if self._before is None else self._before
        stage = (self._stage or "").ljust(3).encode()
        return _SNAPSHOT + stage + struct.pack("<H", len(before)) + before + self._open().save()

    def restore(self, snapshot: bytes) -> NDArray[np.uint8]:
        """Goes on from a snapshot; gives the picture. Which stages are drawn later is this environment's."""
        console, head = self._open(), len(_SNAPSHOT) + 3
        if snapshot[: len(_SNAPSHOT)] != _SNAPSHOT or len(snapshot) < head + 2:
            found = bytes(snapshot[: len(_SNAPSHOT)])
            raise StateError(f"snapshot: expected bytes that snapshot() gave, found {found!r}")
        stage = snapshot[head - 3 : head].decode(errors="replace").strip() or None
        if stage != self._stage and not (self._random and stage):
            raise StateError(
                f"snapshot: it is of {stage or 'the whole game'}, this environment plays "
                f"{self._stage or 'the whole game'}"
            )
        at = head + 2 + struct.unpack_from("<H", snapshot, head)[0]
        console.load(snapshot[at:])
        self._stage, self._before = stage, bytes(snapshot[head + 2 : at]) or None
        return console.rgb()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SuperMarioBrosEnv cannot be pickled or copied: make one with the same arguments and hand its "
            "state over with snapshot() and restore()"
        )

    # ------------------------------------------------------------------------------------- the game

    @property
    def _single(self) -> bool:
        return self._stage is not None

    def _open(self) -> Console:
        if self._console is None:
            raise ClosedEnvironmentError("this environment was closed; make a new one")
        return self._console

    def _ram(self) -> bytes:
        return self._open().ram.tobytes()

    def _start(self, stage: str | None) -> bytes:
        """The state in which a stage's episodes begin; played to when it is first asked for."""
        if stage not in self._begun:
            console = self._open()
            console.reset()
            console.step(_START)
            console.step()

            def press() -> None:
                console.step(_START)
                if stage is not None:
                    self._write_stage(stage)
                console.step()
                console.poke(0x7A0, 0)

            self._until(
                lambda ram: rules.clock(ram) > 0, press, "the title screen did not give way to a stage"
            )
            first = rules.clock(self._ram())
            self._until(lambda ram: rules.clock(ram) < first, console.step, "the clock does not run")
            self._begun[stage] = console.save()
        return self._begun[stage]

    def _write_stage(self, stage: str) -> None:
        world, number = (int(part) for part in stage.split("-"))
        area = number + (number > 1 and world in _WORLDS_WITH_A_SCENE)
        for address, value in ((0x75F, world), (0x75C, number), (0x760, area)):
            self._open().poke(address, value - 1)

    def _skip(self, ram: bytes) -> None:
        console = self._open()
        if rules.dying(ram):
            # Over at once, without the fall.
            console.poke(0x0E, 6)
            console.step()
        if not self._single and rules.world_over(self._ram()):
            shown = rules.clock(self._ram())
            self._until(lambda now: rules.clock(now) != shown, console.step, "a castle's end did not pass")
        if 1 < console.peek(0x6DE) < 255:
            console.poke(0x6DE, 1)

        def wait() -> None:
            console.poke(0x7A0, 0)
            console.step()

        def free(now: bytes) -> bool:
            return not rules.busy(now) and not rules.world_over(now)

        self._until(free, wait, "a scene did not pass")

    def _until(self, reached: Callable[[bytes], bool], go_on: Callable[[], None], else_: str) -> None:
        for _ in range(_PATIENCE):
            if reached(self._ram()):
                return
            go_on()
        raise RomError(f"{else_} in {_PATIENCE} tries: is the ROM that of Super Mario Bros.?")


class EpisodeOver(ResetNeeded, ValueError):
    """A ValueError, as nes-py raises, and Gymnasium's own."""


def _known(stages: Sequence[str]) -> list[str]:
    if isinstance(stages, str) or not stages:
        raise ConfigError(f"stages: expected a list of at least one, as ['1-1'], found {stages!r}")
    for stage in stages:
        if not isinstance(stage, str) or not re.fullmatch(r"[1-8]-[1-4]", stage):
            raise ConfigError(f"stage: expected WORLD-STAGE, 1-1 to 8-4, found {stage!r}")
    return list(stages)
