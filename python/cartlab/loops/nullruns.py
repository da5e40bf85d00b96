"""Null runs: sessions in which no attempt changes anything, judged by the policies' own code.

Every keep is false here. A session is a baseline of one run and a number of attempts, each another tree that
does what the baseline does; values are noise. What can be claimed, and holds for any continuous noise whose
runs are independent and alike (only the order of values matters then):

  greedy    a keep is a record, so a session of m attempts has 1/2 + ... + 1/(m+1) of them on average
  verified  both of two runs have to beat the best so far. Against a baseline of one run the first attempt is
            kept exactly when that run is the worst of three: 1/3. The best only rises, so that no later
            attempt is kept more often, and `verified_keeps` gives the mean of a session exactly
  paired    the e-process errs at most alpha of the time for each tree, over any number of looks. It needs no
            likeness over time: the coin that orders each pair makes an honest pair symmetric
  repeat-k  nothing is claimed; the median of k narrows the noise and changes no order

Nothing here measures; the random numbers are seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cartlab.loops import policies
from cartlab.loops.policies import ALPHA, PAIRS, POLICIES
from cartlab.stats.betting import wealth_paths
from cartlab.words import counted

NOISES = ("normal", "heavy", "drift")
SESSIONS, ATTEMPTS, K = 200, 20, 3
SD = 0.01
# A level that walks: a machine that warms up, or a neighbour that comes and goes.
STEP = 0.3
_NU = 2.5  # degrees of freedom of the heavy tails


class Row(NamedTuple):
    """One policy on one kind of noise. keeps: false keeps a session; any: share of sessions with one;
    decision: false keeps a decision; first: share of first attempts kept; claimed: what is claimed of
    `decision` (paired) or `first` (verified), None where nothing is; mean: the session's exact mean, or None.
    """

    policy: str
    noise: str
    sessions: int
    attempts: int
    keeps: float
    any: float
    decision: float
    first: float
    runs: float
    claimed: float | None
    mean: float | None

    @property
    def holds(self) -> bool | None:
        """Is what is claimed kept to, with three standard errors for the finite number of sessions; None
        where nothing is claimed.
        """
        if self.claimed is None:
            return None
        found = self.first if self.policy == "verified" else self.decision
        size = self.sessions if self.policy == "verified" else self.sessions * self.attempts
        return bool(found <= self.claimed + 3 * (self.claimed * (1 - self.claimed) / size) ** 0.5)


def verified_keeps(attempts: int) -> Fraction:
    """The mean number of keeps of `verified` in a session of nothing but noise, exactly.

    Let q be the chance that one run beats the best so far. An attempt is kept with q^2, and its first run,
    which becomes the best, leaves q times a uniform number. With c[n] the coefficient of q^n of the mean that
    is left, a keep turns c[n] q^n into c[n] q^n / (n + 1); the baseline's own q is uniform.
    """
    left = [Fraction(0)]
    for _ in range(attempts):
        new = [*left, Fraction(0), Fraction(0)]
        new[2] += 1
        for n, c in enumerate(left):
            new[n + 2] += c / (n + 1) - c
        left = new
    return sum((c / (n + 1) for n, c in enumerate(left)), Fraction(0))


def greedy_keeps(attempts: int) -> Fraction:
    """The mean number of records after the first value."""
    return sum((Fraction(1, n) for n in range(2, attempts + 2)), Fraction(0))


def runs(noise: str, rng: np.random.Generator) -> Iterator[float]:
    """The values of one machine's runs, one after the other."""
    level = 0.0
    while True:
        deviation = float(rng.standard_t(_NU) if noise == "heavy" else rng.standard_normal())
        if noise == "drift":
            level += STEP * float(rng.standard_normal())
        yield 1.0 + SD * (level + deviation)


def session(
    policy: str, noise: str, rng: np.random.Generator, attempts: int, k: int
) -> tuple[list[bool], int]:
    """Which attempts of one session were kept, and how many runs it took."""
    if policy == "paired":
        return paired_session(noise, rng, attempts)
    values = runs(noise, rng)
    count = 0

    def run() -> float:
        nonlocal count
        count += 1
        return max(next(values), 1e-6)

    best, kept = run(), []
    for _ in range(attempts):
        status, value = _alone(policy, best, run, k)
        kept.append(status == "keep")
        if kept[-1]:
            best = value
    return kept, count


