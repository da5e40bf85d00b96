"""autoresearch-protocol.md as text and as values.

Headings and keys are read in both of the forms in use (bare, and with the Chinese explanation); a writer
emits either. What a protocol has beyond the known fields is kept and written again. kernel_targets come from
the first yaml fence of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cartlab.errors import BadInput
from cartlab.loops import witness
from cartlab.loops.compliance import DIFF_CAP
from cartlab.loops.witness import NO_WITNESSES, Witnesses
from cartlab.model import Stored

PROFILE_TODO = "TODO: build in VP L1"
LOCALES = ("zh", "en")
_HEADINGS = {
    "zh": {  # the document's own
        "Fixed": "## Fixed（不可变：代码 + 条件）",  # noqa: RUF001
        "Variable": "## Variable（可变：代码 + 条件）",  # noqa: RUF001
    },
    "en": {"Fixed": "## Fixed", "Variable": "## Variable"},
}
_RANGE = {"zh": "可调范围", "en": "adjustable range"}
_RANGES = ("可调范围", "adjustable range", "range", "variable range", "variable_range", "adjustable_range")
TOLERANCE = 1e-3

DIRECTIONS = {
    "maximize": "higher",
    "higher": "higher",
    "higher_is_better": "higher",
    "max": "higher",
    "minimize": "lower",
    "lower": "lower",
    "lower_is_better": "lower",
    "min": "lower",
}


@dataclass(frozen=True)
class KernelTarget(Stored):
    """A function that may be rewritten, and what it must agree with. The three places are `module:attr`."""

    name: str
    new_module: str
    baseline_module: str
    fixture: str
    atol: float = TOLERANCE
    rtol: float = TOLERANCE


@dataclass(frozen=True)
class Protocol(Stored):
    """A supervised goal. Files are globs relative to the experiment's folder; limits are the text as written.

    direction: "higher" | "lower". baseline: the value as text, so that it is written as it was printed.
    strict_variable: new files are refused too; diff_cap: bytes that a submission may add. extra: lines of
    sections and keys that are not ours.
    """

    title: str
    research_question: str
    max_rounds: int
    target: float | None
    metric: str
    direction: str
    baseline: str
    fixed: tuple[str, ...]
    time_limit: str
    epoch_limit: str
    variable: tuple[str, ...]
    variable_range: str
    eval_command: str
    profile_command: str = ""
    kernel_targets: tuple[KernelTarget, ...] = ()
    train_command: str = ""
    checkpoint: str = ""
    eval_tolerance: float = 0.0
    strict_variable: bool = False
    diff_cap: int = DIFF_CAP
    env_repair: str = ""
    witnesses: Witnesses = NO_WITNESSES
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    _tuples = ("fixed", "variable")
    _nested = {"witnesses": Witnesses}  # noqa: RUF012

    @property
    def time_limit_s(self) -> float:
        """The limit in seconds."""
        return seconds(self.time_limit)

    def to_json(self) -> dict[str, Any]:
        out = super().to_json()
        out["kernel_targets"] = [target.to_json() for target in self.kernel_targets]
        out["extra"] = {name: list(lines) for name, lines in self.extra.items()}
        return out

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Protocol:
        targets = tuple(KernelTarget.from_json(one) for one in body["kernel_targets"])
        extra = {name: tuple(lines) for name, lines in body["extra"].items()}
        return replace(
            super().from_json({**body, "kernel_targets": (), "extra": {}}),
            kernel_targets=targets,
            extra=extra,
        )


def seconds(text: str) -> float:
    """A limit such as `300`, `300 s`, `5min` or `1 h` in seconds; BadInput for anything else."""
    hit = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)?", text.strip())
    if hit is None or float(hit[1]) <= 0:
        raise BadInput(
            f"time_limit must be a duration such as 300, 300 s, 5 min or 1 h; found {text!r}",
            "correct the protocol's Fixed section",
        )
    unit = (hit[2] or "s")[0]
    return float(hit[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[unit]


def size(text: str) -> int:
    """A size such as `65536`, `64 KiB` or `16MiB` in bytes; BadInput for anything else."""
    hit = re.fullmatch(r"(\d+)\s*(KiB|MiB)?", text.strip())
    if hit is None or int(hit[1]) < 1:
        raise BadInput(
            f"diff_cap must be a size such as 65536, 64 KiB or 16 MiB; found {text!r}",
            "correct the protocol's Variable section",
        )
    return int(hit[1]) * {"": 1, "KiB": 1024, "MiB": 1024 * 1024}[hit[2] or ""]


def direction_of(text: str) -> str:
    """One of the words for a direction as `higher` or `lower`."""
    word = text.strip().lower().replace(" ", "_")
    if word not in DIRECTIONS:
        raise BadInput(
            f"direction must be one of {', '.join(DIRECTIONS)}; found {text!r}", "correct the Eval section"
        )
    return DIRECTIONS[word]


# --- reading --------------------------------------------------------------------------------------


@dataclass
class Sections:
    """What a file says: (section, key) -> value, and for the key of a list the items below it."""

    title: str = ""
    values: dict[tuple[str, str], str] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    written: dict[tuple[str, str], str] = field(default_factory=dict)  # the key as it was written
    fence: str | None = None


def read_sections(text: str) -> Sections:
    """Each section's keys and values, and the first yaml fence; BadInput for a fence that is never closed."""
    out = Sections()
    section, key, fence = "", "", None
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for raw in text.splitlines():
        line = raw.strip()
        if fence is not None:
            if line.startswith("```"):
                if out.fence is None and fence[0] in ("yaml", "yml"):
                    out.fence = "\n".join(fence[1:])
                fence = None
            else:
                fence.append(raw)
            continue
        if line.startswith("```"):
            fence = [line[3:].strip().lower()]
        elif hit := re.fullmatch(r"#\s+(?:Autoresearch Protocol:\s*)?(.*)", line):
            out.title = hit[1].strip()
        elif hit := re.fullmatch(r"#{2,}\s+(.*)", line):
            section, key = re.split(r"[(\uff08]", hit[1])[0].strip(), ""
            out.order.setdefault(section, [])
        elif hit := re.fullmatch(r"(?:[-*]\s+)?([^\W\d][\w .可调范围-]*?)\s*[:\uff1a](?:\s+(.*))?", line):
            key = hit[1].strip().lower()
            out.values[section, key] = (hit[2] or "").strip()
            out.written[section, key] = hit[1].strip()
            out.order.setdefault(section, []).append(key)
        elif (hit := re.fullmatch(r"[-*]\s+(.+)", line)) and key:
            old = out.values[section, key]
            out.values[section, key] = f"{old}, {hit[1]}" if old else hit[1]
    if fence is not None:
        raise BadInput("the protocol has a code fence that is never closed", "close it with ```")
    return out


