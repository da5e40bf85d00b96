"""`next` proposes nothing that is refused: in every state each proposed command line is typed as it is."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from quick_desk import Desk, make_desk, open_round, to_stacked

from cartlab.round import STATES


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def build(desk: Desk) -> None:
    """The working tree's library, which probe and diagnose time."""
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", "libengine.so", "engine.c"]
    subprocess.run(command, cwd=desk.project.path, check=True)


def nothing_yet(desk: Desk) -> None:
    """No root at all."""


def calibrated(desk: Desk) -> None:
    assert desk.run("calibrate", "HEAD").code == 0


def opened(desk: Desk) -> None:
    open_round(desk)


def unscreened(desk: Desk) -> None:
    open_round(desk)
    desk.commit("half", work=50)


def screened(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    desk.run("screen", base, "HEAD")


def small_gain(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("little", work=98)
    desk.run("screen", base, "HEAD")


def undecided(desk: Desk) -> None:
    """Two screens that would take hours to prove."""
    base = open_round(desk)
    desk.gain = lambda plan: 0.0 if plan.base == plan.cand else 0.011
    desk.commit("little", work=98)
    desk.run("screen", base, "HEAD")


def stacked(desk: Desk) -> None:
    to_stacked(desk)


def kept_below_target(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("little", work=95)
    desk.run("accept", base, "HEAD")


def confirming(desk: Desk) -> None:
    to_stacked(desk)

    def stop(plan: object, block: object) -> object:
        raise KeyboardInterrupt

    desk.change = stop  # type: ignore[assignment]
    assert desk.run("round", "confirm").code == 130
    desk.change = lambda plan, block: block


def one_failed_and_one_left(desk: Desk) -> None:
    """A confirm run failed; an older kept candidate has not had its own."""
    base, _ = to_stacked(desk)
    desk.commit("third", work=33)
    assert desk.run("accept", base, "HEAD").code == 0
    desk.gain = lambda plan: 0.01 if plan.tier == "confirm" else 0.5
    desk.run("round", "confirm")
    assert desk.state() == "candidates"
    desk.gain = None


def complete(desk: Desk) -> None:
    to_stacked(desk)
    assert desk.run("round", "confirm").code == 0


def paused(desk: Desk) -> None:
    to_stacked(desk)
    assert desk.run("stop").code == 0


def abandoned(desk: Desk) -> None:
    to_stacked(desk)
    assert desk.run("round", "abandon", "--reason", "other plans").code == 0


PLACES: dict[Callable[[Desk], None], str | None] = {
    nothing_yet: None,
    calibrated: None,
    opened: "open",
    unscreened: "open",
    screened: "candidates",
    small_gain: "candidates",
    undecided: "candidates",
    stacked: "stacked",
    kept_below_target: "stacked",
    confirming: "confirming",
    one_failed_and_one_left: "candidates",
    complete: "complete",
    paused: "paused",
    abandoned: "abandoned",
}


def test_every_state_is_walked() -> None:
    assert set(PLACES.values()) == {None, *STATES}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_each_proposed_command_line_is_legal(desk: Desk, place: Callable[[Desk], None]) -> None:
    place(desk)
    build(desk)
    if PLACES[place] is not None:
        assert desk.state() == PLACES[place]
    actions = desk.run("next", "--json").json["details"]["actions"]
    assert actions
    kept = desk.root.with_name("kept")
    if desk.root.exists():
        shutil.copytree(desk.root, kept)
    for action in actions:
        if kept.exists():
            shutil.rmtree(desk.root)
            shutil.copytree(kept, desk.root)
        script, *words = shlex.split(action["command"])
        assert script == "scripts/autoresearch.py"
        answer = desk.run(*words)
        # What a run finds is its own business; that it is refused, is not.
        assert answer.code in (0, 10, 11), (action, answer.out, answer.err)
        if desk.root.exists() and action["action"] not in ("stop", "round open"):
            assert desk.run("next").code == 0


def test_what_is_typed_against_the_state_has_an_exit_code_of_its_own(desk: Desk) -> None:
    base, cand = to_stacked(desk)
    for words in (
        ("round", "open"),
        ("round", "resume", "--reason", "why"),
        ("accept", cand, base),
        ("accept", base, cand, "--workload", "fake", "--policy", "anytime", "--state-dir", "."),
    ):
        assert desk.run(*words).code in ((23,) if "--state-dir" not in words else (2,)), words
    assert desk.run("round", "abandon", "--reason", "end").code == 0
    assert desk.run("calibrate", "HEAD").code == 0
    too_low = desk.run("round", "open", "--target", "1.05")
    assert too_low.code == 2 and "1.10" in too_low.err
    for words in (("round", "confirm"), ("round", "resume", "--reason", "why")):
        assert desk.run(*words).code == 23
