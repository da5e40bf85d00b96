"""`publish`: one branch forward to what was accepted; everything else refused, no other byte changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_bench import SMALL, Answer, Bench, make_bench
from ledger_runs import a_plan, record
from test_sources import every_byte

from cartlab import fastforward
from cartlab.errors import BadInput
from cartlab.ledger import Ledger
from cartlab.model import Ref
from cartlab.sources import resolve
from cartlab.verify import verify_root

# What a moved branch is made of; everything else keeps its bytes.
MOVED = {".git/index", ".git/refs/heads/main", ".git/logs/HEAD", ".git/logs/refs/heads/main"}


class Published:
    """A repository whose branch `topic` is two commits ahead of `main`, and a ledger made by hand."""

    def __init__(self, folder: Path) -> None:
        self.bench: Bench = make_bench(folder)
        self.project = self.bench.project
        self.project.write("old.txt", "goes\n")
        self.project.commit("base of all")
        self.project.git("switch", "-q", "-c", "topic")
        self.project.git("rm", "-q", "old.txt")
        self.project.write("sub/new.txt", "new\n")
        self.project.commit("first", work=90)
        self.project.commit("second", work=80)
        self.project.git("switch", "-q", "main")
        self.bench.root.mkdir()
        self.ledger = Ledger.open(self.bench.root)

    def ref(self, text: str) -> Ref:
        return resolve(self.project.path, text)

    def accept(self, base: str, cand: str, y: float = 0.1, name: str = "a1", **changes: object) -> str:
        """An acceptance run of this outcome in the ledger; returns its status."""
        plan = a_plan(name, base=base, cand=cand)
        plan = type(plan).from_json(
            {**plan.to_json(), "base": self.ref(base).to_json(), "cand": self.ref(cand).to_json(), **changes}
        )
        return record(self.ledger, plan, [y + 0.001 * (-1) ** i for i in range(20)]).status

    def run(self, *words: str) -> Answer:
        return self.bench.run("publish", *words, "--json")

    def head(self) -> str:
        return self.project.git("rev-parse", "main")


@pytest.fixture
def made(tmp_path: Path) -> Published:
    return Published(tmp_path)


def test_an_accepted_candidate_moves_the_branch_and_nothing_else(made: Published) -> None:
    assert made.accept("main", "topic") == "keep"
    start, before = made.ref("main"), every_byte(made.project.path)
    planned = made.run("topic", "--dry-run")
    assert (planned.code, planned.json["status"]) == (0, "planned")
    assert every_byte(made.project.path) == before
    answer = made.run("--approve", "seen and liked")
    assert answer.code == 0, answer.err
    assert answer.json["details"]["moved"] and answer.json["recorded"]
    after = every_byte(made.project.path)
    wanted = {"engine.c", "old.txt", "sub", "sub/new.txt"}
    assert {
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    } == MOVED | wanted
    assert made.head() == made.ref("topic").commit
    assert (
        made.project.git("status", "--porcelain") == ""
        and made.project.git("branch", "--show-current") == "main"
    )
    (event,) = [e for e in made.bench.events() if e["type"] == "approval"]
    assert event["body"] == {
        "action": "publish",
        "branch": "main",
        "from": start.commit,
        "to": made.ref("topic").commit,
        "tree": made.ref("topic").tree,
        "evidence": ["a1"],
        "reason": "seen and liked",
    }
    again = made.run("--approve", "again")
    assert again.code == 0 and not again.json["details"]["moved"]
    assert len([e for e in made.bench.events() if e["type"] == "approval"]) == 1
    assert verify_root(made.bench.root).holds


def refused(made: Published, code: int, words: str, *arguments: str) -> None:
    """The command refuses with these words, and repository and ledger keep every byte."""
    before, events = every_byte(made.project.path), (made.bench.root / "events.jsonl").read_bytes()
    answer = made.run(*arguments)
    assert (answer.code, answer.json["status"]) == (code, "refused"), answer.err
    assert words in " ".join(answer.json["reasons"])
    assert every_byte(made.project.path) == before
    assert (made.bench.root / "events.jsonl").read_bytes() == events


def test_it_needs_a_reason(made: Published) -> None:
    made.accept("main", "topic")
    refused(made, 2, "needs a reason", "topic")
    refused(made, 2, "needs a reason", "topic", "--approve", "  ")


def test_nothing_is_published_that_no_acceptance_run_kept(made: Published) -> None:
    made.accept("main", "topic~1", name="other")
    refused(made, 23, "was not accepted", "topic", "--approve", "x")


@pytest.mark.parametrize(
    "changes",
    [{"forced": True, "approval": "hurry"}, {"recorded": False}, {"tier": "screen", "command": "screen"}],
)
def test_forced_unrecorded_and_screening_runs_publish_nothing(
    made: Published, changes: dict[str, object]
) -> None:
    made.accept("main", "topic", **changes)
    refused(made, 23, "was not accepted", "topic", "--approve", "x")
    refused(made, 23, "nothing to publish", "--approve", "x")


def test_a_later_run_that_contradicts_the_keep_takes_it_back(made: Published) -> None:
    assert made.accept("main", "topic") == "keep"
    # Another harness: a block sequence of its own.
    assert made.accept("main", "topic", y=-0.1, name="a2", harness_hash="i" * 64) == "discard"
    refused(made, 23, "was not accepted", "topic", "--approve", "x")


def test_every_step_from_the_branch_must_have_been_accepted(made: Published) -> None:
    made.accept("topic~1", "topic")
    refused(made, 23, "the steps up to that one were not accepted", "topic", "--approve", "x")
    made.accept("main", "topic~1", name="a2")
    answer = made.run("topic", "--approve", "both steps are proven")
    assert answer.code == 0, answer.err
    assert answer.json["details"]["evidence"] == ["a1", "a2"]


def test_a_dirty_tree_a_detached_head_and_a_diverged_branch_are_refused(made: Published) -> None:
    made.accept("main", "topic")
    made.project.write("README", "edited\n")
    refused(made, 23, "clean work tree", "topic", "--approve", "x")
    made.project.git("checkout", "-q", "README")
    made.project.write("untracked", "text\n")
    refused(made, 23, "clean work tree", "topic", "--approve", "x")
    (made.project.path / "untracked").unlink()
    made.project.git("switch", "-q", "--detach")
    refused(made, 23, "HEAD is detached", "topic", "--approve", "x")
    made.project.git("switch", "-q", "main")
    (made.project.path / ".git" / "MERGE_HEAD").write_text(made.head() + "\n")
    refused(made, 23, "a merge is half done", "topic", "--approve", "x")
    (made.project.path / ".git" / "MERGE_HEAD").unlink()
    made.project.commit("diverged", work=70)
    refused(made, 23, "does not descend", "topic", "--approve", "x")


@pytest.mark.parametrize("name", ["sub", "sub/new.txt", "sub/new.txt/inside"])
def test_an_ignored_file_is_never_replaced(made: Published, name: str) -> None:
    made.accept("main", "topic")
    (made.project.path / ".git" / "info" / "exclude").write_text("/sub\n")
    made.project.write(name, "only here\n")
    refused(made, 23, "is not committed", "topic", "--approve", "x")


def test_where_the_branch_cannot_move_the_files_come_back(made: Published) -> None:
    made.accept("main", "topic")
    lock = made.project.path / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    before = every_byte(made.project.path)
    with pytest.raises(BadInput, match="cannot lock ref"):
        fastforward.forward(made.project.path, "main", made.ref("main"), made.ref("topic"))
    after = every_byte(made.project.path)
    # The index was written twice, with other times in it; what it says is the same.
    assert {name for name in before if before[name] != after.get(name)} <= {".git/index"}
    assert after.keys() == before.keys()
    assert made.project.git("status", "--porcelain") == ""


def test_a_branch_that_moved_meanwhile_is_left_alone(made: Published) -> None:
    old, new = made.ref("main"), made.ref("topic")
    made.project.commit("meanwhile", work=120)
    moved = made.ref("main")
    with pytest.raises(BadInput, match="must be able to move main"):
        fastforward.forward(made.project.path, "main", old, new)
    assert made.ref("main") == moved and made.project.git("status", "--porcelain") == ""


def test_a_controller_killed_at_any_point_leaves_a_whole_repository(made: Published, tmp_path: Path) -> None:
    """git is replaced by one that kills the controller (its whole group) before or after one of its calls."""
    made.accept("main", "topic")
    start, real = made.ref("main").commit, subprocess.check_output(["which", "git"], text=True).strip()
    folder = tmp_path / "bin"
    folder.mkdir()
    fake = folder / "git"
    for when in ("before read-tree", "after read-tree", "before update-ref", "after update-ref"):
        moment, call = when.split()
        kill = f'case " $* " in *" {call} "*) kill -9 -$(cat {tmp_path}/controller);; esac\n'
        run = f'{real} "$@"; code=$?\n'
        parts = [kill, run] if moment == "before" else [run, kill]
        fake.write_text("#!/bin/sh\n" + "".join(parts) + "exit $code\n")
        fake.chmod(0o755)
        process = subprocess.Popen(
            ["sh", "-c", f'echo $$ > {tmp_path}/controller; exec "$@"', "sh", *made_command(made)],
            cwd=made.project.path,
            env={**made.bench.environment(), "PATH": f"{folder}:{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.wait(60) == -signal.SIGKILL, when
        wait_for_git(made)
        assert made.project.git("status", "--porcelain") == "", when
        assert made.head() == made.ref("topic").commit, when
        made.project.git("fsck", "--strict")
        assert made.run("topic", "--approve", "again").code == 0
        made.project.git("reset", "-q", "--hard", start)
    assert verify_root(made.bench.root).holds


def made_command(made: Published) -> list[str]:
    return [sys.executable, str(SMALL), "publish", "topic", "--approve", "killed"]


def wait_for_git(made: Published) -> None:
    """Until the branch is where it should be; the child that moves it outlives the controller."""
    deadline = time.monotonic() + 30
    while made.head() != made.ref("topic").commit and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_publication_that_git_itself_did_not_survive_says_how_to_come_back(made: Published) -> None:
    made.accept("main", "topic")
    old, new = made.ref("main"), made.ref("topic")
    body = {"action": "publish", "branch": "main", "from": old.commit, "to": new.commit, "reason": "x"}
    made.ledger.append("approval", None, body)
    made.project.git("read-tree", "-m", "-u", old.commit, new.commit)
    refused(made, 23, "git reset --hard HEAD", "topic", "--approve", "x")
    made.project.git("reset", "-q", "--hard", "HEAD")
    assert made.run("topic", "--approve", "x").code == 0
    assert json.loads((made.bench.root / "current.json").read_text())
