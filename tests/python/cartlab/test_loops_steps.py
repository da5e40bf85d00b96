"""LS: the single steps of a round: parity, profile discipline, limits, retries, plateau, ignore rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import small_experiment
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import PYTHON, Experiment, git

from cartlab.ledger import Ledger
from cartlab.loops import goals, parity_probe, running

PROBE = Path(parity_probe.__file__)


def goal_of(one: Experiment) -> goals.Goal:
    return list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]


def with_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train: str, more: str = "") -> Experiment:
    """The bare experiment with a train command and further protocol lines."""
    one = small_experiment.make_bare(tmp_path, rounds=1)
    path = one.folder / "autoresearch-protocol.md"
    path.write_text(path.read_text() + f"\n## Train\n- command: {train}\n{more}")
    monkeypatch.chdir(one.repo)
    return one


def test_ls21_training_that_outlives_its_limit_is_a_failed_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_train(tmp_path, monkeypatch, "sleep 600")
    monkeypatch.setattr(running, "TRAIN_GRACE_S", -19.8)
    assert one.supervise("config(rate=0.5)") == 0
    found = goal_of(one).tries[-1]
    assert found.status == "timeout" and found.decision is not None
    assert found.decision["insight"].startswith("timeout after 0.2s — likely cause: ")
    assert not any(body["role"] == "eval" for _, body in found.measurements)


def test_ls31_only_a_passing_failure_is_tried_again_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "was-here"
    # The first run is short of memory, the second is not.
    train = f"sh -c 'test -e {flag}-read || {{ echo CUDA out of memory >&2; exit 1; }}'"
    one = with_train(tmp_path, monkeypatch, train)
    assert one.supervise("config(rate=0.5)") == 0
    tries = goal_of(one).tries
    assert [found.status for found in tries] == ["crashed", "crashed"]
    assert [found.round for found in tries] == [1, 1] and tries[1].id.endswith("-r1.2")
    assert len(one.table()) == 2
    Path(f"{flag}-read").write_text("")
    assert one.supervise("config(rate=0.6)", "--extend", "1") == 0
    assert goal_of(one).tries[-1].status == "keep"
    Path(f"{flag}-read").unlink()
    other = with_train(tmp_path / "other", monkeypatch, "sh -c 'echo KeyError: 3 >&2; exit 1'")
    assert other.supervise("config(rate=0.5)") == 0
    assert len(goal_of(other).tries) == 1


def test_ls33_a_plateau_is_said_and_the_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=3)
    monkeypatch.chdir(one.repo)
    assert one.supervise("config(rate=0.001 * round); say('lower')", "--plateau", "2") == 0
    said = capsys.readouterr().out
    assert "plateau: 2 rounds in a row without an improvement (strategies are repeating)" in said
    assert len(one.table()) == 4


def test_ls6_what_training_leaves_behind_is_ignored_before_round_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=1)
    (one.folder / ".gitignore").write_text("outputs/\n*.tmp")
    git(one.repo, "add", "-A")
    git(one.repo, "commit", "-q", "-m", "ignore")
    monkeypatch.chdir(one.repo)
    assert one.supervise("config(rate=0.5)") == 0
    text = (one.worktree / "slope" / ".gitignore").read_text()
    assert text.splitlines()[:2] == ["outputs/", "*.tmp"] and "checkpoints/" in text.splitlines()
    added = [
        event["body"]["added"]
        for event in Ledger.open(one.root, mend=False).events()
        if event["type"] == "goal" and event["body"]["op"] == "base"
    ]
    assert added == [["logs/", "checkpoints/", "wandb/", "__pycache__/"]]


def test_ls20_a_round_without_its_profile_is_flagged_and_not_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=2)
    path = one.folder / "autoresearch-protocol.md"
    path.write_text(path.read_text() + "\n## Profile\n- command: echo matmul 90 %\n")
    monkeypatch.chdir(one.repo)
    body = """
config(rate=0.1 * round)
if round == 2:
    (work / "profiles").mkdir()
    for name in ("before", "analysis"):
        (work / "profiles" / f"round-2-{name}.md").write_text("matmul dominates")
