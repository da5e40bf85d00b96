"""LA: clocks, work, seeds, what is hidden, and what stays behind: each threat tried and refused, through the
command line and through the library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import LANDLOCK, PYTHON, goal_of, insight, prepared, words

from cartlab.ledger import Ledger
from cartlab.loops import holdout, policies, rounds, running, witness

# --- LA6, LA8: clocks and work ------------------------------------------------------------------------

TIMED = """\
import json, time
import work
before = time.perf_counter()
done = work.run(json.load(open("config.json"))["items"])
took = time.perf_counter() - before
print(f"METRIC took={took:.6f}")
print(f"METRIC items={done}")
print(f"METRIC rate={-took:.6f}")
"""
WORK = "import time\ndef run(items):\n    time.sleep(1.0)\n    return items\n"
PATCHED = "import time\nreal = time.perf_counter\ntime.perf_counter = lambda: real() * {}\n" + WORK


def test_la6_la8_a_patched_clock_and_less_work_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepared(
        tmp_path,
        monkeypatch,
        4,
        "\n## Witnesses\n- seconds: took\n- work: items\n",
        eval__py=TIMED,
        work__py=WORK,
        config__json='{"items": 100}',
    )
    body = f"""
slow, fast = {PATCHED.format(0.01)!r}, {PATCHED.format(100)!r}
if round == 1: (work / "work.py").write_text(slow)
if round == 2: (work / "work.py").write_text(fast)
if round == 3: (work / "work.py").write_text("def run(items):\\n    return items // 2\\n")
if round == 4: (work / "work.py").write_text("import sys\\nsys.exit(0)\\n")
"""
    assert one.supervise(body) == 0
    assert words(one) == ["tampered", "tampered", "behaviour_changed", "metric_error"]
    assert "unaccounted" in insight(one, 1) and "harness's clock" in insight(one, 2)
    assert "did 50 where the baseline's does 100" in insight(one, 3)
    assert one.cartlab("verify") == 0


@given(st.floats(0, 1e4, allow_nan=False), st.floats(0.01, 1e4, allow_nan=False), st.floats(0, 2))
def test_la6_a_claim_that_the_clock_and_the_baseline_allow_is_believed(
    claim: float, wall: float, usual: float
) -> None:
    why = witness.clock(claim, wall, usual)
    possible = claim <= wall * 1.05 + 0.01
    complete = wall - claim <= usual + 0.1 * wall + 0.5
    assert (why is None) == (possible and complete)
    assert (witness.clock(claim, wall, None) is None) == possible


def test_la8_training_that_ends_early_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prepared(
        tmp_path,
        monkeypatch,
        2,
        f"\n## Train\n- command: {PYTHON} work.py\n\n## Witnesses\n- min_time_share: 0.7\n",
        work__py="import os, time\ntime.sleep(0.8 * float(os.environ['AR_TIME_LIMIT']))\n",
    )
    protocol = one.folder / "autoresearch-protocol.md"
    protocol.write_text(protocol.read_text(encoding="utf-8").replace("time_limit: 20", "time_limit: 1"))
    body = """
config(rate=round)
if round == 1: (work / "work.py").write_text("raise SystemExit(0)")
"""
    # The researcher's own deadline is twice the limit, which a busy machine may need.
    assert one.supervise(body) == 0
    assert words(one) == ["checks_failed", "keep"]
    assert "the protocol asks for 70% of it" in insight(one, 1)


def test_la8_each_evaluation_names_its_workload_and_verify_holds_them_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cartlab.verify.loops import LoopReplay

    one = prepared(tmp_path, monkeypatch, 1)
    assert one.supervise("config(rate=0.5)", "--policy", "verified") == 0
    events = Ledger.open(one.root, mend=False).events()
    said: list[str] = []
    for bend in (False, True):
        replay = LoopReplay(lambda name, what: said.append(what))
        for event in events:
            changed: Any = event
            if bend and event["type"] == "measurement" and event["body"]["role"] == "eval":
                changed = {**event, "body": {**event["body"], "workload": str(event["seq"])}}
            handle = getattr(replay, event["type"], None)
            if handle is not None and "goal" in event["body"]:
                handle(changed)
        assert said == (["its evaluations are not of one workload"] if bend else [])


# --- LA10: seeds --------------------------------------------------------------------------------------


def test_la10_a_change_of_nothing_but_a_seed_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepared(tmp_path, monkeypatch, 3, config__json='{"rate": 0.01, "seed": 1}')
    body = """
if round == 1: config(seed=7)
if round == 2: config(seed=7, rate=0.02)
if round == 3: config(rate=0.03)
"""
    assert one.supervise(body, "--policy", "verified") == 0
    assert words(one) == ["no_change", "keep", "keep"]
    assert "only literals of seeds" in insight(one, 1)
    assert "⚠ seed literal: slope/config.json" in insight(one, 2) and "⚠" not in insight(one, 3)
    seeds = [
        body["seed"]
        for found in goal_of(one).tries
        for _, body in found.measurements
        if body["role"] == "eval"
    ]
    # What selected an attempt never confirms one.
    assert len(seeds) == 4 == len(set(seeds))


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        ("seed = 1\n", "seed = 2\n", True),
        ("torch.manual_seed(1)", "torch.manual_seed(99)", True),
        ('{"random_state": 3, "x": 1}', '{"random_state": 4, "x": 1}', True),
        ("run --seed 3", "run --seed 4", True),
        ("rng = default_rng(5)", "rng = default_rng(6)", True),
        ('{"random_state": 3, "x": 1}', '{"random_state": 4, "x": 2}', False),
        ("seed = 1\nrate = 1", "seed = 2\nrate = 2", False),
        ("rate = 1", "rate = 2", False),
        ("seed = 1", "seed = 1", False),
    ],
)
def test_la10_seed_literals_are_told_from_others(old: str, new: str, only: bool) -> None:
    assert witness.seeds_only({"a": (old, new)}) is only


# --- LA10, LA12: what is hidden -----------------------------------------------------------------------

PEEK = """
def peek(path):
    try:
        return Path(path).read_bytes()[:20].decode(errors="replace")
    except OSError as error:
        return type(error).__name__
