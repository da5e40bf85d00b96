"""What the pipeline may say to people; cli/talk.py is the real one."""

from __future__ import annotations

from typing import Protocol


class Voice(Protocol):
    """Lines at once, warnings, and what is being done now."""

    def say(self, line: str) -> None:
        """One line of the answer."""

    def warn(self, line: str) -> None:
        """One line beside the answer."""

    def progress(self, line: str) -> None:
        """What is being done now; shown where it takes long."""