"""
    assert one.supervise(body) == 0
    rows = one.table()
    flag = "perf mode but no profile artifacts found — Researcher skipped discipline"
    assert [row[3] for row in rows[1:]] == ["improved", "improved"]
    assert rows[1][5].endswith(flag) and flag not in rows[2][5]


def test_ls36_env_repair_runs_once_between_two_evaluations_and_touches_no_fixed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repair = "mkdir -p installed; echo x > installed/y"
    one = with_train(tmp_path, monkeypatch, "true", f"- env_repair: {repair}\n")
    (one.folder / "eval.py").write_text("import os\nos.stat('installed/y')\nprint('rate: 0.5')\n")
    git(one.repo, "commit", "-q", "-am", "an evaluation that misses something")
    assert one.supervise("config(rate=0.5)") == 0
    found = goal_of(one).tries[-1]
    assert found.status == "keep"
    assert [body["role"] for _, body in found.measurements][1:] == ["train", "eval", "env_repair", "eval"]
    bad = with_train(tmp_path / "bad", monkeypatch, "true", "- env_repair: echo 'print(9)' > eval.py\n")
    (bad.folder / "eval.py").write_text("raise SystemExit(1)\n")
    git(bad.repo, "commit", "-q", "-am", "broken")
    assert bad.supervise("config(rate=0.5)") == 0
    assert goal_of(bad).tries[-1].status == "tampered"


def test_la4_what_training_leaves_beside_the_evaluation_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_train(tmp_path, monkeypatch, "sh -c 'echo x > json.py'")
    assert one.supervise("config(rate=0.5)") == 0
    assert goal_of(one).tries[-1].status == "tampered"
    other = with_train(tmp_path / "other", monkeypatch, "sh -c 'echo \"print(9)\" > eval.py'")
    assert other.supervise("config(rate=0.5)") == 0
    assert goal_of(other).tries[-1].status == "tampered"


# --- parity ---------------------------------------------------------------------------------------

KERNELS = {
    "signature": ("def f(x, y=1):\n    return x", "signature", "new(x, y=1) vs baseline(x)"),
    "non-tensor": ("def f(x):\n    return [1]", "shape", "non-tensor output"),
    "shape": ("def f(x):\n    return x[:2]", "shape", "shape (2,) vs (4,)"),
    "dtype": ("def f(x):\n    return x.astype('float32')", "shape", "dtype float32 vs float64"),
    "numbers": ("def f(x):\n    return x + 1", "numerical", "4 of 4 elements differ, by up to 1"),
    "one input": ("def f(x):\n    return x if x.sum() > 1e9 else -x", "numerical", "elements differ"),
    "in place": ("def f(x):\n    x *= 1.0\n    x += 1\n    return x - 1", "numerical", "changed in place"),
    "aliased": ("def f(x):\n    return x", "numerical", "shares memory with input 0"),
    "raises": ("def f(x):\n    raise ValueError('no\\nluck')", "error", "ValueError: no luck"),
    "exits": ("def f(x):\n    raise SystemExit(0)", "error", "SystemExit"),
    "does not import": ("import nowhere", "error", "ModuleNotFoundError"),
}


def parity(folder: Path, new: str) -> subprocess.CompletedProcess[str]:
    (folder / "new.py").write_text(new + "\n")
    (folder / "base.py").write_text(
        "import numpy\ndef f(x):\n    return x.copy()\ndef inputs(seed):\n"
        "    return (numpy.random.default_rng(seed).normal(size=4),), {}\n"
    )
    body = {
        "name": "k",
        "new_module": "new:f",
        "baseline_module": "base:f",
        "fixture": "base:inputs",
        "atol": 1e-6,
        "rtol": 1e-6,
        "seeds": [1, 2, 3],
    }
    (folder / "spec.json").write_text(json.dumps(body))
    return subprocess.run(
        [PYTHON, str(PROBE), "spec.json"], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("name", KERNELS)
def test_ls18_la21_the_first_failure_is_one_line(tmp_path: Path, name: str) -> None:
    new, kind, detail = KERNELS[name]
    done = parity(tmp_path, new)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"PARITY_FAIL target=k kind={kind} detail=") and detail in done.stderr


def test_ls18_an_equal_kernel_says_ok(tmp_path: Path) -> None:
    done = parity(tmp_path, "def f(x):\n    return x * 1.0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "PARITY_OK target=k\n", "")


# --- order and words ------------------------------------------------------------------------------


def test_ls8_ls11_the_task_list_stands_before_the_dispatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each round has a process of its own, which finds nothing of the one before."""
    one = small_experiment.make_bare(tmp_path, rounds=2)
    monkeypatch.chdir(one.repo)
    body = """
assert not (work / "mine.txt").exists()
(work / "mine.txt").write_text("x")
say(str(os.getpid())); config(rate=0.001 * round)
"""
    assert one.supervise(body) == 0
    events = [event for event in Ledger.open(one.root, mend=False).events() if event["attempt"]]
    for attempt in {event["attempt"] for event in events}:
        own = [event["body"] for event in events if event["attempt"] == attempt]
        assert own[0]["state"] == "proposed" and len(own[0]["tasks"]) == 6
        assert own[1]["state"] == "dispatched"
    tries = goal_of(one).tries
    assert [found.status for found in tries] == ["discard", "discard"]
    assert tries[0].steps["submitted"]["strategy"] != tries[1].steps["submitted"]["strategy"]


def test_ls5_ls28_the_announcement_and_the_progress_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make_bare(tmp_path, rounds=1)
    monkeypatch.chdir(one.repo)
    assert one.supervise("config(rate=0.5)") == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "Starting autoresearch: which rate. Round 1/1. Baseline: rate = 0.01.",
        "Round 1/1: rate=0.5 — improved",
        "  Best so far: rate=0.5 (Round 1)",
    ]


@given(
    st.lists(st.sampled_from(["keep", "discard", "crashed", "timeout", "compliance_failed"]), max_size=8),
    st.none() | st.integers(0, 9),
    st.integers(1, 6),
    st.booleans(),
)
def test_ls27_the_loop_ends_for_three_reasons_only(
    stream: list[str], target: int | None, rounds: int, stopped: bool
) -> None:
    """Whatever the rounds give: the target reached, the last round closed, or an explicit stop."""
    from cartlab.loops.goals import Goal, Try
    from cartlab.loops.protocol import Protocol
    from cartlab.loops.rounds import ending

    protocol = Protocol(
        "t", "q", rounds, target, "m", "higher", "0", ("e",), "1", "", ("v",), "", "c"
    ).to_json()
    goal = Goal("g", "supervise", {"protocol": protocol}, "", state="running")
    best = 0
    for number, status in enumerate(stream, 1):
        one = Try(f"r{number}", number, state="closed")
        best += status == "keep"
        one.decision = {"status": status, "value": float(best), "text": str(best)}
        goal.tries.append(one)
    goal.stop_asked = "asked" if stopped else None
    reached = target is not None and best >= target and best > 0
    last = len(stream) >= rounds
    expected = (
        "target_reached" if reached else "completed" if last else "stopped_by_user" if stopped else None
    )
    assert ending(goal) == expected
