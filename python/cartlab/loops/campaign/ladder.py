"""The ladder of levers: what a campaign does when nothing wins any more. Pure: positions and steps.

Source: docs/loops.md, LC6 and LC22-LC24. A stagnant search and a full batch are signals, not ends: each moves
the search one rung wider. Rung 1 tweaks one variable of the champion, rung 2 takes families of changes that
the champion does not touch, rung 3 takes another method, each with a program and a baseline of its own. The
ladder ends where rung 3 was asked twice in a row and had no new method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

RUNGS = {1: "one variable of the champion", 2: "an orthogonal family of changes", 3: "another method"}
TOP = max(RUNGS)
DRY = 2


@dataclass(frozen=True)
class Rules:
    """stagnation, max_generations: BUDGET.md's keys; climbs: False ends at the first signal (`ladder: off`)."""

    stagnation: int
    max_generations: int
    climbs: bool = True


@dataclass(frozen=True)
class Position:
    """Where the search stands. stagnant: generations since the last new champion or climb; batch: generations
    since the last climb; lever: how many methods were opened; dry: how often in a row no method was found; due:
    a method has to be found before the next generation; researched: the look for other people's was taken.
    """

    rung: int = 1
    stagnant: int = 0
    batch: int = 0
    lever: int = 0
    dry: int = 0
    researched: bool = False
    due: bool = False

    @property
    def converged(self) -> bool:
        """Was the top rung asked in vain often enough."""
        return self.rung == TOP and self.dry >= DRY


def after(at: Position, new_champion: bool) -> Position:
    """One generation later: a new verified champion resets stagnation."""
    stagnant = 0 if new_champion else at.stagnant + 1
    return replace(at, stagnant=stagnant, batch=at.batch + 1, dry=0 if new_champion else at.dry)


def signal(at: Position, rules: Rules) -> str | None:
    """Which of the two signals the search gives now: `stagnation`, `max_generations`, or None."""
    if at.stagnant >= rules.stagnation:
        return "stagnation"
    return "max_generations" if at.batch >= rules.max_generations else None


def climb(at: Position) -> Position:
    """One rung up; a new batch begins. On the top rung another method is due."""
    rung = min(at.rung + 1, TOP)
    return replace(at, rung=rung, stagnant=0, batch=0, researched=False, due=rung == TOP)


def owes_research(at: Position) -> bool:
    """Has the top rung to look for other people's methods before it may ask for one."""
    return at.due and not at.researched


def searched(at: Position) -> Position:
    """That look was taken and recorded."""
    return replace(at, researched=True)


def opened(at: Position, name: str | None) -> Position:
    """A method was asked for: its name, or None where there was no new one."""
    if not at.researched:
        raise ValueError("expected the search of other people's methods before a lever is asked for")
    if name is None:
        return replace(at, dry=at.dry + 1, researched=False)
    return replace(at, lever=at.lever + 1, dry=0, stagnant=0, batch=0, due=False)
