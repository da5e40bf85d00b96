"""Where a game's files are: ROM, data.json, scenario.json, metadata.json, states.

The layout is Stable Retro's: ROOT/{stable,contrib,experimental}/GAME/FILE, or ROOT/GAME/FILE. Roots are, in
this order, RETRO_DATA_PATH (several joined by the system's path separator, `~` allowed), this package's own
data, and an installed stable-retro's. What the files mean is the native module's business.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollcart.errors import ConfigError, RomError, StateError

BUNDLED = "CartRunner-Nes-v0"
DATA_PATH = "RETRO_DATA_PATH"
POWER_ON = "NONE"
CATEGORIES = ("stable", "contrib", "experimental", "")
_HEADER = 16


@dataclass(frozen=True)
class Game:
    """A game as found: its name, the bytes of its ROM, the texts of its files, and its folders."""

    name: str
    rom: bytes
    rom_source: str
    data: str
    scenario: str
    metadata: dict[str, Any]
    folders: tuple[Path, ...] = field(default=())

    def default_state(self, players: int) -> str:
        """The name of the state in which episodes begin by default; NONE is power-on."""
        by_player = self.metadata.get("default_player_state") or []
        name = by_player[players - 1] if 0 < players <= len(by_player) else self.metadata.get("default_state")
        return name or POWER_ON

    def state_names(self) -> list[str]:
        """The states in the game's folders."""
        found = {path.stem for folder in self.folders for path in folder.glob("*.state")}
        return sorted(name for name in found if not name.startswith("_"))

    def state(self, source: object) -> tuple[str, bytes | None]:
        """Name and bytes of a state: a name in the game's folders, a path, bytes, or NONE (power-on)."""
        source = getattr(source, "name", source) if not isinstance(source, os.PathLike) else source
        if isinstance(source, (bytes, bytearray)):
            return f"state-{hashlib.sha1(source).hexdigest()[:8]}", bytes(source)
        if not isinstance(source, (str, os.PathLike)):
            raise ConfigError(
                f"state: expected the name of a state, a path or bytes, found {type(source).__name__}"
            )
        text = os.fspath(source)
        if text == POWER_ON:
            return POWER_ON, None
        file = text if text.endswith(".state") else f"{text}.state"
        paths = [folder / file for folder in self.folders] + [Path(text).expanduser()]
        for path in paths:
            if path.is_file():
                return path.stem, path.read_bytes()
        known = ", ".join([*self.state_names(), POWER_ON])
        raise StateError(
            f"state {text!r}: {self.name} has no state of that name; it has {known}; a path works too"
        )


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


def folders(game: str) -> tuple[Path, ...]:
    """The folders of a game, in the order of search."""
    if not isinstance(game, str) or not game or Path(game).name != game:
        raise ConfigError(f"game: expected the name of a game such as {BUNDLED}, found {game!r}")
    candidates = (root / category / game for root in roots() for category in CATEGORIES)
    return tuple(path for path in candidates if path.is_dir())


def find(game: str, rom_path: str | os.PathLike[str] | bytes | None = None) -> Game:
    """Finds a game's files. `rom_path` gives the ROM itself; `game`'s files are used if they are for it."""
    places = folders(game)
    if rom_path is None:
        return _complete(game, places, *_rom_of(game, places))
    rom, source = _given_rom(rom_path)
    expected = _expected(places)
    if places and (not expected or payload_sha1(rom) in expected):
        return _complete(game, places, rom, source)
    if game != BUNDLED:
        found = f"its payload has SHA-1 {payload_sha1(rom)}"
        if places:
            raise RomError(
                f"rom_path: {source} is not {game}: {found}, expected {' or '.join(sorted(expected))}"
            )
        raise _no_folder(game)
    warnings.warn(
        f"{source} is none of the games with data files ({BUNDLED} is assumed when no game is named): "
        "rewards are 0 and episodes end only by max_episode_steps; name its game=",
        stacklevel=3,
    )
    return Game(Path(source).stem or "rom", rom, source, '{"info": {}}', "{}", {}, ())


def payload_sha1(rom: bytes) -> str:
    """The digest that rom.sha files carry: of everything after the header."""
    return hashlib.sha1(rom[_HEADER:]).hexdigest()


def _no_folder(game: str) -> ConfigError:
    searched = ", ".join(str(root) for root in roots())
    return ConfigError(
        f"game: no folder {game} under {searched}; set {DATA_PATH} to a folder that holds stable/{game}"
    )


def _expected(places: tuple[Path, ...]) -> set[str]:
    path = _first(places, "rom.sha")
    return set(path.read_text().lower().split()) if path else set()


def _first(places: tuple[Path, ...], file: str) -> Path | None:
    return next((place / file for place in places if (place / file).is_file()), None)


def _given_rom(rom: str | os.PathLike[str] | bytes) -> tuple[bytes, str]:
    if isinstance(rom, (bytes, bytearray)):
        return bytes(rom), "bytes"
    path = Path(rom).expanduser()
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        raise type(error)(f"rom_path: cannot read the ROM {path}: {error.strerror}") from None


def _rom_of(game: str, places: tuple[Path, ...]) -> tuple[bytes, str]:
    if not places:
        raise _no_folder(game)
    name = _json(places, "metadata.json").get("original_rom_name")
    for file in ("rom.nes", name):
        if file and (path := _first(places, file)):
            return path.read_bytes(), str(path)
    expected = " or ".join(sorted(_expected(places))) or "any"
    raise RomError(
        f"{game}: its folder {places[0]} has no rom.nes (payload SHA-1 {expected}); "
        "put your ROM there under that name, or give rom_path="
    )


def _json(places: tuple[Path, ...], file: str) -> dict[str, Any]:
    path = _first(places, file)
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected an object, found {type(value).__name__}")
    return value


def _complete(game: str, places: tuple[Path, ...], rom: bytes, source: str) -> Game:
    def text(file: str, default: str) -> str:
        path = _first(places, file)
        return path.read_text() if path else default

    data, scenario = text("data.json", '{"info": {}}'), text("scenario.json", "{}")
    return Game(game, rom, source, data, scenario, _json(places, "metadata.json"), places)
