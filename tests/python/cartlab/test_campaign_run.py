"""LC: a campaign's experiments, verdicts and generations."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import small_campaign
from small_campaign import rate
from small_experiment import git

from cartlab.errors import NotLegalNow
from cartlab.ledger import Ledger
from cartlab.loops import manifest, running
from cartlab.loops.campaign import slots, verdicts, verification


@pytest.fixture(autouse=True)
def stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_lc3_lc16_lc29_a_generation_keeps_its_best_and_leaves_the_checkout_alone(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    before = manifest.digest(manifest.scan(one.made.repo))
    head = git(one.made.repo, "rev-parse", "HEAD")
    campaign = one.run([[rate(0.2, 0.19), rate(0.5, 0.1), rate(0.3)], [rate(0.4)]], generations=2)
    assert one.statuses() == ["discard", "keep", "discard", "discard"]
    assert [name for name, _ in campaign.champions] == ["2"]
    best = campaign.experiment("2").decision
    assert (best["value"], best["delta"], best["verified"]) == (0.5, 0.49, "yes")
    assert "Mechanism refuted because the delta is 4.9 times" in best["audit"]
    # LC3: a branch a generation, the champion's one commit on it, and a commit for every experiment.
    assert git(one.made.repo, "log", "--format=%s", f"{head}..autoresearch/slope-gen0").splitlines() == [
        "autoresearch: experiment 2, rate=0.5 (rate 0.5)"
    ]
    assert git(one.made.repo, "rev-parse", "autoresearch/slope-gen1") == campaign.goal.accepted
    assert len(git(one.made.repo, "for-each-ref", "refs/ar/attempts").splitlines()) == 4
    assert manifest.digest(manifest.scan(one.made.repo)) == before
    assert git(one.made.repo, "rev-parse", "HEAD") == head
    assert not list((one.made.root / "tmp/loops").glob("*/"))
    assert one.made.cartlab("verify") == 0


def test_lc14_a_copy_that_comes_back_as_it_was_is_failed_and_never_evaluated(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    one.run([[rate(0.2)]], "say('the patch did not apply')", generations=1)
    (found,) = one.campaign.experiments
    assert (found.one.status, found.status, found.verified) == ("no_change", "failed", "n/a")
    assert [body["role"] for _, body in found.one.measurements] == ["researcher"]


def test_lc14_the_researcher_gets_the_hypothesis_and_a_copy_without_git(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    body = (
        "idea = json.loads(Path(os.environ['AR_HYPOTHESIS']).read_text())\n"
        "told = Path(os.environ['AR_PROMPT']).read_text()\n"
        "assert idea['change'] in told and idea['falsification'] in told\n"
        "assert not list(work.parent.glob('.git')) and os.environ['AR_SLOT'] == '0'\n"
        "assert 'json.load' not in told\n"
        "config(rate=0.2)"
    )
    one.run([[rate(0.2)]], body, slots=1, generations=1)
    assert one.statuses() == ["keep"]


@pytest.mark.parametrize(("share", "warned"), [(0.7, True), (0.0, False)])
def test_a_baseline_that_trains_too_briefly_is_told_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, warned: bool
) -> None:
    monkeypatch.setattr(verification, "USED", share)
    one = small_campaign.trained(tmp_path)
    one.run([], generations=1)
    told = [line for line in one.voice.lines if "fails check d" in line]
    assert bool(told) is warned
    if warned:
        assert "s of 20 s, less than 70%" in told[0] and "time_limit to about" in told[0]
        one.run([], generations=1)  # it holds for a run that goes on as well
        assert len([line for line in one.voice.lines if "fails check d" in line]) == 2


def test_lc15_training_is_killed_at_its_seconds_and_an_evaluation_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TRAIN_GRACE_S", -19.0)
    one = small_campaign.trained(tmp_path)
    body = "(work / 'train.py').write_text('import time; time.sleep(60)')"
    one.run([[rate(0.2)]], body, generations=1)
    assert one.statuses() == ["timeout"] and one.campaign.experiments[0].status == "failed"
    with pytest.raises(NotLegalNow, match="baseline cannot be measured: evaluation failed: no end within"):
        slow = small_campaign.trained(tmp_path / "slow", eval_py="import time; time.sleep(60)")
        slow.desk.options = replace(slow.desk.options, eval_limit_s=0.3)
        slow.run([[rate(0.2)]], generations=1)


def test_la2_an_experiment_that_changes_what_evaluates_is_never_run(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    one.run([[rate(0.2)]], "(work / 'eval.py').write_text('print(1)')", generations=1)
    assert one.statuses() == ["compliance_failed"]
    assert [body["role"] for _, body in one.campaign.experiments[0].one.measurements] == ["researcher"]


def test_lc17_lc18_a_win_that_does_not_repeat_is_dropped_and_the_next_best_is_promoted(
    tmp_path: Path,
) -> None:
    one = small_campaign.bare(tmp_path)
    seen: list[str] = []

    def again(desk: object, campaign: object, launch: object, plan: object) -> tuple[None, str]:
        seen.append(launch.name)  # type: ignore[attr-defined]
        return (None, "it crashed") if len(seen) == 1 else real(desk, campaign, launch, plan)

    real = verdicts._again
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "_again", again)
        one.run([[rate(0.3), rate(0.5)]], generations=1)
    assert seen == ["experiment 2", "experiment 1"]
    first, second = one.campaign.experiments
    assert (second.one.status, second.status, second.verified) == ("unverified", "dropped", "no")
    assert "a) the second run failed: it crashed" in second.decision["insight"]
    assert (first.one.status, first.verified) == ("keep", "yes")
    assert one.made.cartlab("verify") == 0


def test_lc17b_without_a_word_on_the_data_nothing_is_verified(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    (one.folder / "DATA.md").write_text("source = somewhere\n")
    one.run([[rate(0.5)]], generations=1)
    assert one.statuses() == ["unverified"]
    assert "DATA.md names no train and heldout files" in one.campaign.experiments[0].decision["insight"]
    assert any("no win can be verified" in line for line in one.voice.lines)


def test_lc16_a_value_in_the_researcher_s_words_counts_for_nothing(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    body = (
        "Path(os.environ['AR_SUBMISSION']).write_text(json.dumps({'strategy': 'rate: 9', 'metric': 9, "
        "'keep': True}))\nprint('METRIC rate=9')\nconfig(rate=0.001)"
    )
    one.run([[rate(0.2)]], body, generations=1)
    (found,) = one.campaign.experiments
    assert (found.one.status, found.value) == ("discard", 0.001)


def test_lc22_lc23_lc6_stagnation_climbs_the_ladder_and_only_a_dry_rung_three_ends_it(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path, stagnation=1, max_generations=2)
    asked: list[str] = []

    def search(desk: object) -> str:
        asked.append("search")
        return "https://example.org/methods"

    def method(desk: object) -> tuple[str, str, str] | None:
        asked.append("method")
        return ("closed form", "solve for it", "https://example.org/form") if len(asked) == 2 else None

    ideas = [[rate(0.2)], [rate(0.3)], [rate(0.1)], [], []]
    campaign = one.run(ideas, hands={"search": search, "method": method})
    # Two wins fill the first batch; then a generation without one on rung 2; then rung 3, twice dry.
    assert [(lever.rung, lever.state) for lever in campaign.levers] == [
        (2, "opened"),
        (3, "opened"),
        (3, "dry"),
        (3, "dry"),
    ]
    assert asked == ["search", "method"] * 3
    assert campaign.goal.state == "converged"
    opened = [lever for lever in campaign.levers if lever.rung == 3 and lever.state == "opened"]
    assert (opened[0].program, opened[0].baseline) == ("solve for it", "0.3")
    assert [gen.lever for gen in campaign.generations] == ["1", "1", "2", "3"]


def test_lc6_with_the_ladder_off_stagnation_ends_it(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path, stagnation=1, ladder="off")
    campaign = one.run([[]])
    assert (campaign.goal.state, campaign.goal.reason) == ("completed", "stagnation")


def test_lc24_a_full_batch_goes_on_with_the_lever_that_waits(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path, max_generations=1)
    one.desk.tell_lever("queued", id="7", rung=3, title="by hand", program="do it")
    campaign = one.run([[rate(0.2)], [rate(0.3)]], generations=2)
    assert [gen.lever for gen in campaign.generations] == ["1", "7"]
    assert campaign.lever.title == "by hand"


def test_lc26_the_same_failure_three_times_blocks_until_somebody_goes_on(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    ideas = [[rate(0.2), rate(0.3), rate(0.4), rate(0.5)]]
    campaign = one.run(ideas, "raise SystemExit('no such agent')", slots=1, generations=1)
    assert campaign.goal.state == "blocked" and len(campaign.queued()) == 1
    assert "3 experiments in a row (1, 2, 3) ended alike" in (one.folder / "BLOCKER.md").read_text()
    told = [e["body"]["event"] for e in one.ledger.events() if e["body"].get("op") == "told"]
    assert "blocker" in told and "train_started" not in told
    campaign = one.run(ideas, slots=1, generations=1)
    assert campaign.goal.state == "paused" and one.statuses()[3] == "keep"


def test_lc26_a_run_that_broke_of_something_passing_is_started_three_times_at_most(tmp_path: Path) -> None:
    one = small_campaign.trained(tmp_path, train_py="print('step=1 loss=1')")
    body = "(work / 'train.py').write_text(\"raise MemoryError('out of memory')\")"
    one.run([[rate(0.2)]], body, generations=1)
    (found,) = one.campaign.experiments
    assert found.one.status == "crashed"
    assert len([e for e in one.ledger.events() if e["body"].get("state") == "dispatched"]) == 3


def test_lc27_each_event_is_told_once_and_a_missing_notifier_is_nothing(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path, ladder="off", max_generations=1)
    one.run([[rate(0.2)]])
    told = [e["body"] for e in one.ledger.events() if e["body"].get("op") == "told"]
    assert [body["event"] for body in told] == ["train_started", "experiment_kept", "train_done"]
    assert told[-1]["message"] == "0.2 @ slope"


def test_lc29_never_more_than_the_slots_and_none_is_shared(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path, parallelism=2)
    log = tmp_path / "slots.log"
    log.touch()
    body = (
        f"log = {str(log)!r}\n"
        "def tell(word): os.write(os.open(log, os.O_WRONLY | os.O_APPEND), (word + os.environ['AR_SLOT'] + "
        "' ' + os.environ['CUDA_VISIBLE_DEVICES'] + '\\n').encode())\n"
        "tell('+'); time.sleep(0.2); tell('-'); config(rate=0.001)"
    )
    one.desk.options = replace(one.desk.options, isolation="process")
    one.run(
        [[rate(0.1), rate(0.2), rate(0.3), rate(0.4)]], body, plan={"devices": ("d0", "d1")}, generations=1
    )
    held: set[str] = set()
    most = 0
    for line in log.read_text().splitlines():
        slot, device = line[1:].split()
        assert device == f"d{slot}"
        if line[0] == "+":
            assert slot not in held
            held.add(slot)
        else:
            held.remove(slot)
        most = max(most, len(held))
    assert most == 2 and len(log.read_text().splitlines()) == 8


def test_lc29_two_campaigns_of_one_root_share_no_slot(tmp_path: Path) -> None:
    with slots.taken(tmp_path, 2, 3) as mine, slots.taken(tmp_path, 2, 3) as theirs:
        assert (mine, theirs) == ([0, 1], [2])
        with pytest.raises(NotLegalNow, match="a free slot of 3"), slots.taken(tmp_path, 1, 3, wait_s=0.0):
            raise AssertionError
    with slots.taken(tmp_path, 3, 3) as again:
        assert again == [0, 1, 2]


def test_ruling_5_under_paired_the_pairs_decide_and_one_runs_at_a_time(tmp_path: Path) -> None:
    noisy = (
        "import json, random\nprint('rate:', json.load(open('config.json'))['rate'] + random.random() / 99)"
    )
    one = small_campaign.bare(tmp_path, policy="paired", eval_py=noisy)
    one.run([[rate(0.9, 0.89)]], generations=1)
    (found,) = one.campaign.experiments
    assert (found.one.status, found.verified) == ("keep", "yes")
    assert found.delta == pytest.approx(0.89, abs=0.05) and "Mechanism confirmed" in found.decision["audit"]
    assert one.made.cartlab("verify") == 0


def test_lc16_verify_finds_a_bent_check_and_a_bent_delta(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_campaign.bare(tmp_path)
    one.run([[rate(0.2)], [rate(0.1)]], generations=2)
    _, loser = one.campaign.experiments
    body = dict(loser.decision)
    bent = {**body, "status": "keep", "verified": "yes", "champion": True, "delta": 0.3}
    bent["verification"] = [{"check": letter, "holds": True, "why": ""} for letter in "abcde"]
    one.ledger.append("decision", loser.one.id, bent)
    assert one.made.cartlab("verify") == 22
    said = capsys.readouterr().out
    assert "its runs give discard" in said and "its delta is not what it has on" in said


def test_lc10_the_same_patch_on_another_champion_is_a_duplicate(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    body = (
        "idea = json.loads(Path(os.environ['AR_HYPOTHESIS']).read_text())\n"
        "if idea['change'] == 'champion': config(rate=0.5)\n"
        "else: (work / 'note.txt').write_text('the same file')\n"
        "say(idea['change'])\n"
    )
    first = [{"change": "a note"}, {"change": "champion"}]
    one.run([first, [{"change": "a note, in other words"}]], body, slots=1, generations=2)
    assert one.statuses() == ["discard", "keep", "no_change"]
    last = one.campaign.experiments[-1]
    assert "the same patch as experiment 1" in str(last.decision["insight"])
    assert [body["role"] for _, body in last.one.measurements] == ["researcher"]
    assert one.made.cartlab("verify") == 0


def test_ctrl_c_ends_the_commands_of_all_slots_and_the_next_run_goes_on(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    marks = tmp_path / "marks"
    marks.mkdir()
    body = f"(Path({str(marks)!r}) / str(os.getpid())).touch()\ntime.sleep(600)"
    one.desk.options = replace(one.desk.options, isolation="process")
    child = os.fork()
    if child == 0:
        one.ledger = one.desk.ledger = Ledger.open(one.made.root)
        try:
            one.run([[rate(0.2), rate(0.3)]], body, generations=1)
        except KeyboardInterrupt:
            os._exit(130)
        os._exit(0)
    while len(list(marks.iterdir())) < 2:
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.02)
    os.kill(child, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    for mark in marks.iterdir():
        assert not Path(f"/proc/{mark.name}").exists()
    one.run([], generations=1)
    assert one.statuses() == ["discard", "keep"]


def test_ls29_stop_ends_a_campaign_after_its_wave_and_the_same_command_goes_on(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path)
    ideas = [[rate(0.2), rate(0.3), rate(0.4)]]
    body = small_campaign.RESEARCHER + (
        "import subprocess\n"
        "if idea['settings']['rate'] == 0.2: subprocess.run([sys.executable, '-m', 'cartlab', 'stop', "
        f"'--reason', 'enough', '--autoresearch-root', {str(one.made.root)!r}], check=True, "
        f"cwd={str(one.made.repo)!r})\n"
    )
    one.desk.options = replace(one.desk.options, isolation="process")
    campaign = one.run(ideas, body, slots=1, generations=1)
    assert (campaign.goal.state, campaign.goal.reason) == ("stopped_by_user", "enough")
    assert one.statuses() == ["keep", None, None]
    assert one.run(ideas, generations=1).goal.state == "paused"
    assert one.statuses() == ["keep", "discard", "keep"]


def test_lc6_a_single_pass_is_complete_once_its_matrix_has_run(tmp_path: Path) -> None:
    one = small_campaign.bare(tmp_path, max_generations=1, ladder="off")
    campaign = one.run([[rate(0.2), rate(0.001)], [rate(0.9)]])
    assert (campaign.goal.state, campaign.goal.reason) == ("completed", "max_generations")
    assert one.statuses() == ["keep", "discard"]
