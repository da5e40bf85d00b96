"""Finds the ROMs of known games in folders and zips, and puts them where the games' files are.

A game is known where its `rom.sha` is found: a folder of Stable Retro's layout (see `games`). Digests are of
a ROM's payload, all bytes after the 16 of its header, so the header never matters. What is found is only
read, never changed.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from rollcart import discovery, games
from rollcart._native import Console
from rollcart.errors import UnsupportedBoard
from rollcart.words import counted

MAGIC = b"NES\x1a"
# The largest NES ROM is far smaller; more is no ROM, and within a zip perhaps a trap.
MOST_BYTES = 32 << 20
MOST_NESTED = 4
# All NES games together are far below; a zip of zips of zips can hold a million times its size.
MOST_UNPACKED = 8 << 30
# What a member takes at least, however small it is.
_MEMBER_BYTES = 4096
ARCHIVES = {".7z": "a 7-Zip archive", ".rar": "a RAR archive", ".gz": "a gzip file", ".tar": "a tar archive"}

# Stable Retro names its games TITLE-SYSTEM-vN, some without the last; folders of one's own need not.
OTHER_SYSTEM = re.compile(r"-(?:(?!Nes-)\w+-v\d+|Genesis|Snes|Sms|GameBoy)$")

IMPORTED, PRESENT, UNKNOWN, UNREADABLE = "imported", "already there", "no match", "unreadable"


@dataclass(frozen=True)
class Target:
    """A game that a ROM may belong to, and the folder that has its rom.sha."""

    game: str
    folder: Path
    category: str


@dataclass(frozen=True)
class Found:
    """What became of one file. `file` is its path, with `!` before the name of a member of a zip."""

    file: str
    outcome: str
    sha1: str | None = None
    game: str | None = None
    to: str | None = None
    reason: str | None = None


@dataclass
class _Allowance:
    """How many bytes may still be unpacked of one file."""

    left: int


def known_games() -> dict[str, Target]:
    """Payload SHA-1 to game, for every rom.sha; the first folder in the order of search counts."""
    known: dict[str, Target] = {}
    for shelf in discovery.shelves():
        category = shelf.name if shelf.name in discovery.CATEGORIES else "stable"
        for path in sorted(shelf.glob("*/rom.sha")):
            if OTHER_SYSTEM.search(path.parent.name):
                continue
            for digest in path.read_text("utf-8", errors="replace").lower().split():
                known.setdefault(digest, Target(path.parent.name, path.parent, category))
    return known


def run(
    paths: Iterable[str | os.PathLike[str]],
    *,
    into: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Found]:
    """Imports every ROM of a known game under `paths`; says of each file that could be one what it is.

    into: the data folder that gets GAME/rom.nes in its category; by default the first of RETRO_DATA_PATH,
    and without one the folder that has the game's rom.sha. dry_run: writes nothing. progress: is told about
    each file before it is read.

    Raises:
        FileNotFoundError: A path is not there.
        OSError: A ROM cannot be written.
    """
    known = known_games()
    names = sorted({target.game for target in known.values()})
    root = Path(into).expanduser() if into is not None else _data_path()
    out: list[Found] = []
    for number, (name, content) in enumerate(_files(paths)):
        progress(
            f"{counted(number, 'file')}, {sum(one.outcome == IMPORTED for one in out)} imported; now {name}"
        )
        for member, body in _members(name, content, 0, _Allowance(MOST_UNPACKED)):
            found = body if isinstance(body, Found) else _judge(member, body, known, names)
            if found is None:
                continue
            if found.outcome == IMPORTED and isinstance(body, bytes):
                assert found.sha1 is not None
                found = _place(found, body, known[found.sha1], root, dry_run)
            out.append(found)
    return out


def _data_path() -> Path | None:
    texts = [text for text in os.environ.get(discovery.DATA_PATH, "").split(os.pathsep) if text]
    return Path(texts[0]).expanduser() if texts else None


def _files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str, Path]]:
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir():
            for folder, folders, files in os.walk(path):
                folders.sort()
                yield from ((str(Path(folder) / file), Path(folder) / file) for file in sorted(files))
        elif path.exists():
            yield str(path), path
        else:
            raise FileNotFoundError(f"{path}: no such file or folder; give a ROM, a zip or a folder of them")


def _members(
    name: str, content: Path | bytes, depth: int, allowance: _Allowance
) -> Iterator[tuple[str, bytes | Found]]:
    """A file's bytes, or those of each member of a zip; a `Found` of what cannot be read."""
    # A pipe or a device would be waited for.
    if isinstance(content, Path) and not content.is_file():
        return
    suffix = Path(name).suffix.lower()
    try:
        source = BytesIO(content) if isinstance(content, bytes) else content
        if suffix == ".zip" or zipfile.is_zipfile(source):
            yield from _unzipped(name, source, depth, allowance)
        elif suffix in ARCHIVES:
            reason = f"{ARCHIVES[suffix]}; unpack it first, only .zip is looked into"
            yield name, Found(name, UNREADABLE, reason=reason)
        elif isinstance(content, bytes):
            yield name, content
        elif content.stat().st_size <= MOST_BYTES:
            yield name, content.read_bytes()
    except Exception as error:  # zipfile lets through whatever its parts raise over damaged bytes
        yield name, Found(name, UNREADABLE, reason=_why_unreadable(error))


