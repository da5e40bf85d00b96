"""BUDGET.md: what a campaign may spend, as values and as the file that people edit; and what was spent.

The file has `key = value` lines, a line `--- spent ---`, and five more. The limits are people's, so a rewrite
keeps comments, order and keys that are not ours. What was spent is never read: it is the sum of the runs in
the ledger. Time counts per slot: an hour on two slots at once is two hours. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cartlab.errors import BadInput
from cartlab.loops.protocol import direction_of
from cartlab.model import Stored

SPENT_LINE = "--- spent ---"
MOST_PARALLEL = 16
# The roles of runs that cost compute; what a researcher thinks does not.
COMPUTE_ROLES = ("train", "eval")
_LINE = re.compile(r"^(?P<key>[A-Za-z_]\w*)(?P<gap>\s*=\s*)(?P<value>[^#\n]*?)(?P<rest>\s*(?:#.*)?)$")
_HOURS = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|sec|seconds|m|min|minutes|h|hours?|gpu-?h(?:ours?)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Budget(Stored):
    """The limits. seconds_per_experiment: of training; compute_cap: the file's text, hours of one slot where
    it has no unit; ladder: "on", or "off" where stagnation ends the campaign.
    """

    metric: str
    direction: str
    seed_experiments: int = 7
    seconds_per_experiment: float = 300.0
    parallelism: int = 4
    compute_cap: str = "2 GPU-h"
    max_generations: int = 8
    hypotheses_per_gen: int = 4
    proposers: int = 3
    critics: int = 3
    stagnation: int = 3
    ladder: str = "on"

    @property
    def cap_s(self) -> float:
        """compute_cap in seconds of one slot."""
        return cap_seconds(self.compute_cap)


@dataclass(frozen=True)
class Spent(Stored):
    """What the ledger says was used. compute_s: seconds of train and eval over all slots; best_metric: as it
    was printed; champion: its experiment, "baseline" where nothing was better.
    """

    generations_run: int = 0
    experiments_run: int = 0
    compute_s: float = 0.0
    best_metric: str = ""
    champion: str = "<none yet>"


KEYS = tuple(item.name for item in fields(Budget))
_WHOLE = (
    "seed_experiments",
    "parallelism",
    "max_generations",
    "hypotheses_per_gen",
    "proposers",
    "critics",
    "stagnation",
)
_MEANING = {
    "metric": "what the evaluation prints",
    "direction": "lower | higher is better",
    "seed_experiments": "size of the first generation's matrix",
    "seconds_per_experiment": "training time of each, seconds",
    "parallelism": f"experiments at once, at most {MOST_PARALLEL}",
    "compute_cap": "hours of one slot for the whole campaign; the only limit that ends it",
    "max_generations": "generations of one batch",
    "hypotheses_per_gen": "survivors of the critique that run",
    "proposers": "proposers a generation, one angle each",
    "critics": "critics a generation",
    "stagnation": "generations without a new champion before the next lever",
    "ladder": "on | off: off ends the campaign at stagnation",
}


def cap_seconds(text: str) -> float:
    """`2`, `2 GPU-h`, `30 min`, `90 s` in seconds; BadInput for anything else."""
    hit = _HOURS.fullmatch(text.strip())
    if hit is None or not 0 < float(hit["number"]) < float("inf"):
        raise BadInput(
            f"BUDGET.md: compute_cap must be a time such as 2, 2 GPU-h, 30 min or 90 s; found {text!r}",
            "correct the line",
        )
    unit = (hit["unit"] or "h").lower()
    return float(hit["number"]) * (1.0 if unit[0] == "s" else 60.0 if unit[0] == "m" else 3600.0)


def parse(text: str) -> Budget:
    """The limits of a BUDGET.md; BadInput names the key. Keys that are missing have their defaults."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if line.strip() == SPENT_LINE:
            break
        hit = _LINE.match(line.strip())
        if hit is not None and hit["key"] in KEYS:
            if hit["key"] in found:
                raise BadInput(f"BUDGET.md: {hit['key']} must stand once; found it twice", "take one out")
            found[hit["key"]] = hit["value"].strip()
    for key in ("metric", "direction"):
        if not found.get(key):
            raise BadInput(f"BUDGET.md must have {key}; found none", f"add `{key} = ...  # {_MEANING[key]}`")
    return of_values(found)


def of_values(found: Mapping[str, Any]) -> Budget:
    """The limits from texts or numbers by key; BadInput names the key."""
    values = dict(found)
    values["direction"] = direction_of(str(values["direction"]))
    for key in _WHOLE:
        if key in values:
            values[key] = _whole(key, values[key])
    if "seconds_per_experiment" in values:
        values["seconds_per_experiment"] = _seconds(values["seconds_per_experiment"])
    if "compute_cap" in values:
        values["compute_cap"] = str(values["compute_cap"]).strip()
        cap_seconds(values["compute_cap"])
    if values.get("ladder", "on") not in ("on", "off"):
        raise BadInput(f"BUDGET.md: ladder must be on or off; found {values['ladder']!r}")
    if values.get("parallelism", 1) > MOST_PARALLEL:
        raise BadInput(
            f"BUDGET.md: parallelism must be at most {MOST_PARALLEL}; found {values['parallelism']}"
        )
    return Budget.from_json(values)