def _alone(policy: str, best: float, run: Callable[[], float], k: int) -> tuple[str, float]:
    values: list[float] = []
    while True:
        values.append(run())
        found = policies.judged(policy, best, values, k, "higher")
        if found.status is not None:
            return found.status, policies.shown(policy, values)


def paired_session(noise: str, rng: np.random.Generator, attempts: int) -> tuple[list[bool], int]:
    """The same under `paired`, where an attempt is compared with nothing but its own pairs.

    The policy keeps or discards only once the wealth against a ratio of 1 has reached 1 / alpha, on one side
    or the other. Most sequences never come there and are told from the rest for all attempts at once; of
    those that do, the policy's own code says what it makes of them, and after how many pairs.
    """
    values = runs(noise, rng)
    drawn = np.array([[max(next(values), 1e-6) for _ in range(2 * PAIRS)] for _ in range(attempts)])
    ones, others = drawn[:, ::2], drawn[:, 1::2]
    heads = rng.integers(2, size=ones.shape).astype(bool)
    cands, bases = np.where(heads, ones, others), np.where(heads, others, ones)
    effects = np.log(cands / bases)
    bar = np.log(1.0 / ALPHA)
    near = np.zeros(attempts, dtype=bool)
    for mirrored in (False, True):
        near |= wealth_paths(effects, 1.0, mirrored).max(axis=1) >= bar * (1 - 1e-9)
    kept, count = [], 0
    for at in range(attempts):
        status, pairs = decided(effects[at].tolist()) if near[at] else ("inconclusive", PAIRS)
        kept.append(status == "keep")
        count += 2 * pairs
    return kept, count


def decided(effects: Sequence[float]) -> tuple[str, int]:
    """The policy's verdict on a sequence of pairs, and after how many; bounds only tighten, so that the first
    prefix with a verdict can be searched for.
    """
    last = policies.paired(effects)
    if last.status == "inconclusive":
        return last.status, len(effects)
    low, high = 0, len(effects)
    while high - low > 1:
        middle = (low + high) // 2
        if policies.paired(effects[:middle]).status is None:
            low = middle
        else:
            high = middle
    return str(policies.paired(effects[:high]).status), high


def table(
    sessions: int = SESSIONS,
    seed: int = 1,
    *,
    attempts: int = ATTEMPTS,
    k: int = K,
    noises: Sequence[str] = NOISES,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Every policy on every noise."""
    rows = []
    for at, noise in enumerate(noises):
        for policy in POLICIES:
            progress(f"{counted(sessions, 'session')} of nothing but {noise} noise under {policy}")
            rng = np.random.default_rng([seed, at, POLICIES.index(policy)])
            done = [session(policy, noise, rng, attempts, k) for _ in range(sessions)]
            kept = np.array([one for one, _ in done])
            alike = noise != "drift"
            means = {"greedy": greedy_keeps, "verified": verified_keeps}
            rows.append(
                Row(
                    policy,
                    noise,
                    sessions,
                    attempts,
                    float(kept.sum(axis=1).mean()),
                    float(kept.any(axis=1).mean()),
                    float(kept.mean()),
                    float(kept[:, 0].mean()),
                    float(np.mean([count for _, count in done])),
                    ALPHA if policy == "paired" else 1 / 3 if policy == "verified" and alike else None,
                    float(means[policy](attempts)) if policy in means and alike else None,
                )
            )
    return rows


def lines(rows: Sequence[Row]) -> list[str]:
    """The table as text."""
    form = "{:<9} {:<7} {:>10} {:>9} {:>10} {:>9} {:>6}  {:<22} {}"
    head = ("policy", "noise", "keeps", "sessions", "keeps", "first", "runs", "claimed", "")
    under = ("", "", "a session", "with any", "a decision", "attempt", "", "", "")
    out = [form.format(*head).rstrip(), form.format(*under).rstrip()]
    for row in rows:
        word = {None: "", True: "holds", False: "MISSED"}[row.holds]
        out.append(
            form.format(
                row.policy,
                row.noise,
                f"{row.keeps:.2f}",
                f"{row.any:.1%}",
                f"{row.decision:.2%}",
                f"{row.first:.1%}",
                f"{row.runs:.0f}",
                _claim(row),
                word,
            ).rstrip()
        )
    return out


def _claim(row: Row) -> str:
    if row.policy == "paired":
        return f"<= {row.claimed:.0%} a decision"
    if row.policy == "verified" and row.claimed is not None:
        return f"<= 1/3 first, mean {row.mean:.2f}"
    return "nothing" if row.mean is None else f"nothing, mean {row.mean:.2f}"
