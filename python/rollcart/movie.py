"""Movies: what was pressed, from where, and what has to come of it.

A movie is a text file. Its first line is `rollcart movie 1` (the format's version), its second a JSON object
(game, SHA-1 of the ROM's payload, where it begins, frames, RAM fill at power-on). Then come three sections:

    [start]   the state in which it begins, base64 (absent for power-on): any bytes that Console.load takes
    [inputs]  FRAMES BUTTONS [BUTTONS OF PAD 2], one line a run of equal frames; - is no button
    [checks]  one line a second: the number of its last frame, 16 hex digits of the SHA-256 of everything that
              can be seen then (RAM, work RAM, VRAM, OAM, palettes, picture), and 4 hex digits a frame of the
              CRC-32 of RAM

So a replay that goes another way says in which frame. Pictures and windows are left to `pictures` and `play`.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import json
import os
import textwrap
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rollcart import buttons, games, reading
from rollcart._native import Console
from rollcart.buttons import Pads
from rollcart.errors import ConfigError, MovieDiverged, MovieError, RomError

MAGIC = "rollcart movie"
VERSION = 1
SUFFIX = ".rcm"
CHECK_EVERY = 60  # frames
_SECTIONS = ("[start]", "[inputs]", "[checks]")


@dataclass
class Movie:
    """A recorded movie. `start` None is power-on; without `checks` and `digests` nothing is compared.

    checks: 16 bits a frame. digests: the text of a digest by its frame's number, the first frame being 1.
    """

    game: str
    rom_sha1: str
    start_name: str
    start: bytes | None
    inputs: list[Pads] = field(default_factory=list)
    checks: list[int] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)
    ram_fill: int = 0xFF
    rerecords: int = 0

    @property
    def frames(self) -> int:
        return len(self.inputs)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all; OSError, which names it, where it cannot be written."""
        path = Path(path).expanduser()
        part = path.with_name(path.name + ".part")
        try:
            part.write_text(self.text(), encoding="utf-8")
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise type(error)(f"cannot write the movie {path}: {error.strerror}") from None

    def text(self) -> str:
        head = {
            "game": self.game,
            "rom_sha1": self.rom_sha1,
            "start": self.start_name,
            "frames": self.frames,
            "ram_fill": self.ram_fill,
            "rerecords": self.rerecords,
        }
        out = [f"{MAGIC} {VERSION}", json.dumps(head)]
        if self.start is not None:
            out += ["[start]", *textwrap.wrap(base64.b64encode(self.start).decode(), 100)]
        out += ["[inputs]", *buttons.lines(self.inputs), "[checks]"]
        began = 0
        for frame, digest in self.digests.items():
            out.append(f"{frame} {digest} {''.join(f'{check:04x}' for check in self.checks[began:frame])}")
            began = frame
        return "\n".join(out) + "\n"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Movie:
        """Raises MovieError for a file that is no movie, of a later version, or damaged."""
        where = os.fspath(path)
        try:
            text = _text(path)
        except OSError as error:
            raise _unreadable(where, error) from None
        except UnicodeDecodeError:
            raise _no_movie(where, "bytes that are no text") from None
        return cls.parse(text, where)

    @classmethod
    def parse(cls, text: str, where: str = "the movie") -> Movie:
        """The movie in a text; `where` names it in errors."""
        lines = text.splitlines()
        first = lines[0] if lines else ""
        if not first.startswith(MAGIC):
            raise _no_movie(where, repr(first[:40]))
        version = first.removeprefix(MAGIC).strip()
        if version != str(VERSION):
            raise MovieError(
                f"{where}: it has format version {version}, this build reads {VERSION}; record it again"
            )
        try:
            head: dict[str, Any] = json.loads(lines[1])
            frames = int(head["frames"])
            sections = _sections(lines, where)
            start_lines = sections.get("[start]", (0, []))[1]
            start = base64.b64decode("".join(start_lines), validate=True) if start_lines else None
            began, runs = sections["[inputs]"]
            movie = cls(
                str(head["game"]),
                str(head["rom_sha1"]),
                str(head["start"]),
                start,
                buttons.inputs(runs, where, began),
                ram_fill=int(head["ram_fill"]),
                rerecords=int(head["rerecords"]),
            )
            for line in sections["[checks]"][1]:
                frame, digest, checks = line.split()
                movie.checks += [int(checks[at : at + 4], 16) for at in range(0, len(checks), 4)]
                movie.digests[int(frame)] = digest
        except MovieError:
            raise
        except RecursionError:
            raise MovieError(
                f"{where}: it is damaged (line 2 is nested too deeply); record it again"
            ) from None
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise MovieError(f"{where}: it is damaged ({error}); record it again") from None
        counts = {frames, movie.frames, len(movie.checks), max(movie.digests, default=0)}
        if len(counts) > 1:
            raise MovieError(
                f"{where}: it is damaged: it should have {frames} frames, has inputs of {movie.frames} and "
                f"checks of {len(movie.checks)}, the last digest after {max(movie.digests, default=0)}; "
                "record it again"
            )
        return movie


