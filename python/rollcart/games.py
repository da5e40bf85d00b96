"""A game's files as they were found: ROM, data.json, scenario.json and its scripts, metadata.json, states.

Which folders they are in is `discovery`'s business, what they mean the native module's.
"""

from __future__ import annotations

import enum
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollcart import discovery, reading
from rollcart._warnings import warn
from rollcart.errors import ConfigError, RomError, StateError

BUNDLED = "CartRunner-Nes-v0"
POWER_ON = "NONE"
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
    scripts: tuple[tuple[str, str], ...] = field(default=())
    # A ROM of which there are no files, and no game was named.
    bare: bool = False

    def warn_if_bare(self) -> None:
        """Warns of a ROM without files; for those who know by now that it is a ROM."""
        if self.bare:
            warn(
                f"{self.rom_source} is none of the games with data files ({BUNDLED} is assumed when no game "
                "is named): rewards are 0 and episodes end only by max_episode_steps; name its game=, or "
                "scenario= and info="
            )

    def signals(self) -> str:
        """The text of the game's signals: signals.json of its folders, or the one that is here for its ROM.

        Raises:
            ConfigError: There is none.
        """
        own = _first(self.folders, "signals.json")
        if own is not None:
            return reading.read_text(own)
        shelf = Path(__file__).parent / "data" / "signals"
        for path in sorted(shelf.glob("*.json")):
            text = reading.read_text(path)
            if path.stem == self.name or payload_sha1(self.rom) in json.loads(text)["rom_sha"]:
                return text
        have = ", ".join(sorted(path.stem for path in shelf.glob("*.json")))
        raise ConfigError(
            f"signals: there is no signals.json for {self.name} in its folders, nor here (which has {have}); "
            "write one as docs/stable-retro.md says"
        )

    def default_state(self, players: int) -> str:
        """The name of the state in which episodes begin by default; NONE is power-on."""
        by_player = self.metadata.get("default_player_state") or []
        name = by_player[players - 1] if 0 < players <= len(by_player) else self.metadata.get("default_state")
        return name or POWER_ON

    def state_names(self) -> list[str]:
        """The states in the game's folders."""
        return discovery.states_in(self.folders)

    def has_state(self, name: str) -> bool:
        """Whether a state of that name is the game's own, or power-on."""
        if name == POWER_ON or Path(name).name != name:
            return name == POWER_ON
        return any((folder / f"{name}.state").is_file() for folder in self.folders)

    def state(self, source: object) -> tuple[str, bytes | None]:
        """Name and bytes of a state: a name in the game's folders, a path, bytes, or NONE (power-on)."""
        if isinstance(source, enum.Enum):
            # Stable Retro's State.DEFAULT and State.NONE.
            source = self.default_state(1) if source.name == "DEFAULT" else source.name
        if isinstance(source, (bytes, bytearray, memoryview)):
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
            if reading.is_file(path):
                what = "a saved state of this game"
                return path.stem, reading.read_bytes(path, reading.MOST_STATE_BYTES, StateError, what)
        known = ", ".join([*self.state_names(), POWER_ON])
        raise StateError(
            f"state {text!r}: {self.name} has no state of that name; it has {known}; a path works too"
        )


def find(
    game: str,
    rom_path: str | os.PathLike[str] | bytes | None = None,
    *,
    integrations: Any = None,
    scenario: str | os.PathLike[str] | None = None,
    info: str | os.PathLike[str] | None = None,
) -> Game:
    """Finds a game's files. `rom_path` gives the ROM itself; `game`'s files are used if they are for it.

    integrations: see `discovery.Integrations`. scenario, info: other files than scenario.json and data.json,
    by name in the game's folders or by path.
    """
    places = discovery.folders(game, integrations)
    names = "scenario" if scenario is None else scenario, "data" if info is None else info
    if rom_path is None:
        return _complete(game, places, *_rom_of(game, places), *names)
    rom, source = _given_rom(rom_path)
    expected = _expected(places)
    if places and (not expected or payload_sha1(rom) in expected):
        return _complete(game, places, rom, source, *names)
    if game != BUNDLED:
        found = f"its payload has SHA-1 {payload_sha1(rom)}"
        if places:
            raise RomError(
                f"rom_path: {source} is not {game}: {found}, expected {' or '.join(sorted(expected))}"
            )
        raise discovery.no_folder(game)
    if scenario is not None or info is not None:
        return _complete(Path(source).stem or "rom", (), rom, source, *names)
    return Game(Path(source).stem or "rom", rom, source, '{"info": {}}', "{}", {}, (), bare=True)


