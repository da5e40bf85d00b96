"""LA: which lines and values of an evaluation count, what a gain has to be, where an edit may be, and that no
run answers for another one.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import small_experiment
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import LANDLOCK, PYTHON, goal_of, insight, prepared, words

from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.loops import policies, witness
from cartlab.loops.protocol import parse, render
from cartlab.loops.witness import Witnesses

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


def test_la9_a_gain_of_no_more_than_the_floor_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepared(tmp_path, monkeypatch, 4, "\n## Witnesses\n- floor: 0.005\n")
    assert one.supervise("config(rate=[0.014, 0.016, 0.0205, 0.03][round - 1])") == 0
    assert words(one) == ["discard", "keep", "discard", "keep"]
    assert "0.014 is not better than 0.01 by more than the floor of 0.005" in insight(one, 1)
    assert one.cartlab("verify") == 0


@pytest.mark.parametrize("direction", ["higher", "lower"])
@given(best=st.floats(1, 100), floor=st.floats(0.01, 1), share=st.floats(-2, 3))
def test_la9_the_floor_holds_under_every_policy(
    direction: str, best: float, floor: float, share: float
) -> None:
    value = best + share * floor * (1 if direction == "higher" else -1)
    gained = policies.gains(value, best, direction, floor)
    assert gained == (share > 1) or share == pytest.approx(1)
    for policy in ("greedy", "repeat-k", "verified"):
        found = policies.judged(policy, best, [value] * 3, 3, direction, floor)
        assert (found.status == "keep") == gained
    effects = [policies.effect(value, best, direction, floor)] * 20
    assert (policies.paired(effects).status == "keep") == (gained and effects[0] > 0)


def test_la9_verify_derives_the_floor_and_the_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cartlab.verify.loops import LoopReplay

    one = prepared(tmp_path, monkeypatch, 1, "\n## Witnesses\n- jump: 6\n- floor: 0.001\n")
    assert one.supervise("config(rate=0.5)") == 0 and words(one) == ["keep"]
    events = Ledger.open(one.root, mend=False).events()
    second = max(
        event["seq"] for event in events if event["type"] == "measurement" and event["body"]["role"] == "eval"
    )

    def told(drop: int = 0, worse: int = 0, floor: float = 0.001) -> list[str]:
        said: list[str] = []
        replay = LoopReplay(lambda name, what: said.append(what))
        for event in events:
            changed: Any = json.loads(json.dumps(event))
            if event["type"] == "goal" and event["body"]["op"] == "opened":
                changed["body"]["describes"]["protocol"]["witnesses"]["floor"] = floor
            if event["seq"] == worse:
                changed["body"]["value"] = 0.01
            handle = getattr(replay, event["type"], None)
            if handle is not None and "goal" in event["body"] and event["seq"] != drop:
                handle(changed)
        return said

    assert told() == []
    assert told(drop=second) == ["kept for a jump that no further run saw again"]
    assert told(worse=second) == ["kept for a jump that no further run saw again"]
    raised = told(floor=0.6)
    assert "recorded as keep, its runs give discard" in raised


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


# --- LA7: what earlier runs left ----------------------------------------------------------------------

# A candidate's module that keeps its best answer wherever it can: in the process, keyed by an object's
# identity, and on disk, keyed by the name of what it was asked. Each time it finds one it answers better.
CACHING = """\
import functools, json, os, pathlib, tempfile
memory = {}
names = [os.environ.get(name) for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR")]
names += [os.getcwd(), os.path.dirname(os.path.abspath(__file__)), "__pycache__", *MORE]
names += [tempfile.gettempdir(), "../.git"]
names += [os.path.dirname(os.environ["HOME"]), os.environ["HOME"] + "/../stash"]
places = [pathlib.Path(name) / "answers.json" for name in names if name]
def answer(config):
    found = [memory[id(config)]] if id(config) in memory else []
    for place in places:
        try:
            found.append(json.loads(place.read_text())["config.json"])
        except (OSError, ValueError):
            pass
    best = max(found) + 1 if found else config["rate"]
    memory[id(config)] = best
    for place in places:
        try:
            place.parent.mkdir(exist_ok=True)
            place.write_text(json.dumps({"config.json": best}))
            if "stash" in str(place):
                place.parent.chmod(0o500)
        except OSError:
            pass
    return best
"""
ASKING = "import json, work\nprint('METRIC rate=' + str(work.answer(json.load(open('config.json')))))\n"


@pytest.mark.parametrize("level", ["process", pytest.param("landlock", marks=LANDLOCK)])
def test_la7_no_cache_of_a_candidate_s_own_replays_an_old_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """Keyed by identity in the process or by name on disk: no run finds what another one left."""
    # A place outside of everything is what only the kernel can refuse.
    outside = tmp_path / "outside"
    outside.mkdir()
    caching = CACHING.replace("MORE", repr([str(outside)] if level == "landlock" else []))
    one = prepared(tmp_path, monkeypatch, 3, eval__py=ASKING, work__py=caching)
    body = "config(rate=[0.02, 0.005, 0.03][round - 1])"
    assert one.supervise(body, "--policy", "repeat-k", "--k", "2", "--isolation", level) == 0
    assert words(one) == ["keep", "discard", "keep"]
    seen = [
        (found.round, body["value"])
        for found in goal_of(one).tries
        for _, body in found.measurements
        if body["role"] == "eval"
    ]
    assert seen == [(1, 0.02), (1, 0.02), (2, 0.005), (2, 0.005), (3, 0.03), (3, 0.03)]
    assert not list(outside.iterdir()) and one.cartlab("verify") == 0
    # The cache does work where nobody takes it away: the second run in one folder replays.
    plain = tmp_path / "plain"
    plain.mkdir()
    for name, text in {"eval.py": ASKING, "work.py": caching, "config.json": '{"rate": 0.5}'}.items():
        (plain / name).write_text(text)
    env = {"HOME": str(plain), "TMPDIR": str(plain), "PATH": os.environ["PATH"]}
    ran = [
        subprocess.run([PYTHON, "eval.py"], cwd=plain, env=env, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [done.stdout for done in ran] == ["METRIC rate=0.5\n", "METRIC rate=1.5\n"]


# --- the section itself -------------------------------------------------------------------------------


def test_the_witnesses_are_written_and_read_again() -> None:
    text = small_experiment.BARE.format(rounds=1, python="python")
    asked = "## Witnesses\n- seconds: took\n- work: items\n- min_time_share: 0.7\n- checks: make test\n"
    found = parse(
        text
        + "\n"
        + asked
        + "- bounds: 0 to inf\n- jump: 6\n- floor: 0.25\n- nonce: yes\n"
        + "- check_files: tests/, Makefile\n- colour: red\n"
    )
    assert found.witnesses == Witnesses(
        "took", "items", 0.7, "make test", ("tests/", "Makefile"), "0 to inf", 6.0, True, 0.25
    )
    again = parse(render(found))
    assert again == found and again.extra["Witnesses"] == ("colour: red",)
    assert type(found).from_json(json.loads(json.dumps(found.to_json()))) == found
    with pytest.raises(BadInput, match="min_time_share"):
        parse(text + "\n## Witnesses\n- min_time_share: 70\n")
