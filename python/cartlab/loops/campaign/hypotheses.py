"""A hypothesis: what is changed, why it should help, by how much, and what would prove it wrong.

Also the angles it can come from, and what makes two hypotheses the same one. Pure. A text that lacks a part
is refused by that part's name: a change without a mechanism, a size and a falsification is a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cartlab.errors import BadInput
from cartlab.loops.experiences import one_line
from cartlab.model import Stored, canonical_json

ANGLES: dict[str, str] = {
    "A": "optimisation and schedule",
    "B": "regularisation",
    "C": "architecture",
    "D": "data and augmentation",
    "E": "objective and loss",
    "F": "efficiency: kernels, memory, concurrency",
    "G": "transplant from another field",
    "H": "scaling and allocation of compute",
    "I": "trick from open source",
    "J": "counter-intuitive",
    "K": "scale first",
}
FALLBACK_ANGLES = ("G", "I")
TRANSFORMATIONS = (
    "scale",
    "inversion",
    "transplant",
    "simplification",
    "combination",
    "temporal",
    "negation",
)
# What stands in builds_on where a hypothesis builds on no earlier experiment.
BASELINE = "baseline"
TEXT_CAP = 1000
_UP, _DOWN = ("higher", "up", "increase", "+"), ("lower", "down", "decrease", "-")
_NUMBER = re.compile(r"\s*([+\-\u2212]?)\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_URL = re.compile(r"https?://[^\s/]+\S*")
_PLACE = re.compile(r"[^\s:]+:\d+(?:-\d+)?")


@dataclass(frozen=True)
class Hypothesis(Stored):
    """One proposed change of one variable.

    angle: a letter. expected_delta: what the metric moves by, in its own units, with its sign; direction: the
    same sign as a word, "higher" | "lower". source: a URL or file:line. builds_on: an experiment or
    "baseline". parent, transformation: where an idea was spun from another. settings: the configuration keys
    that the change sets, where it is one of configuration; such a change has one key.
    """

    id: str
    angle: str
    change: str
    mechanism: str
    expected_delta: float
    direction: str
    falsification: str
    source: str
    builds_on: str
    parent: str | None = None
    transformation: str | None = None
    settings: Mapping[str, Any] | None = None


REQUIRED = ("id", "angle", "change", "mechanism", "expected_delta", "falsification", "source", "builds_on")


def parse(body: Any, angles: Mapping[str, str] = ANGLES, default_id: str = "") -> Hypothesis:
    """A hypothesis from JSON; BadInput begins with its id and names the field that is missing or wrong."""
    if not isinstance(body, Mapping):
        raise BadInput(f"a hypothesis must be a JSON object with {', '.join(REQUIRED)}; found {body!r:.80}")
    body = {"id": default_id, **body}
    name = one_line(str(body["id"] or ""))[:80]
    for key in REQUIRED:
        if key not in body or body[key] is None or (isinstance(body[key], str) and not body[key].strip()):
            raise _wrong(name, key, "is missing", _HINTS.get(key, ""))
    text = {key: _line(body[key]) for key in REQUIRED if key not in ("expected_delta", "builds_on")}
    if "\n" in str(body["change"]).strip():
        raise _wrong(name, "change", "has several lines", "one line, one variable")
    letter = text["angle"].upper()
    if letter not in angles:
        raise _wrong(
            name,
            "angle",
            f"must be one of {', '.join(sorted(angles))}; found {text['angle']!r}",
            "a section `## L: name` of IDEA_ANGLES.md adds another",
        )
    if not is_source(text["source"]):
        raise _wrong(name, "source", f"must be a URL or file:line; found {text['source']!r}", "cite it")
    delta = _signed(name, body["expected_delta"], body.get("direction"))
    parent, how = _spun(name, body)
    return Hypothesis(
        **{**text, "angle": letter},
        expected_delta=delta,
        direction="higher" if delta > 0 else "lower",
        builds_on=_builds_on(body["builds_on"]),
        parent=parent,
        transformation=how,
        settings=_settings(name, body.get("settings")),
    )


def is_source(text: str) -> bool:
    """Does a text cite a URL or file:line."""
    return bool(_URL.search(text) or _PLACE.search(text))


_HINTS = {
    "mechanism": "the causal path in one sentence: A, so B, so the metric",
    "expected_delta": "a number in the metric's units with its sign, such as -0.002",
    "falsification": "the result that would prove the mechanism wrong",
    "source": "a URL or file:line",
    "builds_on": f"an experiment's id, or {BASELINE!r}",
}


def _wrong(name: str, key: str, what: str, hint: str = "") -> BadInput:
    return BadInput(f"hypothesis {name or '(without id)'}: {key} {what}", hint, details={"field": key})


def _line(value: Any) -> str:
    return one_line(str(value))[:TEXT_CAP]


def _signed(name: str, value: Any, word: Any) -> float:
    """The expected move with its sign. A direction gives a bare size its sign and may not contradict one."""
    if isinstance(value, Mapping):
        return _signed(name, value.get("value"), value.get("direction", word))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _wrong(name, "expected_delta", f"must be a number; found {value!r}", _HINTS["expected_delta"])
    if isinstance(value, str):
        hit = _NUMBER.match(value)
        if hit is None:
            raise _wrong(
                name,
                "expected_delta",
                f"must begin with a number; found {value!r:.80}",
                _HINTS["expected_delta"],
            )
        sign, number = hit[1], float(hit[2])
    else:
        try:
            sign, number = ("-" if value < 0 else ""), abs(float(value))
        except OverflowError:
            sign, number = "", math.inf
    if not math.isfinite(number) or number == 0:
        raise _wrong(
            name, "expected_delta", f"must be finite and not 0; found {value!r}", "how much, and where to"
        )
    if word is None:
        return -number if sign in ("-", "\u2212") else number
    text = str(word).strip().lower()
    if text not in _UP and text not in _DOWN:
        raise _wrong(name, "direction", f"must be higher or lower; found {word!r}")
    falls = text in _DOWN
    if (sign in ("-", "\u2212") and not falls) or (sign == "+" and falls):
        raise _wrong(name, "direction", f"says {text}, and expected_delta is {value}", "make them agree")
    return -number if falls else number


def _builds_on(value: Any) -> str:
    return ", ".join(_line(one) for one in value) if isinstance(value, (list, tuple)) else _line(value)


def _spun(name: str, body: Mapping[str, Any]) -> tuple[str | None, str | None]:
    parent, how = body.get("parent"), body.get("transformation")
    if bool(parent) != bool(how):
        absent = "transformation" if parent else "parent"
        raise _wrong(name, absent, "is missing: a spun idea names both", ", ".join(TRANSFORMATIONS))
    if not parent:
        return None, None
    if str(how) not in TRANSFORMATIONS:
        raise _wrong(
            name, "transformation", f"must be one of {', '.join(TRANSFORMATIONS)}; found {how!r}", ""
        )
    return _line(parent), str(how)


def _settings(name: str, value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or len(value) != 1:
        raise _wrong(
            name,
            "settings",
            f"must set one variable; found {len(value) if isinstance(value, Mapping) else value!r}",
            "split it into one hypothesis a variable",
        )
    found = {one_line(str(key)): one for key, one in value.items()}
    try:
        canonical_json(found)
    except ValueError:
        raise _wrong(name, "settings", "must be plain JSON with finite numbers") from None
    return found


# --- the same one ---------------------------------------------------------------------------------


def normal(text: str) -> str:
    """A change's text without what does not distinguish it: case, spaces, a full stop at its end."""
    return " ".join(text.split()).casefold().rstrip(".")


