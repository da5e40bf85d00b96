"""Where the user's ROM is: an argument, an environment variable, or a game folder."""

from __future__ import annotations

import os
from pathlib import Path

from rollcart import games, reading
from rollcart.errors import ConfigError, RomError

# The variable that names a ROM, and the Stable Retro folder that may hold it.
_PLACES = {
    False: ("ROLLCART_SMB_ROM", "SuperMarioBros-Nes-v0", "Super Mario Bros."),
    True: ("ROLLCART_SMB2_ROM", "SuperMarioBros2Japan-Nes-v0", "Super Mario Bros. 2 (The Lost Levels)"),
}


def find(rom_path: str | os.PathLike[str] | bytes | None, *, lost_levels: bool) -> bytes:
    """The ROM's bytes. Raises RomError, which says where one may be put, and OSError."""
    variable, game, title = _PLACES[lost_levels]
    if isinstance(rom_path, (bytes, bytearray)):
        return bytes(rom_path)
    given = rom_path or os.environ.get(variable)
    if given:
        path = Path(given).expanduser()
        try:
            return reading.read_rom(path)
        except OSError as error:
            what = "rom_path" if rom_path else variable
            raise type(error)(f"{what}: cannot read the ROM {path}: {error.strerror}") from None
    try:
        return games.find(game).rom
    except (ConfigError, RomError) as error:
        raise RomError(
            f"found no ROM of {title}, and none comes with this package. Give your own: "
            f'make(..., rom_path="FILE.nes"), or {variable}=FILE.nes in the environment, or '
            f"`rollcart import FOLDER`, which puts it where games are looked for ({error})"
        ) from None
