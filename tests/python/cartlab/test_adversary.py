"""Candidates that cheat. Each test is one trick; none may become a faster verdict."""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import fake_project
import pytest
from fake_lab import instant_lab
from ledger_runs import a_block, ref

from cartlab import measure, sources
from cartlab.errors import BehaviourChanged, ComplianceFailed, Tampered, WorkerCrashed
from cartlab.ledger import Ledger
from cartlab.measure import worker
from cartlab.model import Build
from cartlab.pipeline.lab import Lab
from cartlab.pipeline.request import Request, Runner
from cartlab.pipeline.run import run

# With nothing gained the block value is near 0; a trick that halves a clock would show as ln 2 = 0.69.
NOTHING_GAINED = 0.5


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    return fake_project.make(tmp_path / "repo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def honest(project: fake_project.Project, root: Path) -> Build:
    return project.build(root)


def block(project: fake_project.Project, base: Build, cand: Build, index: int = 0, coin: int = 0) -> float:
    """What the candidate gained, by fake_project.gain."""
    return fake_project.gain(measure.run_block(project.plan(), index, coin, base, cand, repo=project.path))


def extended(project: fake_project.Project, root: Path, text: str) -> Build:
    """A candidate with a Python part that runs inside the worker."""
    project.write("extension.py", text)
    project.commit("extension")
    return project.build(root)


def test_a_candidate_that_edits_the_adapter_is_driven_by_the_controllers_adapter(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    before = measure.harness_hash(project.path, project.plan().workload)
    project.git("checkout", "-q", "-b", "cheat")
    project.write("harness/workload.py", "raise SystemExit('the edited adapter ran')\n")
    project.commit("edit the harness")
    cand = project.build(root)
    project.git("checkout", "-q", "main")
    assert measure.harness_hash(project.path, project.plan().workload) == before
    assert abs(block(project, honest, cand)) < NOTHING_GAINED


def test_a_candidates_sitecustomize_and_pth_files_never_run(
    project: fake_project.Project, root: Path, honest: Build, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    project.write("sitecustomize.py", f"open({str(trace)!r}, 'w')\n")
    project.write("usercustomize.py", f"open({str(trace)!r}, 'w')\n")
    project.write("cheat.pth", f"import os; open({str(trace)!r}, 'w')\n")
    project.commit("customise")
    cand = project.build(root)
    assert (Path(cand.path) / "sitecustomize.py").is_file()
    assert (Path(cand.path) / "cheat.pth").is_file()
    assert abs(block(project, honest, cand)) < NOTHING_GAINED
    assert not trace.exists()


def test_a_candidate_that_shadows_the_standard_library_changes_no_clock(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    project.write("time.py", "def perf_counter_ns(): return 0\ndef process_time_ns(): return 0\n")
    project.write("json.py", "raise SystemExit('shadowed')\n")
    project.write("hashlib.py", "raise SystemExit('shadowed')\n")
    project.commit("shadow")
    assert abs(block(project, honest, project.build(root))) < NOTHING_GAINED


def test_patching_time_changes_no_clock(project: fake_project.Project, root: Path, honest: Build) -> None:
    cand = extended(
        project,
        root,
        "import time\nreal = time.perf_counter_ns\ntime.perf_counter_ns = lambda: real() // 2\n"
        "time.perf_counter = lambda: real() / 2e9\n",
    )
    assert abs(block(project, honest, cand)) < NOTHING_GAINED


# So much that no machine is busy enough to hide it; test_clocks.py has the smaller ones.
@pytest.mark.parametrize("factor", ["// 4", "* 4"])
def test_patching_the_servers_own_clock_is_tampering(
    project: fake_project.Project, root: Path, honest: Build, factor: str
) -> None:
    text = f"import __main__\nreal = __main__._wall_ns\n__main__._wall_ns = lambda: real() {factor}\n"
    cand = extended(project, root, text)
    with pytest.raises(Tampered, match="the candidate's clock must agree") as error:
        measure.run_block(project.plan(slices=40, slice_ms=10.0), 0, 0, honest, cand, repo=project.path)
    assert error.value.exit_code == 16


SESSION = (
    "import sys\nSession = sys._getframe(1)\n"
    "while 'Session' not in Session.f_globals: Session = Session.f_back\n"
)


def test_fewer_steps_than_asked_for_are_seen(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    cand = extended(
        project,
        root,
        SESSION + "Session = Session.f_globals['Session']\n"
        "def run(self):\n    for actions in self.actions[::2]: self.kept.append(self.step(actions))\n"
        "Session.run = run\n",
    )
    with pytest.raises(WorkerCrashed, match="steps where"):
        block(project, honest, cand)


def test_fewer_steps_with_results_copied_to_fill_the_count_change_behaviour(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    cand = extended(
        project,
        root,
        SESSION + "Session = Session.f_globals['Session']\n"
        "def run(self):\n    for actions in self.actions[::2]: self.kept += 2 * [self.step(actions)]\n"
        "    del self.kept[len(self.actions):]\n"
        "Session.run = run\n",
    )
    with pytest.raises(BehaviourChanged, match="differ while timing: rewards"):
        block(project, honest, cand)


def test_observations_left_stale_once_nobody_seems_to_look_change_behaviour(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    # Honest for as long as `verify` lasts, then the observations are no longer written.
    at_step = "static int n; static uint8_t none[64]; if (++n > 22) seen = none;"
    project.commit("stale", at_step=at_step)
    cand = project.build(root)
    assert measure.verify_equal(project.plan(), honest, cand, repo=project.path).equal
    with pytest.raises(BehaviourChanged, match="the observation of step") as error:
        block(project, honest, cand)
    assert error.value.exit_code == 12


def test_work_put_off_until_after_the_slice_is_not_parked(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit(
        "thread",
        before="#include <pthread.h>\nstatic void *spin(void *p) { for (;;) ; return p; }",
        at_step="static pthread_t t; if (!t) pthread_create(&t, 0, spin, 0);",
    )
    cand = project.build(root)
    with pytest.raises(WorkerCrashed, match="threads of this build still run"):
        block(project, honest, cand)


@pytest.mark.parametrize("leave", ["", "setsid();"])
def test_a_child_left_spinning_is_tampering_and_is_killed(
    project: fake_project.Project, root: Path, honest: Build, leave: str
) -> None:
    project.commit(
        "child",
        before="#include <unistd.h>",
        at_step=f"static int n; if (!n++ && !fork()) {{ {leave} close(0); for (;;) ; }}",
    )
    cand = project.build(root)
    with pytest.raises(Tampered, match="must leave no process behind; 1 still ran") as error:
        block(project, honest, cand)
    assert error.value.exit_code == 16
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert cand.path not in listed


def test_nothing_that_a_worker_writes_at_home_is_there_for_the_next_one(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    cand = extended(
        project,
        root,
        "import os, tempfile\nfrom pathlib import Path\n"
        "for folder in (Path.home(), Path(tempfile.gettempdir()), Path.cwd()):\n"
        "    cache = folder / 'cartlab-cheat-cache'\n"
        "    if cache.exists(): raise SystemExit('found the cache')\n"
        "for folder in (Path.home(), Path(tempfile.gettempdir()), Path.cwd()):\n"
        "    (folder / 'cartlab-cheat-cache').write_text('results')\n",
    )
    for index in (0, 1):
        assert abs(block(project, honest, cand, index)) < NOTHING_GAINED


def test_a_worker_that_keeps_results_in_its_build_directory_is_tampering(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CONFINED", False)
    cand = extended(
        project,
        root,
        "import sys\nfrom pathlib import Path\n(Path(sys.path[0]) / 'cache').write_text('results')\n",
    )
    block(project, honest, cand, 0)
    with pytest.raises(Tampered, match="changed on disk"):
        block(project, honest, cand, 1)


def test_a_worker_that_slows_the_baselines_build_down_is_tampering(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CONFINED", False)
    cand = extended(
        project,
        root,
        "import sys\nfrom pathlib import Path\n"
        "here = Path(sys.path[0])\n"
        "for other in here.parents[1].glob('*/out'):\n"
        "    if other != here: (other / 'extension.py').write_text('import time; time.sleep(0.1)')\n",
    )
    block(project, honest, cand, 0)
    with pytest.raises(Tampered, match="changed on disk"):
        block(project, honest, cand, 1)


BUILD_SCRIPT = fake_project.CONFIG.replace("for part in", "test ! -f build.sh || sh build.sh; for part in")


def test_a_build_script_that_sleeps_in_the_baselines_build_is_tampering(tmp_path: Path, root: Path) -> None:
    assert "sh build.sh" in BUILD_SCRIPT
    project = fake_project.make(tmp_path / "scripted", BUILD_SCRIPT)
    base = project.build(root)
    project.write(
        "build.sh",
        'for other in "$CARTLAB_BUILD_DIR"/../../../builds/*/out; do'
        " echo 'import time; time.sleep(0.1)' > $other/extension.py; done\n",
    )
    project.commit("a build script")
    cand = project.build(root)
    assert (Path(base.path) / "extension.py").is_file()
    with pytest.raises(Tampered, match="changed on disk"):
        block(project, base, cand)
    # The next run makes the baseline anew instead of using what was left there.
    again = project.build(root, "HEAD~1")
    assert not again.cached and not (Path(again.path) / "extension.py").exists()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find what left its group")
def test_a_process_that_a_build_leaves_behind_is_killed_before_anything_is_timed(
    tmp_path: Path, root: Path
) -> None:
    project = fake_project.make(tmp_path / "scripted", BUILD_SCRIPT)
    project.write("build.sh", f"setsid sh -c 'while :; do :; done' {root.name}-left-behind & \n")
    project.commit("a build script")
    project.build(root)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert f"{root.name}-left-behind" not in listed


def test_a_symbolic_link_out_of_the_tree_is_refused_before_anything_is_built(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    (project.path / "extension.py").symlink_to(Path(honest.path).parent / "stamp.json")
    project.commit("link")
    with pytest.raises(ComplianceFailed, match="symbolic links must stay inside"):
        project.build(root)
    assert [path.name for path in (root / "builds").iterdir()] == [honest.build_id]
    sources.check(honest)


class Quiet:
    """A voice that says nothing."""

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def progress(self, line: str) -> None: ...


def noisy_lab(folder: Path, seed: int) -> Lab:
    """A laboratory in which every revision is as fast as any other and blocks have a sd of 2 %."""
    noise = random.Random(seed)
    lab = instant_lab(folder)
    return replace(
        lab,
        run_block=lambda plan, index, *_: a_block(index, noise.gauss(0.0, 0.02)),
        resolve=lambda _repo, text: ref(text),
    )


def test_fifty_no_ops_are_never_kept(project: fake_project.Project, tmp_path: Path) -> None:
    lab, place = noisy_lab(tmp_path / "lab", 4), (project.path, tmp_path / "root", Quiet())
    ends = set()
    for number in range(50):
        asked = Request(
            command="accept",
            tier="accept",
            base="base",
            cand=f"no-op {number}",
            runner=Runner(max_blocks=8),
        )
        ends.add(run(asked, lab, *place).status)
    assert ends <= {"inconclusive", "discard"}, ends


def test_one_no_op_submitted_fifty_times_gets_no_fifty_tickets(
    project: fake_project.Project, tmp_path: Path
) -> None:
    lab, place = noisy_lab(tmp_path / "lab", 8), (project.path, tmp_path / "root", Quiet())
    asked = Request(command="screen", tier="screen", base="base", cand="no-op")
    outs = [run(asked, lab, *place) for _ in range(50)]
    assert {out.attempt_id for out in outs} == {outs[0].attempt_id}
    measured = [event for event in Ledger.open(place[1]).events() if event["type"] == "block"]
    assert len(measured) == 6
    accepts = replace(asked, command="accept", tier="accept", runner=Runner(max_blocks=1))
    pooled = [run(accepts, lab, *place) for _ in range(50)]
    blocks = [out.blocks["pooled"] for out in pooled if not (out.details or {})["remembered"]]
    assert blocks == list(range(6, 6 + len(blocks)))
    assert not any(out.status.startswith("keep") for out in pooled)


def test_every_block_plays_other_actions_so_remembered_results_are_worthless(
    project: fake_project.Project, honest: Build
) -> None:
    digests = {
        measure.run_block(project.plan(attempt), index, 0, honest, honest, repo=project.path).digests["base"]
        for attempt in ("one", "two")
        for index in (0, 1)
    }
    assert len(digests) == 4


def test_a_candidate_that_prints_breaks_no_protocol(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    text = "import os, sys\nprint('{\"ns\": 1, \"cpu_ns\": 1}')\nos.write(1, b'noise')\nsys.stdin.read()\n"
    cand = extended(project, root, text)
    assert abs(block(project, honest, cand)) < NOTHING_GAINED


def test_a_candidates_worker_sees_nothing_of_the_callers_environment(
    project: fake_project.Project, root: Path, honest: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARTLAB_SECRET", "value")
    cand = extended(
        project, root, "import os\nif 'CARTLAB_SECRET' in os.environ: raise SystemExit('leaked')\n"
    )
    assert abs(block(project, honest, cand)) < NOTHING_GAINED
    assert os.environ["CARTLAB_SECRET"] == "value"


@pytest.mark.parametrize(
    ("op", "answer", "says"),
    [
        ("run", {}, "must answer run with ns"),
        ("run", {"ns": "1000", "cpu_ns": 1}, "must answer run with ns"),
        ("run", {"ns": True, "cpu_ns": 1}, "must answer run with ns"),
        ("run", {"ns": 1000}, "must answer run with cpu_ns"),
        ("run", ["ns"], "must answer run in JSON"),
        ("digest", {"digest": 0}, "must answer digest with digest"),
        ("verify", {"per_step": []}, "must answer verify with digest"),
        ("verify", {"digest": "", "per_step": [["label"]]}, "must answer verify with per_step"),
        ("verify", {"digest": "", "per_step": [5]}, "must answer verify with per_step"),
    ],
)
def test_an_answer_of_another_form_is_a_crash_of_its_side(
    project: fake_project.Project, root: Path, honest: Build, op: str, answer: object, says: str
) -> None:
    text = f"import __main__\n__main__.Server.{op} = lambda self, request: {answer!r}\n"
    cand = extended(project, root, text)
    with pytest.raises(WorkerCrashed, match=f"the candidate's worker {says}") as error:
        if op == "verify":
            measure.verify_equal(project.plan(), honest, cand, repo=project.path)
        else:
            block(project, honest, cand)
    assert error.value.exit_code == 15


def test_an_answer_that_is_nested_too_deeply_is_a_crash(
    project: fake_project.Project, root: Path, honest: Build
) -> None:
    text = (
        "import __main__\nreal = __main__.json.loads\n"
        "__main__.json = type('Json', (), {'loads': real, 'dumps': lambda answer: '[' * 10**5})\n"
    )
    cand = extended(project, root, text)
    with pytest.raises(WorkerCrashed, match="must answer open in JSON"):
        block(project, honest, cand)


def test_an_answer_without_end_is_cut(project: fake_project.Project, root: Path, honest: Build) -> None:
    text = "import __main__\n__main__.Server.run = lambda self, request: {'ns': 'x' * (40 << 20)}\n"
    cand = extended(project, root, text)
    with pytest.raises(WorkerCrashed, match="must answer run in one line; found 16 MiB"):
        block(project, honest, cand)
