"""A campaign's planning, each step held against what stood in the ledger before it.

Source: docs/campaign.md. Nothing is shared with the campaign's own code. What has to hold: one generation is
open at a time; an experiment is one of those that its generation listed; it is queued only out of the seed
matrix or as a survivor; a verdict of the critics is what their scores give; a generation's champion was kept
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Say = Callable[[str | None, str], None]
_EPSILON = 1e-9


@dataclass
class _Generation:
    """What was said of one generation. listed: exp_id -> its hypothesis; live: without the duplicates."""

    number: int
    seed: bool
    listed: dict[str, Mapping[str, Any]]
    live: set[str]
    survivors: set[str] = field(default_factory=set)
    champions: list[str] = field(default_factory=list)
    closed: bool = False


class PlanReplay:
    """Feed it the campaigns' events in order; it says what does not hold."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._open: dict[str, list[_Generation]] = {}
        self._names: dict[str, tuple[str, str]] = {}  # attempt -> goal, exp_id

    def goal(self, event: Mapping[str, Any]) -> None:
        """A phase of a generation."""
        body = event["body"]
        if body.get("op") != "generation":
            return
        known = self._open.setdefault(body["goal"], [])
        if body["phase"] == "opened":
            self._opened(known, body)
            return
        found = next((one for one in known if one.number == body["gen"]), None)
        if found is None or found.closed:
            self._say(None, f"generation {body['gen']} is {body['phase']} and is not open")
        elif body["phase"] == "critiqued":
            self._critiqued(found, body)
        else:
            found.closed = True
            champion = body.get("champion")
            if champion != (found.champions[-1] if found.champions else None):
                self._say(
                    None, f"generation {found.number} names champion {champion}, which it did not bring"
                )

    def proposal(self, event: Mapping[str, Any]) -> None:
        """A step of an experiment."""
        body, name = event["body"], event["attempt"]
        known = self._open.get(body["goal"])
        if not known:
            return
        found = next((one for one in known if one.number == body["round"]), None)
        if body["state"] == "proposed" and "hypothesis" in body:
            exp_id = str(body["exp_id"])
            self._names[name] = (body["goal"], exp_id)
            if found is None or found.listed.get(exp_id) != body["hypothesis"]:
                self._say(name, "its hypothesis is none of those that its generation listed")
        elif body["state"] == "queued" and found is not None and name in self._names:
            allowed = found.live if found.seed else found.survivors
            if self._names[name][1] not in allowed:
                self._say(name, "it was queued and did not survive its critique")

    def decision(self, event: Mapping[str, Any]) -> None:
        """A verdict on an experiment: only a champion matters here."""
        body = event["body"]
        if not body.get("champion"):
            return
        for one in self._open.get(body["goal"], ()):
            if one.number == body["gen"]:
                one.champions.append(str(body["exp_id"]))

    # --- inside -----------------------------------------------------------------------------------

    def _opened(self, known: list[_Generation], body: Mapping[str, Any]) -> None:
        number = int(body["gen"])
        if number != len(known) or (known and not known[-1].closed):
            self._say(None, f"generation {number} was opened out of its turn")
        listed = {str(one["exp_id"]): one["hypothesis"] for one in body.get("listed", ())}
        live = {str(one["exp_id"]) for one in body.get("listed", ()) if not one["duplicate"]}
        known.append(_Generation(number, bool(body.get("seed")), listed, live))
        if body.get("seed"):
            angles = [listed[name]["angle"] for name in live]
            if len(angles) > 3 and (len(set(angles)) < 5 or not {"F", "K"} <= set(angles)):
                self._say(None, "the seed matrix has fewer than five angles, or neither F nor K")
            worst = max((angles.count(one) for one in angles), default=0)
            if len(angles) > 3 and worst > 0.3 * len(angles):
                self._say(None, "an angle holds more than 30 % of the seed matrix")

    def _critiqued(self, found: _Generation, body: Mapping[str, Any]) -> None:
        passed = 0
        for verdict in body["verdicts"]:
            name = str(verdict["exp_id"])
            if name not in found.live:
                self._say(None, f"experiment {name} was criticised and is none of generation {found.number}")
            quality, novel = _panel(verdict["scores"], bool(body["half_passes"]))
            if abs(quality - verdict["quality"]) > _EPSILON or novel != verdict["novel"]:
                self._say(
                    None, f"experiment {name}: its scores give {quality:g}, {novel}, recorded is another"
                )
            passed += novel and quality >= body["quality"]
            if verdict["survives"]:
                found.survivors.add(name)
                if not novel:
                    self._say(None, f"experiment {name} survives, and its critics did not find it novel")
        self._survivors(found, body, passed)

    def _survivors(self, found: _Generation, body: Mapping[str, Any], passed: int) -> None:
        """As many as there is room for, from those that passed; a weak one only for an angle of its own."""
        if len(found.survivors) > body["keep"]:
            self._say(None, f"{len(found.survivors)} experiments survive, {body['keep']} may")
        if bool(passed) != bool(found.survivors) or len(found.survivors) < min(passed, body["keep"]):
            self._say(None, f"{passed} experiments passed their critique, {len(found.survivors)} survive")
        angles = [found.listed[name]["angle"] for name in found.survivors if name in found.listed]
        for verdict in body["verdicts"]:
            name = str(verdict["exp_id"])
            weak = name in found.survivors and verdict["quality"] < body["quality"]
            if weak and angles.count(found.listed[name]["angle"]) > 1:
                self._say(None, f"experiment {name} survives below the quality, and not for its angle")


def _panel(scores: Sequence[Mapping[str, Any]], half_passes: bool) -> tuple[float, bool]:
    """Mean quality and the majority's word."""
    votes = sum(bool(one["novel"]) for one in scores)
    enough = votes * 2 >= len(scores) if half_passes else votes * 2 > len(scores)
    return sum(float(one["quality"]) for one in scores) / len(scores), enough
