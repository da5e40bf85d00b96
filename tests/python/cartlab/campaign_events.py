"""A campaign's ledger without a run: events as the harness writes them, for tests of what they tell."""

from __future__ import annotations

from typing import Any

from cartlab.loops.campaign.budget import Budget

GOAL = "slope-20260101-120000"
PROTOCOL = {"metric": "error", "direction": "lower", "baseline": "2.0"}


def hypothesis(name: str = "h1", angle: str = "A", **changes: Any) -> dict[str, Any]:
    """A whole one as JSON."""
    return {
        "id": name,
        "angle": angle,
        "change": f"change {name}",
        "mechanism": "larger steps, so fewer of them, so less error",
        "expected_delta": -0.5,
        "direction": "lower",
        "falsification": "the error stays",
        "source": "https://example.org/steps",
        "builds_on": "baseline",
        **changes,
    }


class Events(list[dict[str, Any]]):
    """Events in the order they are told."""

    def tell(self, kind: str, attempt: str | None = None, **body: Any) -> Events:
        """One more event."""
        number = len(self) + 1
        self.append(
            {
                "seq": number,
                "type": kind,
                "attempt": attempt,
                "time": f"2026-01-01T12:00:{number % 60:02d}.000Z",
                "body": {"goal": GOAL, **body},
            }
        )
        return self

    def opened(self, **limits: Any) -> Events:
        """The campaign's opening."""
        budget = Budget("error", "lower", **limits)
        describes = {
            "protocol": PROTOCOL,
            "campaign": {"slug": "slope", "folder": "/runs/slope", "mode": "run", "budget": budget.to_json()},
        }
        return self.tell("goal", op="opened", loop="campaign", baseline_commit="b" * 40, describes=describes)

    def generation(self, gen: int, phase: str, **body: Any) -> Events:
        """A phase of a generation."""
        more = {"lever": "1", "rung": 1} if phase == "opened" else {}
        return self.tell("goal", op="generation", gen=gen, phase=phase, **{**more, **body})

    def step(self, exp_id: str, state: str, gen: int = 1, /, **body: Any) -> Events:
        """A step of an experiment."""
        return self.tell("proposal", f"{GOAL}-e{exp_id}", round=gen, state=state, **body)

    def proposed(self, exp_id: str, gen: int = 1, **changes: Any) -> Events:
        """A hypothesis."""
        body = hypothesis(f"h{exp_id}", **changes)
        return self.step(
            exp_id, "proposed", gen, exp_id=exp_id, angle=body["angle"], lever="1", hypothesis=body
        )

    def ran(
        self, exp_id: str, gen: int, status: str, value: float | None, *, champion: bool = False, **body: Any
    ) -> Events:
        """From its queueing to its end."""
        name = f"{GOAL}-e{exp_id}"
        for state in ("queued", "dispatched"):
            self.step(exp_id, state, gen)
        self.step(exp_id, "submitted", gen, tree="t" + exp_id, commit="c" * 40)
        self.step(exp_id, "screened", gen)
        self.step(exp_id, "measuring", gen)
        for role, seconds in (("researcher", 100.0), ("train", 30.0), ("eval", 6.0)):
            self.tell("measurement", name, round=gen, role=role, seconds=seconds, value=value)
        self.tell(
            "decision",
            name,
            round=gen,
            gen=gen,
            exp_id=exp_id,
            status=status,
            value=value,
            text="" if value is None else f"{value:g}",
            champion=champion,
            **body,
        )
        kept = status == "keep"
        self.step(exp_id, "accepted" if kept else "rolled_back", gen, commit="d" * 40)
        return self.step(exp_id, "closed", gen)
