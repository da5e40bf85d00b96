"""LA: clocks, work, seeds, holdouts, checks and what stays behind: each threat tried and refused, through the
command line and through the library.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small_experiment
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import PYTHON, Experiment, git

from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.loops import goals, holdout, isolation, policies, rounds, running, witness
from cartlab.loops.protocol import parse, render
from cartlab.loops.witness import Collected, Witnesses

LANDLOCK = pytest.mark.skipif(
    isolation.available() != "landlock", reason="this kernel has no Landlock: nothing can be hidden"
)


def goal_of(one: Experiment) -> goals.Goal:
    return list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]


def words(one: Experiment) -> list[str | None]:
    return [found.status for found in goal_of(one).closed_rounds()]


def insight(one: Experiment, number: int) -> str:
    return str((goal_of(one).closed_rounds()[number - 1].decision or {})["insight"])


def prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, more: str = "", **files: str
) -> Experiment:
    """The bare experiment with further files (`__` a dot, `_slash_` a slash) and lines of its protocol."""
    one = small_experiment.make_bare(tmp_path, rounds=count)
    for name, text in files.items():
        path = one.folder / name.replace("_slash_", "/").replace("__", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    protocol = one.folder / "autoresearch-protocol.md"
    text = protocol.read_text(encoding="utf-8").replace(
        "files: config.json", "files: config.json, work.py, tests/"
    )
    protocol.write_text(text + more, encoding="utf-8")
    git(one.repo, "add", "-A")
    git(one.repo, "commit", "-q", "-m", "more")
    monkeypatch.chdir(one.repo)
    return one


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


# --- LA5, LA9, LA14: lines, values, regions -----------------------------------------------------------


def test_la5_with_a_nonce_only_the_evaluation_s_own_lines_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidate's module prints a better number first and last; it does not know the run's mark."""
    evaluation = (
        "import os\nmark = os.environ.pop('AR_NONCE')\nimport json\nimport work\n"
        "print(f\"METRIC[{mark}] rate={json.load(open('config.json'))['rate']}\")\n"
    )
    lying = "import atexit, os, sys\nassert 'AR_NONCE' not in os.environ\n" + "".join(
        f"print('METRIC{mark} rate=9', file=sys.{where})\n"
        for mark in ("", "[00]")
        for where in ("stdout", "stderr")
    )
    lying += "atexit.register(print, 'METRIC rate=9')\n"
    more = "\n## Witnesses\n- nonce: yes\n"
    one = prepared(tmp_path, monkeypatch, 2, more, eval__py=evaluation, work__py="")
    assert one.supervise(f"(work / 'work.py').write_text({lying!r})\nif round == 2: config(rate=0.02)") == 0
    assert words(one) == ["discard", "keep"]
    assert [(found.decision or {})["value"] for found in goal_of(one).closed_rounds()] == [0.01, 0.02]
    assert one.cartlab("verify") == 0


def test_la9_a_value_outside_its_bounds_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prepared(tmp_path, monkeypatch, 3, "\n## Witnesses\n- bounds: 0 to 1\n")
    assert one.supervise("config(rate=[1e308, -0.1, 1][round - 1])") == 0
    assert words(one) == ["metric_error", "metric_error", "keep"]
    assert "1e+308 lies outside the bounds 0 to 1" in insight(one, 1)
    for bad in ("0", "1 to 0", "a to b", "nan to 1"):
        with pytest.raises(BadInput, match="bounds must be"):
            witness.limits(bad)