def files(text: str) -> tuple[str, ...]:
    """Names or globs that are separated by commas; brackets, backticks and quotes around them go."""
    parts = [part.strip().strip("`'\"[]").strip() for part in text.split(",")]
    return tuple(part.removeprefix("./") for part in parts if part)


_KNOWN = {
    "": {"research_question", "max_rounds", "target", "baseline", "strict_variable"},
    "Fixed": {"files", "time_limit", "epoch_limit"},
    "Variable": {"files", "diff_cap", *_RANGES},
    "Eval": {"metric", "direction", "command", "tolerance", "eval_tolerance"},
    "Profile": {"command"},
    "Train": {"command", "checkpoint", "env_repair"},
    "Witnesses": {
        "seconds",
        "work",
        "min_time_share",
        "checks",
        "check_files",
        "bounds",
        "jump",
        "floor",
        "nonce",
    },
    "Kernel Targets": set(),
}


def parse(text: str) -> Protocol:
    """An autoresearch-protocol.md; BadInput names the field that is missing or cannot be read."""
    read = read_sections(text)
    baseline = _need(read, "", "baseline")
    metric, equals, value = baseline.partition("=")
    if not equals or not is_finite(value):
        raise BadInput(f"baseline must be `<metric> = <number>`; found {baseline!r}", _WHERE)
    name = _need(read, "Eval", "metric")
    if metric.strip() != name:
        raise BadInput(
            f"baseline and Eval must name one metric; found {metric.strip()!r} and {name!r}", _WHERE
        )
    return of_sections(read, value.strip())


