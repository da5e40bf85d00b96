"""LH: the readiness gates of a handoff, and the two files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_experiment
from small_experiment import PYTHON, git

from cartlab.loops import handoff, manifest
from cartlab.loops.protocol import parse


def test_lh9_lh13_lh15_lh16_handoff_writes_two_files_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make(tmp_path)
    monkeypatch.chdir(one.repo)
    before = manifest.scan(one.repo)
    assert one.handoff("--hints", "start with the rate") == 0
    said = capsys.readouterr().out
    for line in ("- Protocol: ", "- Experiences: ", "- Baseline: error = 2.451218", "- Max rounds: 3"):
        assert line in said
    assert f"run autoresearch at {one.folder}" in said
    new = {change.path for change in manifest.changes(before, manifest.scan(one.repo))}
    assert new == {"slope/autoresearch-protocol.md", "slope/experiences.md"}
    text = (one.folder / "experiences.md").read_text(encoding="utf-8")
    assert "| 0 | ✅ | 2.451218 | — | baseline: slope | initial | start with the rate |" in text
    after = manifest.scan(one.repo)
    assert one.handoff("--hints", "start with the rate") == 0
    assert manifest.scan(one.repo) == after
    # LH15: a table of a loop that ran is not overwritten.
    (one.folder / "experiences.md").write_text(text.replace("status: not_started", "status: running"))
    assert one.handoff() == 23


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        ("## Autoresearch Protocol", "## Protocol", 25, "## Autoresearch Protocol"),
        ("- first_step_max_s: 20\n", "", 25, "first_step_max_s"),
        ("first_step_max_s: 20", "first_step_max_s: 0.000001", 23, "first step must print within"),
        ("- variable files: train.py, config.json", "- variable files: model.py", 23, "it has no model.py"),
        ("eval_command: {python} eval.py", "eval_command: echo error: 1 | cat", 23, "script must be named"),
        ("- fixed files: eval.py", "- fixed files: README.md", 0, "was added to Fixed.files"),
        ("eval_command: {python} eval.py", "eval_command: false eval.py", 23, "succeed outside training"),
        ("eval_command: {python} eval.py", "eval_command: cat eval.py", 23, "must print"),
        (
            "eval_command: {python} eval.py",
            "eval_command: {python} -c 'import time; print(time.time())' eval.py",
            23,
            "same value twice",
        ),
        # LH5: nobody is at the terminal, so an evaluation that asks gets the end of its input.
        ("eval_command: {python} eval.py", "eval_command: {python} -c 'input()' eval.py", 23, "EOFError"),
        (
            "- eval_command",
            "- profile_command: echo no counters >&2; exit 4\n- eval_command",
            23,
            "no counters",
        ),
        ("- eval_command", "- profile_command: true\n- eval_command", 23, "must print at least one line"),
        ("- metric", "- bounds: 0 to 1\n- metric", 23, "2.451218 lies outside the bounds 0 to 1"),
        ("- metric", "- nonce: yes\n- metric", 23, "must print one finite decimal"),
        ("checkpoint: out/model.json", "checkpoint: out/other.json", 23, "left no checkpoint"),
    ],
)
def test_lh_gates_name_what_they_expected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    code: int,
    says: str,
) -> None:
    one = small_experiment.make(tmp_path)
    monkeypatch.chdir(one.repo)
    design = one.folder / "DESIGN.md"
    text = design.read_text()
    old, new = old.replace("{python}", PYTHON), new.replace("{python}", PYTHON)
    assert old in text
    design.write_text(text.replace(old, new))
    git(one.repo, "commit", "-q", "-am", "another design")
    assert one.handoff() == code
    said = capsys.readouterr()
    assert says in said.out + said.err
    if code:
        assert not (one.folder / "experiences.md").exists()


def test_lh2_without_evidence_handoff_is_refused_and_with_it_the_value_is_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small_experiment.make(tmp_path)
    monkeypatch.chdir(one.repo)
    design = str(one.folder / "DESIGN.md")
    assert one.cartlab("handoff", design) == 2
    record = tmp_path / "vp-l1.json"
    place = tmp_path / "checkpoint" / "out" / "model.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"a": 2.0}')
    digest = handoff._sha256(place)
    body = {"metric": "error", "value": "1.000000", "checkpoint": {"out/model.json": digest}}
    record.write_text(json.dumps(body))
    assert one.cartlab("handoff", design, "--vp-evidence", str(record)) == 0
    assert parse((one.folder / "autoresearch-protocol.md").read_text(encoding="utf-8")).baseline == "1.000000"
    place.write_text('{"a": 3.0}')
    assert one.cartlab("handoff", design, "--vp-evidence", str(record)) == 25


def test_lh4_training_that_does_not_end_by_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make(
        tmp_path, train__py="import time\nprint('step=0', flush=True)\ntime.sleep(60)\n"
    )
    monkeypatch.chdir(one.repo)
    monkeypatch.setattr(handoff, "TRAIN_GRACE_S", 0.2)
    assert one.handoff("--pressure-seconds", "0.2") == 23
    assert "must end by itself" in capsys.readouterr().err


def test_lh4_the_pressure_is_on_both_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "limits"
    log.touch()
    told = (
        "import os\n"
        "limits = [os.environ['AR_TIME_LIMIT'], os.environ['AR_EPOCH_LIMIT']]\n"
        f"print(*limits, file=open({str(log)!r}, 'a'))\n"
    )
    one = small_experiment.make(tmp_path, train__py=told + small_experiment.TRAIN)
    monkeypatch.chdir(one.repo)
    design = one.folder / "DESIGN.md"
    design.write_text(design.read_text().replace("epoch_limit: 1", "epoch_limit: 30"))
    git(one.repo, "commit", "-q", "-am", "more epochs")
    assert one.handoff("--pressure-seconds", "2") == 0
    assert log.read_text().splitlines() == ["20 30", "2 1", "20 30"]


def test_lh7_a_profile_command_that_was_never_written_stops_the_handoff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make(tmp_path, more="- profile_command: TODO: build in VP L1")
    monkeypatch.chdir(one.repo)
    assert one.handoff() == 23
    assert "Build phase did not produce a profile_command" in capsys.readouterr().err


def test_lh14_a_tree_with_changes_is_refused_and_the_two_files_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make(tmp_path)
    monkeypatch.chdir(one.repo)
    for name, edit in (("train.py", "import sys\n"), ("new.py", "")):
        (one.folder / name).write_text(edit)
        assert one.handoff() == 23
        assert f"needs a clean work tree; changed paths: 1, slope/{name}" in capsys.readouterr().err
        git(one.repo, "stash", "-u", "-q")
    (one.folder / "autoresearch-protocol.md").write_text("an older one\n")
    assert one.handoff() == 0


def test_lh_every_gate_is_the_library_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who calls the library gets no file either before the gates hold."""
    from cartlab.cli.talk import Talk
    from cartlab.errors import CartlabError
    from cartlab.loops.design import parse_design

    one = small_experiment.make(tmp_path)
    monkeypatch.chdir(one.repo)
    text = (one.folder / "DESIGN.md").read_text()

    def hand(old: str = "", new: str = "", run_vp: bool = True) -> handoff.Handoff:
        design = parse_design(text.replace(old, new) if old else text)
        place = tmp_path / "root" / f"{hash((old, new))}"
        work = handoff.Handoff(one.repo, one.folder, design, place, Talk(as_json=True))
        work.carry_out(run_vp=run_vp)
        return work

    with pytest.raises(handoff.GateFailed, match="needs the evidence of VP L1"):
        hand(run_vp=False)
    for old, new, says in (
        ("first_step_max_s: 20", "first_step_max_s: 0.000001", "first step must print"),
        ("checkpoint: out/model.json", "checkpoint: out/other.json", "left no checkpoint"),
        (f"eval_command: {PYTHON} eval.py", "eval_command: false eval.py", "succeed outside training"),
    ):
        with pytest.raises(CartlabError, match=says):
            hand(old, new)
    assert not (one.folder / "experiences.md").exists()
    assert not (one.folder / "autoresearch-protocol.md").exists()
    assert hand().protocol.baseline == "2.451218" and (one.folder / "experiences.md").is_file()