def test_la9_a_jump_has_to_be_seen_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first evaluation of a tree with `luck` is far better, its second is not."""
    seen = tmp_path / "seen"
    lucky = (
        "import json, os\nconfig = json.load(open('config.json'))\nrate = config['rate']\n"
        f"if config.get('luck') and not os.path.exists({str(seen)!r}):\n"
        f"    rate = 5\n    open({str(seen)!r}, 'w').close()\nprint('rate:', rate)\n"
    )
    one = prepared(tmp_path, monkeypatch, 3, "\n## Witnesses\n- jump: 6\n", eval__py=lucky)
    body = "config(rate=[0.02, 0.005, 0.9][round - 1], luck=round == 2)"
    assert one.supervise(body, "--isolation", "process") == 0
    assert words(one) == ["keep", "checks_failed", "keep"]
    assert "is a jump of more than 6 spreads, and a second run gives 0.005" in insight(one, 2)
    runs = [sum(body["role"] == "eval" for _, body in found.measurements) for found in goal_of(one).tries]
    assert runs == [2, 2, 2] and one.cartlab("verify") == 0


@given(st.lists(st.floats(-1e3, 1e3), max_size=8), st.floats(0.001, 1e3), st.floats(0, 100))
def test_la9_a_jump_is_one_more_wherever_the_spread_is_smaller(
    earlier: list[float], gain: float, times: float
) -> None:
    found = witness.jumps(gain, earlier, times)
    assert not witness.jumps(gain, earlier, 0)
    assert not found or witness.jumps(2 * gain, earlier, times)
    assert not times or len(earlier) > 2 or found


def test_la14_only_the_marked_regions_of_a_file_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    framed = "a = 1\n# autoresearch: begin\nb = 1\n# autoresearch: end\nc = 1\n"
    one = prepared(tmp_path, monkeypatch, 5, work__py=framed)
    body = f"""
path, text = work / "work.py", {framed!r}
if round == 1: path.write_text(text.replace("c = 1", "c = 2"))
if round == 2: path.unlink()
if round == 3: path.unlink(); path.symlink_to("config.json")
if round == 4: path.write_text(text.replace("# autoresearch: end\\n", "") + "# autoresearch: end\\n")
if round == 5: path.write_text(text.replace("b = 1", "b = 2")); (work / "blob").write_bytes(bytes(9))
config(rate=0.01 + round / 100)
"""
    assert one.supervise(body) == 0
    assert words(one) == ["compliance_failed"] * 4 + ["keep"]
    assert "work.py was changed outside its marked regions" in insight(one, 1)
    # What nobody can read in a patch is said.
    assert "binary: slope/blob" in insight(one, 5)


# --- LA13: checks -------------------------------------------------------------------------------------

TESTS = """\
import json
config = json.load(open("config.json"))
def test_rate():
    assert config["rate"] < 1
"""
# What a test framework does, in a tenth of its time: each test as often as there are cases, and a JUnit file.
RUNNER = """\
import json, sys
sys.path.insert(0, "tests")
import test_rate
config = json.load(open("config.json"))
cases, bad = [], 0
for name in [name for name in dir(test_rate) if name.startswith("test_")]:
    for case in range(config["cases"]):
        inner = "<skipped/>" if config["fast"] else ""
        try:
            if not config["fast"]:
                getattr(test_rate, name)()
        except AssertionError:
            inner, bad = "<failure/>", 1
        cases.append(f'<testcase classname="test_rate" name="{name}[{case}]">{inner}</testcase>')
open(sys.argv[1], "w").write("<testsuites><testsuite>" + "".join(cases) + "</testsuite></testsuites>")
sys.exit(bad)
"""
CHECKS = """
## Witnesses
- checks: sh tests/check.sh {junit}
- check_files: tests/
"""


def test_la13_weakened_checks_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prepared(
        tmp_path,
        monkeypatch,
        5,
        CHECKS,
        config__json='{"rate": 0.01, "cases": 2, "fast": false}',
        tests_slash_test_rate__py=TESTS,
        tests_slash_run__py=RUNNER,
        tests_slash_check__sh=f'{PYTHON} tests/run.py "$1"\n',
    )
    body = """
