"""The five checks that a win has to pass before anybody believes it, each made by the harness from files.

Source: docs/loops.md, LC17. A check that could not be made counts as failed: silence is no verdict. Pure but
for split(), which hashes what it is given as a manifest.

To add a check: a function that gives a Check, its letter in CHECKS, and its line in five(); a missing letter
keeps `holds` from being true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cartlab.loops.commands import plain
from cartlab.loops.manifest import Manifest, matching
from cartlab.loops.policies import better

CHECKS = {
    "a": "a second run with another seed lands within noise",
    "b": "held-out files are no training files",
    "c": "the change is in the declared direction",
    "d": "the time was used and the log is finite and falls",
    "e": "stderr holds nothing unexplained",
}
USED = 0.7
# The difference of two runs is sqrt(2) wider than one run, and the range of three baseline runs is 1.7 wide:
# twice the range is 2.4 of the difference's own widths.
RANGES = 2.0
_ALARM = re.compile(r"\b(?:Traceback|RuntimeError)\b|\bnan\b|Stopping\b.*\bdataloader", re.IGNORECASE)
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)"


@dataclass(frozen=True)
class Check:
    """One check's verdict. letter: its row in CHECKS; why: what was found, one line."""

    letter: str
    holds: bool
    why: str

    def to_json(self) -> dict[str, Any]:
        return {"check": self.letter, "holds": self.holds, "why": self.why}


def holds(checks: Iterable[Check]) -> bool:
    """Are all five there, and does each hold."""
    found = list(checks)
    return {one.letter for one in found} == set(CHECKS) and all(one.holds for one in found)


def failed(checks: Iterable[Check]) -> str:
    """What does not hold, in one line; "" where all five do."""
    found = {one.letter: one for one in checks}
    bad = []
    for letter, what in CHECKS.items():
        one = found.get(letter)
        if one is None:
            bad.append(f"{letter}) {what}: not checked")
        elif not one.holds:
            bad.append(f"{letter}) {one.why}")
    return "; ".join(bad)


def noise_of(baseline: Sequence[float], tolerance: float) -> float:
    """How far two runs of one tree may lie apart, in units of the metric: from the baseline's own runs with
    different seeds, and never less than the tolerance that was declared.
    """
    spread = max(baseline) - min(baseline) if len(baseline) > 1 else 0.0
    return max(tolerance, RANGES * spread)


def repeated(first: float, second: float | None, noise: float) -> Check:
    """a: the metric of another seed."""
    if second is None:
        return Check("a", False, "the second run gave no value")
    apart = abs(second - first)
    close = apart <= noise + 1e-12 * max(abs(first), abs(second))
    word = "within" if close else "outside"
    return Check(
        "a", close, f"{second:.9g} after {first:.9g}: {apart:.3g} apart, {word} the noise {noise:.3g}"
    )


def repeated_in_pairs(status: str, pairs: int) -> Check:
    """a, where pairs of runs on equal seeds decide: each pair is a run with another seed."""
    return Check("a", status == "keep", f"{pairs} pairs with a seed each: {status}")


def split(found: Manifest, train: Sequence[str], heldout: Sequence[str], none_because: str) -> Check:
    """b: no held-out file's content is among the training files'. none_because: why there is no data at all.

    found: the manifest of the measured tree; train, heldout: globs of it.
    """
    if none_because and not (train or heldout):
        return Check("b", True, f"no data: {plain(none_because, 120)}")
    if not train or not heldout:
        return Check("b", False, "DATA.md names no train and heldout files, and no reason why there are none")
    ours, theirs = matching(found, heldout), matching(found, train)
    if not ours or not theirs:
        which = "heldout" if not ours else "train"
        return Check("b", False, f"no file of the tree matches DATA.md's {which} files")
    seen = {entry.digest: path for path, entry in theirs.items()}
    leak = next(((path, seen[entry.digest]) for path, entry in ours.items() if entry.digest in seen), None)
    if leak is not None:
        return Check("b", False, f"the held-out {plain(leak[0], 80)} has the bytes of {plain(leak[1], 80)}")
    return Check("b", True, f"{len(ours)} held-out files, none of {len(theirs)} training files")


def direction(values: Sequence[float], champion: float, wanted: str) -> Check:
    """c: each value is strictly better than the champion's, in the direction the goal was opened with."""
    right = bool(values) and all(better(value, champion, wanted) for value in values)
    word = "is" if right else "is not"
    shown = " and ".join(f"{value:.9g}" for value in values) or "no value"
    return Check("c", right, f"{shown} {word} {wanted} than {champion:.9g}")


def effort(seconds: float | None, budget_s: float, log: str, metric: str, wanted: str) -> Check:
    """d: training took at least 70 % of its time, and what it logged is finite and went the right way.

    seconds: of the training, None where the experiment has no train command (its evaluation is the run).
    """
    if seconds is None:
        return Check("d", True, "no train command: the evaluation is the whole run")
    if short := cut_short(seconds, budget_s):
        return Check("d", False, short)
    name, series = logged(log, metric)
    if len(series) < 2:
        return Check("d", False, "the log holds no two lines such as `step=1 loss=0.5`, so nothing is shown")
    if not all(math.isfinite(value) for value in series):
        return Check("d", False, f"the log's {name} is not finite")
    falls = wanted == "lower" if name == metric else True
    right = series[-1] < series[0] if falls else series[-1] > series[0]
    if not right:
        return Check("d", False, f"the log's {name} went from {series[0]:.6g} to {series[-1]:.6g}")
    return Check(
        "d", True, f"{seconds:.3g} s of {budget_s:g} s; {name} from {series[0]:.6g} to {series[-1]:.6g}"
    )


def cut_short(seconds: float, budget_s: float) -> str:
    """What a training of so many seconds lacks, or ""."""
    if seconds >= USED * budget_s:
        return ""
    return f"training took {seconds:.3g} s of {budget_s:g} s, less than {USED:.0%}"


def logged(log: str, metric: str) -> tuple[str, list[float]]:
    """The series that a training log holds: its loss where it has one, else the metric by name."""
    for name in ("loss", metric):
        found = re.findall(
            rf"(?:^|[\s,;])(?:train_)?{re.escape(name)}\s*[=:]\s*({_NUMBER})(?![\w.])", log, re.IGNORECASE
        )
        if found:
            return name, [float(text) for text in found]
    return metric, []


def stderr(texts: Mapping[str, str], explained: Mapping[str, str]) -> Check:
    """e: no line of the runs' stderr that tells of a fall-back, unless a person explained that line.

    texts: a run's name -> its stderr; explained: part of a line -> why it does no harm.
    """
    known: list[str] = []
    for name, text in texts.items():
        for line in text.splitlines():
            if not _ALARM.search(line):
                continue
            reason = next((why for part, why in explained.items() if part and part in line), None)
            if reason is None:
                return Check("e", False, f"{name}: {plain(line.strip(), 160)}")
            known.append(reason)
    return Check("e", True, f"explained: {plain(known[0], 120)}" if known else "nothing to explain")