class Recorder:
    """Writes down what a console is made to do: call `frame` after each of its frames."""

    def __init__(self, console: Console, movie: Movie) -> None:
        self._console = console
        self.movie = movie

    @classmethod
    def at_start(cls, console: Console, game: games.Game, start_name: str, start: bytes | None) -> Recorder:
        """A movie that begins at power-on (`start` None) or in a state whose bytes were just loaded."""
        return cls(console, Movie(game.name, games.payload_sha1(game.rom), start_name, start))

    @classmethod
    def here(cls, console: Console, game: games.Game) -> Recorder:
        """A movie that begins at the console's present state."""
        return cls.at_start(console, game, f"frame {console.frame_count}", console.save())

    def frame(self, pads: Pads) -> None:
        """Takes in the frame that was just run, drawn, with these buttons."""
        movie = self.movie
        movie.inputs.append(pads)
        movie.checks.append(ram_check(self._console))
        if movie.frames % CHECK_EVERY == 0:
            movie.digests[movie.frames] = digest(self._console)

    def cut(self, frames: int) -> None:
        """Goes back to so many frames: what came after was taken back."""
        movie = self.movie
        if frames < movie.frames:
            movie.rerecords += 1
        del movie.inputs[frames:], movie.checks[frames:]
        movie.digests = {frame: text for frame, text in movie.digests.items() if frame <= frames}

    def finish(self) -> Movie:
        """The movie so far; the console has to be where its last frame left it, picture and all."""
        movie = self.movie
        if movie.frames and movie.frames not in movie.digests:
            movie.digests[movie.frames] = digest(self._console)
        return movie


def digest(console: Console) -> str:
    """What a console shows: 16 hex digits of a SHA-256."""
    sha = hashlib.sha256()
    parts = (
        console.ram,
        console.work_ram,
        console.vram(),
        console.oam(),
        console.palette_ram(),
        console.frame(),
    )
    for part in parts:
        sha.update(part.tobytes())
    return sha.hexdigest()[:16]


def ram_check(console: Console) -> int:
    """The low 16 bits of the CRC-32 of RAM."""
    return zlib.crc32(console.ram.tobytes()) & 0xFFFF


def open_console(movie: Movie, rom: bytes) -> Console:
    """A console where the movie begins. Raises RomError for another ROM than the movie's."""
    found = games.payload_sha1(rom)
    if found != movie.rom_sha1:
        raise RomError(
            f"the movie was recorded with the ROM of {movie.game} with payload SHA-1 {movie.rom_sha1}, "
            f"this ROM has {found}; give the movie's own ROM with rom_path"
        )
    console = Console(rom, ram_fill=movie.ram_fill)
    if movie.start is not None:
        console.load(movie.start)
    return console


