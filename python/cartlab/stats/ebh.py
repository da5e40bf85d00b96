"""The e-BH procedure over a round's candidates.

R. Wang and A. Ramdas, "False discovery rate control with e-values", JRSS-B 84 (2022): of m e-values, reject
the k* largest, k* = max{k : k * e_(k) >= m / alpha}. The false discovery rate is at most alpha under any
dependence, and every candidate of the round shares its baseline. An e-value must be the wealth at a
stopping time: a highest-so-far wealth is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cartlab.model import POLICY


def e_bh(e_values: Sequence[float], alpha: float = POLICY.alpha) -> list[int]:
    """Indices of the rejected hypotheses, ascending. ValueError for a negative e-value."""
    if any(e < 0.0 for e in e_values):
        raise ValueError("expected e-values of 0 or more")
    m = len(e_values)
    order = sorted(range(m), key=lambda i: (-e_values[i], i))
    kept = 0
    for k, i in enumerate(order, start=1):
        if k * e_values[i] >= m / alpha:
            kept = k
    return sorted(order[:kept])


def discoveries(e_values: Mapping[str, float | None], alpha: float = POLICY.alpha) -> list[str]:
    """Names of the candidates that stand together at this false discovery rate. A candidate without e-value
    counts in m.
    """
    names = list(e_values)
    kept = e_bh([e_values[name] or 0.0 for name in names], alpha)
    return [names[i] for i in kept]
