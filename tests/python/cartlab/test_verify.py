"""verify: what the writer records holds, and whatever a forger changes is found, also with a chain hashed
anew.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_runs import WORKLOAD, a_block, a_plan, forge, record

from cartlab import round as rounds
from cartlab.decide import decide
from cartlab.ledger import Ledger
from cartlab.model import TIERS, Evidence, Validity
from cartlab.verify import verify_events, verify_root
from cartlab.verify.derive import Derived, status_of


def noise(seed: int, gain: float, n: int, sd: float = 0.01) -> list[float]:
    return [float(v) for v in np.random.default_rng(seed).normal(gain, sd, n)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A ledger with a run of every kind."""
    ledger = Ledger.open(tmp_path)
    ledger.init()
    record(ledger, a_plan("cal", "calibrate", "main", "main"), noise(1, 0.0, 24), relink_floor=0.004)
    floor = {"floor": 1.004, "floor_known": True}
    record(ledger, a_plan("s1", "screen", **floor), noise(2, 0.05, 6))
    record(ledger, a_plan("a1", "accept", **floor), noise(3, 0.05, 48))
    record(ledger, a_plan("a2", "accept", cand="slow", **floor), noise(4, -0.02, 48))
    mixed = [
        a_block(i, y, "busy: steal 20 %" if i in (2, 5) else None) for i, y in enumerate(noise(5, 0.02, 20))
    ]
    record(ledger, a_plan("a3", "accept", cand="other", **floor), mixed)
    record(ledger, a_plan("a4", "accept", cand="other", **floor), noise(6, 0.02, 28))
    record(ledger, a_plan("n1", "accept", cand="other", recorded=False, **floor), noise(7, 0.5, 10))
    record(ledger, a_plan("f1", "accept-stack", cand="stack", forced=True, approval="alone", **floor), mixed)
    record(ledger, a_plan("g1", "accept", cand="g", design="groupseq", **floor), noise(8, 0.05, 24))
    record(ledger, a_plan("b1", "accept", cand="bad", **floor), [], Validity("behaviour_changed", "frame 3"))
    ledger.append("attempt_started", "k1", a_plan("k1", cand="killed", **floor).to_json())
    ledger.append("block", "k1", a_block(0, 0.1).to_json())
    ledger.close_abandoned()
    ledger.note("scratchpad.md", "a lesson")
    ledger.project()
    return tmp_path


def test_what_the_writer_recorded_holds(root: Path) -> None:
    report = verify_root(root)
    assert report.findings == []
    assert report.holds
    assert report.decisions == 10
    assert report.blocks > 80
    assert report.tip == Ledger.open(root).tip[1]
    statuses = {e["body"]["status"] for e in Ledger.open(root).events() if e["type"] == "decision"}
    assert {"baseline", "triage_promote", "keep", "discard", "behaviour_changed"} <= statuses


def body_of(events: list[dict[str, Any]], attempt: str, kind: str, at: int = 0) -> dict[str, Any]:
    body: dict[str, Any] = [e for e in events if e["attempt"] == attempt and e["type"] == kind][at]["body"]
    return body