def _whole(key: str, value: Any) -> int:
    text = str(value).strip()
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise BadInput(
            f"BUDGET.md: {key} must be a whole number of at least 1; found {text[:40]!r}", "correct the line"
        )
    return int(text)


def _seconds(value: Any) -> float:
    text = str(value).strip().removesuffix("s").strip()
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise BadInput(
            f"BUDGET.md: seconds_per_experiment must be seconds above 0; found {value!r}", "correct the line"
        )
    return number


def shown(value: Any) -> str:
    """A limit as the file has it."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def render(budget: Budget, spent: Spent, old: str | None = None) -> str:
    """The file's text. old: what stands there; its comments, order and unknown keys stay."""
    limits = {key: shown(getattr(budget, key)) for key in KEYS}
    used = {
        "generations_run": str(spent.generations_run),
        "experiments_run": str(spent.experiments_run),
        "gpu_min_used": f"{spent.compute_s / 60:.2f}",
        "best_metric": spent.best_metric,
        "champion": spent.champion,
    }
    if old is None:
        width = max(map(len, KEYS))
        head = [f"{key:<{width}} = {value}  # {_MEANING[key]}" for key, value in limits.items()]
        tail = [f"{key:<15} = {value}" for key, value in used.items()]
        return "\n".join([*head, SPENT_LINE, *tail]) + "\n"
    lines, section = [], limits
    todo = dict(limits)
    for line in old.splitlines():
        if line.strip() == SPENT_LINE and section is limits:
            lines += _unsaid(todo)
            section, todo = used, dict(used)
        hit = _LINE.match(line)
        if hit is not None and hit["key"] in todo:
            value = todo.pop(hit["key"])
            line = f"{hit['key']}{hit['gap']}{value}{hit['rest']}" if value != hit["value"] else line
        lines.append(line)
    if section is limits:
        lines += [*_unsaid(todo), SPENT_LINE]
        todo = dict(used)
    lines += [f"{key:<15} = {value}" for key, value in todo.items()]
    return "\n".join(lines) + "\n"


def _unsaid(limits: Mapping[str, str]) -> list[str]:
    """Lines for limits that a file does not name: those that are not the defaults."""
    usual = {item.name: shown(item.default) for item in fields(Budget)}
    return [f"{key} = {value}" for key, value in limits.items() if value != usual[key]]


# --- spent ----------------------------------------------------------------------------------------


def spent(events: Iterable[Mapping[str, Any]], goal: str) -> Spent:
    """What a campaign has used, from its events alone."""
    out = Spent()
    ran: set[str] = set()
    for event in events:
        body, kind = event["body"], event["type"]
        if not isinstance(body, Mapping) or body.get("goal") != goal:
            continue
        if kind == "goal" and body["op"] == "opened":
            out = replace(out, best_metric=str(body["describes"].get("protocol", {}).get("baseline", "")))
        elif kind == "goal" and body["op"] == "generation" and body["phase"] == "closed":
            out = replace(out, generations_run=out.generations_run + 1)
        elif kind == "measurement" and body["role"] in COMPUTE_ROLES:
            out = replace(out, compute_s=out.compute_s + float(body["seconds"]))
            if event["attempt"] not in (None, f"{goal}-e0"):  # the baseline is no experiment
                ran.add(event["attempt"])
        elif kind == "decision" and body.get("champion"):
            out = replace(out, best_metric=str(body["text"]), champion=str(body["exp_id"]))
    return replace(out, experiments_run=len(ran))


def runs_of(policy: str, k: int = 3) -> int:
    """How often a policy trains and evaluates for one decision, at most: `paired` both sides of each pair."""
    from cartlab.loops.policies import PAIRS  # whose module brings numpy along

    return {"greedy": 1, "repeat-k": k, "verified": 2, "paired": 2 * PAIRS}[policy]


def worst_case_s(budget: Budget, runs: int, *, grace_s: float, eval_s: float) -> float:
    """The most that one launch can cost: `runs` trainings that are killed at their grace, each with an
    evaluation of eval_s seconds.
    """
    return runs * (budget.seconds_per_experiment + grace_s + eval_s)


def remaining_s(budget: Budget, used: Spent, reserved_s: float = 0.0) -> float:
    """What may still be started: the cap less what was used and what runs now may yet use."""
    return budget.cap_s - used.compute_s - reserved_s