def payload_sha1(rom: bytes) -> str:
    """The digest that rom.sha files carry: of everything after the header."""
    return hashlib.sha1(rom[_HEADER:]).hexdigest()


def _expected(places: tuple[Path, ...]) -> set[str]:
    path = _first(places, "rom.sha")
    return set(reading.read_text(path).lower().split()) if path else set()


def _first(places: tuple[Path, ...], file: str) -> Path | None:
    return next((place / file for place in places if reading.is_file(place / file)), None)


def _given_rom(rom: str | os.PathLike[str] | bytes) -> tuple[bytes, str]:
    if isinstance(rom, (bytes, bytearray, memoryview)):
        return bytes(rom), "bytes"
    path = Path(rom).expanduser()
    try:
        return reading.read_rom(path), str(path)
    except OSError as error:
        raise type(error)(f"rom_path: cannot read the ROM {path}: {error.strerror}") from None


def _rom_of(game: str, places: tuple[Path, ...]) -> tuple[bytes, str]:
    if not places:
        raise discovery.no_folder(game)
    name = _metadata(places).get("original_rom_name")
    for file in ("rom.nes", name):
        if file and (path := _first(places, file)):
            return reading.read_rom(path), str(path)
    expected = " or ".join(sorted(_expected(places))) or "any"
    raise RomError(
        f"{game}: its folder {places[0]} has no rom.nes (payload SHA-1 {expected}); "
        "`rollcart import FOLDER` finds it among yours and puts it there, or give rom_path="
    )


def _json(places: tuple[Path, ...], file: str) -> dict[str, Any]:
    path = _first(places, file)
    return {} if path is None else reading.read_object(path)


def _metadata(places: tuple[Path, ...]) -> dict[str, Any]:
    """What metadata.json says, its entries that are read here being what they should."""
    value = _json(places, "metadata.json")
    by_player = value.get("default_player_state")
    fits = by_player is None or (
        isinstance(by_player, list) and all(isinstance(name, (str, type(None))) for name in by_player)
    )
    for key, wanted, right in (
        ("default_state", "the name of a state", isinstance(value.get("default_state"), (str, type(None)))),
        ("default_player_state", "a list of names of states, one a number of players", fits),
        ("original_rom_name", "a name", isinstance(value.get("original_rom_name"), (str, type(None)))),
    ):
        if not right:
            path = _first(places, "metadata.json")
            raise ConfigError(f"{path}: {key}: expected {wanted}, found {json.dumps(value[key])}")
    return value


def _complete(
    game: str,
    places: tuple[Path, ...],
    rom: bytes,
    source: str,
    scenario: str | os.PathLike[str],
    info: str | os.PathLike[str],
) -> Game:
    scenario_file = _named(places, "scenario", scenario, "scenario")
    info_file = _named(places, "info", info, "data")
    text = reading.read_text(scenario_file) if scenario_file else "{}"
    return Game(
        game,
        rom,
        source,
        reading.read_text(info_file) if info_file else '{"info": {}}',
        text,
        _metadata(places),
        places,
        _scripts(text, scenario_file),
    )


def _named(places: tuple[Path, ...], option: str, name: str | os.PathLike[str], usual: str) -> Path | None:
    """A JSON file by name in the game's folders, or by path; only the usual one may be missing."""
    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise ConfigError(f"{option}: expected the name of a file or a path, found {name!r}")
    text = os.fspath(name)
    file = text if text.endswith(".json") else f"{text}.json"
    path = Path(file).expanduser()
    if found := _first(places, file) if path.name == file else None:
        return found
    if reading.is_file(path):
        return path
    if text == usual:
        return None
    known = sorted({found.name for place in places for found in place.glob("*.json")} - {"metadata.json"})
    have = ", ".join(known) or "none"
    raise ConfigError(f"{option}: expected a file of the game's folders ({have}) or a path, found {text!r}")


def _scripts(scenario: str, path: Path | None) -> tuple[tuple[str, str], ...]:
    """Names and texts of the scripts that a scenario names and that are there beside it."""
    try:
        names = json.loads(scenario).get("scripts", [])
    except (ValueError, AttributeError, RecursionError):
        return ()  # The native module says what is wrong with the file.
    named = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    files = [(name, path.parent / name) for name in named] if path else []
    return tuple((name, reading.read_text(file)) for name, file in files if reading.is_file(file))
