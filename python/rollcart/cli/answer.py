"""What a subcommand gives back, and which exit code an error has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DONE, NO, USAGE, INPUT, MISSING, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
UNREAD = 141  # as shells have it for who writes into a pipe that nobody reads


@dataclass(frozen=True)
class Answer:
    """What was found, as JSON's values, and the exit code: DONE, or NO where nothing was."""

    document: dict[str, Any] = field(default_factory=dict)
    exit_code: int = DONE


class CommandError(Exception):
    """Ends a command with a text (what was expected, what was found, what to try) and an exit code."""

    def __init__(self, text: str, exit_code: int = INPUT) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def exit_code_of(error: Exception) -> int:
    """MISSING for what is not installed, INPUT for what the library refuses and unreadable files, INTERNAL
    for what nobody foresaw.
    """
    if isinstance(error, CommandError):
        return error.exit_code
    from rollcart import errors

    if isinstance(error, errors.NotInstalled):
        return MISSING
    refused = tuple(getattr(errors, name) for name in errors.__all__)
    return INPUT if isinstance(error, (*refused, OSError)) else INTERNAL


def needs(module: str, extra: str) -> Any:
    """Imports a module of an extra, or says what to install.

    Raises:
        CommandError: With exit code MISSING, where it is not installed.
    """
    from rollcart import _extras, errors

    try:
        return _extras.need(module, extra)
    except errors.NotInstalled as error:
        raise CommandError(str(error), MISSING) from None
