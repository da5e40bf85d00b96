"""METRIC lines: text of a measuring process to numbers.

Three dialects are read (the shared grammar table): ours, which is strict because its numbers are gates, and
those of the two tools whose sessions people bring along. In all of them a line is
`METRIC <name>=<number>`; they differ in spaces, case and what a number is. Nothing here runs a process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cartlab.errors import MetricError

MAX_LINE = 4096
REFUSED_NAMES = ("__proto__", "constructor", "prototype")

_DECIMAL = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_OURS = re.compile(rf"METRIC(?:\[(?P<nonce>[0-9a-f]+)\])? (?P<name>[A-Za-z_µ][\w.µ-]*)=(?P<value>{_DECIMAL})")
_PI = re.compile(r"METRIC[ \t]+(?P<name>[\w.µ]+)=(?P<value>\S+)[ \t]*")
_GREEN = re.compile(rf"METRIC\s+(?P<name>[^\s=]+)\s*=\s*(?P<value>{_DECIMAL})\s*", re.IGNORECASE)
# JavaScript's Number(): decimal, or hexadecimal, octal and binary with their prefix.
_JS_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")
_JS_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Metrics:
    """values: the last value of each name; repeats: names that came more than once."""

    values: Mapping[str, float]
    repeats: tuple[str, ...] = ()


def lines(text: str) -> list[str]:
    """Lines as a terminal has them: splitlines also ends one at a form feed or a NEL, where a program
    could hide the start of another.
    """
    return [line.rstrip("\r") for line in text.split("\n")]


def ours(stdout: str, nonce: str | None = None) -> Metrics:
    """The strict dialect. With `nonce` only lines that carry it count, and without one only bare lines."""
    found: dict[str, float] = {}
    repeats: list[str] = []
    for line in lines(stdout):
        hit = _OURS.fullmatch(line) if len(line) <= MAX_LINE else None
        if hit is None or hit["nonce"] != nonce:
            continue
        _take(found, repeats, hit["name"], float(hit["value"]))
    return Metrics(found, tuple(dict.fromkeys(repeats)))


def pi(output: str) -> Metrics:
    """The dialect of `.auto/` sessions: values as JavaScript's Number reads them, the last one wins."""
    found: dict[str, float] = {}
    repeats: list[str] = []
    for line in output.split("\n"):
        hit = _PI.fullmatch(line.rstrip("\r"))
        if hit is not None and hit["name"] not in REFUSED_NAMES:
            _take(found, repeats, hit["name"], _js_number(hit["value"]))
    return Metrics(found, tuple(dict.fromkeys(repeats)))


def greencedar(output: str) -> Metrics:
    """The case-blind dialect that reads stdout and stderr alike; lines of over 4,096 characters are cut."""
    found: dict[str, float] = {}
    repeats: list[str] = []
    for line in lines(output):
        hit = _GREEN.fullmatch(line[:MAX_LINE])
        if hit is not None:
            _take(found, repeats, hit["name"], float(hit["value"]))
    return Metrics(found, tuple(dict.fromkeys(repeats)))


def _js_number(text: str) -> float:
    if _JS_INTEGER.fullmatch(text):
        return float(int(text, 0))
    return float(text) if _JS_DECIMAL.fullmatch(text) else math.nan


def _take(found: dict[str, float], repeats: list[str], name: str, value: float) -> None:
    if not math.isfinite(value):
        return
    if name in found:
        repeats.append(name)
    found[name] = value


def primary(stdout: str, name: str, nonce: str | None = None) -> float:
    """The one value of the metric `name` in an evaluation's stdout.

    METRIC lines decide where there are any; else lines `name: number` or `name = number`; else the whole
    output, if it is one number. MetricError where there is none, more than one, or one that is no finite
    decimal: a number that could be two things is none.
    """
    if nonce is not None or re.search(r"^METRIC\b", stdout, re.MULTILINE):
        found = ours(stdout, nonce)
        if name in found.repeats:
            raise MetricError(
                f"the evaluation must print METRIC {name}=... once; it printed it more than once",
                "print the primary metric on one line",
            )
        if name in found.values:
            return found.values[name]
        raise _missing(
            name, "its METRIC lines name " + (", ".join(found.values) or "none that is well formed")
        )
    label = re.compile(rf"\s*{re.escape(name)}\s*[:=]\s*(\S+)\s*")
    hits = [hit[1] for line in lines(stdout) if (hit := label.fullmatch(line))]
    if not hits and len(words := stdout.split()) == 1:
        hits = words
    if len(hits) > 1:
        raise MetricError(
            f"the evaluation must print {name} once; it printed it {len(hits)} times",
            "print the primary metric on one line",
        )
    if not hits or not re.fullmatch(_DECIMAL, hits[0]) or not math.isfinite(float(hits[0])):
        raise _missing(name, f"found {hits[0]!r}" if hits else "found no such line")
    return float(hits[0])


def written(stdout: str, name: str, nonce: str | None = None) -> str:
    """The value of primary() as it was printed, so that a view can repeat it."""
    number = primary(stdout, name, nonce)
    for word in re.findall(_DECIMAL, stdout):
        if float(word) == number:
            return str(word)
    return f"{number:.15g}"


def _missing(name: str, found: str) -> MetricError:
    return MetricError(
        f"the evaluation must print one finite decimal for {name} on stdout; {found}",
        f"print a line METRIC {name}=<number>",
    )
