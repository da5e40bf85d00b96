"""Each pause rule by real commands: what pauses a round, what it then refuses, and that a resume goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_runs import forge
from quick_desk import Desk, make_desk, open_round, to_stacked

from cartlab.errors import BadInput, BuildFailed


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return make_desk(tmp_path, monkeypatch, capsys)


def paused_by(desk: Desk) -> str | None:
    rule: str | None = json.loads((desk.root / "current.json").read_text())["pause_rule"]
    return rule


def goes_on(desk: Desk, rule: str, *words: str) -> None:
    """The round is paused by this rule; it refuses `words` until it is resumed with a reason."""
    assert (desk.state(), paused_by(desk)) == ("paused", rule)
    assert desk.run(*words).code == 23
    proposed = desk.run("next").report["next"]
    assert proposed == "scripts/autoresearch.py round resume --reason TEXT"
    assert desk.run("round", "resume").code == 2
    assert desk.run("round", "resume", "--reason", "looked into it").code == 0
    assert (desk.state() == "paused", paused_by(desk)) == (False, None)


def side_branch(desk: Desk) -> str:
    """Merge somebody else's change of what is built; returns that commit."""
    project = desk.project
    project.git("checkout", "-q", "-b", "side")
    project.write("extension.py", "value = 1\n")
    project.write("autoresearch.toml", (project.path / "autoresearch.toml").read_text())
    loose = project.commit("somebody else's")
    project.git("checkout", "-q", "main")
    return loose


def config_with_inputs(desk: Desk) -> None:
    path = desk.project.path / "autoresearch.toml"
    path.write_text(path.read_text().replace('inputs = ["engine.c"]', 'inputs = ["engine.c", "*.py"]'))
    desk.project.commit("inputs")


def test_commits_that_a_merge_brings_in_and_nobody_screened_are_unrelated_changes(desk: Desk) -> None:
    config_with_inputs(desk)
    base = open_round(desk)
    loose = side_branch(desk)
    desk.commit("half", work=50)
    desk.project.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    assert desk.run("screen", base, "HEAD").code == 0
    refused = desk.run("accept", base, "HEAD")
    assert refused.code == 23 and loose[:12] in refused.out + refused.err
    assert not [e for e in desk.events("attempt_started") if e["body"]["tier"] == "accept"]
    goes_on(desk, "unrelated_changes", "accept", base, "HEAD")
    # Measuring them was let pass; a round is not completed with them.
    assert desk.run("accept", base, "HEAD", "--mechanism", "m", "--falsify", "f").code == 0
    confirm = desk.run("round", "confirm", "--mechanism", "m", "--falsify", "f")
    assert confirm.code == 23 and f"outside accepted attempts: {loose[:12]}" in confirm.err + confirm.out
    # Once the side's tip is a candidate of its own, nothing is outside.
    assert desk.run("screen", base, loose).code in (10, 11)
    assert desk.run("round", "confirm", "--mechanism", "m", "--falsify", "f").code == 0
    assert desk.state() == "complete"


def test_a_side_branch_that_was_screened_or_builds_nothing_is_no_stranger(desk: Desk) -> None:
    config_with_inputs(desk)
    base = open_round(desk)
    loose = side_branch(desk)
    assert desk.run("screen", base, loose).code in (10, 11)
    desk.project.git("checkout", "-q", "-b", "words", base)
    desk.project.write("README", "other words\n")
    desk.project.commit("words")
    desk.project.git("checkout", "-q", "main")
    desk.commit("half", work=50)
    for branch in ("side", "words"):
        desk.project.git("merge", "-q", "--no-ff", "-m", f"merge {branch}", branch)
    assert desk.run("accept", base, "HEAD").code == 0
    assert paused_by(desk) is None


def test_an_accepted_commit_or_a_baseline_that_is_gone_pauses(desk: Desk) -> None:
    base, cand = to_stacked(desk)
    gone = [cand]
    there = desk.lab.missing
    desk.lab = replace(desk.lab, missing=lambda repo, asked: [c for c in asked if c in gone])
    assert desk.run("next").report["next"].endswith("round resume --reason TEXT")
    assert "an accepted commit" in desk.run("next").out
    gone.clear()
    goes_on(desk, "refs_missing", "round", "confirm")
    gone.append(base)
    assert desk.run("round", "confirm").code == 23
    assert "its baseline" in desk.run("next").out
    desk.lab = replace(desk.lab, missing=there)
    goes_on(desk, "refs_missing", "screen", base, cand)
    assert desk.run("round", "confirm").code == 0


def test_a_commit_that_git_has_no_longer_is_found_missing(desk: Desk) -> None:
    head = desk.project.git("rev-parse", "HEAD")
    assert desk.lab.missing(desk.project.path, [head, "f" * 40]) == ["f" * 40]


def test_a_cartridge_that_is_gone_is_access_failed_and_a_wrong_flag_is_not(desk: Desk) -> None:
    base = open_round(desk)
    cand = desk.commit("half", work=50)
    assert desk.run("screen", base, cand, "--workload", "none").code == 25
    assert paused_by(desk) is None
    real = desk.lab

    def unreachable(*_: Any) -> Any:
        raise BadInput("expected the game, found it neither here nor there", "mount the folder")

    desk.lab = replace(real, workload=unreachable)
    failed = desk.run("screen", base, cand)
    assert failed.code == 25 and "mount the folder" in failed.err
    desk.lab = real
    goes_on(desk, "access_failed", "screen", base, cand)
    assert desk.run("screen", base, cand).code == 0


