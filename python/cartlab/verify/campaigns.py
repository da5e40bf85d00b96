"""A campaign's claims beyond those of any loop: a kept experiment passed five checks, against this champion.

Source: docs/campaign.md. Nothing is shared with the campaign's own code. What can be derived from the ledger
is derived: the noise from the baseline's runs, the distance of the second run, the direction, the time that
was used, the delta. What only files showed (the split, stderr) has to be recorded as holding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cartlab.verify.derive import KEEPS

_CHECKS = frozenset("abcde")
_USED = 0.7
_RANGES = 2.0
_SMALL = 1e-9
Say = Callable[[str | None, str], None]


@dataclass
class CampaignGoal:
    """What a campaign's goal says: its time, whether it trains, its noise, and its baseline's evaluations."""

    seconds: float = 0.0
    trains: bool = False
    tolerance: float = 0.0
    noise: float = 0.0
    evals: dict[int, float] = field(default_factory=dict)
    trained: dict[str, list[float]] = field(default_factory=dict)

    def describe(self, body: Mapping[str, Any], say: Say) -> None:
        """An opening or a change of the goal."""
        told = body.get("describes", {})
        if "campaign" in told:
            self.seconds = float(told["campaign"]["budget"]["seconds_per_experiment"])
        if "protocol" in told:
            self.trains = bool(told["protocol"].get("train_command"))
            self.tolerance = float(told["protocol"].get("eval_tolerance") or 0.0)
        if body["op"] == "budget":
            self.seconds = float(body["budget"]["seconds_per_experiment"])
        if "baseline_runs" not in told:
            return
        runs = [self.evals.get(seq) for seq in told["baseline_runs"]]
        values = [value for value in runs if value is not None]
        if len(values) != len(runs) or not values or values[0] != float(told["protocol"]["baseline"]):
            say(None, "the campaign's baseline is not what its runs measured")
            return
        self.noise = max(self.tolerance, _RANGES * (max(values) - min(values)))
        if abs(self.noise - float(told["noise"])) > _SMALL * max(1.0, self.noise):
            say(None, f"the baseline's runs give a noise of {self.noise:.6g}, recorded is {told['noise']}")

    def measure(self, event: Mapping[str, Any]) -> None:
        """A run of one of its attempts or of its baseline."""
        body = event["body"]
        if body["role"] == "eval" and body.get("value") is not None:
            self.evals[event["seq"]] = float(body["value"])
        elif body["role"] == "train":
            self.trained.setdefault(str(event["attempt"]), []).append(float(body["seconds"]))

    def decide(self, event: Mapping[str, Any], sign: float, best: float, derived: str, say: Say) -> str:
        """The verdict that follows, with the checks: `derived` is what the policy's runs give."""
        body, name = event["body"], event["attempt"]
        checks = {one["check"]: bool(one["holds"]) for one in body.get("verification") or []}
        kept = body["status"] in KEEPS
        if kept != (body.get("verified") == "yes") or kept != bool(body.get("champion")):
            say(name, "kept, verified and champion do not agree")
        if body["policy"] != "paired" and abs(float(body["delta"]) - (float(body["value"]) - best)) > _SMALL:
            say(name, f"its delta is not what it has on the champion's {best:.9g}")
        if derived == "unverified":
            derived = "keep"  # whether the second run did is check a's and c's matter
        if derived != "keep":
            return derived
        if set(checks) != _CHECKS:
            say(name, "a win without all five checks")
            return "unverified"
        mine = self._derived(name, body, sign, best)
        for letter, holds in mine.items():
            if holds != checks[letter]:
                say(name, f"check {letter} is recorded as {checks[letter]}, the ledger gives {holds}")
        return "keep" if all({**checks, **mine}.values()) else "unverified"

    def _derived(self, name: str, body: Mapping[str, Any], sign: float, best: float) -> dict[str, bool]:
        """The checks that the ledger alone can tell."""
        out: dict[str, bool] = {}
        inputs = body["inputs"]
        if body["policy"] != "paired":
            values = [float(value) for value in inputs["values"]]
            runs = [*inputs["measurements"], *inputs.get("verified_by", [])]
            known = [self.evals.get(seq) for seq in runs]
            k = int(inputs["k"])
            first = sorted(values[:k])
            middle = (first[(k - 1) // 2] + first[k // 2]) / 2
            second = values[k] if len(values) > k else None
            out["a"] = (
                known == values
                and second is not None
                and abs(second - middle) <= self.noise + 1e-12 * max(abs(second), abs(middle))
            )
            out["c"] = sign * middle > sign * best and (second is None or sign * second > sign * best)
        trained = self.trained.get(name, [])
        if self.trains and not any(seconds >= _USED * self.seconds for seconds in trained):
            out["d"] = False
        return out
