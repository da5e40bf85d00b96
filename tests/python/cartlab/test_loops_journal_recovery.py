"""LD15, LD22, LD24: a journal killed between any two events goes on, and ends as if nothing had been."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import small_journal
from small_experiment import git
from small_journal import Session
from test_loops_recovery import DIED, DyingAfter

from cartlab import disk
from cartlab.ledger import Ledger
from cartlab.loops import manifest

BODY = """
if number == 2: x(7); say(description="smaller", hypothesis="less")
elif number == 3: x(9); say(description="bigger", hypothesis="more")
else: (work / "other.py").write_text("Y = 0"); x("6"); say(description="both", hypothesis="less of both")
"""


def steps(one: Session) -> list[list[str]]:
    """The whole session as command lines; each may be typed again after a kill."""
    return [
        ["init", "--name", "cost", "--metric-name", "cost", "--script", str(one.repo.parent / "script.sh"),
         "--approve", "agreed", "--no-baseline", "--max-experiments", "4"],
        ["run", "--researcher", one.researcher(BODY)],
        ["finalize", "create", "--approve", "reviewed"],
    ]  # fmt: skip


def play(one: Session) -> list[int]:
    return [one.cartlab("journal", *words) for words in steps(one)]


def died(work: Callable[[], int], number: int) -> bool:
    """Do it in a child that ends after its n-th event; False where it came to its end."""
    child = os.fork()
    if child == 0:
        disk.use(DyingAfter(number))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(0 if work() in (0, 10) else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, DIED), code
    return code == DIED


def outcome(one: Session) -> tuple[object, ...]:
    goal = one.goal
    results = [(r.run, r.metric, r.status, r.description, r.confidence) for r in one.results()]
    names = git(one.repo, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    held = [git(one.repo, "rev-parse", f"{name}^{{tree}}") for name in names]
    return goal.state, goal.reason, results, names, held


def kinds(one: Session) -> list[int]:
    """The number of the first event of each kind: what a kill leaves behind differs by kind."""
    first: dict[tuple[object, ...], int] = {}
    for event in one.events:
        body = event["body"]
        key = (event["type"], *(body.get(word) for word in ("op", "role", "status")), body.get("state"))
        first.setdefault(key, event["seq"])
    return sorted(first.values())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the ledger's descriptor in /proc")
def test_ld15_ld22_ld24_a_session_killed_after_any_kind_of_event_ends_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small_journal.make(tmp_path / "whole")
    (tmp_path / "whole" / "script.sh").write_text(small_journal.SCRIPT)
    monkeypatch.chdir(whole.repo)
    assert play(whole) == [0, 0, 0]
    pattern = small_journal.make(tmp_path / "pattern")
    numbers = kinds(whole)[:-1]
    assert len(numbers) > 15
    for number in numbers:
        killed_and_continued(tmp_path / str(number), pattern, number, outcome(whole))


def killed_and_continued(place: Path, pattern: Session, number: int, expected: tuple[object, ...]) -> None:
    """A session that is killed after its n-th event, then played on."""
    place.mkdir()
    shutil.copytree(pattern.repo, place / "clone")
    (place / "script.sh").write_text(small_journal.SCRIPT)
    one = Session(place / "clone", place / "root")
    os.chdir(one.repo)
    before = manifest.scan(one.repo)
    assert died(lambda: max(play(one)), number), f"the session wrote fewer than {number} events"
    rest = steps(one)[1:] if _opened(one) else steps(one)
    codes = [one.cartlab("journal", *words) for words in rest]
    # What was done already is refused (23); nothing else may be.
    assert set(codes) <= {0, 23}, (number, codes)
    assert outcome(one) == expected, number
    assert one.cartlab("verify") == 0, number
    assert manifest.scan(one.repo) == before
    assert not list((one.root / "tmp/loops").glob("*/"))
    shutil.rmtree(place)


def _opened(one: Session) -> bool:
    events = Ledger.open(one.root, mend=False).events() if (one.root / "events.jsonl").exists() else []
    return any(event["type"] == "goal" for event in events)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the ledger's descriptor in /proc")
def test_ld15_a_log_killed_after_any_of_its_events_loses_no_entry_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_journal.make(tmp_path)
    monkeypatch.chdir(one.repo)
    assert one.init() == 0
    before = manifest.scan(one.repo)
    for kept in (False, True):
        number = 0
        while True:
            number += 1
            stands = (one.worktree / "bench.py").read_text()
            value = f"{9 - number / 100}" if kept else f"{20 + number}"
            one.x(value)
            (one.worktree / "new.py").write_text(f"v = {value}\n")
            known = len(one.results())
            killed = died(lambda: one.log("a try"), number)
            decided = one.goal.tries[-1].decision is not None
            if killed and not decided:
                # Without a verdict nothing was taken back: hand it in again.
                assert f"X = {value}\n" in (one.worktree / "bench.py").read_text(), number
                assert one.log("a try") == (0 if kept else 10), number
            elif killed:
                # With one, the next command finishes it; there is nothing more to hand in then.
                assert one.log("nothing more") == 19, number
            results = one.results()[known:]
            assert (results[0].metric, results[0].status) == (float(value), "keep" if kept else "discard")
            now = (one.worktree / "bench.py").read_text()
            assert now == (stands.replace(stands.split("\n")[1], f"X = {value}") if kept else stands), number
            assert (one.worktree / "new.py").exists() == kept and git(one.worktree, "status", "--short") == ""
            if not killed:
                break
        assert number > 8
    assert manifest.scan(one.repo) == before and one.cartlab("verify") == 0