"""


@LANDLOCK
def test_la10_la12_neither_the_ledger_nor_the_holdout_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "test.py").write_text(
        "import json, sys\nsys.exit(json.load(open('config.json'))['rate'] > 0.05)\n"
    )
    # A candidate's own run tries as well: the evaluator says what it could read.
    evaluator = PEEK.replace("def", "import json\nfrom pathlib import Path\ndef", 1) + (
        f"\nprint('METRIC rate=' + str(json.load(open('config.json'))['rate']))"
        f"\nprint(peek({str(tmp_path / 'root' / 'events.jsonl')!r}))"
        f"\nprint(peek({str(tmp_path / 'clone' / 'README')!r}))\n"
    )
    one = prepared(tmp_path, monkeypatch, 3, eval__py=evaluator)
    seal = ["holdout", "seal", str(one.folder), "--command", f"{PYTHON} {{holdout}}/test.py"]
    assert one.cartlab(*seal, "--files", str(one.folder)) == 25
    assert one.cartlab(*seal, "--files", str(hidden), "--isolation", "process") == 23
    assert one.cartlab(*seal, "--files", str(hidden), "--looks", "2") == 0
    assert one.cartlab(*seal, "--files", str(hidden)) == 23
    assert one.cartlab("holdout", "final") == 23  # nothing is accepted yet
    goal = goal_of(one)
    sealed = one.root / "benchmarks" / "sealed" / goal.id / "test.py"
    assert sealed.is_file()
    body = (
        PEEK
        + f"""
config(rate=[0.02, 0.06, 0.03][round - 1])
say(" ".join(map(peek, {[str(sealed), str(one.root / "events.jsonl"), str(one.repo / "README")]})))
"""
    )
    assert one.supervise(body, "--isolation", "process") == 23
    assert one.supervise(body) == 0
    assert words(one) == ["keep", "checks_failed", "checks_failed"]
    assert insight(one, 2) == "holdout: not passed" and "all 2 looks are spent" in insight(one, 3)
    strategy = goal_of(one).tries[0].steps["submitted"]["strategy"]
    assert strategy == "PermissionError PermissionError nothing of the exper"
    run = one.root / "benchmarks" / "runs" / goal_of(one).tries[0].id
    assert (run / "eval.out").read_text().splitlines()[1:] == ["PermissionError", "nothing of the exper"]
    assert one.cartlab("holdout", "final") == 0
    assert one.cartlab("holdout", "final") == 23
    assert one.cartlab("holdout", "status", "--json") == 0
    assert one.cartlab("verify") == 0
    assert holdout.spent(goal_of(one)) == 2


@LANDLOCK
def test_la12_a_sealed_file_that_was_changed_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "test.py").write_text("raise SystemExit(1)")
    one = prepared(tmp_path, monkeypatch, 1)
    words_ = ["--files", str(hidden), "--command", f"{PYTHON} {{holdout}}/test.py"]
    assert one.cartlab("holdout", "seal", str(one.folder), *words_) == 0
    (one.root / "benchmarks" / "sealed" / goal_of(one).id / "test.py").write_text("")
    assert one.supervise("config(rate=0.5)") == 23
    assert words(one) == []


# --- LA15: the machine --------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_la15_a_process_that_dropped_its_mark_and_its_session_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepared(tmp_path, monkeypatch, 1)
    body = """
import subprocess
spinner = "import os, time\\nif os.fork(): os._exit(0)\\nos.setsid()\\nif os.fork(): os._exit(0)\\n"
spinner += "print(os.getpid(), flush=True)\\nos.close(1)\\ntime.sleep(600)"
started = subprocess.run([sys.executable, "-c", spinner], env={}, stdout=subprocess.PIPE, text=True)
say(started.stdout.strip()); config(rate=0.5)
"""
    assert one.supervise(body) == 0
    found = goal_of(one).tries[0]
    pid = found.steps["submitted"]["strategy"]
    assert pid.isdecimal() and not Path(f"/proc/{pid}").exists()
    assert [body["left"] for _, body in found.measurements if body["role"] == "researcher"] == [1]


def test_la15_pairs_of_one_tree_that_differ_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine on which whatever runs later is better: the sentinels show it, and the gain is not kept."""
    one = prepared(tmp_path, monkeypatch, 1)
    monkeypatch.setattr(rounds, "SENTINEL_EVERY", 1)
    clock = iter(range(1, 10_000))

    def value(bench: running.Bench, seed: int, name: str = "") -> running.Value:
        number = float(next(clock))
        seq = bench.desk.measured(
            bench.one, "eval", tree=bench._tree(), value=number, text=f"{number}", seed=seed, seconds=0.0
        )
        return running.Value(number, f"{number}", seq)

    monkeypatch.setattr(running.Bench, "value", value)
    assert one.supervise("config(rate=0.5)", "--policy", "paired") == 0
    assert words(one) == ["busy_invalid"] and "the machine decides" in insight(one, 1)
    assert one.cartlab("verify") == 0


@given(st.lists(st.just(0.0), max_size=40))
def test_la15_equal_sentinels_raise_no_suspicion(effects: list[float]) -> None:
    assert policies.sentinel(effects) is None