def settings_key(settings: Mapping[str, Any]) -> str:
    """Changed configuration keys with their values as one text."""
    return canonical_json(dict(settings)).decode()


@dataclass
class Seen:
    """What was tried or proposed already: changes' normal texts, patch ids, configuration differences; each
    with the id it was first seen under.
    """

    texts: dict[str, str] = field(default_factory=dict)
    patches: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def add(
        self, name: str, change: str, settings: Mapping[str, Any] | None = None, patch: str | None = None
    ) -> None:
        """Remember one; the first of equal ones stays."""
        self.texts.setdefault(normal(change), name)
        if settings:
            self.settings.setdefault(settings_key(settings), name)
        if patch:
            self.patches.setdefault(patch, name)

    def why(
        self, change: str, settings: Mapping[str, Any] | None = None, patch: str | None = None
    ) -> str | None:
        """Why it is a duplicate, or None."""
        if (hit := self.texts.get(normal(change))) is not None:
            return f"the same change as {hit}"
        if settings and (hit := self.settings.get(settings_key(settings))) is not None:
            return f"the same settings as {hit}"
        if patch and (hit := self.patches.get(patch)) is not None:
            return f"the same patch as {hit}"
        return None


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a configuration that differ, dotted, with their new values; a removed one is None."""
    old, new = dict(_flat(before)), dict(_flat(after))
    return {key: new.get(key) for key in sorted({*old, *new}) if old.get(key) != new.get(key)}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, one in value.items():
        if isinstance(one, Mapping) and one:
            yield from _flat(one, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", one