def of_sections(read: Sections, baseline: str) -> Protocol:
    """A protocol of these sections; BadInput names the field that is missing or cannot be read."""
    rounds = _need(read, "", "max_rounds")
    if not rounds.isdecimal() or int(rounds) < 1:
        raise BadInput(f"max_rounds must be a whole number of at least 1; found {rounds!r}", _WHERE)
    limit = _need(read, "Fixed", "time_limit")
    seconds(limit)
    target = read.values.get(("", "target"), "none") or "none"
    if target.lower() != "none" and not is_finite(target):
        raise BadInput(f"target must be a number or `none`; found {target!r}", _WHERE)
    tolerance = read.values.get(("Eval", "eval_tolerance")) or read.values.get(("Eval", "tolerance")) or "0"
    if not is_finite(tolerance) or float(tolerance) < 0:
        raise BadInput(f"eval_tolerance must be a number of at least 0; found {tolerance!r}", _WHERE)
    extra = {
        section: tuple(
            f"{read.written[section, key]}: {read.values[section, key]}"
            for key in keys
            if key not in _KNOWN.get(section, ())
        )
        for section, keys in read.order.items()
    }
    return Protocol(
        title=read.title,
        research_question=_need(read, "", "research_question"),
        max_rounds=int(rounds),
        target=None if target.lower() == "none" else float(target),
        metric=_need(read, "Eval", "metric"),
        direction=direction_of(_need(read, "Eval", "direction")),
        baseline=baseline,
        fixed=_files(read, "Fixed"),
        time_limit=limit,
        epoch_limit=read.values.get(("Fixed", "epoch_limit"), ""),
        variable=_files(read, "Variable"),
        variable_range=next(
            (read.values["Variable", k] for k in _RANGES if ("Variable", k) in read.values), ""
        ),
        eval_command=_need(read, "Eval", "command"),
        profile_command=plain_command(read.values.get(("Profile", "command"), "")),
        kernel_targets=kernel_targets(read.fence) if read.fence is not None else (),
        train_command=plain_command(read.values.get(("Train", "command"), "")),
        checkpoint=plain_command(read.values.get(("Train", "checkpoint"), "")),
        eval_tolerance=float(tolerance),
        strict_variable=_truth(read.values.get(("", "strict_variable"), "false")),
        diff_cap=size(read.values.get(("Variable", "diff_cap")) or str(DIFF_CAP)),
        env_repair=plain_command(read.values.get(("Train", "env_repair"), "")),
        witnesses=witness.parse(
            {
                key: plain_command(text)
                for (section, key), text in read.values.items()
                if section == "Witnesses"
            }
        ),
        extra={section: lines for section, lines in extra.items() if lines},
    )


_WHERE = "correct the protocol file, or the design document and run `handoff` again"


def plain_command(text: str) -> str:
    """A command without the backticks that markdown puts around it."""
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == "`" else text


def _need(read: Sections, section: str, key: str) -> str:
    value = plain_command(read.values.get((section, key), ""))
    if not value:
        place = f"{section}.{key}" if section else key
        raise BadInput(f"the protocol must set {place}; found nothing", _WHERE)
    return value


def _files(read: Sections, section: str) -> tuple[str, ...]:
    found = files(_need(read, section, "files"))
    for name in found:
        if name.startswith(("/", "~")) or ".." in name.split("/"):
            raise BadInput(
                f"{section}.files must lie in the experiment's folder; found {name!r}",
                "name it relative to it",
            )
    return found


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "yes", "no"):
        raise BadInput(f"strict_variable must be true or false; found {text!r}", _WHERE)
    return text.lower() in ("true", "yes")


def is_finite(text: str) -> bool:
    """Is it a finite number, as people write one."""
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def kernel_targets(fence: str) -> tuple[KernelTarget, ...]:
    """The targets of a yaml fence; BadInput names the target and the field."""
    import yaml

    try:
        body = yaml.safe_load(fence)
    except yaml.YAMLError as error:
        line = str(error).splitlines()[0]
        raise BadInput(f"the yaml fence of kernel_targets must be yaml; {line}", _WHERE) from None
    listed = body.get("kernel_targets") if isinstance(body, dict) else None
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise BadInput(f"kernel_targets must be a list; found {listed!r}", _WHERE)
    return tuple(_target(one, number) for number, one in enumerate(listed, 1))


