"""What this package raises about its input. All are ValueError; messages say what was expected and found."""

__all__ = ["ConfigError", "RomError", "StateError", "UnsupportedBoard"]


class RomError(ValueError):
    """The bytes are not a NES ROM that can be played."""


class UnsupportedBoard(RomError):
    """The ROM needs a cartridge board that this version does not have."""


class StateError(ValueError):
    """The bytes are not a saved state, or not one of this game."""


class ConfigError(ValueError):
    """An argument or option is not one of those allowed."""