@pytest.mark.parametrize(("side", "rule"), [("baseline", "access_failed"), ("candidate", None)])
def test_a_baseline_that_does_not_build_any_more_is_access_failed(
    desk: Desk, side: str, rule: str | None
) -> None:
    base = open_round(desk)
    cand = desk.commit("half", work=50)
    build = desk.lab.build

    def broken(config: Any, ref: Any, *rest: Any, **more: Any) -> Any:
        if ref.commit == {"baseline": base, "candidate": cand}[side]:
            raise BuildFailed("the registry does not answer", details={"log_tail": "no route to host"})
        return build(config, ref, *rest, **more)

    real, desk.lab = desk.lab, replace(desk.lab, build=broken)
    assert desk.run("screen", base, cand).code == 14
    desk.lab = real
    if rule is None:
        assert paused_by(desk) is None
        return
    goes_on(desk, rule, "screen", base, cand)
    assert desk.run("screen", base, cand).code == 0


def test_another_base_that_does_not_build_is_nobodys_access(desk: Desk) -> None:
    other = desk.commit("another base", work=99)
    desk.commit("start", work=100)
    open_round(desk)
    cand = desk.commit("half", work=50)
    build = desk.lab.build

    def broken(config: Any, ref: Any, *rest: Any, **more: Any) -> Any:
        if ref.commit == other:
            raise BuildFailed("no such header")
        return build(config, ref, *rest, **more)

    desk.lab = replace(desk.lab, build=broken)
    assert desk.run("screen", other, cand).code == 14
    assert desk.run("calibrate", other).code == 14
    assert (paused_by(desk), desk.state()) == (None, "open")


def test_damage_of_the_ledger_under_an_open_round_pauses_it_once_it_is_repaired(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    assert desk.run("screen", base, "HEAD").code == 0
    path = desk.root / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"status"', b'"statuS"')
    path.write_bytes(b"".join(lines))
    assert desk.run("screen", base, "HEAD").code == 22
    assert desk.run("init", "--repair").code == 0
    assert desk.run("accept", base, "HEAD").code == 23
    goes_on(desk, "untrustworthy", "accept", base, "HEAD")
    assert desk.run("accept", base, "HEAD").code == 0


def test_what_verify_finds_pauses(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    assert desk.run("screen", base, "HEAD").code == 0
    block = next(e for e in desk.events("block"))

    def bend(events: list[dict[str, Any]]) -> None:
        events[block["seq"] - 1]["body"]["y"] += 0.5

    forge(desk.root, bend)
    assert desk.run("verify").code == 22
    goes_on(desk, "untrustworthy", "accept", base, "HEAD")


def test_witnesses_that_contradict_a_keep_pause(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)

    def more_work(_plan: Any, block: Any) -> Any:
        return replace(block, witness={**block.witness, "cpu_ns_per_step": {"base": 100.0, "cand": 140.0}})

    desk.change = more_work
    kept = desk.run("accept", base, "HEAD", "--json")
    assert kept.json["status"] == "keep"
    goes_on(desk, "untrustworthy", "screen", base, "HEAD")
    assert desk.run("round", "show", "--json").json["details"]["state"] == "stacked"


def test_two_runs_that_lost_too_many_blocks_pause(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    desk.change = lambda plan, block: replace(block, dropped="busy: stolen time")
    assert desk.run("screen", base, "HEAD").code == 13
    assert paused_by(desk) is None
    assert desk.run("screen", base, "HEAD").code == 13
    goes_on(desk, "untrustworthy", "screen", base, "HEAD")


def test_clocks_or_digests_that_no_honest_run_gives_pause(desk: Desk) -> None:
    from cartlab.errors import Tampered

    base = open_round(desk)
    desk.commit("half", work=50)

    def bent(*_: Any) -> Any:
        raise Tampered("the native module must have another digest")

    real, desk.lab = desk.lab, replace(desk.lab, run_block=bent)
    assert desk.run("screen", base, "HEAD").code == 16
    desk.lab = real
    goes_on(desk, "untrustworthy", "screen", base, "HEAD")


def test_checks_that_fail_twice_pause(desk: Desk) -> None:
    base = open_round(desk)
    bad = [desk.commit(f"bad {work}", work=work) for work in (50, 40)]
    trees = [desk.project.git("rev-parse", f"{commit}^{{tree}}") for commit in bad]
    desk.passes = lambda tree: tree not in trees
    for commit in bad:
        assert paused_by(desk) is None
        assert desk.run("accept", base, commit).code == 17
        # A calibration between the two failures changes nothing.
        assert desk.run("calibrate", base).code == 0
    goes_on(desk, "regressions_persist", "accept", base, bad[0])


def test_a_limit_that_the_user_set_pauses(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("as fast", before="/* nothing */")
    ticks = iter(range(0, 100_000, 30))
    real, desk.lab = desk.lab, replace(desk.lab, clock=lambda: float(next(ticks)))
    assert desk.run("accept", base, "HEAD", "--max-wall-clock-minutes", "5").code == 11
    desk.lab = real
    goes_on(desk, "limits_exhausted", "accept", base, "HEAD")


def test_two_candidates_that_die_alike_pause(desk: Desk) -> None:
    base = open_round(desk)
    desk.equal = lambda plan: plan.tier == "calibrate"
    for work in (50, 40):
        assert desk.run("screen", base, desk.commit(f"w{work}", work=work)).code == 12
    goes_on(desk, "same_reason_twice", "screen", base, "HEAD")


def test_stop_pauses_because_the_user_asks_for_it(desk: Desk) -> None:
    base = open_round(desk)
    desk.commit("half", work=50)
    assert desk.run("stop", "--reason", "lunch").report["decision"] == "pause"
    goes_on(desk, "user_stop", "screen", base, "HEAD")
    assert desk.run("screen", base, "HEAD").code == 0
