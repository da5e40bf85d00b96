"""`NesEnv`: one NES as a `gymnasium.Env`. It is one lane of `NesVectorEnv`, without its first axis."""

from __future__ import annotations

from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from rollcart import _arguments, spaces
from rollcart.games import BUNDLED
from rollcart.vector_env import NTSC_FRAMES_PER_SECOND, NesVectorEnv


class NesEnv(gymnasium.Env[Any, Any]):
    """One NES. Takes the arguments of `NesVectorEnv`, but for those that speak of many lanes."""

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's name
        "render_modes": ["rgb_array"],
        "render_fps": NTSC_FRAMES_PER_SECOND,
    }

    def __init__(self, game: str = BUNDLED, *, render_mode: str | None = None, **kwargs: Any) -> None:
        for many in ("num_envs", "autoreset_mode", "batch_size", "copy", "num_threads"):
            if many in kwargs:
                raise TypeError(f"NesEnv has one lane and no {many}; use NesVectorEnv (gymnasium.make_vec)")
        for what, value in (("game", game), ("rom_path", kwargs.get("rom_path"))):
            if isinstance(value, (list, tuple)):
                raise TypeError(f"{what}: NesEnv has one lane, found a list; use NesVectorEnv")
        one: dict[str, Any] = {"num_envs": 1, "autoreset_mode": "Disabled", "num_threads": 1}
        self._lanes = NesVectorEnv(game, **kwargs, **one, render_mode=render_mode)
        self.render_mode = render_mode
        self.metadata = {key: value for key, value in self._lanes.metadata.items() if key != "autoreset_mode"}
        self.game = self._lanes.game
        self.observation_space = self._lanes.single_observation_space
        self.action_space = self._lanes.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode. options["state"]: where, now and later."""
        seed = int(seed) if isinstance(seed, np.integer) else seed
        super().reset(seed=seed)
        if seed is None and not self._lanes._seeded.all():
            # As in NesVectorEnv, so that np_random_seed replays the run.
            seed = _arguments.base_seed(self)
        observation, infos = self._lanes.reset(seed=seed, options=options)
        return self._only(observation), self._info(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one action."""
        shape = self.action_space.shape or ()
        numbers = spaces.numbers(action, self.action_space, shape, each="")
        try:
            results = self._lanes.step(numbers.reshape(1, *shape))
        except ResetNeeded:
            raise ResetNeeded("no episode runs: none has begun, or it has ended; call reset()") from None
        observation, reward, terminated, truncated, infos = results
        return (
            self._only(observation),
            float(reward[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            self._info(infos),
        )

    def render(self) -> NDArray[np.uint8] | None:
        """The picture, uint8[224, 240, 3]; None without a render mode."""
        return None if self.render_mode is None else self._lanes.render_lane(0)

    def close(self) -> None:
        """Lets the console go; may be called again."""
        self._lanes.close()

    def snapshot(self) -> bytes:
        """The whole state as bytes."""
        (state,) = self._lanes.snapshot()
        assert state is not None
        return state

    def restore(self, snapshot: bytes) -> Any:
        """Goes on from a snapshot; gives the observation."""
        return self._only(self._lanes.restore([snapshot]))

    def ram(self) -> NDArray[np.uint8]:
        """The console's RAM, uint8[2048], a copy."""
        ram: NDArray[np.uint8] = self._lanes.ram()[0]
        return ram

    @property
    def action_buttons(self) -> list[tuple[int, int]] | None:
        """For actions of one number: what each presses on both pads, as masks."""
        return self._lanes.action_buttons

    def get_action_meanings(self) -> list[str]:
        """For actions of one number: the names of the buttons that each presses; NOOP for none."""
        return self._lanes.get_action_meanings()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a NesEnv cannot be pickled or deep-copied: make one with the same arguments and hand its state "
            "over with snapshot() and restore()"
        )

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__reduce__()

    @staticmethod
    def _only(observation: Any) -> Any:
        if isinstance(observation, dict):
            return {key: value[0] for key, value in observation.items()}
        return observation[0]

    @staticmethod
    def _info(infos: dict[str, Any]) -> dict[str, Any]:
        return {key: value[0].item() for key, value in infos.items() if not key.startswith("_")}
