"""LC17, LC18, LC21: the five checks, and the sentence on a win's mechanism."""

from __future__ import annotations

import pytest

from cartlab.loops.campaign import mechanism, verification
from cartlab.loops.campaign.verification import CHECKS, Check
from cartlab.loops.manifest import FILE, Entry

GOOD = tuple(Check(letter, True, "fine") for letter in CHECKS)
LOG = "step=1 loss=0.9\nstep=2 loss=0.4\n"


def files(**named: str) -> dict[str, Entry]:
    return {path.replace("__", "/"): Entry(FILE, digest) for path, digest in named.items()}


def test_lc17_a_missing_or_failed_check_is_no_verification() -> None:
    assert verification.holds(GOOD)
    for at in range(len(GOOD)):
        assert not verification.holds(GOOD[:at] + GOOD[at + 1 :])
        broken = (*GOOD[:at], Check(GOOD[at].letter, False, "bad"), *GOOD[at + 1 :])
        assert not verification.holds(broken)
        assert verification.failed(broken) == f"{GOOD[at].letter}) bad"
    assert verification.failed(GOOD[1:]).startswith("a) a second run with another seed")
    assert verification.failed(GOOD) == ""


@pytest.mark.parametrize(
    ("second", "noise", "holds"),
    [(0.5, 0.0, True), (0.52, 0.0, False), (0.52, 0.03, True), (0.48, 0.01, False), (None, 9.0, False)],
)
def test_lc17a_a_second_run_has_to_land_within_the_noise(
    second: float | None, noise: float, holds: bool
) -> None:
    assert verification.repeated(0.5, second, noise).holds is holds


def test_lc17a_the_noise_is_the_baseline_s_own_and_never_below_the_declared_tolerance() -> None:
    assert verification.noise_of([1.0, 1.1, 1.05], 0.0) == pytest.approx(0.2)
    assert verification.noise_of([1.0, 1.0, 1.0], 0.01) == 0.01
    assert verification.noise_of([1.0], 0.0) == 0.0


def test_lc17b_a_held_out_file_may_not_be_a_training_file_under_another_name() -> None:
    tree = files(data__train__a="1", data__train__b="2", data__test__a="3")
    train, held_out = ["data/train"], ["data/test"]
    assert verification.split(tree, train, held_out, "").holds
    leaked = {**tree, **files(data__test__z="2")}
    found = verification.split(leaked, train, held_out, "")
    assert (found.holds, found.why) == (False, "the held-out data/test/z has the bytes of data/train/b")
    assert not verification.split(tree, train, ["data/none"], "").holds
    assert not verification.split(tree, [], [], "").holds
    assert verification.split(tree, [], [], "the data is a formula").holds
    # A reason does not outweigh files that were named.
    assert not verification.split(leaked, train, held_out, "a formula").holds


def test_lc17c_every_value_has_to_beat_the_champion_in_the_declared_direction() -> None:
    assert verification.direction([0.4, 0.3], 0.5, "lower").holds
    assert not verification.direction([0.4, 0.3], 0.5, "higher").holds
    assert not verification.direction([0.4, 0.5], 0.5, "lower").holds
    assert not verification.direction([], 0.5, "lower").holds


@pytest.mark.parametrize(
    ("seconds", "log", "holds"),
    [
        (8.0, LOG, True),
        (6.9, LOG, False),  # less than 70 % of 10 s
        (8.0, "step=1 loss=0.4\nstep=2 loss=0.9\n", False),
        (8.0, "step=1 loss=0.9\nstep=2 loss=nan\n", False),
        (8.0, "step=1 loss=0.9\n", False),
        (8.0, "all is well\n", False),
        (8.0, "step=1 error: 3\nstep=2 error: 2\n", True),
        (None, "", True),
    ],
)
def test_lc17d_the_time_has_to_be_used_and_the_log_has_to_fall(
    seconds: float | None, log: str, holds: bool
) -> None:
    assert verification.effort(seconds, 10.0, log, "error", "lower").holds is holds


def test_lc17d_a_metric_that_is_better_higher_has_to_rise() -> None:
    rising = "step=1 acc=0.5\nstep=2 acc=0.7\n"
    assert verification.effort(9.0, 10.0, rising, "acc", "higher").holds
    assert not verification.effort(9.0, 10.0, rising, "acc", "lower").holds


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "RuntimeError: shapes",
        "loss is NaN, skipped",
        "Stopping the train dataloader early",
    ],
)
def test_lc17e_what_stderr_tells_of_has_to_be_explained(line: str) -> None:
    assert not verification.stderr({"train": f"warming up\n{line}\n"}, {}).holds
    assert verification.stderr({"train": line}, {line[:12]: "known since the baseline"}).holds
    assert not verification.stderr({"train": line}, {"": "everything", "other": "why"}).holds
    assert verification.stderr({"train": "nanometres are fine\n", "eval": ""}, {}).holds


def test_lc21_a_mechanism_is_confirmed_by_sign_and_size() -> None:
    found = mechanism.audit("experiment 3", "larger\nsteps", -0.5, -0.6)
    assert found.confirmed and found.line == (
        "Winner: experiment 3, larger steps. Predicted: -0.5. Observed: -0.6. Mechanism confirmed because "
        "sign and size agree (1.2 times the prediction, between 0.5 and 2)."
    )
    assert not mechanism.audit("e", "c", -0.5, 0.6).confirmed
    small = mechanism.audit("e", "c", -0.5, -0.05)
    assert "Mechanism refuted because the delta is 0.1 times the predicted one" in small.line
    assert not mechanism.audit("e", "c", -0.5, -1.5).confirmed
