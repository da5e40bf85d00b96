"""The eight buttons of a pad as names and as bits, and inputs as text: `RIGHT+B`, `-` for none.

The bits are `Console`'s and the action tables': the order in which the pad shifts them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rollcart.errors import ConfigError

BITS = {"A": 1, "B": 2, "SELECT": 4, "START": 8, "UP": 16, "DOWN": 32, "LEFT": 64, "RIGHT": 128}
NONE = "-"
# What a list in memory may hold: the console plays so many in two days.
MOST_FRAMES = 10_000_000
_MOST_DIGITS = 20

Pads = tuple[int, int]
"""What is held in a frame: a mask for each of the two pads."""


def mask(text: str) -> int:
    """The bits of `RIGHT+B` (any case); ConfigError for a name that is no button."""
    if text == NONE:
        return 0
    bits = 0
    for name in text.split("+"):
        if name.upper() not in BITS:
            raise ConfigError(
                f"buttons: expected {NONE} or names of {', '.join(BITS)} joined by +, found {shortened(text)}"
            )
        bits |= BITS[name.upper()]
    return bits


def shortened(text: str) -> str:
    """A text as an error shows it."""
    return repr(text if len(text) <= 80 else text[:80] + "...")


def names(bits: int) -> str:
    """`RIGHT+B` and the like; `-` for no button."""
    return "+".join(name for name, bit in BITS.items() if bits & bit) or NONE


def meanings(pressed: Iterable[Pads]) -> list[str]:
    """What actions press, as `RIGHT+A`, and NOOP for nothing; the second pad's stand behind a comma."""
    both = [(names(first), names(second)) for first, second in pressed]
    texts = [first if second == NONE else f"{first}, {second}" for first, second in both]
    return ["NOOP" if text == NONE else text for text in texts]


def lines(inputs: Iterable[Pads]) -> Iterator[str]:
    """One line a run of equal frames: `FRAMES BUTTONS`, and the second pad's buttons where it holds any."""
    for (first, second), run in groupby(inputs):
        second_pad = f" {names(second)}" if second else ""
        yield f"{sum(1 for _ in run)} {names(first)}{second_pad}"


def inputs(text_lines: Iterable[str], where: str, first_line: int = 1) -> list[Pads]:
    """Reads what `lines` wrote. Empty lines and those that start with # say nothing.

    where and first_line: the file and line number for errors.
    """
    out: list[Pads] = []
    for number, line in enumerate(text_lines, first_line):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        frames = int(words[0]) if words[0].isdecimal() and len(words[0]) < _MOST_DIGITS else 0
        if not frames or len(words) not in (2, 3):
            raise ConfigError(
                f"{where}, line {number}: expected FRAMES BUTTONS (and the second pad's), "
                f"such as '60 RIGHT+B', found {shortened(line)}"
            )
        if len(out) + frames > MOST_FRAMES:
            raise ConfigError(
                f"{where}, line {number}: expected at most {MOST_FRAMES} frames in all (two days), "
                f"found {len(out) + frames}"
            )
        try:
            pads = mask(words[1]), mask(words[2]) if len(words) == 3 else 0
        except ConfigError as error:
            raise ConfigError(f"{where}, line {number}: {error}") from None
        out += [pads] * frames
    return out
