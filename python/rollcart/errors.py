"""What this package raises about its input. All but NotInstalled are ValueError; messages say what was
expected and found.
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "MovieDiverged",
    "MovieError",
    "NotInstalled",
    "RomError",
    "StateError",
    "UnsupportedBoard",
]


class RomError(ValueError):
    """The bytes are not a NES ROM that can be played."""


class UnsupportedBoard(RomError):
    """The ROM needs a cartridge board that this version does not have."""


class StateError(ValueError):
    """The bytes are not a saved state, or not one of this game."""


class ConfigError(ValueError):
    """An argument or option is not one of those allowed."""


class MovieError(ValueError):
    """The file is not a movie, or damaged."""


class MovieDiverged(MovieError):
    """A replay came to something else than was recorded: in frame number `frame`, the first being 1."""

    def __init__(self, frame: int, what: str) -> None:
        super().__init__(
            f"the movie diverges in frame {frame}: {what}. ROM and start are the movie's own, so either the "
            "file was changed after it was recorded, or this build plays otherwise than the recording one"
        )
        self.frame = frame
        self._what = what

    def __reduce__(self) -> tuple[type[MovieDiverged], tuple[int, str]]:
        # Out of a pool of processes, too.
        return type(self), (self.frame, self._what)


class NotInstalled(ImportError):
    """Something is asked for that needs a library of an extra."""