config(rate=0.02 + round / 100)
if round == 1: (work / "tests/test_rate.py").write_text("def test_nothing(): pass"); config(rate=5)
if round == 2: (work / "tests/check.sh").write_text("true || true"); config(rate=5)
if round == 3: config(cases=1)
if round == 4: config(fast=True)
"""
    assert one.supervise(body) == 0
    assert words(one) == ["checks_failed"] * 4 + ["keep"]
    assert "1 of 2 tests are gone" in insight(one, 3)
    assert "2 more tests are skipped" in insight(one, 4)
    assert one.cartlab("verify") == 0


def _acceptance(checks: bool, *runs: tuple[str, str, dict[str, Any]], sealed: int = 0) -> list[str]:
    """What verify says of a keep of g-r1, whose tree is "t", after these runs (attempt, role, body)."""
    from cartlab.verify.acceptance import Acceptance

    said: list[str] = []
    replay = Acceptance(lambda name, what: said.append(what))
    asked = {"witnesses": {"checks": "make test" if checks else ""}}
    replay.goal({"goal": "g", "op": "opened", "describes": {"protocol": asked}})
    if sealed:
        replay.goal({"goal": "g", "op": "holdout", "digest": "d", "looks": sealed})
    for attempt, role, body in runs:
        whole = {"goal": "g", "role": role, "tree": "t", "passed": True, "digest": "d", **body}
        replay.measurement({"attempt": attempt, "body": whole})
    replay.kept("g-r1", "g", "t")
    return said


def test_la13_la12_verify_asks_each_keep_for_its_checks_and_its_holdout() -> None:
    base = ("g-reference0", "checks", {"ids": ["a", "b"], "skipped": ["b"]})
    ran = ("g-r1", "checks", {"ids": ["a", "b", "c"], "skipped": ["b"]})
    look = ("g-r1", "holdout", {})
    assert _acceptance(False) == _acceptance(True, base, ran) == []
    assert _acceptance(True, base) == ["kept without the checks that its protocol asks for"]
    assert _acceptance(True, ran) == ["kept by checks that were never run on the baseline"]
    weaker = "kept by checks that are weaker than the baseline's"
    assert _acceptance(True, base, ("g-r1", "checks", {"ids": ["a"], "skipped": []})) == [weaker]
    assert _acceptance(True, base, ("g-r1", "checks", {"ids": ["a", "b"], "skipped": ["a"]})) == [weaker]
    other = ("g-r1", "checks", {"ids": ["a", "b"], "skipped": [], "tree": "other"})
    assert _acceptance(True, base, other) == ["kept without the checks that its protocol asks for"]
    assert _acceptance(False, look, sealed=1) == []
    assert _acceptance(False, sealed=1) == ["kept without passing the sealed holdout"]
    assert _acceptance(False, ("g-r0", "holdout", {}), look, sealed=1) == ["look 2 at a holdout with 1"]
    another = "a look at another holdout than the one that was sealed"
    assert _acceptance(False, ("g-r1", "holdout", {"digest": "e"}), sealed=1) == [another]


def test_la13_tests_are_read_from_plain_xml_alone() -> None:
    data = b"""<testsuites><testsuite><testcase classname="a" name="x"/>
    <testcase classname="a" name="y"><skipped type="pytest.xfail"/></testcase></testsuite></testsuites>"""
    found = witness.junit(data)
    assert found == Collected(frozenset({"a::x", "a::y"}), frozenset({"a::y"}))
    for bad in (b"", b"<a", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b" " * (9 << 20)):
        with pytest.raises(BadInput):
            witness.junit(bad)


IDS = st.frozensets(st.sampled_from("abcdef"))


@given(IDS, IDS, IDS, IDS)
def test_la13_checks_are_weaker_when_a_test_is_gone_or_newly_skipped(
    ids: frozenset[str], skips: frozenset[str], later: frozenset[str], later_skips: frozenset[str]
) -> None:
    before, after = Collected(ids, skips & ids), Collected(later, later_skips & later)
    assert (witness.weaker(before, after) is None) == (
        before.ids <= after.ids and after.skipped <= before.skipped
    )


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


# --- the section itself -------------------------------------------------------------------------------


def test_the_witnesses_are_written_and_read_again() -> None:
    text = small_experiment.BARE.format(rounds=1, python="python")
    asked = "## Witnesses\n- seconds: took\n- work: items\n- min_time_share: 0.7\n- checks: make test\n"
    found = parse(
        text
        + "\n"
        + asked
        + "- bounds: 0 to inf\n- jump: 6\n- nonce: yes\n- check_files: tests/, Makefile\n- colour: red\n"
    )
    assert found.witnesses == Witnesses(
        "took", "items", 0.7, "make test", ("tests/", "Makefile"), "0 to inf", 6.0, True
    )
    again = parse(render(found))
    assert again == found and again.extra["Witnesses"] == ("colour: red",)
    assert type(found).from_json(json.loads(json.dumps(found.to_json()))) == found
    with pytest.raises(BadInput, match="min_time_share"):
        parse(text + "\n## Witnesses\n- min_time_share: 70\n")