def _target(body: Any, number: int) -> KernelTarget:
    if not isinstance(body, dict):
        raise BadInput(f"kernel target {number} must be a table of fields; found {body!r}", _WHERE)
    name = str(body.get("name") or number)
    for key in ("name", "new_module", "baseline_module", "fixture"):
        value = body.get(key)
        if not value or not isinstance(value, str):
            raise BadInput(f"kernel target {name} must set {key}; found {value!r}", _WHERE)
        if key != "name" and not re.fullmatch(r"[\w.]+:[\w.]+", value):
            raise BadInput(f"kernel target {name}: {key} must be `module:attr`; found {value!r}", _WHERE)
    tolerance = body.get("tolerance", {})
    if not isinstance(tolerance, dict):
        raise BadInput(f"kernel target {name}: tolerance must be {{atol, rtol}}; found {tolerance!r}", _WHERE)
    numbers = {}
    for key in ("atol", "rtol"):
        value = tolerance.get(key, TOLERANCE)
        # yaml reads 1e-3 as text: its numbers need a point.
        if isinstance(value, bool) or not is_finite(str(value)) or float(value) < 0:
            raise BadInput(
                f"kernel target {name}: {key} must be a number of at least 0; found {value!r}", _WHERE
            )
        numbers[key] = float(value)
    return KernelTarget(name, body["new_module"], body["baseline_module"], body["fixture"], **numbers)


# --- writing --------------------------------------------------------------------------------------


def render(value: Protocol, locale: str = "zh", *, ours: bool = True) -> str:
    """The file's text. ours: False leaves out the Train section and the tolerance, for a reader that has
    never heard of them.
    """
    heads = _HEADINGS[locale]
    word = {"higher": "maximize", "lower": "minimize"}[value.direction]
    blocks: list[tuple[str, str, list[str]]] = [
        (
            "",
            f"# Autoresearch Protocol: {value.title}",
            [
                "",
                f"research_question: {value.research_question}",
                f"max_rounds: {value.max_rounds}",
                f"target: {'none' if value.target is None else f'{value.target:.15g}'}",
                f"baseline: {value.metric} = {value.baseline}",
                *(["strict_variable: true"] if value.strict_variable else []),
            ],
        ),
        (
            "Fixed",
            heads["Fixed"],
            [
                f"- files: {', '.join(value.fixed)}",
                f"- time_limit: {value.time_limit}",
                f"- epoch_limit: {value.epoch_limit}",
            ],
        ),
        (
            "Variable",
            heads["Variable"],
            [
                f"- files: {', '.join(value.variable)}",
                f"- {_RANGE[locale]}: {value.variable_range}",
                *([f"- diff_cap: {value.diff_cap}"] if ours and value.diff_cap != DIFF_CAP else []),
            ],
        ),
        (
            "Eval",
            "## Eval",
            [
                f"- metric: {value.metric}",
                f"- direction: {word}",
                f"- command: {value.eval_command}",
                *(
                    [f"- eval_tolerance: {value.eval_tolerance:.15g}"]
                    if ours and value.eval_tolerance
                    else []
                ),
            ],
        ),
    ]
    train = [
        ("command", value.train_command),
        ("checkpoint", value.checkpoint),
        ("env_repair", value.env_repair),
    ]
    if ours and any(text for _, text in train):
        blocks.append(("Train", "## Train", [f"- {key}: {text}" for key, text in train if text]))
    if value.profile_command:
        blocks.append(("Profile", "## Profile", [f"- command: {value.profile_command}"]))
    if ours and (asked := witness.render(value.witnesses)):
        blocks.append(("Witnesses", "## Witnesses", asked))
    lines: list[str] = []
    known = {name for name, _, _ in blocks}
    for name, head, body in blocks:
        lines += [head, *body, *_extra(value, name), ""]
    for name in value.extra:
        if name not in known and name != "Kernel Targets":
            lines += [f"## {name}", *_extra(value, name), ""]
    if value.kernel_targets:
        lines += ["## Kernel Targets", "", "```yaml", "kernel_targets:"]
        for target in value.kernel_targets:
            lines += [
                f"  - name: {target.name}",
                f"    new_module: {target.new_module}",
                f"    baseline_module: {target.baseline_module}",
                f"    fixture: {target.fixture}",
                f"    tolerance: {{ atol: {target.atol!r}, rtol: {target.rtol!r} }}",
            ]
        lines += ["```", ""]
    return "\n".join(lines)


def _extra(value: Protocol, section: str) -> list[str]:
    mark = "- " if section else ""
    return [f"{mark}{line}" for line in value.extra.get(section, ())]