FORGERIES: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], str]] = {
    "a status": (lambda ev: body_of(ev, "a2", "decision").update(status="keep"), "rules give discard"),
    "a bound": (lambda ev: body_of(ev, "a1", "decision")["evidence"].update(lcb=1.09), "lcb: stated 1.09"),
    "an estimate": (lambda ev: body_of(ev, "a1", "decision")["evidence"].update(hl=1.09), "hl: stated"),
    "an e-value": (
        lambda ev: body_of(ev, "a1", "decision")["evidence"].update(e_value=1e9),
        "e_value: stated",
    ),
    "a block value": (lambda ev: body_of(ev, "a1", "block").update(y=0.2), "y is"),
    "slices": (lambda ev: body_of(ev, "a2", "block", 2).update(cand_ns=[1000, 1000]), "y is"),
    "a drop": (lambda ev: body_of(ev, "a4", "block").update(dropped="busy: x"), "used: stated"),
    "an undone drop": (lambda ev: body_of(ev, "a3", "block", 2).update(dropped=None), "used: stated"),
    "a missing block": (
        lambda ev: [
            e for e in ev if not (e["attempt"] == "a2" and e["type"] == "block" and e["body"]["index"] == 4)
        ],
        "expected block 4",
    ),
    "a block of nobody": (
        lambda ev: [e for e in ev if e["type"] != "attempt_started" or e["attempt"] != "s1"],
        "never",
    ),
    "a late block": (
        lambda ev: [*ev, {**ev[-1], "type": "block", "attempt": "a1", "body": a_block(9, 0.1).to_json()}],
        "after the attempt's end",
    ),
    "recording": (lambda ev: body_of(ev, "n1", "attempt_started").update(recorded=True), "being recorded"),
    "the checks": (
        lambda ev: body_of(ev, "a1", "decision")["validity"].update(checks="not_run"),
        "inconclusive",
    ),
    "the floor": (
        lambda ev: body_of(ev, "a1", "attempt_started").update(floor=1.0),
        "calibration says 1.004",
    ),
    "alpha": (lambda ev: body_of(ev, "a1", "attempt_started").update(alpha=0.2), "alpha 0.2 cannot keep"),
    "the waiver": (lambda ev: body_of(ev, "f1", "attempt_started").update(approval=None), "approval"),
    "the end": (lambda ev: body_of(ev, "a2", "attempt_finished").update(status="keep"), "decided discard"),
    "an end without decision": (
        lambda ev: body_of(ev, "k1", "attempt_finished").update(status="keep"),
        "without a",
    ),
    "a raised verdict": (
        lambda ev: [
            *ev,
            {
                **ev[-1],
                "type": "decision",
                "attempt": "a2",
                "body": {"status": "keep", "overrides": "discard"},
            },
        ],
        "only lower",
    ),
    "the coin": (lambda ev: body_of(ev, "a1", "block").update(coin=2), "coin"),
    "the order": (lambda ev: body_of(ev, "a1", "block").update(order="BBBB"), "order"),
    "the evidence": (lambda ev: body_of(ev, "a1", "decision").update(evidence=None), "no evidence stated"),
    "another tree": (
        lambda ev: body_of(ev, "s1", "attempt_started")["base"].update(tree="0" * 40),
        "used: stated",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_although_the_chain_was_hashed_anew(root: Path, name: str) -> None:
    change, words = FORGERIES[name]
    before = (root / "events.jsonl").read_bytes()
    forge(root, lambda events: r if isinstance(r := change(events), list) else None)
    assert (root / "events.jsonl").read_bytes() != before
    findings = verify_events((root / "events.jsonl").read_bytes()).findings
    assert any(words in finding.what for finding in findings), findings


def test_a_lowered_verdict_holds_if_it_has_a_reason(root: Path) -> None:
    ledger = Ledger.open(root)
    old = next(e["body"] for e in ledger.events() if e["type"] == "decision" and e["attempt"] == "a1")
    low = {
        **old,
        "status": "inconclusive",
        "decision": "inconclusive",
        "overrides": "keep",
        "reasons": ["a doubt"],
    }
    ledger.append("decision", "a1", low)
    ledger.append("attempt_finished", "a1", {"status": "inconclusive"})
    assert verify_events((root / "events.jsonl").read_bytes()).findings == []
    ledger.append("decision", "a1", {**low, "reasons": []})
    assert [f.what for f in verify_events((root / "events.jsonl").read_bytes()).findings] == [
        "an override needs a reason"
    ]


@pytest.fixture
def complete_round(tmp_path: Path) -> Path:
    ledger = Ledger.open(tmp_path)
    why = {"mechanism": "m", "falsify": "f"}
    main, topic = a_plan("x").base, a_plan("x").cand
    rounds.open_round(ledger, main, "2026-01-01T00:00:00.000Z", {})
    record(ledger, a_plan("a", "accept", **why), noise(3, 0.12, 48))
    facts = rounds.CandidateFacts(topic.commit, topic.tree, None, True, True, (), True)
    rounds.start_confirm(ledger, facts, "seed")
    drawn = WORKLOAD.drawn("seed")
    made = record(ledger, a_plan("c", "confirm", workload=drawn, **why), noise(4, 0.12, 24))
    done = rounds.complete(ledger, facts, "c", made, True, "anytime", None)
    assert done["body"]["action"] == "complete"
    return tmp_path


def round_body(events: list[dict[str, Any]], action: str) -> dict[str, Any]:
    body: dict[str, Any] = next(
        e["body"] for e in events if e["type"] == "round" and e["body"]["action"] == action
    )
    return body


def is_confirm(event: dict[str, Any]) -> bool:
    return event["type"] == "round" and event["body"]["action"] == "confirm"


def relabel(events: list[dict[str, Any]], attempt: str) -> None:
    for event in events:
        if event["attempt"] == attempt and event["type"] == "block":
            event["body"]["witness"]["half"] = "public"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda ev: round_body(ev, "complete").update(attempt="a"), "without a confirm run"),
        (lambda ev: round_body(ev, "open").update(target=1.5), "below the target"),
        (lambda ev: round_body(ev, "open").update(strict=True, target=1.118), "lower bound is below"),
        (lambda ev: round_body(ev, "open").update(target=1.02), "has a target of 1.02"),
        (lambda ev: round_body(ev, "open").update(baseline_tree="0" * 40), "another baseline"),
        (lambda ev: round_body(ev, "complete").update(tree="0" * 40), "another candidate"),
        (lambda ev: round_body(ev, "complete").update(round_id="r"), "not active"),
        (lambda ev: round_body(ev, "confirm").update(seed="chosen"), "not what the round drew"),
        (lambda ev: ev.insert(-1, ev.pop(next(i for i, e in enumerate(ev) if is_confirm(e)))), "after the"),
        (lambda ev: body_of(ev, "c", "attempt_started").update(benchmark_tier="local_diagnosis"), "its tier"),
        (lambda ev: relabel(ev, "c"), "halves have 24 and 0"),
        (lambda ev: body_of(ev, "c", "decision")["halves"]["public"].update(hl=1.2), "the public half"),
        (lambda ev: body_of(ev, "c", "decision")["evidence"].update(used=20), "has 20 of 24"),
        (lambda ev: [*ev, {**ev[0]}], ""),
        (lambda ev: [ev[0], *ev], "while"),
        (lambda ev: [*ev[1:-2], ev[0], *ev[-2:]], "before the round was opened"),
    ],
)
def test_a_round_is_complete_only_by_its_confirm_run(complete_round: Path, change: Any, words: str) -> None:
    assert verify_events((complete_round / "events.jsonl").read_bytes()).findings == []
    forge(complete_round, lambda events: r if isinstance(r := change(events), list) else None)
    findings = verify_events((complete_round / "events.jsonl").read_bytes()).findings
    # A new round after the end of one is fine.
    assert bool(findings) == bool(words)
    assert not words or any(words in f.what for f in findings), findings


