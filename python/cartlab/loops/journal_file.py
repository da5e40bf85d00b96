"""autoresearch.jsonl: a session's lines as values, as the journal's own tools write and read them.

A line is a config or a result. A second config starts a new segment where results already exist; runs are
counted over the whole file. Unknown keys of a line are kept. A blank line is nothing; one that cannot be
read is reported by number, and nothing is decided on a file that has one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cartlab.errors import BadInput, DamagedLedger
from cartlab.loops import policies
from cartlab.loops.confidence import Point, confidence, label
from cartlab.loops.protocol import direction_of
from cartlab.model import parsed_json
from cartlab.words import counted

STATUSES = ("keep", "discard", "crash", "checks_failed")
NO_COMMIT = "0000000"
_CONFIG = ("type", "name", "metricName", "metricUnit", "bestDirection")
_RESULT = (
    "run",
    "commit",
    "metric",
    "metrics",
    "status",
    "description",
    "timestamp",
    "segment",
    "confidence",
    "asi",
)


@dataclass(frozen=True)
class Config:
    """A segment's head. direction: "higher" | "lower" is better."""

    name: str
    metric: str
    unit: str = ""
    direction: str = "lower"
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """One experiment. metric: None where the line has none that is finite; timestamp: milliseconds; asi: what
    was learned; imported lines may have none.
    """

    run: int
    commit: str
    metric: float | None
    status: str
    description: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    timestamp: int = 0
    segment: int = 0
    confidence: float | None = None
    asi: Mapping[str, Any] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Journal:
    """The file's lines in order. damaged: numbers of the lines that could not be read."""

    lines: tuple[Config | Result, ...]
    damaged: tuple[int, ...] = ()

    @property
    def config(self) -> Config | None:
        """The newest config, None where there is none."""
        found = [line for line in self.lines if isinstance(line, Config)]
        return found[-1] if found else None

    @property
    def results(self) -> list[Result]:
        """All results."""
        return [line for line in self.lines if isinstance(line, Result)]

    @property
    def segment(self) -> int:
        """The current segment: how often a config came after results."""
        number, results = 0, False
        for line in self.lines:
            if isinstance(line, Result):
                results = True
            elif results:
                number, results = number + 1, False
        return number

    def current(self) -> list[Result]:
        """The results since the newest config."""
        out: list[Result] = []
        for line in self.lines:
            if isinstance(line, Config):
                out = []
            else:
                out.append(line)
        return out


# --- text -----------------------------------------------------------------------------------------


def parse(text: str) -> Journal:
    """The lines again; never raises for a line."""
    lines: list[Config | Result] = []
    damaged: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            lines.append(_line(parsed_json(line), len(lines)))
        except (ValueError, KeyError, TypeError):
            damaged.append(number)
    return Journal(tuple(lines), tuple(damaged))


def _line(body: Any, seen: int) -> Config | Result:
    if not isinstance(body, dict):
        raise ValueError("no object")
    if body.get("type") == "config":
        return Config(
            str(body["name"]),
            str(body["metricName"]),
            str(body.get("metricUnit") or ""),
            direction_of(str(body.get("bestDirection") or "lower")),
            {key: value for key, value in body.items() if key not in _CONFIG},
        )
    if body["status"] not in STATUSES:
        raise ValueError("no status of ours")
    return Result(
        run=int(body.get("run") or seen),
        commit=str(body.get("commit") or NO_COMMIT),
        metric=_finite(body.get("metric")),
        status=str(body["status"]),
        description=str(body.get("description") or ""),
        metrics={str(k): float(v) for k, v in (body.get("metrics") or {}).items() if _finite(v) is not None},
        timestamp=int(body.get("timestamp") or 0),
        segment=int(body.get("segment") or 0),
        confidence=_finite(body.get("confidence")),
        asi=dict(body.get("asi") or {}),
        other={key: value for key, value in body.items() if key not in _RESULT},
    )


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def render(journal: Journal) -> str:
    """The file's text. A metric that a result does not have is 0, as the document's tools write it; an empty
    asi is left out, confidence never is.
    """
    return "".join(json.dumps(_body(line), ensure_ascii=False) + "\n" for line in journal.lines)


def _body(line: Config | Result) -> dict[str, Any]:
    if isinstance(line, Config):
        return {
            "type": "config",
            "name": line.name,
            "metricName": line.metric,
            "metricUnit": line.unit,
            "bestDirection": line.direction,
            **line.other,
        }
    return {
        "run": line.run,
        "commit": line.commit,
        "metric": 0 if line.metric is None else line.metric,
        "metrics": dict(line.metrics),
        "status": line.status,
        "description": line.description,
        "timestamp": line.timestamp,
        "segment": line.segment,
        "confidence": line.confidence,
        **({"asi": dict(line.asi)} if line.asi else {}),
        **line.other,
    }