def replay(movie: Movie, rom: bytes, *, check: bool = True) -> Iterator[Console]:
    """Plays the movie; gives the console, with its picture, after each frame.

    Raises MovieDiverged in the first frame in which RAM, or at the end of the first second in which anything
    else, is not what it was; RomError for another ROM.
    """
    console = open_console(movie, rom)
    compared = 0
    for frame, pads in enumerate(movie.inputs, 1):
        console.step(pads[0], 1, pads[1])
        if check and movie.checks:
            found = ram_check(console)
            if found != movie.checks[frame - 1]:
                raise MovieDiverged(
                    frame, f"RAM's check is {found:04x}, the movie has {movie.checks[frame - 1]:04x}"
                )
            if frame in movie.digests:
                seen = digest(console)
                if seen != movie.digests[frame]:
                    raise MovieDiverged(
                        frame,
                        f"RAM agrees, but video memory or the picture changed after frame {compared}: "
                        f"their digest is {seen}, the movie has {movie.digests[frame]}",
                    )
                compared = frame
        yield console


def with_checks(
    movie: Movie, rom: bytes, *, frames: int | None = None, progress: Callable[[int], object] = int
) -> Movie:
    """The movie's first `frames` (default all) with checks of what this build plays.

    progress: called after each frame with its number.
    """
    console = open_console(movie, rom)
    made = replace(movie, inputs=[], checks=[], digests={})
    recorder = Recorder(console, made)
    for frame, pads in enumerate(movie.inputs[:frames], 1):
        console.step(pads[0], 1, pads[1])
        recorder.frame(pads)
        progress(frame)
    return recorder.finish()


def of_log(game: games.Game, start_name: str, start: bytes, pads: bytes) -> Movie:
    """A movie of two bytes a frame, one a pad, with checks."""
    movie = Movie(game.name, games.payload_sha1(game.rom), start_name, start)
    movie.inputs = list(zip(pads[::2], pads[1::2], strict=True))
    return with_checks(movie, game.rom)


def from_inputs(path: str | os.PathLike[str], game: games.Game, state: object) -> Movie:
    """A movie without checks from a file that has only lines of the section [inputs]."""
    where = os.fspath(path)
    try:
        runs = buttons.inputs(_text(path).splitlines(), where)
    except OSError as error:
        raise _unreadable(where, error) from None
    except UnicodeDecodeError:
        raise _no_movie(where, "bytes that are no text") from None
    except ConfigError as error:
        raise MovieError(f"{error}; a movie begins with a line '{MAGIC} {VERSION}'") from None
    name, start = game.state(state)
    return Movie(game.name, games.payload_sha1(game.rom), name, start, runs)


def is_movie(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins as a movie does."""
    try:
        with Path(path).expanduser().open("rb") as file:
            begin = file.read(len(codecs.BOM_UTF8) + len(MAGIC)).removeprefix(codecs.BOM_UTF8)
            return begin.startswith(MAGIC.encode())
    except OSError as error:
        raise _unreadable(os.fspath(path), error) from None


def _text(path: str | os.PathLike[str]) -> str:
    path = Path(path).expanduser()
    return reading.read_bytes(path, reading.MOST_TEXT_BYTES, MovieError, "a movie").decode("utf-8-sig")


def _unreadable(where: str, error: OSError) -> MovieError:
    return MovieError(f"{where}: expected a movie or a text of inputs that can be read: {error.strerror}")


def _no_movie(where: str, found: str) -> MovieError:
    return MovieError(
        f"{where}: expected a movie, a text that begins with '{MAGIC} {VERSION}', found {found}"
    )


def _sections(lines: list[str], where: str) -> dict[str, tuple[int, list[str]]]:
    """The number of each section's first line, and its lines."""
    out: dict[str, tuple[int, list[str]]] = {}
    now: list[str] = []
    for number, line in enumerate(lines[2:], 3):
        if line in _SECTIONS:
            now = []
            out[line] = (number + 1, now)
        else:
            now.append(line)
    missing = [name for name in _SECTIONS[1:] if name not in out]
    if missing:
        raise MovieError(f"{where}: it is damaged: its section {missing[0]} is missing; record it again")
    return out
