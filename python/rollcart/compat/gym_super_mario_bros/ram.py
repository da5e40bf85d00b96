"""What Super Mario Bros.' RAM says: infos, reward and ends, as pure functions of RAM images.

An image is the console's 2,048 bytes: uint8[2048] or bytes. All arithmetic is in Python's integers, so
nothing wraps round. Addresses are those of the game's published memory maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ram = NDArray[np.uint8] | Sequence[int]

# The largest change of position in a frame that is movement and no change of place.
_FASTEST = 5
_DEATH = -25
_REWARD_LIMIT = 15
# The routine that the player's character is in (0x0e).
_VINE, _REVERSE_PIPE, _DOWN_PIPE, _FLAGPOLE, _AFTER_FLAG, _DEAD, _ENTERING, _DYING = 1, 2, 3, 4, 5, 6, 7, 11
_BUSY = (0, _VINE, _REVERSE_PIPE, _DOWN_PIPE, _FLAGPOLE, _AFTER_FLAG, _ENTERING)
_ENEMY_SLOTS = range(0x16, 0x1B)
_BOWSER, _FLAG = 0x2D, 0x31
_CLIMBING = 3
_STATUS = {0: "small", 1: "tall"}


def _digits(ram: Ram, address: int, length: int) -> int:
    value = 0
    for digit in range(length):
        value = 10 * value + int(ram[address + digit])
    return value


def clock(ram: Ram) -> int:
    """The time left, as shown."""
    return _digits(ram, 0x7F8, 3)


def x_pos(ram: Ram) -> int:
    """Pixels from the left edge of the area."""
    return int(ram[0x6D]) * 256 + int(ram[0x86])


def y_pos(ram: Ram) -> int:
    """Pixels from the bottom of the screen, more than 255 above its top."""
    height = 255 - int(ram[0x3B8])
    return 255 + height if int(ram[0xB5]) < 1 else height


def dying(ram: Ram) -> bool:
    """Hit, or below the screen."""
    return int(ram[0x0E]) == _DYING or int(ram[0xB5]) > 1


def dead(ram: Ram) -> bool:
    """The life is lost, and the game counts it."""
    return int(ram[0x0E]) == _DEAD


def game_over(ram: Ram) -> bool:
    """No life is left."""
    return int(ram[0x75A]) == 0xFF


def world_over(ram: Ram) -> bool:
    """The castle's end plays."""
    return int(ram[0x770]) == 2


def busy(ram: Ram) -> bool:
    """The game moves the player itself: pipes, entrances, the walk after the flag."""
    return int(ram[0x0E]) in _BUSY


def flag_get(ram: Ram) -> bool:
    """The stage is won.

    gym-super-mario-bros looks for climbing (0x1d) while a flag or Bowser is about. That stays true here, and
    besides the game's own word counts: it is in the flagpole's routine or in the one after it, whatever 0x1d
    says. So a flag that is touched while falling is not missed; and a vine is none, being climbed by another
    routine with no flag about.
    """
    if world_over(ram) or int(ram[0x0E]) in (_FLAGPOLE, _AFTER_FLAG):
        return True
    about = any(int(ram[slot]) in (_BOWSER, _FLAG) for slot in _ENEMY_SLOTS)
    return about and int(ram[0x1D]) == _CLIMBING


def info(ram: Ram) -> dict[str, Any]:
    """The infos by name: int, but for flag_get (bool) and status (small, tall or fireball)."""
    return {
        "coins": _digits(ram, 0x7ED, 2),
        "flag_get": flag_get(ram),
        "life": int(ram[0x75A]),
        "score": _digits(ram, 0x7DE, 6),
        "stage": int(ram[0x75C]) + 1,
        "status": _STATUS.get(int(ram[0x756]), "fireball"),
        "time": clock(ram),
        "world": int(ram[0x75F]) + 1,
        "x_pos": x_pos(ram),
        "y_pos": y_pos(ram),
    }


def reward(before: Ram, now: Ram) -> float:
    """A frame's reward, -15 to 15: pixels to the right, less 1 for each tick, less 25 in death.

    before, now: RAM at the end of the frame before and of this one.
    """
    moved = x_pos(now) - x_pos(before)
    if abs(moved) > _FASTEST:
        moved = 0
    ticked = min(clock(now) - clock(before), 0)
    death = _DEATH if dying(now) or dead(now) else 0
    return float(max(-_REWARD_LIMIT, min(_REWARD_LIMIT, moved + ticked + death)))


def done(ram: Ram, *, stage: bool) -> bool:
    """Whether the episode is over: of one stage with a death or the flag, of the game with its last life."""
    if stage:
        return dying(ram) or dead(ram) or flag_get(ram)
    return game_over(ram)
