"""Arguments of `NesVectorEnv` and of its calls as they were given; each refusal says what to write.

What values options may have is the native module's business; here is what is decided before it is asked.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Collection, Mapping, Set
from itertools import islice
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from rollcart.errors import ConfigError

_SEED_MASK = (1 << 64) - 1

# What other packages call an option of ours, where the names are not alike.
ELSEWHERE = {
    "img_height": "resize",
    "img_width": "resize",
    "noop_max": "noop_reset_max",
    "repeat_action_probability": "sticky_action_prob",
    "seed": "reset(seed=...)",
    "stack_num": "frame_stack",
    "use_restricted_actions": "actions",
}


def no_option(owner: str, name: str, known: Collection[str]) -> str:
    """What to say of an argument that there is none of: what it is called here, if that can be guessed."""
    near = difflib.get_close_matches(name, known, 1)
    meant = ELSEWHERE.get(name) or (near[0] if near else "")
    advice = f"did you mean {meant}?" if meant else "help(rollcart.NesVectorEnv) lists them"
    return f"{owner}: there is no option {name!r}; {advice}"


def autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """The mode by enum or value; ConfigError for anything else."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        values = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ConfigError(
            f"autoreset_mode: expected an AutoresetMode or one of {values}, found {mode!r}"
        ) from None


def render_mode(mode: str | None) -> str | None:
    """The mode; ConfigError for one that there is none of."""
    if mode is not None and not (isinstance(mode, str) and mode == "rgb_array"):
        raise ConfigError(
            f"render_mode: expected None or 'rgb_array', found {mode!r}; for a window wrap the environment "
            "in gymnasium.wrappers.vector.HumanRendering"
        )
    return mode


def flag(what: str, value: Any) -> bool:
    """True or False; ConfigError for what Python would take for one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(f"{what}: expected True or False, found {value!r}")
    return bool(value)


def info_keys(keys: Any) -> tuple[list[str] | None, bool]:
    """The keys that the lanes are asked for (None: all), and whether the state's name is told beside them."""
    if keys is None or (isinstance(keys, str) and keys == "numbers"):
        return None, keys is None
    rows = (list, tuple, set, frozenset)
    if not isinstance(keys, rows) or not all(isinstance(key, str) for key in keys):
        raise ConfigError(f"info_keys: expected a list of names, None or 'numbers', found {keys!r}")
    return [key for key in keys if key != "state"], "state" in keys


def lane_number(what: str, lane: Any) -> int:
    """The number of a lane, in range or not; TypeError for what is none."""
    try:
        return operator.index(lane)
    except TypeError:
        raise TypeError(f"{what}: expected the number of a lane, found {lane!r}") from None


def check_snapshots(snapshots: Any, lanes: int) -> None:
    """Raises where it is no list with one entry a lane; what is in the entries is looked at later."""
    wanted = f"snapshots: expected {lanes}, one a lane (bytes, or None for none)"
    if not hasattr(snapshots, "__len__") or isinstance(snapshots, (bytes, bytearray, str, Mapping)):
        raise TypeError(f"{wanted}, found {type(snapshots).__name__}")
    if len(snapshots) != lanes:
        raise ValueError(f"{wanted}, found {len(snapshots)}")


def reset_options(options: Any) -> Mapping[str, Any]:
    """A reset's options: None is none. Other keys than ours are other wrappers' and stay.

    Raises:
        TypeError: For what is no dict.
        ConfigError: "mask", which would reset every lane where it was passed over, or "states".
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"options: expected a dict or None, found {options!r}")
    for ours, theirs in (("reset_mask", "mask"), ("state", "states")):
        if theirs in options and ours not in options:
            raise ConfigError(f"options: expected {ours!r}, found {theirs!r}")
    return options


def seeds(seed: Any, lanes: int) -> tuple[int | None, list[int | None]]:
    """The one seed that was given, if it was one, and each lane's, None where it has none; of any size.

    Raises:
        TypeError: For what is no integer nor a row of them. A set has no order, hence is none.
        ValueError: For another number of them than lanes, or one below 0.
    """
    if seed is None:
        return None, [None] * lanes
    try:
        number = operator.index(seed)
    except TypeError:
        return None, _one_a_lane(seed, lanes)
    if number < 0:
        raise ValueError(f"seed: expected 0 or more, found {number}")
    return number, [number + lane for lane in range(lanes)]


def _one_a_lane(seed: Any, lanes: int) -> list[int | None]:
    refusal = TypeError(f"seed: expected an integer or one a lane, found {seed!r}")
    if isinstance(seed, (str, bytes, Set, Mapping)):
        raise refusal
    try:
        # No more than tells that there are too many.
        given = [None if one is None else operator.index(one) for one in islice(seed, lanes + 1)]
    except TypeError:
        raise refusal from None
    if len(given) != lanes:
        found = f"more than {lanes}" if len(given) > lanes else len(given)
        raise ValueError(f"seed: expected an integer or {lanes} of them, one a lane, found {found}")
    if any(one is not None and one < 0 for one in given):
        raise ValueError(f"seed: expected 0 or more for each lane, found {given}")
    return given


def native_seeds(
    given: list[int | None],
    seeded: NDArray[np.bool_],
    env: gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv,
) -> list[int | None]:
    """The seeds as the lanes take them. A lane that never got one takes its own from the environment's."""
    if not seeded.all():
        first = base_seed(env)
        given = [first + lane if one is None and not seeded[lane] else one for lane, one in enumerate(given)]
    return [None if one is None else one & _SEED_MASK for one in given]


def base_seed(env: gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv) -> int:
    """The environment's seed, random if nobody gave one.

    Gymnasium knows none where the caller set `np_random` itself: then that generator draws it.
    """
    seed = env.np_random_seed
    return int(env.np_random.integers(1 << 63)) if seed is None or seed < 0 else int(seed)
