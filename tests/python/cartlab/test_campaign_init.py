"""`campaign init` and the gates before planning and running."""

from __future__ import annotations

import io
import json
from pathlib import Path

import campaign_lab
import pytest
from campaign_lab import DOCUMENTS, Lab
from small_experiment import git

from cartlab.errors import BadInput, BadRoot, NotLegalNow
from cartlab.loops import approvals, manifest
from cartlab.loops.campaign import edits, folder, gates, opening
from cartlab.loops.campaign.folder import Folder


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return campaign_lab.make(tmp_path, monkeypatch)


def told(lab: Lab) -> list[tuple[str, str]]:
    bodies = [event["body"] for event in lab.events() if event["body"].get("op") == "told"]
    return [(body["event"], body["message"]) for body in bodies]


def test_lc1_without_a_terminal_the_defaults_are_written_and_approval_required_is_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    before = manifest.digest(manifest.scan(lab.experiment.repo))
    assert lab.init("--set", "compute_cap=30 min", "--json") == 0
    details = json.loads(capsys.readouterr().out)["details"]
    assert (details["mode"], details["asked"], details["opened"]) == ("run", False, True)
    assert {"COMPUTE.md", "DATA.md", "BUDGET.md"} <= {path.name for path in lab.folder.iterdir()}
    found = lab.campaign()
    assert (found.metric, found.direction, found.baseline) == ("rate", "higher", "0.01")
    assert (found.budget.cap_s, found.budget.seconds_per_experiment) == (1800.0, 20.0)
    [(event, message)] = told(lab)
    assert event == "approval_required" and "30 min in all" in message
    gates.may_run(Folder(lab.folder))
    assert manifest.digest(manifest.scan(lab.experiment.repo)) == before


def test_lc1_no_experiment_starts_before_compute_data_and_budget_are_there(lab: Lab) -> None:
    lab.init()
    for name in ("COMPUTE.md", "DATA.md", "BUDGET.md"):
        text = (lab.folder / name).read_text()
        (lab.folder / name).unlink()
        with pytest.raises(NotLegalNow, match=f"there is no {name}"):
            gates.may_run(Folder(lab.folder))
        (lab.folder / name).write_text(text)
    gates.may_run(Folder(lab.folder))


def test_lc32_on_a_terminal_compute_data_and_budget_are_asked_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    answers = Terminal("local\nthe lab's disk\n3 h\n")
    monkeypatch.setattr("sys.stdin", answers)
    monkeypatch.setattr("sys.stderr", Terminal())
    assert lab.init() == 0 and lab.init() == 0
    assert answers.read() == ""
    assert lab.campaign().budget.compute_cap == "3 h"
    assert "source = the lab's disk" in (lab.folder / "DATA.md").read_text()
    assert told(lab) == []


def test_lc32_a_launcher_of_the_user_s_needs_an_approval_and_ray_needs_a_launcher(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.init("--compute", "ray") == 2
    assert "add --launcher" in capsys.readouterr().err
    assert lab.init("--compute", "command", "--launcher", "ssh host {command}") == 2
    assert lab.init("--compute", "command", "--launcher", "ssh host {command}", "--approve", "our host") == 0
    [approval] = [event["body"] for event in lab.events() if event["type"] == "approval"]
    assert approval["reason"] == "our host" and "ssh" not in json.dumps(approval)
    assert folder.keys_of((lab.folder / "COMPUTE.md").read_text())["launcher"] == "ssh host {command}"


def test_lc33_a_launcher_that_deletes_or_pushes_by_force_needs_an_approval(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.init("--launcher", "rm -rf /tmp/x && {command}") == 23
    assert "a recursive delete" in capsys.readouterr().err
    assert lab.init("--launcher", "git push --force; {command}") == 23
    assert not (lab.experiment.root / "events.jsonl").exists() or lab.events() == []


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("git push --force origin x", "a forced push"),
        ("git -C a push -fu origin x", "a forced push"),
        ("git push origin +main", "a forced push"),
        ("git push --mirror host", "a forced push"),
        ("cd x && rm -fr y", "a recursive delete"),
        ("rm --recursive y", "a recursive delete"),
        ("find . -name '*.pt' -delete", "a recursive delete"),
        ("find out -exec rm {} +", "a recursive delete"),
        ("git clean -xfd", "a git clean"),
        ("pkill -f train", "a kill of processes by name"),
        ("kill -9 12", "a kill by signal 9"),
        ("kill -s KILL 12", "a kill by signal 9"),
        ("agent --prompt {prompt} --format json", None),
        ("git push origin topic", None),
        ("rm -f out.log", None),
        ("find . -name x", None),
        ("kill -TERM $CHILD", None),
        ("python train.py --form -r 3", None),
    ],
)
def test_lc33_what_a_command_line_may_not_hold_without_an_approval(command: str, what: str | None) -> None:
    assert approvals.danger(command) == what
    if what is None:
        approvals.require(command, None)
        return
    with pytest.raises(NotLegalNow, match=what):
        approvals.require(command, " ")
    approvals.require(command, "agreed")


