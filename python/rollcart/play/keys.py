"""What keys and pads mean: a table of bindings, and the set of what is held now. Knows no window.

A source is the name of something that can be held: a key as pygame calls it (`x`, `return`, `left shift`), or
`pad 1 button 0`, `pad 1 left` (stick or cross). A target is a button of a pad (`A`, `2:START`) or a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rollcart.buttons import BITS, Pads
from rollcart.errors import ConfigError

OPPOSITES = (BITS["UP"] | BITS["DOWN"], BITS["LEFT"] | BITS["RIGHT"])
DEAD_ZONE = 0.5

# Command -> (its keys, what it does). HOLD commands act as long as a key is down.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "HELP": (("f1", "h"), "show or hide this help"),
    "PAUSE": (("p", "pause"), "pause, go on"),
    "ADVANCE": (("n",), "run one frame, and pause"),
    "REWIND": (("backspace", "pad 1 button 4"), "hold: take frames back"),
    "FAST": (("tab", "pad 1 button 5"), "hold: run fast"),
    "SAVE": (("f5",), "save the state"),
    "LOAD": (("f7",), "load the state"),
    "NEXT_SLOT": (("f6",), "another slot for states"),
    "RECORD": (("f9",), "begin a movie; end and save it"),
    "SCREENSHOT": (("f12", "f10"), "save the picture"),
    "RESET": (("f4",), "press the reset button"),
    "LARGER": (("=", "+"), "larger window"),
    "SMALLER": (("-",), "smaller window"),
    "FULLSCREEN": (("f11",), "full screen, window"),
    "QUIT": (("escape",), "quit"),
}
HOLD = ("REWIND", "FAST")

# Button -> its sources; the second pad's begin with `2:`.
BUTTONS: dict[str, tuple[str, ...]] = {
    "UP": ("up", "pad 1 up"),
    "DOWN": ("down", "pad 1 down"),
    "LEFT": ("left", "pad 1 left"),
    "RIGHT": ("right", "pad 1 right"),
    "A": ("x", "pad 1 button 0", "pad 1 button 3"),
    "B": ("z", "y", "pad 1 button 2", "pad 1 button 1"),
    "START": ("return", "pad 1 button 7"),
    "SELECT": ("right shift", "left shift", "pad 1 button 6"),
    "2:UP": ("i", "pad 2 up"),
    "2:DOWN": ("k", "pad 2 down"),
    "2:LEFT": ("j", "pad 2 left"),
    "2:RIGHT": ("l", "pad 2 right"),
    "2:A": ("g", "pad 2 button 0", "pad 2 button 3"),
    "2:B": ("f", "pad 2 button 2", "pad 2 button 1"),
    "2:START": ("t", "pad 2 button 7"),
    "2:SELECT": ("r", "pad 2 button 6"),
}


def bindings(changes: Iterable[str] = ()) -> dict[str, str]:
    """Source -> target: the defaults, then `TARGET=SOURCE` changes; one takes the place of its target's.

    Raises ConfigError for a change of another form or an unknown target.
    """
    table = {target: list(sources) for target, sources in BUTTONS.items()}
    table |= {command: list(sources) for command, (sources, _) in COMMANDS.items()}
    replaced: set[str] = set()
    for change in changes:
        target, equals, source = change.partition("=")
        target, source = target.strip().upper(), source.strip().lower()
        if not equals or not source or target not in table:
            raise ConfigError(
                f"bind: expected TARGET=KEY with a target of {', '.join(table)}, found {change!r} "
                "(keys are named as on the keyboard: x, return, left shift, f5, pad 1 button 0)"
            )
        if target not in replaced:
            table[target] = []
            replaced.add(target)
        for sources in table.values():
            if source in sources:
                sources.remove(source)
        table[target].append(source)
    return {source: target for target, sources in table.items() for source in sources}


@dataclass
class Inputs:
    """What is held. `press` and `release` take sources; a press gives the command that it means, if any."""

    bound: dict[str, str] = field(default_factory=bindings)
    _down: dict[str, str] = field(default_factory=dict)

    def press(self, source: str) -> str | None:
        target = self.bound.get(source)
        if target is None or source in self._down:
            return None
        self._down[source] = target
        return target if target in COMMANDS and target not in HOLD else None

    def release(self, source: str) -> None:
        self._down.pop(source, None)

    def release_all(self) -> None:
        """Nobody tells a window that lost the keyboard which keys went up."""
        self._down.clear()

    def axis(self, pad: int, vertical: bool, value: float) -> None:
        """A stick or cross of pad 1 or 2 along one axis, -1 (left or up) to 1."""
        less, more = ("up", "down") if vertical else ("left", "right")
        for name, down in ((less, value < -DEAD_ZONE), (more, value > DEAD_ZONE)):
            source = f"pad {pad} {name}"
            if down:
                self.press(source)
            else:
                self.release(source)

    def holds(self, command: str) -> bool:
        return command in self._down.values()

    def pads(self) -> Pads:
        """Both pads' buttons. Opposite directions cancel out, as a real cross cannot press both."""
        masks = [0, 0]
        for target in self._down.values():
            player, _, name = target.rpartition(":")
            if name in BITS:
                masks[player == "2"] |= BITS[name]
        for opposite in OPPOSITES:
            masks = [mask & ~opposite if mask & opposite == opposite else mask for mask in masks]
        return masks[0], masks[1]


def help_lines(bound: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Rows of (what to press, what it does), keyboards only, as bound now."""
    of: dict[str, list[str]] = {}
    for source, target in bound.items():
        if not source.startswith("pad "):
            of.setdefault(target, []).append(source)
    cross = [of.get(name, ["?"])[0] for name in ("UP", "DOWN", "LEFT", "RIGHT")]
    yield " ".join(cross), "the cross"
    for name in ("A", "B", "START", "SELECT"):
        yield " or ".join(of.get(name, ["(none)"])), f"button {name}"
    for command, (_, what) in COMMANDS.items():
        yield " or ".join(of.get(command, ["(none)"])), what
