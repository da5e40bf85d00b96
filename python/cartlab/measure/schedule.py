"""Who runs when in a block: a pure function of the plan, the block's index and its coin.

One fair coin a block decides which build plays role 1, and with that spawn order, environment padding and
slice orientation together: under A/A the block value is then symmetric in sign whatever the machine does.
Orientation is ABBA and BAAB in turn, so that neither a drift nor a first/second effect stays in the answer.
"""

from __future__ import annotations

import hashlib
import secrets

SIDES = ("base", "cand")
LETTERS = {"base": "B", "cand": "C"}
OBSERVED_STEPS = 4
MAX_PAD = 4096


def draw_coin() -> int:
    """A fair coin from the system's entropy: 0, the baseline plays role 1; 1, the candidate does."""
    return secrets.randbelow(2)


def roles(coin: int) -> tuple[str, str]:
    """(side that plays role 1, side that plays role 2)."""
    return (SIDES[0], SIDES[1]) if coin == 0 else (SIDES[1], SIDES[0])


def pairs(coin: int, slices: int) -> list[tuple[str, str]]:
    """The order inside each pair of slices: ABBA BAAB ABBA ..., A being role 1."""
    first, second = roles(coin)
    forward, backward = (first, second), (second, first)
    return [(forward, backward, backward, forward)[pair % 4] for pair in range(slices)]


def order(coin: int, slices: int) -> str:
    """The same as one letter a slice: "BCCBCBBC..." ("B" baseline, "C" candidate)."""
    return "".join(LETTERS[side] for pair in pairs(coin, slices) for side in pair)


def number(attempt_id: str, index: int, purpose: str, below: int) -> int:
    """A number in [0, below) that belongs to this block alone: new in every attempt, the same on replay."""
    text = f"{attempt_id}/{index}/{purpose}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % below


def pads(attempt_id: str, index: int, coin: int) -> dict[str, int]:
    """Side -> bytes of environment padding: drawn for the role, so that the coin turns them too."""
    return {
        side: number(attempt_id, index, f"pad-{role}", MAX_PAD) for role, side in enumerate(roles(coin), 1)
    }


def observed_steps(steps: int) -> list[int]:
    """Steps of a slice whose observations are hashed; drawn after the slice, so that no build can know
    them.
    """
    return sorted(secrets.randbelow(steps) for _ in range(min(OBSERVED_STEPS, steps)))
