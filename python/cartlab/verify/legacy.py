"""A legacy verdict from its raw slices: a second writing of the predecessor's rules.

Shares nothing with cartlab.legacy, on purpose: a changed number in the other place is a finding. A
calibration is inconclusive whatever it says; its numbers are derived all the same.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

TIERS = ("screen", "accept-stack", "accept", "calibrate", "single")
SINGLE = ("calibrate", "single")


def complaints(
    plan: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]], body: Mapping[str, Any]
) -> list[str]:
    """What a decision of the legacy policy states and the ledger's blocks do not give."""
    found = []
    if "legacy" not in body["marks"]:
        found.append("a legacy verdict must be marked so")
    if body["evidence"] is not None:
        found.append("a legacy verdict has no evidence: its pairs are none")
    if (plan["forced"] and not plan["approval"]) or plan["forced"] != body["validity"]["forced"]:
        found.append("waiving the load gate needs an approval and shows in the verdict")
    problem = body["validity"]["problem"]
    if problem is not None:
        return found + (
            [] if body["status"] == problem else [f"stated {body['status']}, it failed by {problem}"]
        )
    sizes = plan["legacy"]
    for block in blocks:
        if block["coin"] != block["index"] % 2 or block["order"][:1] != "BC"[block["coin"]]:
            found.append(f"pair {block['index']}: the wrong side ran first")
        if (block["steps"], len(block["base_ns"])) != (sizes["steps"], sizes["repeats"]):
            found.append(f"pair {block['index']}: it has other sizes than were planned")
    stated = body["legacy"]
    if plan["tier"] in SINGLE:
        return found + _single(plan, blocks, body, stated)
    return found + _pairs(plan, blocks, body, stated)


def _pairs(
    plan: Mapping[str, Any],
    blocks: Sequence[Mapping[str, Any]],
    body: Mapping[str, Any],
    stated: Mapping[str, Any],
) -> list[str]:
    ratios = [_speed(block["cand_ns"]) / _speed(block["base_ns"]) for block in blocks]
    n = len(ratios)
    limited = bool(stated["limit_reached"])
    found = _ended(plan["legacy"]["checkpoints"], n, limited)
    looks = sorted({c for c in plan["legacy"]["checkpoints"] if c < n} | {n})
    estimate = statistics.median(ratios)
    low, high = _interval(ratios)
    medians = [statistics.median(ratios[:c]) for c in looks]
    only_look = looks == [3]  # the cap is exactly 3, by the tier or by a limit
    span = _span(medians, 1 if only_look else 3)
    faster = sum(ratio > 1.0 for ratio in ratios)
    needed = max(math.ceil(0.75 * n), 8 if n >= 11 else 0)
    fine = _load_fine(plan, blocks)
    win = estimate >= 1.03 and low > 1.0 and faster >= needed
    no_win = estimate < 1.01 and high < 1.03
    steady = span is not None and span <= 0.0025 and _variation(ratios) < 0.015
    narrow = (high - low) / estimate < 0.005
    stable = steady and narrow and not _outlying(ratios) and (fine or plan["forced"])
    valid = stable and (win or no_win)
    for name, value in (
        ("pairs", n),
        ("estimate", estimate),
        ("low", low),
        ("high", high),
        ("faster", faster),
    ):
        if not math.isclose(stated[name], value, rel_tol=1e-9):
            found.append(f"{name}: stated {stated[name]}, the slices give {value}")
    if stated["load_fine"] != fine:
        found.append("the load after the newest pair is not what was judged by")
    no_gain = no_win or estimate <= 1.0
    if plan["tier"] == "screen":
        status = (
            "triage_promote" if estimate >= 1.03 else "triage_discard" if estimate < 1.01 else "inconclusive"
        )
    elif plan["tier"] == "accept-stack":
        kept = valid and (fine or plan["forced"]) and estimate >= 1.03 and faster >= 6
        status = "keep_stack" if kept else "discard_stack" if no_gain else "inconclusive"
    elif valid and win and fine:
        status = "keep"
    elif stable and estimate > 1.0 and low >= 1.0 and faster >= needed and not limited:
        status = "keep_small_gain"
    else:
        status = "discard" if no_gain else "inconclusive"
    if status != body["status"]:
        found.append(f"stated {body['status']}, the slices and the predecessor's rules give {status}")
    return found


def _single(
    plan: Mapping[str, Any],
    blocks: Sequence[Mapping[str, Any]],
    body: Mapping[str, Any],
    stated: Mapping[str, Any],
) -> list[str]:
    count = stated["invocations"]
    found = _ended(plan["legacy"]["checkpoints"], count, bool(stated["limit_reached"]))
    if not 2 * len(blocks) - 1 <= count <= 2 * len(blocks):
        found.append(f"{count} invocations stated, the ledger has {2 * len(blocks)}")
    if body["status"] != "inconclusive":
        found.append(f"a legacy calibration is inconclusive, stated {body['status']}")
    in_order = [
        _speed(block["base_ns" if side == "B" else "cand_ns"])
        for block in blocks
        for side in dict.fromkeys(block["order"])
    ]
    centre = statistics.median(in_order[:count])
    low, high = _interval(in_order[:count])
    # The unit of the stated numbers is the workload's: only their shape is the slices'.
    if not math.isclose(
        (stated["high"] - stated["low"]) / stated["estimate"], (high - low) / centre, abs_tol=1e-9
    ):
        found.append("the interval is not that of the slices")
    return found


def _ended(checkpoints: Sequence[int], count: int, limited: bool) -> list[str]:
    return (
        [] if limited or count in checkpoints else [f"it was judged after {count}, between two checkpoints"]
    )


def _speed(times: Sequence[int]) -> float:
    return statistics.median([1.0 / ns for ns in times])


def _span(medians: Sequence[float], looks: int) -> float | None:
    last = medians[-looks:]
    return (max(last) - min(last)) / last[-1] if len(last) == looks else None


def _load_fine(plan: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> bool:
    load = blocks[-1]["witness"].get("load_1m")
    return load is None or load < plan["legacy"]["max_load"]


def _interval(values: Sequence[float]) -> tuple[float, float]:
    draws = random.Random(12345)
    n = len(values)
    found = []
    for _ in range(20_000):
        found.append(statistics.median([values[draws.randrange(n)] for _ in range(n)]))
    found.sort()
    return found[500], found[19_499]


def _variation(values: Sequence[float]) -> float:
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0


def _outlying(values: Sequence[float]) -> bool:
    if len(values) < 4:
        return False
    q1, q2, q3 = statistics.quantiles(values, n=4, method="inclusive")
    scale = 1.4826 * statistics.median([abs(v - q2) for v in values])
    fence = 1.5 * (q3 - q1)
    return any(v < q1 - fence or v > q3 + fence or (scale > 0 and abs(v - q2) > 3.5 * scale) for v in values)
