"""A game in progress: a console, what was played lately, states, movies and pictures on disk. Has no window.

`tick` is one screen refresh; `command` is a command of `keys`. What a person should read comes in `messages`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

from rollcart import games, movie, pictures, reading
from rollcart._native import Console
from rollcart.buttons import Pads
from rollcart.errors import ConfigError, StateError
from rollcart.play.rewind import DEFAULT_BYTES, Rewind
from rollcart.words import counted

FAST_FRAMES = 6  # a refresh
SLOTS = 10


@dataclass
class _Playback:
    """A movie that is being watched, and how far it is."""

    movie: movie.Movie
    at: int = 0


class Session:
    """Plays `game` from `start` (name and bytes of a state, as `Game.state` gives them).

    folder: where states, movies and pictures are written; it is made when the first one is. rewind_bytes: how
    much may be kept of what was played. watch: a movie to begin with, which says itself where it begins.
    `frames` counts what was played, `written` has the files.
    """

    def __init__(
        self,
        game: games.Game,
        start: tuple[str, bytes | None] = (games.POWER_ON, None),
        *,
        folder: Path = Path("rollcart-play"),
        rewind_bytes: int = DEFAULT_BYTES,
        watch: movie.Movie | None = None,
    ) -> None:
        self.game = game
        self.folder = folder
        self.messages: list[str] = []
        self.written: list[Path] = []
        self.frames = 0
        self.paused = False
        self.running = True
        self.slot = 0
        self.rewind = Rewind(rewind_bytes)
        self.recorder: movie.Recorder | None = None
        self._start = start
        self._fresh = True
        self._slot_movies: dict[int, movie.Movie] = {}
        self._playback = _Playback(watch) if watch else None
        if watch:
            self.console = movie.open_console(watch, game.rom)
        else:
            self.console = Console(game.rom)
            if start[1] is not None:
                self.console.load(start[1])
        if start[1] is not None or watch:
            self._show()

    @property
    def watching(self) -> tuple[int, int] | None:
        """Frames seen and frames in all, while a movie plays."""
        return (self._playback.at, self._playback.movie.frames) if self._playback else None

    # ---------------------------------------------------------------------------------------- frames

    def tick(self, pads: Pads, *, rewinding: bool = False, fast: bool = False) -> None:
        """One refresh of the screen: a frame, a frame back, several, or none while paused."""
        if rewinding:
            self.back()
        elif not self.paused:
            for _ in range(FAST_FRAMES if fast else 1):
                self.frame(pads)

    def frame(self, pads: Pads) -> None:
        """Runs one frame. A button pressed while a movie plays takes over from it."""
        if self._playback:
            if any(pads):
                self.say("you have taken over from the movie")
                self._playback = None
            else:
                pads = self._playback.movie.inputs[self._playback.at]
        self.rewind.push(self.console, pads)
        self.console.step(pads[0], 1, pads[1])
        self._fresh = False
        self.frames += 1
        if self.recorder:
            self.recorder.frame(pads)
        if self._playback:
            self._follow(self._playback)

    def _follow(self, playback: _Playback) -> None:
        checks = playback.movie.checks
        playback.at += 1
        if checks and movie.ram_check(self.console) != checks[playback.at - 1]:
            self.say(f"the movie diverges in frame {playback.at}: this is not what was recorded")
            self.paused, self._playback = True, None
        elif playback.at == playback.movie.frames:
            self.say("the movie has ended; go on playing")
            self.paused, self._playback = True, None

    def back(self) -> bool:
        """Takes one frame back; a recorded movie gets shorter by it and never goes back behind its start."""
        if self.recorder and not self.recorder.movie.frames:
            self.say("the movie begins here")
            return False
        if not self.rewind.back(self.console):
            return False
        if self.recorder:
            self.recorder.cut(self.recorder.movie.frames - 1)
        if self._playback:
            self._playback.at -= 1
        return True

    def _show(self) -> None:
        """Draws the first picture without playing: the state alone has none."""
        state = self.console.save()
        self.console.step()
        self.console.load(state)

    # -------------------------------------------------------------------------------------- commands

    def command(self, name: str) -> None:
        """Does a command that needs no window; others are ignored. What fails is said and ends nothing."""
        action = {
            "PAUSE": self._pause,
            "ADVANCE": self._advance,
            "SAVE": self.save,
            "LOAD": self.load,
            "NEXT_SLOT": self._next_slot,
            "RECORD": self.record,
            "SCREENSHOT": self.screenshot,
            "RESET": self._reset,
            "QUIT": self.quit,
        }.get(name)
        if action is None:
            return
        try:
            action()
        except (OSError, ConfigError, StateError) as error:
            self.say(str(error))

    def say(self, text: str) -> None:
        if not self.messages or self.messages[-1] != text:
            self.messages.append(text)

    def _pause(self) -> None:
        self.paused = not self.paused
        self.say("paused" if self.paused else "on")

    def _advance(self) -> None:
        self.paused = True
        self.frame((0, 0))
        self.say(f"frame {self.console.frame_count}")

    def _next_slot(self) -> None:
        self.slot = (self.slot + 1) % SLOTS
        there = "" if self._slot_path().is_file() else " (empty)"
        self.say(f"slot {self.slot}{there}")

    def _reset(self) -> None:
        if self.recorder:
            self.say("a movie cannot hold the reset button; end it first")
            return
        self._playback, self._fresh = None, False
        self.console.reset(soft=True)
        self.rewind.clear()
        self.say("reset")

    def _slot_path(self) -> Path:
        return self.folder / f"{self.game.name}-slot{self.slot}.state"

    def save(self) -> Path:
        """Writes the state to the slot's file; environments can begin in it (state=PATH)."""
        path = self._slot_path()
        self._folder()
        path.write_bytes(self.console.save())
        self._slot_movies.pop(self.slot, None)
        if self.recorder:
            self._slot_movies[self.slot] = copy.deepcopy(self.recorder.finish())
        self._wrote(path, f"slot {self.slot}")
        return path

    def load(self) -> None:
        """Goes on from the slot. A movie goes on from where it was then, or ends if the state is not its."""
        path = self._slot_path()
        if not path.is_file():
            self.say(f"slot {self.slot} is empty: {path} is not there")
            return
        state = reading.read_bytes(path, reading.MOST_STATE_BYTES, StateError, "a saved state")
        earlier = self._slot_movies.get(self.slot)
        if self.recorder and earlier is None:
            self.record()
        self.console.load(state)
        self._playback, self._fresh = None, False
        self.rewind.clear()
        self._show()
        if self.recorder and earlier is not None:
            taken_back = self.recorder.movie.rerecords + 1
            self.recorder.movie = copy.deepcopy(earlier)
            self.recorder.movie.rerecords = taken_back
        self.say(f"loaded slot {self.slot}")

    def record(self) -> Path | None:
        """Begins a movie here, or ends the one that is being recorded and writes it."""
        if self.recorder is None:
            self._slot_movies.clear()
            begins = self._fresh and self._playback is None
            self.recorder = (
                movie.Recorder.at_start(self.console, self.game, *self._start)
                if begins
                else movie.Recorder.here(self.console, self.game)
            )
            self.say("recording")
            return None
        done, self.recorder = self.recorder, None
        if not done.movie.frames:
            self.say("an empty movie is not saved")
            return None
        path = self._numbered(movie.SUFFIX)
        done.finish().write(path)
        self._wrote(path, f"{counted(done.movie.frames, 'frame')}")
        return path

    def screenshot(self) -> Path:
        """Writes the picture as a PNG in the console's own size."""
        path = self._numbered(".png")
        pictures.write_png(path, pictures.window(self.console))
        self._wrote(path, "picture")
        return path

    def quit(self) -> None:
        """Ends; a movie that is being recorded is saved first."""
        self.running = False
        if self.recorder:
            self.record()

    def _wrote(self, path: Path, what: str) -> None:
        if path not in self.written:
            self.written.append(path)
        self.say(f"saved {what}: {path}")

    def _folder(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def _numbered(self, suffix: str) -> Path:
        """A name that is not taken yet."""
        self._folder()
        number = 1
        while (path := self.folder / f"{self.game.name}-{number:03}{suffix}").exists():
            number += 1
        return path