def _why_unreadable(error: Exception) -> str:
    return str(error) or type(error).__name__


def _unzipped(
    name: str, source: BytesIO | Path, depth: int, allowance: _Allowance
) -> Iterator[tuple[str, bytes | Found]]:
    if depth >= MOST_NESTED:
        yield name, Found(name, UNREADABLE, reason=f"more than {MOST_NESTED} zips inside each other")
        return
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            inner = f"{name}!{entry.filename}"
            if allowance.left <= 0:
                reason = f"more than {MOST_UNPACKED} bytes unpacked of one file; unpack it first"
                yield inner, Found(inner, UNREADABLE, reason=reason)
                return
            allowance.left -= max(entry.file_size, _MEMBER_BYTES)
            if entry.file_size > MOST_BYTES:
                yield inner, Found(inner, UNREADABLE, reason=f"{entry.file_size} bytes, too large for a ROM")
                continue
            try:
                body = archive.read(entry)
            except Exception as error:  # as above
                yield inner, Found(inner, UNREADABLE, reason=_why_unreadable(error))
                continue
            yield from _members(inner, body, depth + 1, allowance)


def _judge(name: str, body: bytes, known: dict[str, Target], names: list[str]) -> Found | None:
    """What a file is; None for one that is no ROM by name, header or digest."""
    headed = body[:4] == MAGIC
    is_rom = headed or Path(name.rpartition("!")[2]).suffix.lower() == ".nes"
    digest = games.payload_sha1(body) if headed else hashlib.sha1(body).hexdigest()
    if headed and digest in known:
        return Found(name, IMPORTED, digest, known[digest].game)
    if not is_rom and digest not in known:
        return None
    return Found(name, UNKNOWN, digest, reason=_why_not(name, body, headed, known, names))


def _why_not(name: str, body: bytes, headed: bool, known: dict[str, Target], names: list[str]) -> str:
    if not headed:
        magic = 'the bytes "NES" and 1A, with which a header begins'
        if target := known.get(hashlib.sha1(body).hexdigest()):
            return f"this is {target.game} without the 16-byte header that a .nes file needs"
        if target := known.get(games.payload_sha1(body)):
            return f"this is {target.game} with a damaged header: it lacks {magic}"
        return f"no NES ROM: it lacks {magic}"
    # Sizes above 4 MiB, which the header writes in another way, are no game that is known here.
    declared = 16 + 16384 * body[4] + 8192 * body[5] + (512 if body[6] & 4 else 0) if len(body) > 15 else 16
    if len(body) < declared:
        return f"cut short: its header promises {declared} bytes, the file has {len(body)}"
    if len(body) > declared and (target := known.get(games.payload_sha1(body[:declared]))):
        return f"{len(body) - declared} bytes too many at its end; without them it is {target.game}"
    stem = Path(name.rpartition("!")[2]).stem
    # A folder's name has no blanks and ends with the console: compare letters and digits alone.
    letters = "".join(ch for ch in stem.partition("(")[0] if ch.isalnum()).lower()
    bare = {game.rpartition("-Nes-")[0].lower() or game.lower(): game for game in names}
    near = difflib.get_close_matches(letters, bare, 1, 0.75)
    if not near:
        return "no game with data files has this digest, nor a name like this file's"
    game = bare[near[0]]
    wanted = " or ".join(sorted(digest for digest, target in known.items() if target.game == game))
    return (
        f"by its name perhaps {game}, whose files are for {wanted}: another region, revision or a changed ROM"
    )


def _place(found: Found, body: bytes, target: Target, root: Path | None, dry_run: bool) -> Found:
    folder = target.folder if root is None else root / target.category / target.game
    path = folder / "rom.nes"
    outcome = PRESENT if path.is_file() and path.read_bytes() == body else IMPORTED
    if outcome == IMPORTED and not dry_run:
        _write(path, body)
    return Found(found.file, outcome, found.sha1, found.game, str(path), _board(body))


def _write(path: Path, body: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A copy that was broken off must not look like a ROM.
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(body)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        text = f"cannot write {path}: {error.strerror}; choose another folder with --into, and name it in"
        raise type(error)(f"{text} {discovery.DATA_PATH}") from None


def _board(body: bytes) -> str | None:
    """Why a known game cannot be played, if so."""
    try:
        Console(body)
    except UnsupportedBoard as error:
        return f"not playable yet: {error}"
    except ValueError as error:
        return f"not playable: {error}"
    return None