# --- what it says ---------------------------------------------------------------------------------


def require_whole(journal: Journal) -> Config:
    """The config of a file that can be decided on; DamagedLedger names the first line that cannot be read."""
    if journal.damaged:
        raise DamagedLedger(
            f"autoresearch.jsonl line {journal.damaged[0]} cannot be read; nothing is decided on such a file",
            "mend the line, or take it out",
        )
    config = journal.config
    if config is None:
        raise BadInput("autoresearch.jsonl must begin with a config line; it has none", "write one")
    return config


@dataclass(frozen=True)
class Standing:
    """The current segment. baseline: its first result with a metric; best: the best kept one."""

    config: Config
    results: tuple[Result, ...]
    baseline: float | None
    best: Result | None
    confidence: float | None

    @property
    def delta_percent(self) -> float | None:
        """Best against baseline."""
        if self.best is None or self.best.metric is None or not self.baseline:
            return None
        return (self.best.metric - self.baseline) / abs(self.baseline) * 100


def standing(journal: Journal) -> Standing:
    """Where the current segment stands; raises as require_whole does."""
    config = require_whole(journal)
    results = journal.current()
    values = [one.metric for one in results if one.metric is not None and one.status not in ("crash",)]
    best: Result | None = None
    for one in results:
        if one.status != "keep" or one.metric is None:
            continue
        if best is None or best.metric is None or policies.better(one.metric, best.metric, config.direction):
            best = one
    found = confidence(points(results), config.direction, "factory")
    return Standing(config, tuple(results), values[0] if values else None, best, found)


def points(results: Sequence[Result]) -> list[Point]:
    """The results as the confidence takes them."""
    return [Point(one.metric, one.status) for one in results]


def status(journal: Journal) -> dict[str, Any]:
    """The keys that the document's helper prints."""
    found = standing(journal)
    return {
        "name": found.config.name,
        "metricName": found.config.metric,
        "direction": found.config.direction,
        "totalExperiments": len(found.results),
        "keptCount": sum(1 for one in found.results if one.status == "keep"),
        "baseline": found.baseline,
        "bestKept": None if found.best is None else found.best.metric,
        "confidence": found.confidence,
        "deltaPercent": None if found.delta_percent is None else round(found.delta_percent, 2),
    }


@dataclass(frozen=True)
class Advice:
    """What a value would be: keep or discard, against what, and how sure the old score is of it."""

    decision: str
    against: float | None
    delta: float | None
    percent: float | None
    confidence: float | None
    label: str


def evaluate(journal: Journal, value: float, direction: str | None = None) -> Advice:
    """Compare a value with the best kept one of the segment, else its baseline, else it is the first.

    Strictly better is a keep. direction: instead of the config's. The candidate joins the results as a keep
    before the confidence is taken, as in the document's tool.
    """
    found = standing(journal)
    better = direction_of(direction) if direction else found.config.direction
    against = found.best.metric if found.best is not None else found.baseline
    won = against is None or policies.better(value, against, better)
    sure = confidence([*points(found.results), Point(value, "keep")], better, "factory")
    base = found.baseline
    return Advice(
        "keep" if won else "discard",
        against,
        None if base is None else value - base,
        (value - base) / abs(base) * 100 if base else None,
        sure,
        label(sure),
    )


def summary(journal: Journal) -> list[str]:
    """The kept and the failed experiments, baseline, best and percent."""
    found = standing(journal)
    unit = f" {found.config.unit}" if found.config.unit else ""
    lines = [f"{found.config.name}: {found.config.metric} ({found.config.direction} is better)"]
    for one in found.results:
        if one.status != "discard":
            value = "none" if one.metric is None else f"{one.metric:.9g}{unit}"
            lines.append(f"  #{one.run} {one.status} {value}: {one.description}")
    dropped = sum(1 for one in found.results if one.status == "discard")
    best = "none" if found.best is None or found.best.metric is None else f"{found.best.metric:.9g}{unit}"
    percent = "" if found.delta_percent is None else f" ({found.delta_percent:+.2f} %)"
    base = "none" if found.baseline is None else f"{found.baseline:.9g}{unit}"
    lines.append(
        f"{counted(len(found.results), 'experiment')}, {dropped} discarded; "
        f"baseline {base}, best {best}{percent}"
    )
    if found.confidence is not None:
        again = "; re-run to confirm" if found.confidence < 1 else ""
        lines.append(f"confidence {found.confidence:.2f}x ({label(found.confidence)}, advisory){again}")
    return lines
