"""The two writings of the predecessor's rules against each other, over made-up runs of every tier."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from cartlab import legacy
from cartlab.verify.legacy import complaints


def a_run(tier: str, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Plan, blocks and decision of a run that ends at a checkpoint, or where a limit cut it."""
    rng = random.Random(seed)
    sizes, _ = legacy.sizes_of(tier, False, {"--max-load": "3", "--repeats": "2"}, 4)
    forced, limited = rng.random() < 0.3, rng.random() < 0.3
    cap = rng.randrange(1, sizes.checkpoints[-1]) if limited else sizes.checkpoints[-1]
    ratio, sd = rng.choice([0.98, 1.0, 1.005, 1.02, 1.03, 1.031, 1.06]), rng.choice([0.0005, 0.002, 0.02])
    blocks: list[dict[str, Any]] = []
    load_fine = True
    while True:
        index = len(blocks)
        base = [round(2e8 * math.exp(rng.gauss(0, sd / 2))) for _ in range(2)]
        cand = [round(2e8 / ratio * math.exp(rng.gauss(0, sd / 2))) for _ in range(2)]
        load = rng.choice([None, 1.0, 2.9, 3.0, 9.0])
        order = "BBCC" if legacy.baseline_first(index) else "CCBB"
        blocks.append(
            {"index": index, "coin": index % 2, "order": order, "steps": sizes.steps, "base_ns": base,
             "cand_ns": cand, "witness": {"load_1m": load}}
        )  # fmt: skip
        load_fine = load is None or load < sizes.max_load
        ended = len(blocks) == cap
        if not ended and len(blocks) not in sizes.checkpoints:
            continue
        looks = legacy.looks_until(sizes.checkpoints, cap) if limited and ended else sizes.checkpoints
        ratios = [legacy.pair_ratio(block["base_ns"], block["cand_ns"]) for block in blocks]
        at = legacy.look(ratios, looks, load_fine or forced)
        if at.stops:
            break
    cut = limited and ended
    verdict = legacy.verdict_of(tier, at, load_fine, forced, cut)
    plan = {"tier": tier, "forced": forced, "approval": "why" if forced else None, "legacy": sizes.to_json()}
    body = {
        **verdict.to_json(),
        "validity": {"problem": None, "forced": forced},
        "legacy": {**at._asdict(), "load_fine": load_fine, "load_ignored": forced, "limit_reached": cut},
    }
    return plan, blocks, body


@pytest.mark.parametrize("tier", ["screen", "accept-stack", "accept"])
def test_both_writings_agree_on_every_made_up_run(tier: str) -> None:
    seen = set()
    for seed in range(40):
        plan, blocks, body = a_run(tier, seed)
        assert complaints(plan, blocks, body) == [], seed
        seen.add(body["status"])
    assert len(seen) >= 3


def test_another_status_than_the_rules_give_is_found_in_every_run() -> None:
    for seed in range(6):
        plan, blocks, body = a_run("accept", seed)
        wrong = "keep" if body["status"] != "keep" else "discard"
        assert any("give" in what for what in complaints(plan, blocks, {**body, "status": wrong}))
