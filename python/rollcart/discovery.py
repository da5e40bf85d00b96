"""Which folders hold a game's files: Stable Retro's layout and its choice of integrations.

    ROOT/{contrib,experimental,stable}/GAME/FILE    ROOT/GAME/FILE    CUSTOM/GAME/FILE

Roots are, in this order, RETRO_DATA_PATH (several joined by the system's path separator, `~` allowed), this
package's own data, and an installed stable-retro's. A file is the first of its name in a game's folders. What
is in the files is `games`' business.
"""

from __future__ import annotations

import difflib
import enum
import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollcart import reading
from rollcart.errors import ConfigError

DATA_PATH = "RETRO_DATA_PATH"
# Without a choice: what is in no category too, and what one wrote oneself before what others contributed.
CATEGORIES = ("stable", "contrib", "experimental", "")


class Integrations(enum.IntFlag):
    """Which integrations are looked at, with Stable Retro's numbers."""

    STABLE = 1
    EXPERIMENTAL_ONLY = 2
    CONTRIB_ONLY = 4
    CUSTOM_ONLY = 8
    EXPERIMENTAL = 3
    CONTRIB = 5
    CUSTOM = 9
    ALL = 15


# The order in which Stable Retro looks; where a custom path is none of a root's.
_ORDER = (
    (Integrations.CONTRIB_ONLY, "contrib"),
    (Integrations.EXPERIMENTAL_ONLY, "experimental"),
    (Integrations.CUSTOM_ONLY, None),
    (Integrations.STABLE, "stable"),
)
_custom: list[Path] = []


def add_custom_path(path: str | os.PathLike[str]) -> None:
    """Looks for games in the folder `path` too, which holds a folder for each."""
    _custom.append(Path(path).expanduser().absolute())


def clear_custom_paths() -> None:
    """Forgets every path that was added."""
    _custom.clear()


def roots() -> Iterator[Path]:
    """The data folders that exist, in the order of search."""
    for text in os.environ.get(DATA_PATH, "").split(os.pathsep):
        if text and (path := Path(text).expanduser()).is_dir():
            yield path
    yield Path(__file__).parent / "data"
    # Found without importing it: it is slow, and may not be able to be imported here.
    retro = importlib.util.find_spec("stable_retro")
    for place in (retro.submodule_search_locations or []) if retro else []:
        if (path := Path(place) / "data").is_dir():
            yield path


def chosen(integrations: Any) -> Integrations | None:
    """A choice of integrations from what a caller gave: None, a number or flag, or names joined by `|`.

    Raises:
        ConfigError: For anything else.
    """
    if integrations is None:
        return None
    value = getattr(integrations, "value", integrations)
    if isinstance(value, str):
        names = [name.strip().upper() for name in value.split("|")]
        if all(name in Integrations.__members__ for name in names):
            flag = Integrations(0)
            for name in names:
                flag |= Integrations[name]
            return flag
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value <= Integrations.ALL:
        return Integrations(value)
    known = ", ".join(name.lower() for name in Integrations.__members__)
    raise ConfigError(
        f"integrations: expected None or one of {known}, or several joined by |, found {value!r}"
    )


def shelves(integrations: Any = None) -> Iterator[Path]:
    """The folders that hold games' folders, in the order of search."""
    flag = chosen(integrations)
    if flag is None:
        yield from _custom
        yield from (root / category for root in roots() for category in CATEGORIES)
        return
    for part, category in _ORDER:
        if flag & part:
            yield from _custom if category is None else (root / category for root in roots())


def folders(game: str, integrations: Any = None) -> tuple[Path, ...]:
    """The folders of a game, in the order of search."""
    if not isinstance(game, str) or game in ("", "..") or len(game.encode()) > 255 or Path(game).name != game:
        raise ConfigError(f"game: expected the name of a game such as CartRunner-Nes-v0, found {game!r}")
    return tuple(path for shelf in shelves(integrations) if (path := shelf / game).is_dir())


def list_games(integrations: Any = None) -> list[str]:
    """The games that can be told by their ROM: those with a rom.sha."""
    return sorted({path.parent.name for shelf in shelves(integrations) for path in shelf.glob("*/rom.sha")})


def list_states(game: str, integrations: Any = None) -> list[str]:
    """The states where a game can begin; those whose names begin with `_` are not for everyone."""
    return states_in(folders(game, integrations))


def states_in(places: Iterable[Path]) -> list[str]:
    """The states in a game's folders."""
    found = {path.stem for folder in places for path in folder.glob("*.state")}
    return sorted(name for name in found if not name.startswith("_"))


def list_scenarios(game: str, integrations: Any = None) -> list[str]:
    """The scenarios of a game: JSON files that speak of reward, rewards or done."""
    found = set()
    for folder in folders(game, integrations):
        for path in folder.glob("*.json"):
            try:
                content = reading.read_object(path)
            except (OSError, ValueError):
                continue
            if content.keys() & {"reward", "rewards", "done"}:
                found.add(path.stem)
    return sorted(found)


def no_folder(game: str) -> ConfigError:
    """The error for a game that is nowhere."""
    places = [*_custom, *roots()]
    searched = ", ".join(str(place) for place in places)
    known = {path.name for place in places for path in place.glob("*/*-Nes*")}
    near = difflib.get_close_matches(str(game), known, 1) or [
        name for name in sorted(known) if name.startswith(f"{game}-Nes")
    ]
    advice = f"did you mean {near[0]}? Else " if near else ""
    return ConfigError(
        f"game: no folder {game} under {searched}; {advice}set {DATA_PATH} to a folder that holds "
        f"stable/{game}"
    )