def test_a_second_init_changes_no_byte_and_opens_nothing(lab: Lab) -> None:
    assert lab.init() == 0
    before = manifest.digest(manifest.scan(lab.folder))
    count = len(lab.events())
    assert lab.init() == 0
    assert (manifest.digest(manifest.scan(lab.folder)), len(lab.events())) == (before, count)


def test_without_compute_a_campaign_is_design_only_and_names_no_metric_s_value(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.init("--compute", "none") == 0
    found = lab.campaign()
    assert (found.mode, found.goal.state, found.baseline) == ("design_only", "design_only", "")
    assert told(lab)[-1][1].startswith("design-only")
    assert lab.cartlab("campaign", "init", "other", "--set", "metric=m") == 2
    assert "must know its direction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--set", "metric=loss"), "metric must be the protocol's rate"),
        (("--set", "seconds_per_experiment=7"), "seconds_per_experiment must be the protocol's 20"),
        (("--set", "parallelism=17"), "parallelism must be at most 16"),
        (("--set", "colour=red"), "has no limit 'colour'"),
        (("--set", "compute_cap"), "--set expects KEY=VALUE"),
    ],
)
def test_a_budget_that_contradicts_is_refused_and_nothing_is_written(
    lab: Lab, words: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.init(*words) in (2, 25)
    assert what in capsys.readouterr().err
    assert not lab.folder.exists()


def test_lc4_a_limit_that_a_person_edits_is_taken_up_and_recorded(lab: Lab) -> None:
    lab.init()
    path = lab.folder / "BUDGET.md"
    path.write_text(path.read_text().replace("= 2 GPU-h", "= 45 min").replace("# hours", "# ours: hours"))
    lab.init()
    assert lab.campaign().budget.cap_s == 2700
    assert [e["body"]["op"] for e in lab.events() if e["type"] == "goal"][-1] == "budget"
    assert "# ours: hours" in path.read_text()
    path.write_text(
        path.read_text().replace("metric                 = rate", "metric                 = loss")
    )
    assert lab.init() == 25


def test_a_campaign_s_folder_lies_outside_the_repository(lab: Lab) -> None:
    repo = lab.experiment.repo
    with pytest.raises(BadRoot, match="outside the repository"):
        folder.place("slope", {"AUTORESEARCH_RUNS_DIR": str(repo / "runs")}, repo)
    with pytest.raises(BadInput, match="slug must be"):
        folder.place("../slope", {}, repo)
    assert folder.place("slope", {"HOME": "/home/x"}, repo) == Path("/home/x/autoresearch-runs/slope")


def test_the_command_line_offers_every_provider() -> None:
    from cartlab.cli import campaign_init

    assert campaign_init.PROVIDERS == opening.PROVIDERS


# --- before planning ------------------------------------------------------------------------------


def written(path: Path, **changes: str) -> Folder:
    for name, text in {**DOCUMENTS, **{f"{key}.md": text for key, text in changes.items()}}.items():
        (path / name).write_text(text)
    return Folder(path)


@pytest.mark.parametrize("name", gates.BEFORE_PLAN)
def test_lc30_a_document_that_is_missing_or_empty_is_named(name: str, tmp_path: Path) -> None:
    place = written(tmp_path)
    assert gates.may_plan(place)["K"] == "scale first"
    (tmp_path / name).write_text("# only a heading\n<!-- and a\ncomment -->\n")
    with pytest.raises(NotLegalNow, match=f"planning needs {name}; nothing is written"):
        gates.may_plan(place)
    (tmp_path / name).unlink()
    with pytest.raises(NotLegalNow, match=f"planning needs {name}; there is none"):
        gates.may_plan(place)


def test_lc30_all_documents_that_are_not_written_are_named_at_once(tmp_path: Path) -> None:
    place = written(tmp_path, TASK="# Task\n", DEEPRESEARCH="# Deep research\n")
    with pytest.raises(NotLegalNow, match=r"planning needs TASK\.md, DEEPRESEARCH\.md; nothing is written"):
        gates.may_plan(place)


@pytest.mark.parametrize("heading", folder.PREVIOUS_WORK)
def test_lc30_each_heading_of_the_previous_work_is_asked_for_by_name(heading: str, tmp_path: Path) -> None:
    text = DOCUMENTS["PREVIOUS_WORK.md"]
    with pytest.raises(NotLegalNow, match=f"must have the heading `## {heading}`"):
        gates.may_plan(written(tmp_path, PREVIOUS_WORK=text.replace(f"## {heading}\n", "")))


def test_lc30_an_uncited_bullet_is_named_by_its_line(tmp_path: Path) -> None:
    said = "# Survey\n- good https://example.org/a\n\n- everybody knows that\n"
    with pytest.raises(
        NotLegalNow, match=r"DEEPRESEARCH.md line 4: every bullet must have a URL or file:line"
    ):
        gates.may_plan(written(tmp_path, DEEPRESEARCH=said))
    hidden = "<!-- two\nlines -->\n- it is known\n"
    with pytest.raises(NotLegalNow, match=r"DEEPRESEARCH.md line 3"):
        gates.may_plan(written(tmp_path, DEEPRESEARCH=hidden))
    work = DOCUMENTS["PREVIOUS_WORK.md"].replace("(train.py:4)", "")
    with pytest.raises(NotLegalNow, match=r"PREVIOUS_WORK.md line 8: every bullet"):
        gates.may_plan(written(tmp_path, DEEPRESEARCH=DOCUMENTS["DEEPRESEARCH.md"], PREVIOUS_WORK=work))


def test_lc30_a_heading_without_a_bullet_is_named_by_its_line(tmp_path: Path) -> None:
    work = DOCUMENTS["PREVIOUS_WORK.md"].replace("- a larger rate (train.py:4)\n", "")
    with pytest.raises(NotLegalNow, match=r"PREVIOUS_WORK.md line 7: .* has no bullet"):
        gates.may_plan(written(tmp_path, PREVIOUS_WORK=work))


def test_lc8_lc30_idea_angles_says_where_there_are_ideas_and_adds_angles() -> None:
    text = "# Ideas\n## A: opt\n- x\n### Angle G\n- none yet\n## J. odd\n- y\n- z\n## L \u2014 heat\n- w\n"
    angles, ideas = gates.idea_angles(text)
    assert angles["L"] == "heat" and angles["A"] == "optimisation and schedule"
    assert ideas == {"A": ["x"], "J": ["y", "z"], "L": ["w"]}


def test_lc2_an_edit_without_a_hypothesis_is_seen_however_it_is_hidden(lab: Lab) -> None:
    lab.init()
    repo, place, campaign = lab.experiment.repo, lab.experiment.folder, lab.campaign()
    (place / "notes.txt").write_text("free")
    assert edits.edit_of(repo, campaign) is None
    (place / "config.json").write_text('{"rate": 0.02}')
    git(repo, "update-index", "--skip-worktree", "slope/config.json")
    found = edits.edit_of(repo, campaign)
    assert found is not None and [(one.path, one.what) for one in found] == [("slope/config.json", "changed")]


# --- documents ------------------------------------------------------------------------------------


def test_lc20_text_outside_the_rendered_block_is_kept() -> None:
    first = folder.with_block(None, "one", "# Head")
    assert folder.block_of(first).strip() == "one" and first.startswith("# Head\n")
    people = first.replace("# Head", "# Head\n\nmine") + "\nbelow is mine too\n"
    second = folder.with_block(people, "two", "# Head")
    assert second == people.replace("one", "two")
    assert folder.with_block(second, "two", "# Head") == second
    assert folder.with_block("only people's\n", "x", "# Head").startswith("only people's\n\n<!--")


# --- the notifier ---------------------------------------------------------------------------------


def test_lc27_the_notifier_is_called_with_event_and_message_and_its_failure_changes_nothing(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "said"
    script = tmp_path / "notify.sh"
    script.write_text(f'printf "%s|%s\\n" "$1" "$2" >> {log}; exit 3\n')
    (lab.experiment.repo / "autoresearch.toml").write_text(f'notify = "sh {script}"\n')
    assert lab.init() == 0
    assert log.read_text().startswith("approval_required|compute local, data as")
    assert "approval_required is recorded all the same" in capsys.readouterr().err
    assert [event for event, _ in told(lab)] == ["approval_required"]


def test_lc27_without_a_notifier_or_with_a_broken_configuration_nothing_fails(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab.experiment.repo / "autoresearch.toml").write_text("schema = \n")
    assert lab.init() == 0
    assert "autoresearch.toml must be TOML" in capsys.readouterr().err
    assert [event for event, _ in told(lab)] == ["approval_required"]
