"""What the harness itself knows of a run, held against what the run says of itself. Pure.

Three witnesses, each asked for by a key of the protocol's section `## Witnesses`: the clock (`seconds` names
the METRIC line in which the evaluation states how long its work took), the amount of work (`work` names the
line with the items done), and the share of the time limit that training has to use (`min_time_share`, for a
quality at a fixed time). A fourth, `checks` with `check_files`, is a test command; what it ran is read from
JUnit's XML. `bounds` are the values that the metric can have at all; `jump` is how many times the spread of
the values so far a gain may be before it has to be seen a second time; `floor` is
what a gain has to be above; `nonce` has the evaluation mark its
METRIC lines with what AR_NONCE holds.

None of them proves honesty where a candidate's code runs in the process that reports: they make each of these
lies show against the harness's own clock, the accepted tree's run, or the baseline's list of tests.
"""

from __future__ import annotations

import math
import re
import statistics
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cartlab.errors import BadInput
from cartlab.model import Stored

# A claim may be above the harness's clock by this share and constant: the two clocks start and end apart.
CLOCK_SHARE, CLOCK_S = 0.05, 0.01
# Starting and ending a process takes longer on a loaded machine; beyond this something was left out.
LOOSE_SHARE, LOOSE_S = 0.10, 0.5
MAX_XML = 8 * 1024 * 1024


@dataclass(frozen=True)
class Witnesses(Stored):
    """The section's keys. Names are of METRIC lines; check_files: globs laid over from the baseline."""

    seconds: str = ""
    work: str = ""
    min_time_share: float = 0.0
    checks: str = ""
    check_files: tuple[str, ...] = ()
    bounds: str = ""
    jump: float = 0.0
    nonce: bool = False
    floor: float = 0.0

    _tuples = ("check_files",)


NO_WITNESSES = Witnesses()


@dataclass(frozen=True)
class Usual:
    """What the baseline's own run was like: seconds of the evaluation that it did not account for, and the
    work it did; None where nothing is asked.
    """

    unaccounted_s: float | None = None
    work: float | None = None


NOTHING_USUAL = Usual()


def parse(values: Mapping[str, str]) -> Witnesses:
    """The section's text as values; BadInput for a share that is none."""
    share = values.get("min_time_share") or "0"
    if not re.fullmatch(r"0(\.\d+)?|1(\.0+)?|\.\d+", share):
        raise BadInput(
            f"min_time_share must be a share of the time limit from 0 to 1; found {share!r}",
            "0.7 is usual where quality at a fixed time counts",
        )
    if values.get("bounds"):
        limits(values["bounds"])
    jump = values.get("jump") or "0"
    if not re.fullmatch(r"\d+(\.\d+)?", jump):
        raise BadInput(f"jump must be a number of spreads of at least 0; found {jump!r}", "6 is usual")
    floor = values.get("floor") or "0"
    if not re.fullmatch(r"\d+(\.\d+)?([eE][-+]?\d+)?", floor) or not math.isfinite(float(floor)):
        raise BadInput(
            f"floor must be a number of at least 0 in the metric's unit; found {floor!r}",
            "the smallest gain that is worth a commit",
        )
    nonce = (values.get("nonce") or "no").lower()
    if nonce not in ("yes", "no", "true", "false"):
        raise BadInput(f"nonce must be yes or no; found {nonce!r}")
    listed = (part.strip().strip("`'\"") for part in (values.get("check_files") or "").split(","))
    return Witnesses(
        values.get("seconds", ""),
        values.get("work", ""),
        float(share),
        values.get("checks", ""),
        tuple(part.removeprefix("./") for part in listed if part),
        values.get("bounds", ""),
        float(jump),
        nonce in ("yes", "true"),
        float(floor),
    )


def render(found: Witnesses) -> list[str]:
    """The section's lines; none where nothing is asked."""
    rows = {
        "seconds": found.seconds,
        "work": found.work,
        "min_time_share": f"{found.min_time_share:g}" if found.min_time_share else "",
        "checks": found.checks,
        "check_files": ", ".join(found.check_files),
        "bounds": found.bounds,
        "jump": f"{found.jump:g}" if found.jump else "",
        "floor": f"{found.floor:.15g}" if found.floor else "",
        "nonce": "yes" if found.nonce else "",
    }
    return [f"- {key}: {text}" for key, text in rows.items() if text]


# --- clock, work, time --------------------------------------------------------------------------------


