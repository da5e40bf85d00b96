"""The ladder of levers: what a campaign does when nothing wins any more. Pure: read from the campaign.

Source: docs/loops.md, LC6 and LC22-LC24. A stagnant search and a full batch are signals, not ends: each moves
the search one rung wider. Rung 1 tweaks one variable of the champion, rung 2 takes families of changes that
the champion does not touch, rung 3 takes another method, with a program and a baseline of its own. The ladder
ends where rung 3 was asked twice in a row and had no new method.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from cartlab.loops.campaign.budget import Budget
from cartlab.loops.campaign.records import Campaign, Lever

RUNGS = {1: "one variable of the champion", 2: "an orthogonal family of changes", 3: "another method"}
TOP = max(RUNGS)
DRY = 2


@dataclass(frozen=True)
class Position:
    """Where the search stands. lever: what is searched; stagnant: generations since the last new champion or
    change of lever; batch: closed generations of this lever; dry: how often in a row no method was found;
    searched: the look at other people's methods that the next question for one needs was taken.
    """

    lever: Lever
    stagnant: int
    batch: int
    dry: int
    searched: bool
    queued: tuple[Lever, ...] = ()

    @property
    def rung(self) -> int:
        """1 to 3."""
        return self.lever.rung

    @property
    def converged(self) -> bool:
        """Was the top rung asked in vain often enough."""
        return self.dry >= DRY


def position(campaign: Campaign) -> Position:
    """Where a campaign stands on the ladder."""
    opened = [lever for lever in campaign.levers if lever.state == "opened"]
    lever = opened[-1] if opened else Lever("1", 1, RUNGS[1], "opened")
    batch = [one for one in campaign.generations if one.closed and one.lever == lever.id]
    states = [one.state for one in campaign.levers if one.state != "queued"]
    dry = len(list(takewhile(lambda state: state == "dry", reversed(states))))
    # A win since the last vain question shows that the search is alive.
    if batch and batch[-1].champion:
        dry = 0
    asked = sum(
        1 for one in campaign.levers if one.state == "dry" or (one.state == "opened" and one.rung == TOP)
    )
    return Position(
        lever,
        campaign.stagnation,
        len(batch),
        dry,
        len(campaign.searches) > asked,
        tuple(one for one in campaign.levers if one.state == "queued"),
    )


def signal(at: Position, limits: Budget) -> str | None:
    """Which of the two signals the search gives now: `stagnation`, `max_generations`, or None."""
    if at.stagnant >= limits.stagnation:
        return "stagnation"
    return "max_generations" if at.batch >= limits.max_generations else None


def next_step(at: Position, limits: Budget) -> str:
    """What is due: `generation`, `queued` (a lever that waits is opened), `climb` (rung 2), `search` (the
    look that rung 3 needs), `method` (rung 3 is asked), or the end: `converged`, or `completed` with the
    ladder off.
    """
    if signal(at, limits) is None:
        return "generation"
    if limits.ladder == "off":
        return "completed"
    if at.queued:
        return "queued"
    if at.converged:
        return "converged"
    if at.rung < TOP - 1:
        return "climb"
    return "method" if at.searched else "search"


def next_id(campaign: Campaign) -> str:
    """The id of another lever; the first one is 1 and may have no event."""
    return str(max((int(one.id) for one in campaign.levers if one.id.isdigit()), default=1) + 1)


def lines(at: Position, limits: Budget) -> list[str]:
    """The ladder for people."""
    out = [
        f"rung {at.rung} of {TOP}: {at.lever.title or RUNGS[at.rung]} (lever {at.lever.id})",
        f"stagnation: {at.stagnant} of {limits.stagnation} generations without a new champion",
        f"batch: {at.batch} of {limits.max_generations} generations",
        f"next: {_WORDS[next_step(at, limits)]}",
    ]
    out += [f"queued: lever {one.id}, {one.title} ({one.source or 'no source'})" for one in at.queued]
    if at.dry:
        out.append(f"rung 3 found no new method {at.dry} times in a row; {DRY} end the campaign")
    return out


_WORDS = {
    "generation": "another generation on this lever",
    "queued": "the lever that waits is opened, as a new batch",
    "climb": "rung 2: proposers leave the champion's family",
    "search": "a look at other people's methods, which rung 3 needs",
    "method": "rung 3: another method is asked for",
    "converged": "nothing: rung 3 had no new method twice in a row",
    "completed": "nothing: the ladder is off (BUDGET.md)",
}