def test_a_forger_who_forgets_the_hash_is_named_by_line(root: Path) -> None:
    lines = (root / "events.jsonl").read_bytes().split(b"\n")
    lines[4] = lines[4].replace(b'"coin":', b'"coin" :')
    lines.insert(7, lines[6])
    found = verify_events(b"\n".join(lines)).findings
    assert [f.line for f in found if "canonical" in f.what] == [5]
    assert any(f.line == 8 and "follows" in f.what for f in found)


def test_a_torn_line_and_a_key_that_stands_twice_are_named(root: Path) -> None:
    data = (root / "events.jsonl").read_bytes()
    assert [f.what for f in verify_events(data[:-5]).findings] == ["a torn last line"]
    twice = data.replace(b'{"attempt":', b'{"attempt":null,"attempt":', 1)
    assert any(f.line == 1 and "twice" in f.what for f in verify_events(twice).findings)


def test_a_raw_file_or_a_row_that_differs_from_the_ledger_is_found(root: Path) -> None:
    event = next(e for e in Ledger.open(root).events() if e["type"] == "block" and e["attempt"] == "a1")
    raw = root / "benchmarks" / "runs" / "a1" / "raw"
    raw.mkdir(parents=True)
    (raw / "block-00.json").write_text(json.dumps(event["body"]))
    assert verify_root(root).holds
    (raw / "block-00.json").write_text(json.dumps({**event["body"], "y": 0.5}))
    table = root / "results.tsv"
    table.write_text(table.read_text().replace("\tdiscard\tdiscard\t", "\tkeep\tkeep\t"))
    what = [f.what for f in verify_root(root).findings]
    assert any("raw/block-00.json" in w for w in what)
    assert any("results.tsv says keep" in w for w in what)


def test_reading_for_verify_changes_no_byte(root: Path) -> None:
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    verify_root(root)
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before


def test_the_second_writing_of_the_rules_agrees_with_decide_everywhere() -> None:
    bounds = (None, 0.97, 1.005, 1.01, 1.02, 1.03, 1.05)
    seen = set()
    cases = itertools.product(
        TIERS, bounds, bounds, (None, 0.99, 1.004, 1.02), (1.0, 1.02, 1.04), (False, True), (0, 4)
    )
    for tier, lcb, ucb, hl, floor, ended, dropped in cases:
        for used, faster, checks, forced in (
            (12, 12, "passed", False),
            (12, 3, "not_run", True),
            (6, 6, "passed", False),
            (6, 1, "passed", False),
            (5, 5, "passed", False),
            (5, 0, "passed", False),
            (0, 0, "passed", False),
        ):
            for problem in (None, "crashed"):
                found = Derived(used, 0, dropped, hl if used else None, lcb, ucb, 1.0, faster)
                stated = Evidence(
                    used, dropped, 0, found.hl, lcb, ucb, 1.0, max(1.01, floor), floor, 0.01, faster
                )
                validity = Validity(problem, "why", forced, checks)
                one = decide(tier, stated, validity, ended).status
                assert one == status_of(tier, found, validity.to_json(), ended, floor)
                seen.add(one)
    assert len(seen) >= 10


def test_verify_shares_nothing_with_the_writer_but_the_process_and_its_twin_design() -> None:
    import ast

    import cartlab.verify

    allowed = {"cartlab.verify", "cartlab.stats.betting", "cartlab.stats.groupseq"}
    folder = Path(cartlab.verify.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("cartlab"):
                    assert any(name == a or name.startswith(a + ".") for a in allowed), (
                        f"{path.name} imports {name}"
                    )