def clock(claimed_s: float, wall_s: float, usual_s: float | None) -> str | None:
    """Why a stated duration cannot be true, or None. usual_s: what the baseline's run left unaccounted."""
    if claimed_s < 0 or claimed_s > wall_s * (1 + CLOCK_SHARE) + CLOCK_S:
        return f"it states {claimed_s:.3g} s of a run that the harness's clock gives {wall_s:.3g} s"
    if usual_s is None:
        return None
    left = wall_s - claimed_s
    if left > usual_s + LOOSE_SHARE * wall_s + LOOSE_S:
        return (
            f"it states {claimed_s:.3g} s of {wall_s:.3g} s by the harness's clock; the baseline leaves "
            f"{usual_s:.3g} s unaccounted, this leaves {left:.3g} s"
        )
    return None


def work(done: float | None, usual: float | None) -> str | None:
    """Why the work is not the baseline's, or None. done: None where the evaluation did not state it."""
    if usual is None or done == usual:
        return None
    stated = "nothing" if done is None else f"{done:.15g}"
    return f"the evaluation did {stated} where the baseline's does {usual:.15g}"


def early(seconds: float, limit_s: float, share: float) -> str | None:
    """Why training ended too early, or None."""
    if not share or seconds >= share * limit_s:
        return None
    return f"training used {seconds:.3g} s of {limit_s:g} s; the protocol asks for {share:.0%} of it"


# --- values -------------------------------------------------------------------------------------------


def limits(text: str) -> tuple[float, float]:
    """The least and the greatest value of `LOW to HIGH`; BadInput where that is none."""
    low, between, high = text.partition(" to ")
    try:
        found = float(low), float(high)
    except ValueError:
        found = math.nan, math.nan
    if not between or not found[0] < found[1]:
        raise BadInput(
            f"bounds must be `LOW to HIGH`; found {text!r}", "`bounds: 0 to 1`; inf is a bound too"
        )
    return found


def outside(value: float, bounds: str) -> str | None:
    """Why a value cannot be, or None."""
    if not bounds:
        return None
    low, high = limits(bounds)
    return None if low <= value <= high else f"{value:.9g} lies outside the bounds {low:g} to {high:g}"


def jumps(gain: float, earlier: Sequence[float], times: float) -> bool:
    """Is a gain so large that one run is not enough: more than `times` the spread of the values so far (their
    median absolute deviation, scaled to a normal's standard deviation). Fewer than three values, or equal
    ones, say nothing of the spread, and then every gain is.
    """
    if not times:
        return False
    middle = statistics.median(earlier) if earlier else 0.0
    spread = 1.4826 * statistics.median(abs(one - middle) for one in earlier) if len(earlier) > 2 else 0.0
    return gain > times * spread


# --- tests --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collected:
    """What a test run collected: all ids, and those that were skipped or expected to fail."""

    ids: frozenset[str]
    skipped: frozenset[str]


def junit(data: bytes) -> Collected:
    """JUnit's XML; BadInput where it is none, or where it has a document type (its entities can blow up)."""
    if len(data) > MAX_XML or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise BadInput("the checks' JUnit file must be plain XML of at most 8 MiB", "write it by --junitxml")
    try:
        top = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError) as error:
        raise BadInput(f"the checks' JUnit file must be XML; {error}", "write it by --junitxml") from None
    ids, skipped = set(), set()
    for case in top.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        ids.add(name)
        if case.find("skipped") is not None:
            skipped.add(name)
    return Collected(frozenset(ids), frozenset(skipped))


def weaker(before: Collected, after: Collected) -> str | None:
    """Why the later checks prove less than the earlier ones, or None."""
    if gone := sorted(before.ids - after.ids):
        return f"{len(gone)} of {len(before.ids)} tests are gone, {gone[0]} among them"
    if new := sorted(after.skipped - before.skipped):
        return f"{len(new)} more tests are skipped or expected to fail, {new[0]} among them"
    return None


# --- seeds --------------------------------------------------------------------------------------------

# A literal behind a name that speaks of seeds: `seed = 3`, `manual_seed(3)`, `"random_state": 3`, `--seed 3`.
_SEED = re.compile(
    r"((?:seed|random_state|randomstate|default_rng|prngkey)\w*[\"']?\s*(?:=>|[:=(,\s])\s*)(-?\d[\d_]*)",
    re.IGNORECASE,
)


def without_seeds(text: str) -> str:
    """The text with each seed's literal taken out."""
    return _SEED.sub(r"\1#", text)


def seeds_only(pairs: Mapping[str, tuple[str, str]]) -> bool:
    """Do these files (path -> text before and after) differ in seed literals and in nothing else?"""
    return bool(pairs) and all(
        old != new and without_seeds(old) == without_seeds(new) for old, new in pairs.values()
    )


def seeds_among(pairs: Mapping[str, tuple[str, str]]) -> list[str]:
    """The files whose seed literals changed."""
    return [path for path, (old, new) in pairs.items() if _SEED.findall(old) != _SEED.findall(new)]