KERNELS = """
```yaml
kernel_targets:
  - name: double
    new_module: fast:double
    baseline_module: plain:double
    fixture: plain:inputs
```
"""
PLAIN = (
    "import numpy\ndef double(x):\n    return x * 2\ndef inputs():\n    return (numpy.random.rand(4),), {}\n"
)


def test_lh8_ls19_a_kernel_s_parity_is_a_gate_of_handoff_and_of_every_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = small_experiment.make(tmp_path, more=KERNELS, plain__py=PLAIN)
    monkeypatch.chdir(one.repo)
    monkeypatch.setenv("PATH", f"{Path(PYTHON).parent}:/usr/bin:/bin")
    assert one.handoff() == 23
    assert "create fast.py as a re-export of plain" in capsys.readouterr().err
    (one.folder / "fast.py").write_text("from plain import double\n")
    design = one.folder / "DESIGN.md"
    design.write_text(design.read_text().replace("train.py, config.json", "train.py, config.json, fast.py"))
    git(one.repo, "add", "-A")
    git(one.repo, "commit", "-q", "-m", "a re-export")
    assert one.handoff() == 0
    body = """
if round == 1: (work / "fast.py").write_text("def double(x):\\n    return x * 2.5\\n")
elif round == 2: (work / "fast.py").write_text("def double(y):\\n    return y * 2\\n")
else: (work / "fast.py").write_text("def double(x):\\n    x *= 2\\n    return x\\n")
"""
    assert one.supervise(body) == 0
    rows = one.table()
    assert [row[3] for row in rows[1:]] == ["parity_violation"] * 3
    assert rows[1][1].startswith("❌ parity(double): numerical 4 of 4 elements differ")
    assert rows[2][5].startswith("PARITY_FAIL target=double kind=signature detail=new(y) vs baseline(x)")
    # LA21: a kernel that works in place is not the same function.
    assert rows[3][1].startswith("❌ parity(double)")
    assert one.cartlab("verify") == 0
