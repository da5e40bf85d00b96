"""The matrix of hypotheses: what makes it diverse enough for its compute, and who proposes next. Pure.

Where the rules contradict each other the ruling is docs/campaign.md's: a matrix that has no room for every
angle keeps F and K (and G, I, J where there are ideas for them), and gives up A to E first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cartlab.loops.campaign.hypotheses import ANGLES, FALLBACK_ANGLES, Hypothesis

ANGLE_SHARE = 0.30
DISTINCT = 5
SINGLE_PASS = 3
_BASE, _ALWAYS, _WHERE_FOUND = ("A", "B", "C", "D", "E"), ("F", "K"), ("G", "I", "J")


def required_angles(size: int, with_ideas: Iterable[str] = ()) -> tuple[str, ...]:
    """The angles that a matrix of this size must have. F and K always; G, I and J where there are ideas for
    them; A to E where there is room for all.
    """
    forced = (*_ALWAYS, *(one for one in _WHERE_FOUND if one in set(with_ideas)))
    return tuple(sorted((*_BASE, *forced))) if size >= len(_BASE) + len(forced) else tuple(sorted(forced))


def matrix_faults(
    found: Sequence[Hypothesis], angles: Mapping[str, str] = ANGLES, with_ideas: Iterable[str] = ()
) -> list[str]:
    """Each rule of the seed matrix that does not hold, in its own words; empty where it may run.

    At most three hypotheses are a single pass, of which only distinct angles are asked.
    """
    size = len(found)
    counts: dict[str, int] = {}
    for one in found:
        counts[one.angle] = counts.get(one.angle, 0) + 1
    faults = []
    if size <= len(angles):
        faults += [
            f"no two hypotheses may share an angle while there are {len(angles)} angles for {size}; "
            f"angle {letter} has {count}"
            for letter, count in sorted(counts.items())
            if count > 1
        ]
    if size <= SINGLE_PASS:
        return faults
    if len(counts) < DISTINCT:
        faults.append(f"the matrix must have at least {DISTINCT} distinct angles; it has {len(counts)}")
    faults += [
        f"the matrix must have angle {letter} ({angles.get(letter, '')}); it has none"
        for letter in required_angles(size, with_ideas)
        if letter not in counts
    ]
    faults += [
        f"no angle may hold more than {ANGLE_SHARE:.0%} of the matrix; {letter} holds {count} of {size}"
        for letter, count in sorted(counts.items())
        if count / size > ANGLE_SHARE
    ]
    return faults


def least_explored(counts: Mapping[str, int], wanted: int, angles: Mapping[str, str] = ANGLES) -> list[str]:
    """The angles for the next proposers: the least explored first, each once; where all are spent (None of
    them is left), the fallbacks in turn.
    """
    order = sorted(angles, key=lambda letter: (counts.get(letter, 0), letter))
    chosen = order[:wanted]
    while len(chosen) < wanted:
        chosen.append(FALLBACK_ANGLES[(len(chosen) - len(order)) % len(FALLBACK_ANGLES)])
    return chosen
