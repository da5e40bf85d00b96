"""Wrappers of the tutorials: `JoypadSpace`, and the calls of the time before Gymnasium's five values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from rollcart._warnings import warn

BUTTONS = {"A": 1, "B": 2, "select": 4, "start": 8, "up": 16, "down": 32, "left": 64, "right": 128, "NOOP": 0}


class JoypadSpace(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Discrete(len(actions)) over button combinations.

    env: one that takes a mask of buttons, Discrete(256). actions: a list of lists of button names, as in
    `actions`; whether one of them is ["NOOP"] is the caller's choice.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], actions: Sequence[Sequence[str]]) -> None:
        RecordConstructorArgs.__init__(self, actions=actions)
        gymnasium.Wrapper.__init__(self, env)
        if env.action_space != gymnasium.spaces.Discrete(256):
            raise ValueError(
                f"expected an environment of button masks, Discrete(256), found {env.action_space}"
            )
        if not actions:
            raise ValueError("actions: expected at least one list of buttons, found none")
        self._masks = [_mask(names) for names in actions]
        self._meanings = [" ".join(names) for names in actions]
        self.action_space = gymnasium.spaces.Discrete(len(actions))

    @staticmethod
    def buttons() -> list[str]:
        """The names of buttons."""
        return list(BUTTONS)

    def get_action_meanings(self) -> list[str]:
        """What each action presses."""
        return list(self._meanings)

    def step(self, action: Any) -> Any:
        """Plays one action."""
        number = operator.index(action)
        if not 0 <= number < len(self._masks):
            raise ValueError(f"action: expected 0 to {len(self._masks) - 1}, found {number}")
        return self.env.step(self._masks[number])

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """The picture, asked for as the environment takes it."""
        return self.env.render(*args, **kwargs)

    def seed(self, seed: int | None = None) -> Any:
        """What `OldApi` has; today's environments take seeds in `reset`."""
        return self.env.get_wrapper_attr("seed")(seed)


def _mask(names: Sequence[str]) -> int:
    if isinstance(names, str):
        raise ValueError(
            f"actions: expected lists of button names, found the text {names!r}; write [{names!r}]"
        )
    mask = 0
    for name in names:
        if name not in BUTTONS:
            raise ValueError(f"actions: there is no button {name!r}, expected {', '.join(BUTTONS)}")
        mask |= BUTTONS[name]
    return mask


class OldApi(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """The calls of gym before 0.26: `reset()` gives the observation alone, `step()` four values."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)
        self._seed: int | None = None

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seeds the next reset, and begins nothing itself."""
        self._seed = None if seed is None else operator.index(seed)
        return [self._seed]

    def reset(self, **kwargs: Any) -> Any:
        """Begins an episode, with the seed that is given here or was by `seed`."""
        if kwargs.get("seed") is None:
            kwargs["seed"] = self._seed
        self._seed = None
        return self.env.reset(**kwargs)[0]

    def step(self, action: Any) -> Any:
        """Observation, reward, done, info."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated:
            info = {**info, "TimeLimit.truncated": not terminated}
        return observation, reward, terminated or truncated, info

    def render(self, mode: str | None = None) -> Any:
        """The picture; `mode` is ignored, since make(render_mode=...) decides it."""
        if self.env.render_mode is None:
            wanted = mode or "human"
            warn(f"render: there is no picture; make the environment with render_mode={wanted!r}")
        return self.env.render()
