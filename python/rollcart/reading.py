"""Files by other hands, read with an end to it: a device has none, and a file of another kind may not fit
into memory. What is in them is for others to judge; here a text is UTF-8, with or
without the mark that editors put before it, and JSON is an object.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from rollcart.errors import ConfigError, RomError

# Both ROMs of a cartridge at the native module's limit, and what tools append.
MOST_ROM_BYTES = 129 << 20
# A console's state has some 10 KB, a gzip'd one less.
MOST_STATE_BYTES = 16 << 20
# A movie of a whole day has 30 MB of checks.
MOST_TEXT_BYTES = 256 << 20
_PART_BYTES = 1 << 20


def read_bytes(path: Path, most: int, error: type[ValueError], expected: str) -> bytes:
    """The bytes of a file. Raises `error` for one of more than `most`, and OSError."""
    body = bytearray()
    with path.open("rb") as file:
        # By parts: read(most) would ask for so much memory before it reads a byte.
        while len(body) <= most and (part := file.read(min(_PART_BYTES, most + 1 - len(body)))):
            body += part
    if len(body) > most:
        raise error(f"{path} has more than {most} bytes, expected {expected}")
    return bytes(body)


def read_rom(path: Path) -> bytes:
    """The bytes of a ROM's file. Raises RomError for one that is none by its size."""
    return read_bytes(path, MOST_ROM_BYTES, RomError, "a NES ROM (.nes)")


def is_file(path: Path) -> bool:
    """Whether there is something to read. A name too long for the disk is no error: nothing has it."""
    try:
        return path.exists() and not path.is_dir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def read_text(path: Path, error: type[ValueError] = ConfigError) -> str:
    """The text of a file. Raises `error` where it is no UTF-8 or has no end, OSError as `read_bytes`."""
    body = read_bytes(path, MOST_TEXT_BYTES, error, "a text")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(
            f"{path}: expected text in UTF-8, found byte {body[wrong.start]:#04x} at offset {wrong.start}; "
            "save it as UTF-8, or copy the file again"
        ) from None


def parse_json(text: str, where: str | os.PathLike[str]) -> Any:
    """What a text of JSON says. Raises ConfigError, also for one that is nested too deeply to be read."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is not valid JSON: {error}") from None
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply to be read, expected a few levels") from None


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    value = parse_json(read_text(path), path)
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected an object, found {type(value).__name__}")
    return value
