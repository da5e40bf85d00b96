"""What a keep needs besides its number, from the ledger alone: the checks that its protocol asks for, no
weaker than the baseline's, and the sealed holdout within its looks.

Source: docs/loops.md. Nothing is shared with the loops' own code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Say = Callable[[str | None, str], None]


class Acceptance:
    """Feed it the goals' and measurements' events in order; it says which keep lacks what."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._checks: dict[str, bool] = {}
        self._sealed: dict[str, Mapping[str, Any]] = {}
        self._looks: dict[str, int] = {}
        self._reference: dict[str, Mapping[str, Any]] = {}
        self._ran: dict[tuple[str, str], Mapping[str, Any]] = {}

    def goal(self, body: Mapping[str, Any]) -> None:
        """An opening, a change of the protocol, or a sealing."""
        name = str(body["goal"])
        if body["op"] == "holdout":
            if name in self._sealed:
                self._say(None, f"{name} sealed a second holdout")
            self._sealed[name] = body
        protocol = body.get("describes", {}).get("protocol")
        if protocol is not None:
            self._checks[name] = bool((protocol.get("witnesses") or {}).get("checks"))

    def measurement(self, event: Mapping[str, Any]) -> None:
        """A run of checks or of a holdout."""
        body, attempt = event["body"], str(event["attempt"])
        if body["role"] not in ("checks", "holdout", "final") or "passed" not in body:
            return
        name = str(body["goal"])
        if attempt.startswith(f"{name}-reference") and body["role"] == "checks":
            if body["passed"]:
                self._reference[name] = body
            return
        self._ran[attempt, body["role"]] = body
        if body["role"] == "checks":
            return
        sealed = self._sealed.get(name)
        if sealed is None or body["digest"] != sealed["digest"]:
            self._say(attempt, "a look at another holdout than the one that was sealed")
        elif body["role"] == "holdout":
            self._looks[name] = self._looks.get(name, 0) + 1
            if self._looks[name] > sealed["looks"]:
                self._say(attempt, f"look {self._looks[name]} at a holdout with {sealed['looks']}")

    def kept(self, attempt: str, goal: str, tree: str | None) -> None:
        """A keep: does it have what its goal asks for?"""
        if self._checks.get(goal):
            ran, reference = self._ran.get((attempt, "checks")), self._reference.get(goal)
            if ran is None or not ran["passed"] or ran["tree"] != tree:
                self._say(attempt, "kept without the checks that its protocol asks for")
            elif reference is None:
                self._say(attempt, "kept by checks that were never run on the baseline")
            elif not set(reference["ids"]) <= set(ran["ids"]) or not set(ran["skipped"]) <= set(
                reference["skipped"]
            ):
                self._say(attempt, "kept by checks that are weaker than the baseline's")
        if goal in self._sealed:
            look = self._ran.get((attempt, "holdout"))
            if look is None or not look["passed"] or look["tree"] != tree:
                self._say(attempt, "kept without passing the sealed holdout")
